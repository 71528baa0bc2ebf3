"""Tables of a report: on a narrow screen each row becomes a card, and stays a row for screen readers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from edge_agent.calibrate.markup import Markup, element, joined
from edge_agent.calibrate.report_words import NO_VALUE


@dataclass(frozen=True)
class Column:
    """One column: `css` of its cells. `on_card`: stands before the value there; "" where the value says enough."""

    name: str
    css: str = ""
    on_card: str = ""
    drawn: Markup | None = None
    """Stands in the head in place of the name, which is then for screen readers alone."""


def table(caption: str, columns: Sequence[Column], rows: Sequence[Sequence[str]]) -> Markup:
    """Rows of cells, the first of each names the row; cells that are no Markup are text."""
    head = element("tr", {"role": "row"}, *(heading(column) for column in columns))
    body = [element("tr", {"role": "row"}, *cells(columns, row)) for row in rows]
    whole = element(
        "table",
        {"class": "cards", "role": "table"},
        element("caption", {}, caption),
        element("thead", {"role": "rowgroup"}, head),
        element("tbody", {"role": "rowgroup"}, *body),
    )
    return element("div", {"class": "scroll"}, whole)


def heading(column: Column) -> Markup:
    """A column's head."""
    attributes = {"scope": "col", "role": "columnheader", **of_class(column.css)}
    if column.drawn is None:
        return element("th", attributes, column.name)
    return element("th", {**attributes, "aria-label": column.name}, column.drawn)


def cells(columns: Sequence[Column], row: Sequence[str]) -> list[Markup]:
    """A row's cells, each under its column."""
    first, *others = zip(columns, row, strict=True)
    found = [element("th", {"scope": "row", "role": "rowheader", **of_class(first[0].css)}, first[1])]
    for column, cell in others:
        on_card = {"data-is": column.on_card} if column.on_card else {}
        css = f"{column.css} bare".strip() if cell == NO_VALUE else column.css
        found.append(element("td", {"role": "cell", **of_class(css), **on_card}, cell))
    return found


def of_class(css: str) -> Mapping[str, str]:
    """The class attribute, where there is one."""
    return {"class": css} if css else {}


def facts(pairs: Sequence[tuple[str, str]]) -> Markup:
    """Names with what they are."""
    return element("dl", {"class": "facts"}, *(joined(element("dt", {}, k), element("dd", {}, v)) for k, v in pairs))


def folded(summary: str, *content: str) -> Markup:
    """Content that opens at a click."""
    return element("details", {}, element("summary", {}, summary), *content)


def items(values: Sequence[str]) -> Markup:
    """A list."""
    return element("ul", {}, *(element("li", {}, value) for value in values))


def amount(name: str, value: str) -> Markup:
    """A count with its name, one of a row of them."""
    return element("div", {}, element("dt", {}, name), element("dd", {}, value))
