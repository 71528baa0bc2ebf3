"""Products: the product names of a label, held against the catalogue."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from edge_agent.records import DOUBTFUL, FROM_CATALOGUE, Field
from edge_agent.stages.catalogue import Catalogue, Match
from edge_agent.stages.field_values import UNNAMED_DATE
from edge_agent.stages.found_values import Label

PRODUCT_NAME = "product_name"
PRODUCT_ID = "product_id"
NOT_IN_CATALOGUE = "not_in_catalogue"
AMBIGUOUS = "ambiguous"
# what may stand in the line of a product's name without naming it something else
_BESIDE = frozenset({PRODUCT_NAME, "weight_volume", UNNAMED_DATE})
MIN_LETTERS = 4


def with_products(fields: Sequence[Field], label: Label, catalogue: Catalogue) -> list[Field]:
    """The fields with the names as the catalogue has them, and the ids of their products where it has ids.

    A line, or two one after the other, that name a product of the catalogue are one, whatever the encoder says; what
    the encoder calls a product and the catalogue does not know is flagged. Without a catalogue nothing changes.
    """
    if not catalogue.products:
        return list(fields)
    matches = _matches(fields, label, catalogue)
    taken = {index for lines in matches for index in lines}
    kept = [_doubted(field) for field in fields if field.name != PRODUCT_NAME or field.lines[0] not in taken]
    named = [field for lines, match in matches.items() for field in _named(lines, match, label)]
    return sorted([*kept, *named], key=lambda field: field.lines[0])


def _matches(fields: Sequence[Field], label: Label, catalogue: Catalogue) -> dict[tuple[int, ...], Match]:
    """What lines name, by their indices; two lines together where that says more than either alone."""
    texts = [label.whole_text(index) for index in range(len(label.lines))]
    alone = [catalogue.match(text) if _may_name_a_product(n, fields, label) else None for n, text in enumerate(texts)]
    found: dict[tuple[int, ...], Match] = {}
    for index, match in enumerate(alone):
        if any(index in lines for lines in found):
            continue
        following = index + 1
        if (match is None or match.others) and _may_go_on(index, fields, label):
            both = catalogue.match(f"{texts[index]} {texts[following]}")
            least = max((each.score for each in (match, alone[following]) if each is not None), default=0.0)
            if both is not None and not both.others and both.score >= least:
                found[index, following] = both
                continue
        if match is not None:
            found[index,] = match
    return found


def _may_go_on(index: int, fields: Sequence[Field], label: Label) -> bool:
    """Whether a product's name may stand in a line and the one after it."""
    following = index + 1
    return (
        following < len(label.lines)
        and label.lines[following].region == label.lines[index].region
        and _may_name_a_product(index, fields, label)
        and _may_stand_beside_one(following, fields, label)
    )


def _may_name_a_product(index: int, fields: Sequence[Field], label: Label) -> bool:
    letters = sum(map(str.isalpha, label.lines[index].text))
    return letters >= MIN_LETTERS and _may_stand_beside_one(index, fields, label)


def _may_stand_beside_one(index: int, fields: Sequence[Field], label: Label) -> bool:
    named = (field.name for field in fields if index in field.lines and field.source == "rule")
    return index not in label.claimed and _BESIDE.issuperset(named)


def _doubted(field: Field) -> Field:
    return replace(field, flags=(*field.flags, NOT_IN_CATALOGUE)) if field.name == PRODUCT_NAME else field


def _named(indices: tuple[int, ...], match: Match, label: Label) -> Iterator[Field]:
    lines = [label.lines[index] for index in indices]
    product = match.product
    told = {PRODUCT_NAME: (product.name, *(other.name for other in match.others))}
    if product.id != product.name:
        told[PRODUCT_ID] = (product.id, *(other.id for other in match.others))
    for name, (value, *others) in told.items():  # two products may have one name, and are then two ids
        alternatives = tuple(dict.fromkeys(other for other in others if other != value))
        doubts = {AMBIGUOUS: bool(alternatives), DOUBTFUL: not label.doubtful_numbers.isdisjoint(indices)}
        flags = [flag for flag, is_so in doubts.items() if is_so]
        flags += [flag for line in lines for flag in line.flags]
        confidence = match.score * min(line.confidence for line in lines) * (0.5 if alternatives else 1.0)
        text = " ".join(line.text for line in lines)
        all_flags = tuple(dict.fromkeys((*flags, FROM_CATALOGUE)))
        yield Field(name, value, text, confidence, indices, all_flags, alternatives=alternatives)
