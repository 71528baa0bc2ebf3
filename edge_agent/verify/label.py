"""Label: what rules look at, of an item or of a single reading: lines, fields and codes, each with its region."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from edge_agent.records import Code, Field, Item, Reading, TextLine


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
        there is one. Of several a certain one, then the surest; None where there is none."""
        side, _, name = reference.rpartition(".")
        found = [
            each
            for each in self.fields
            if each.name == name and (not side or (each.source == "barcode") == (side == "code"))
        ]
        return max(found, key=lambda f: (f.source == "barcode", f.certain, bool(f.value), f.confidence), default=None)


def region_of(field: Field, lines: Sequence[TextLine], codes: Sequence[Code]) -> str | None:
    """The region in which a field was read."""
    if field.lines:
        return lines[field.lines[0]].region
    return codes[field.codes[0]].region if field.codes else None
