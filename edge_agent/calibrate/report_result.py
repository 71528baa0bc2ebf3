"""The first half of a report: the verdict, before and after, the gates, the lines that changed."""

from __future__ import annotations

import base64
import math
from collections.abc import Callable, Sequence
from difflib import SequenceMatcher

from edge_agent.calibrate import charts
from edge_agent.calibrate.findings import MOST_CHANGED, ChangedText, Figure, Findings, Picture, Size
from edge_agent.calibrate.judgement import GateResult
from edge_agent.calibrate.markup import Markup, element, joined
from edge_agent.calibrate.report_table import Column, amount, folded, items, table
from edge_agent.calibrate.report_words import (
    NO_VALUE,
    bound_of,
    byte_size,
    count_of,
    headline,
    joules,
    milliseconds,
    name_of,
    number,
    percent,
    quantity,
    ratio,
    sentence,
    signed,
)
from edge_agent.calibrate.timing import RunTimes

SECOND_LOOK = frozenset({"box_precision", "box_recall", "changed_fields", "repeat_cer"})
SECOND_LOOK_NOTE = (
    "{0}'s own agreement is of a second look at the same frames with a camera's noise on them: what it leaves "
    "undecided itself is not held against INT8."
)
NOT_TIMED = RunTimes(math.nan, math.nan, math.nan, 0)
BADGES = {
    "promoted": ("INT8 in use", "M4 12.5l5 5L20 6.5"),
    "passed": ("INT8 would be used", "M4 12.5l5 5L20 6.5"),
    "refused": ("INT8 refused", "M6 6l12 12M18 6L6 18"),
}


def verdict(findings: Findings) -> Markup:
    """What came of it, why, and what to try."""
    word, path = BADGES[findings.verdict]
    icon = element("svg", {"viewBox": "0 0 24 24", "aria-hidden": "true"}, element("path", {"d": path}))
    parts = [element("p", {"class": "badge"}, icon, word), element("h1", {}, headline(findings))]
    if findings.reasons:
        parts.append(items([sentence(reason) for reason in findings.reasons]))
    if findings.advice:
        parts += [element("h2", {}, "What to try"), items([sentence(advice) for advice in findings.advice])]
    return element("div", {"class": f"verdict {findings.verdict}"}, *parts)


def tiles(findings: Findings) -> Markup:
    """The figures that people ask for first."""
    before, after, timing = findings.before, findings.after, findings.timing
    shown: list[tuple[str, str, str]] = []
    if timing is not None:
        times = f"{milliseconds(timing.float_.mean_ms)} → {milliseconds(timing.int8.mean_ms)}"
        shown.append(("Speed", ratio(timing.speedup), times))
    if after is not None and after.file_bytes is not None and before.file_bytes:
        sizes = f"{byte_size(before.file_bytes)} → {byte_size(after.file_bytes)}"
        shown.append(("Size of the file", ratio(after.file_bytes / before.file_bytes), sizes))
    for gate in accuracy_gates(findings)[:1]:
        shown.append((name_of(gate.name), quantity(gate.value, gate.unit), f"gate: {bound_of(gate)}"))
    if timing is not None and timing.float_.energy_j and timing.int8.energy_j is not None:
        energies = f"{joules(timing.float_.energy_j)} → {joules(timing.int8.energy_j)}"
        shown.append(("Energy per inference", ratio(timing.int8.energy_j / timing.float_.energy_j), energies))
    if findings.groups:
        int8 = [group for group in findings.groups if group.quantised]
        layers = sum(len(group.nodes) for group in int8), sum(len(group.nodes) for group in findings.groups)
        tried = "Layers tried in INT8" if findings.verdict == "refused" else "Layers in INT8"
        shown.append((tried, f"{layers[0]} of {layers[1]}", f"{len(int8)} of {len(findings.groups)} groups"))
    return element("dl", {"class": "tiles"}, *(tile(*one) for one in shown)) if shown else Markup("")


def tile(name: str, value: str, below: str) -> Markup:
    """One figure, large."""
    big, small = element("dd", {"class": "big"}, value), element("dd", {"class": "small"}, below)
    return element("div", {}, element("dt", {}, name), big, small)


def accuracy_gates(findings: Findings) -> list[GateResult]:
    """The gates on accuracy: those that failed first."""
    return sorted((gate for gate in findings.gates if gate.name != "speedup"), key=lambda gate: gate.passed)


