"""Rule: one thing that an item must say, as settings and messages write it; edge_agent.verify.rules judges by it."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field, StringConstraints, model_validator

from edge_agent.errors import ConfigError
from edge_agent.patterns import Pattern
from edge_agent.settings.date_rule import REFERENCE, DateRule, field_name
from edge_agent.settings.section import Section, refuse

MAX_RULES = 64
BLANK = "holds a text of nothing but spaces, which are not compared; expected text"
KINDS = ("text", "pattern", "date", "one_of", "catalogue", "gs1", "equals")

Reference = Annotated[str, StringConstraints(pattern=rf"^{REFERENCE}$")]
Text = Annotated[str, StringConstraints(min_length=1, max_length=1024)]
ApplicationIdentifier = Annotated[str, StringConstraints(pattern=r"^[0-9]{2,4}$")]


class Rule(Section):
    """One thing that an item must say: a field with one of text, pattern, one_of, catalogue, equals; or date, or gs1; a
    field alone must be read beyond doubt."""

    field: Reference | None = None
    """The field that it is about, such as lot or expiry_date; code.lot: as a code says it, print.lot: as printed."""
    text: Text | None = None
    """What the field must say; without a field, what must stand somewhere on the label."""
    pattern: Text | None = None
    """What the field must look like: a mask such as L9999A, or a regular expression between slashes."""
    date: Text | None = None
    """A comparison of dates, such as `expiry >= today + 90d`, `mfg <= today` or `expiry > mfg`."""
    one_of: Annotated[tuple[Text, ...], Field(min_length=1, max_length=10_000)] | None = None
    """The values that the field may have, such as a list of lots."""
    catalogue: Text | None = None
    """The product's name as the catalogue has it, or its id there; print may differ a little, but in no number."""
    gs1: Annotated[tuple[ApplicationIdentifier, ...], Field(min_length=1, max_length=64)] | None = None
    """Application identifiers, such as "01" and "17", that a GS1 code must hold with right check digits and dates."""
    equals: Reference | None = None
    """Another field that must say the same, such as code.expiry_date for print.expiry_date."""

    @property
    def kind(self) -> str:
        """Which row of edge_agent.verify.rules.RULES it is."""
        return next((kind for kind in KINDS if getattr(self, kind) is not None), "read")

    @property
    def name(self) -> str | None:
        """The field that it is about, without short names: `code.expiry_date` for code.expiry; None without a field."""
        return None if self.field is None else field_name(self.field)

    @model_validator(mode="after")
    def _keys_agree(self) -> Rule:
        given = [kind for kind in KINDS if getattr(self, kind) is not None]
        problems: list[tuple[str, str]] = []
        if len(given) > 1:
            problems.append((given[1], f"stands beside {given[0]}; a rule has one of them, write two rules"))
        if not given and self.field is None:
            problems.append(("field", f"is missing; expected a field, or one of {', '.join(KINDS)}"))
        if self.field is None and self.kind in ("one_of", "equals"):
            problems.append(("field", f"is missing; {self.kind} is about a field"))
        if self.field is not None and self.kind in ("date", "gs1"):
            problems.append(("field", f"is of no use here; {self.kind} names what it is about itself"))
        texts = [("text", self.text), ("catalogue", self.catalogue), *(("one_of", each) for each in self.one_of or ())]
        problems += [(key, BLANK) for key, text in dict.fromkeys(texts) if text is not None and not text.strip()]
        for key, parse in (("pattern", Pattern.parse), ("date", DateRule.parse)):
            problems += _unparsable(key, getattr(self, key), parse)
        refuse(problems)
        return self


Rules = Annotated[tuple[Rule, ...], Field(max_length=MAX_RULES)]


def _unparsable(key: str, text: str | None, parse: Any) -> list[tuple[str, str]]:
    if text is None:
        return []
    try:
        parse(text)
    except ConfigError as exc:
        return [(key, str(exc))]
    return []
