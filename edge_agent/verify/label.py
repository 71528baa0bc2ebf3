"""Label: what rules look at, of an item or of a single reading: lines, fields and codes, each with its region."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from edge_agent.records import ONE_OF_A_KIND, Code, Field, Item, Reading, TextLine
from edge_agent.settings.date_rule import DATE_FIELDS
from edge_agent.stages.dates import same_date
from edge_agent.stages.label_date import MONTH

CODE = "barcode_digits"
CODE_TEXT = "code.text"  # names what a code holds, whatever it means
GTIN_DIGITS = (8, 12, 13, 14)


@dataclass(frozen=True)
class Label:
    """What was read. `lines` in reading order; `regions` stand for `fields`, one each."""

    lines: tuple[TextLine, ...]
    fields: tuple[Field, ...]
    codes: tuple[Code, ...]
    regions: tuple[str | None, ...]

    @classmethod
    def of_reading(cls, reading: Reading) -> Label:
        """What one frame says."""
        return cls._of(reading.lines, reading.fields, reading.codes)

    @classmethod
    def of_item(cls, item: Item) -> Label:
        """What all readings of an item say together."""
        lines = tuple(each.line for each in item.lines)
        return cls._of(lines, tuple(each.field for each in item.fields), item.codes)

    @classmethod
    def _of(cls, lines: tuple[TextLine, ...], fields: tuple[Field, ...], codes: tuple[Code, ...]) -> Label:
        return cls(lines, fields, codes, tuple(region_of(each, lines, codes) for each in fields))

    def within(self, region: str) -> Label:
        """What was read in one region."""
        kept = [n for n, of in enumerate(self.regions) if of == region]
        return Label(
            tuple(line for line in self.lines if line.region == region),
            tuple(self.fields[n] for n in kept),
            tuple(code for code in self.codes if code.region == region),
            tuple(region for _ in kept),
        )

    def field(self, reference: str) -> Field | None:
        """The field that a reference names: `code.lot` that of a code, `print.lot` a printed one, `lot` a code's where
        there is one. Of several a certain one, then the surest; None where there is none.

        A label has one lot, serial number, product's number and date of a kind: where certain ones differ, the others
        are alternatives of the surest, which is then ambiguous.
        """
        if reference == CODE_TEXT:
            return self._code_text()
        side, _, name = reference.rpartition(".")
        found = [
            each
            for each in self.fields
            if each.name == name and (not side or (each.source == "barcode") == (side == "code"))
        ]
        best = max(found, key=lambda f: (f.source == "barcode", f.certain, bool(f.value), f.confidence), default=None)
        if best is None or not best.certain or name not in {*ONE_OF_A_KIND, CODE}:
            return best
        rivals = dict.fromkeys(f.value for f in found if f.source == best.source and f.certain and not _agree(f, best))
        return replace(best, flags=(*best.flags, "ambiguous"), alternatives=tuple(rivals)) if rivals else best

    def _code_text(self) -> Field | None:
        """What the label's code holds as it is, such as a bare serial number; ambiguous where codes hold several."""
        first, *others = dict.fromkeys(code.text for code in self.codes) or (None,)
        if first is None:
            return None
        at = tuple(range(len(self.codes)))
        flags = ("ambiguous",) if others else ()
        return Field("text", first, first, 1.0, (), flags, "barcode", alternatives=tuple(others), codes=at)


def _agree(one: Field, two: Field) -> bool:
    """Whether two fields of one name can be said of one item."""
    if one.name in DATE_FIELDS:
        return same_date(one.value, two.value, by_month=MONTH in one.flags or MONTH in two.flags)
    if one.name == CODE:  # a code that names no product, such as a pallet's, is no other one's
        numbers = {product_number(one.value), product_number(two.value)}
        return len(numbers) == 1 or None in numbers
    return one.value == two.value


def product_number(value: str) -> str | None:
    """The product's number in a value of `barcode_digits`, alone or as element 01 of GS1's (`01=...;17=...`), with 14
    digits however many are printed; None where it has none."""
    number = dict(each.partition("=")[::2] for each in value.split(";")).get("01", value)
    return number.zfill(GTIN_DIGITS[-1]) if number.isdigit() and len(number) in GTIN_DIGITS else None


def region_of(field: Field, lines: Sequence[TextLine], codes: Sequence[Code]) -> str | None:
    """The region in which a field was read."""
    if field.lines:
        return lines[field.lines[0]].region
    return codes[field.codes[0]].region if field.codes else None