def before_after(findings: Findings) -> Markup:
    """Each figure of both engines side by side."""
    float_name = findings.float_precision
    columns = (
        Column("", ""),
        Column(float_name, "n", f"{float_name} "),
        Column("INT8", "n", "INT8 "),
        Column("Change", "n", "Change "),
        Column("Compared", "chart full"),
    )
    rows = cost_rows(findings) + [figure_row(one) for one in findings.figures if is_compared(one)]
    keys = element("span", {"class": "key"}), f"{float_name} ", element("span", {"class": "key int8"}), "INT8"
    twice = any(one.float_value is not None and one.name in SECOND_LOOK for one in findings.figures)
    key = joined(*keys, "; each row has a scale of its own. ", SECOND_LOOK_NOTE.format(float_name) if twice else "")
    note = speed_note(findings)
    return section(
        "before-after",
        "Before and after",
        *([element("p", {"class": "quiet"}, note)] if note else []),
        table("Size, speed and error of both engines", columns, rows),
        element("p", {"class": "note"}, key),
        *shape_times(findings),
    )


def speed_note(findings: Findings) -> str:
    """How speed and energy were measured."""
    found = findings.timing
    if found is None:
        return "" if findings.after else "No INT8 engine came into being, so there is nothing to hold against it."
    no_energy = f" No energy: {'; '.join(found.no_energy)}." if found.no_energy and not found.int8.energy_j else ""
    return (
        f"Both engines ran by turns on the same recorded inputs, in one run on this device, {found.int8.runs:,} times "
        f"each: {ratio(found.speedup)} as fast, {ratio(found.speedup_low)} to {ratio(found.speedup_high)} in 90 % of "
        f"resamplings.{no_energy}"
    )


def shape_times(findings: Findings) -> list[Markup]:
    """The time of both engines for each shape of input."""
    if findings.timing is None or len(findings.timing.feeds) < 2:
        return []
    columns = (
        Column("Shape of the input"),
        Column("Weight", "n", "Weight "),
        Column(findings.float_precision, "n", f"{findings.float_precision} "),
        Column("INT8", "n", "INT8 "),
        Column("Change", "n", "Change "),
        Column("Compared", "chart full"),
    )
    whole = sum(feed.weight for feed in findings.timing.feeds) or 1.0
    rows = [
        (
            feed.shape.replace("x", " × "),
            percent(feed.weight / whole),
            milliseconds(feed.float_ms),
            milliseconds(feed.int8_ms),
            change(feed.float_ms, feed.int8_ms),
            charts.pair_of_bars(feed.float_ms, feed.int8_ms),
        )
        for feed in findings.timing.feeds
    ]
    return [folded("Time by shape of the input", table("Time by shape of the input", columns, rows))]


def cost_rows(findings: Findings) -> list[Sequence[str]]:
    """What both engines cost; rows without any value are left out."""
    before, after = findings.before, findings.after or Size(None)
    timing = findings.timing
    old, new = (timing.float_, timing.int8) if timing else (NOT_TIMED, NOT_TIMED)
    costs: tuple[tuple[str, float | None, float | None, Callable[[float | None], str]], ...] = (
        ("Size of the file", before.file_bytes, after.file_bytes, byte_size),
        ("Time per inference, mean", old.mean_ms, new.mean_ms, milliseconds),
        ("Time per inference, median", old.p50_ms, new.p50_ms, milliseconds),
        ("Time per inference, 95th percentile", old.p95_ms, new.p95_ms, milliseconds),
        ("Energy per inference", old.energy_j, new.energy_j, joules),
        ("Memory of the engine, at most", before.memory_bytes, after.memory_bytes, byte_size),
    )
    return [
        (name, form(was), form(now), change(was, now), charts.pair_of_bars(was, now))
        for name, was, now, form in costs
        if any(value is not None and math.isfinite(value) for value in (was, now))
    ]


def change(old: float | None, new: float | None) -> str:
    """New over old, coloured by which way it went; less is better."""
    if not old or new is None:
        return NO_VALUE
    css = "better" if new < 0.98 * old else "worse" if new > 1.02 * old else "quiet"
    return element("span", {"class": css}, ratio(new / old))


def is_compared(figure: Figure) -> bool:
    """Whether a figure belongs beside float's; the others are counts of what was judged."""
    return figure.unit != "count" or figure.float_value is not None


def figure_title(figure: Figure) -> str:
    """What a figure is called."""
    name = name_of(figure.name)
    return f"{name}, {figure.scope}" if figure.scope else name


def figure_row(figure: Figure) -> Sequence[str]:
    """One error figure of both engines."""
    old, new = figure.float_value, figure.int8_value
    bars = charts.pair_of_bars(old, new) if old is not None and new is not None else Markup("")
    if old is None or new is None:
        changed: str = NO_VALUE
    elif figure.unit == "share":
        points = signed(f"{100 * (new - old):+.2f}")
        changed = f"{points} points" if points.strip("+−0.") else "none"
    else:
        changed = f"{'+' if new > old else ''}{number(new - old)}"
    return figure_title(figure), quantity(old, figure.unit), quantity(new, figure.unit), changed, bars


