"""Products: the product names of a label, held against the catalogue."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from edge_agent.records import DOUBTFUL, Field
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

    A line that names a product of the catalogue is one, whatever the encoder says; what the encoder calls a product
    and the catalogue does not know is flagged. Without a catalogue nothing changes.
    """
    if not catalogue.products:
        return list(fields)
    matches = {
        index: match
        for index in range(len(label.lines))
        if _may_name_a_product(index, fields, label) and (match := catalogue.match(label.whole_text(index))) is not None
    }
    kept = [_doubted(field) for field in fields if field.name != PRODUCT_NAME or field.lines[0] not in matches]
    named = [field for index, match in matches.items() for field in _named(index, match, label)]
    return sorted([*kept, *named], key=lambda field: field.lines[0])


def _may_name_a_product(index: int, fields: Sequence[Field], label: Label) -> bool:
    if index in label.claimed or sum(map(str.isalpha, label.lines[index].text)) < MIN_LETTERS:
        return False
    return all(field.name in _BESIDE for field in fields if index in field.lines and field.source == "rule")


def _doubted(field: Field) -> Field:
    return replace(field, flags=(*field.flags, NOT_IN_CATALOGUE)) if field.name == PRODUCT_NAME else field


def _named(index: int, match: Match, label: Label) -> Iterator[Field]:
    line = label.lines[index]
    product = match.product
    told = {PRODUCT_NAME: (product.name, *(other.name for other in match.others))}
    if product.id != product.name:
        told[PRODUCT_ID] = (product.id, *(other.id for other in match.others))
    for name, (value, *others) in told.items():  # two products may have one name, and are then two ids
        alternatives = tuple(dict.fromkeys(other for other in others if other != value))
        doubts = {AMBIGUOUS: bool(alternatives), DOUBTFUL: index in label.doubtful_numbers}
        flags = tuple(dict.fromkeys((*(flag for flag, is_so in doubts.items() if is_so), *line.flags)))
        confidence = match.score * line.confidence * (0.5 if alternatives else 1.0)
        yield Field(name, value, line.text, confidence, (index,), flags, alternatives=alternatives)
