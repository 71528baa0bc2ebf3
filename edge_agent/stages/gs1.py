"""Gs1Element: what a GS1 element string says, split by biip's table of application identifiers.

biip is asked only what it answers truthfully: it takes a bare EAN for a purchase order (identifier 400), so only
contents that are GS1 by their symbology come here; it tells no error for a wrong check digit but a field that is easily
overlooked; it drops what stands before the first identifier that it knows, so the length it consumed is compared.
Dates are left as digits: which century they are in, the device's clock says (dates.gs1_date).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from biip import ParseError
from biip.gs1_application_identifiers import GS1ApplicationIdentifier
from biip.gs1_messages import GS1Message

SEPARATOR = "\x1d"  # FNC1 in the content of a code
MAX_MESSAGE_CHARS = 512
# AIM identifiers (ISO/IEC 15424) of symbols whose content is GS1 element strings
# ]d5, ]Q4, ]z1 and ]z4: with FNC1 first as well, and an encoding named, or in Aztec
GS1_IDENTIFIERS = frozenset({"]C1", "]e0", "]e1", "]e2", "]d2", "]d5", "]Q3", "]Q4", "]J1", "]z1", "]z4"})


@dataclass(frozen=True)
class Gs1Element:
    """`content` behind application identifier `ai`; `sound` is False where its check digit does not hold."""

    ai: str
    content: str
    sound: bool = True


@dataclass(frozen=True)
class Form:
    """What the content of an identifier looks like: `length` characters, or with `exact` False at most so many."""

    length: int
    digits: bool
    exact: bool


@lru_cache(maxsize=1024)
def form_of(ai: str) -> Form | None:
    """The form of an application identifier's content; None where `ai` is none."""
    try:
        found = GS1ApplicationIdentifier.extract(ai)
    except ParseError:
        return None
    form = re.fullmatch(r"N[0-9]\+(?:([NX])(\.\.)?([0-9]+)|.*)", found.format)
    if form is None or found.ai != ai:
        return None
    return Form(int(form[3] or 90), form[1] == "N", form[1] == "N" and not form[2])


def elements_of(message: str) -> tuple[Gs1Element, ...] | None:
    """The elements of an element string as a symbol holds it (FNC1 as U+001D); None where it is none, to its end."""
    if not message or len(message) > MAX_MESSAGE_CHARS:
        return None
    try:
        parsed = GS1Message.parse(message)
    except (ParseError, ValueError):  # ValueError: a date that does not exist
        return None
    elements = tuple(
        Gs1Element(one.ai.ai, one.value, not (one.gtin_error or one.sscc_error or one.gln_error))
        for one in parsed.element_strings
    )
    consumed = sum(len(one.ai) + len(one.content) for one in elements)
    return elements if elements and consumed == len(message.replace(SEPARATOR, "")) else None
