"""Fields: what lines mean."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, Field, StringConstraints

from edge_agent.errors import ConfigError
from edge_agent.patterns import Pattern
from edge_agent.settings.scalars import Phrase, Share
from edge_agent.settings.section import Section


def _mask(text: str) -> str:
    try:
        Pattern.parse(text)
    except ConfigError as exc:
        raise ValueError(str(exc)) from exc
    return text


FieldName = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]{0,47}$")]
Mask = Annotated[str, AfterValidator(_mask)]
CodeFormat = Literal[
    "Aztec",
    "Codabar",
    "Code128",
    "Code39",
    "Code93",
    "DataBar",
    "DataBarExp",
    "DataBarLtd",
    "DataMatrix",
    "EAN13",
    "EAN8",
    "ITF",
    "MicroQRCode",
    "PDF417",
    "QRCode",
    "RMQRCode",
    "UPCA",
    "UPCE",
]


class CustomFieldConfig(Section):
    """What is known of a field beyond what comes along, or of a field of your own by a name of your own."""

    keys: Annotated[tuple[Phrase, ...], Field(max_length=256)] = ()
    """Phrases that stand before its value on labels, such as "Art. no."; case, accents and spaces do not matter."""
    prototypes: Annotated[tuple[Phrase, ...], Field(max_length=256)] = ()
    """Whole lines that say it, as examples for the encoder."""
    mask: Mask | None = None
    """What its value must look like: a mask such as L9999A, or a regular expression between slashes."""
    value: Literal["code", "date", "quantity", "text"] = "code"
    """What its value is; of a field that comes along this is known."""


class FieldsConfig(Section):
    """What lines mean."""

    date_order: Literal["DMY", "MDY", "YMD"] = "DMY"
    """How 03/04/26 is read: DMY 3 April, MDY 4 March, YMD 2003-04-26."""
    trust_date_order: bool = False
    """Whether every label of this device has its day and month in that order: 03/04/26 is then not ambiguous."""
    date_window_years: Annotated[int, Field(ge=1, le=200)] = 20
    """A date further from today than this is flagged implausible; not judged while the clock is not trusted."""
    min_similarity: Share = 0.2
    """Likeness to the nearest example phrases, 0 to 1, below which the encoder's name for a line is not believed."""
    max_line_chars: Annotated[int, Field(ge=256, le=1_000_000)] = 131_072
    """Of a longer line head and tail are read, and its fields are flagged truncated."""
    max_fields: Annotated[int, Field(ge=1, le=10_000)] = 200
    """Most fields of one frame; those beyond are dropped and counted."""
    codes: tuple[CodeFormat, ...] = ("EAN13", "EAN8", "UPCA", "Code128", "DataMatrix", "QRCode")
    """Bar codes and 2D codes that are decoded; the fewer, the faster; none: []."""
    region: Annotated[str, StringConstraints(pattern=r"^[A-Z]{2}$")] | None = None
    """Country of telephone numbers that are printed without one, two letters (ISO 3166-1) such as DE; null: none."""
    custom: Annotated[dict[FieldName, CustomFieldConfig], Field(max_length=64)] = {}  # noqa: RUF012 - pydantic copies it
    """Fields by name, one of ours or one of your own: its key phrases, examples and mask."""