def gates(findings: Findings) -> Markup:
    """Every gate with its bound, and what to do about those that failed."""
    intro = "Judged on frames that were held out, never on those that ranges were measured on. All must hold."
    if not findings.gates:
        return section("gates", "Gates", element("p", {"class": "quiet"}, f"{intro} None was reached."))
    columns = [Column("Gate"), Column("Measured", "n", "Measured "), Column("Bound", "n"), Column("Held", "state")]
    rows = [
        [name_of(gate.name), quantity(gate.value, gate.unit), bound_of(gate), held(gate)] for gate in findings.gates
    ]
    said = set(findings.advice)  # at the top already
    if any(gate.advice and gate.advice not in said for gate in findings.gates):
        columns.append(Column("What to do", "why full"))
        advices = ["" if gate.advice in said else sentence(gate.advice) for gate in findings.gates]
        rows = [[*row, advice] for row, advice in zip(rows, advices, strict=True)]
    parts = [element("p", {"class": "quiet"}, intro), table("Gates", columns, rows)]
    return section("gates", "Gates", *parts, *judged_on(findings))


def judged_on(findings: Findings) -> list[Markup]:
    """What was judged, counted: of the model by itself, and of whole readings."""
    counts: dict[str, list[Figure]] = {}
    for figure in findings.figures:
        if not is_compared(figure):
            counts.setdefault(figure.scope, []).append(figure)
    parts: list[Markup] = []
    for scope, figures in counts.items():
        parts += [element("h3", {}, f"Of {scope}")] if scope else []
        amounts = (amount(name_of(one.name), quantity(one.int8_value, one.unit)) for one in figures)
        parts.append(element("dl", {"class": "funnel"}, *amounts))
    return parts


def held(gate: GateResult) -> Markup:
    """Whether it held."""
    return element("span", {"class": "held" if gate.passed else "broken"}, "✓ held" if gate.passed else "✕ failed")


def changed_lines(findings: Findings) -> Markup:
    """Lines that INT8 reads otherwise, with their pictures."""
    shown = findings.changed[:MOST_CHANGED]
    count = max(findings.changed_count, len(findings.changed))
    if not shown:
        none = "Not one line changed." if findings.gates else "None were compared."
        return section("changed", "Lines that changed", element("p", {"class": "quiet"}, none))
    intro = f"{count_of(count, 'line')} of the held-out frames came out otherwise"
    intro += f"; {len(shown)} of them are shown." if count > len(shown) else "."
    cards = element("ul", {"class": "lines"}, *(element("li", {}, changed_line(line, findings)) for line in shown))
    return section("changed", "Lines that changed", element("p", {"class": "quiet"}, intro), cards)


def changed_line(line: ChangedText, findings: Findings) -> Markup:
    """One line: its picture, and both texts with their differences marked."""
    says: list[tuple[str, str]]
    if findings.task == "text_embedding":
        says = [("Line", line.frame), (findings.float_precision, line.float_text), ("INT8", line.int8_text)]
    else:
        old, new = marked(line.float_text, line.int8_text)
        says = [(findings.float_precision, old), ("INT8", new)]
        says += [] if line.label is None else [("True", line.label)]
        says.append(("Frame", element("span", {"class": "from"}, line.frame)))
    rows = [joined(element("dt", {}, name), element("dd", {}, element("bdi", {}, value))) for name, value in says]
    texts = element("dl", {}, *rows)
    if line.crop is None:
        return texts
    picture = image(line.crop, f"Picture of the line: {line.float_text or line.int8_text}")
    return joined(element("div", {"class": "crop"}, picture), texts)


def marked(old: str, new: str) -> tuple[Markup, Markup]:
    """Both texts, what only one of them has marked in it; nothing at all says so."""
    left: list[str] = []
    right: list[str] = []
    for kind, a, b, c, d in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        left.append(old[a:b] if kind == "equal" else element("del", {}, old[a:b]) if b > a else "")
        right.append(new[c:d] if kind == "equal" else element("ins", {}, new[c:d]) if d > c else "")
    nothing = element("span", {"class": "quiet"}, "nothing found")
    return joined(*left) if old else nothing, joined(*right) if new else nothing


def image(picture: Picture, alt: str) -> Markup:
    """A picture inside the page; its name where its bytes were not kept."""
    if not picture.jpeg:
        return element("span", {"class": "quiet"}, f"{picture.name} (picture not kept)")
    source = Markup(f"data:image/jpeg;base64,{base64.b64encode(picture.jpeg).decode('ascii')}")
    size = {"width": str(picture.width_px), "height": str(picture.height_px)}
    return element("img", {"src": source, "alt": alt, "title": picture.name, **size})


def section(key: str, title: str, *content: str) -> Markup:
    """A part of the page under a heading of its own."""
    heading = element("h2", {"id": f"{key}-title"}, title)
    return element("section", {"id": key, "aria-labelledby": f"{key}-title"}, heading, *content)
