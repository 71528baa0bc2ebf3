"""Fields of decoded codes: GS1 element strings, GS1 Digital Links, GTINs and web addresses say what they are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from biip import ParseError
from biip.gs1_digital_link_uris import GS1DigitalLinkURI

from edge_agent.records import Code, Field
from edge_agent.stages.codes import GTIN_DIGITS, check_digit_holds, upc_a_of
from edge_agent.stages.contacts import find_contact
from edge_agent.stages.dates import gs1_date
from edge_agent.stages.gs1 import GS1_IDENTIFIERS, SEPARATOR, Gs1Element, elements_of
from edge_agent.stages.gs1_text import find_gs1
from edge_agent.stages.label_date import DateRules

FROM_GS1 = "from_gs1"
# application identifier -> field (GS1 General Specifications 3.2)
DATE_OF = {
    "11": "manufacture_date",
    "13": "manufacture_date",
    "15": "expiry_date",
    "16": "expiry_date",
    "17": "expiry_date",
}
CODE_OF = {"10": "lot", "21": "serial_number"}
GS1_DATE_DIGITS = 6
# 31nd and the like: the last digit is the count of decimals
AMOUNT_OF = {"310": "kg", "315": "l", "320": "lb", "357": "oz"}
_GTIN_SYMBOLOGIES = frozenset({"EAN13", "EAN8", "UPCA", "UPCE", "ITF14", "ITF", "DataBar"})


@dataclass(frozen=True)
class Meaning:
    """A field's name and value, and its flags."""

    name: str
    value: str
    flags: tuple[str, ...] = ()


def fields_of_codes(codes: Sequence[Code], rules: DateRules) -> list[Field]:
    """The fields that codes prove by their own form, in the codes' order; a content told twice gives fields once."""
    found: dict[tuple[str, str], Field] = {}
    for index, code in enumerate(codes):
        for meaning in _meanings(code, rules):
            seen = Field(
                meaning.name, meaning.value, code.text, 1.0, (), meaning.flags, source="barcode", codes=(index,)
            )
            found.setdefault((meaning.name, meaning.value), seen)
    return list(found.values())


def gtin_of(value: str) -> str | None:
    """The GTIN, 14 digits, in a value of `barcode_digits`: bare, or behind identifier 01 or 02; None where none is."""
    if value.isdigit():
        whole = value if check_digit_holds(value) else upc_a_of(value) or value
        return whole.zfill(14) if len(value) in GTIN_DIGITS else None
    for element in value.split(";"):
        ai, _, content = element.partition("=")
        if ai in ("01", "02"):
            return content
    return None


def _meanings(code: Code, rules: DateRules) -> Iterator[Meaning]:
    if code.identifier in GS1_IDENTIFIERS:
        elements = elements_of(code.text)
        if elements is None:
            yield Meaning("barcode_digits", code.text.replace(SEPARATOR, ""), ("check_failed",))
        else:
            yield from _of_elements(elements, rules)
    elif code.symbology in _GTIN_SYMBOLOGIES and code.text.isdigit() and len(code.text) in GTIN_DIGITS:
        if check_digit_holds(code.text):
            yield Meaning("barcode_digits", _as_printed(code.text))
    elif code.text.lower().startswith(("http://", "https://", "www.")):
        yield from _of_link(code.text, rules)
    elif (gs1 := find_gs1(code.text)) is not None and not gs1.flags and len(code.text.strip()) == gs1.end - gs1.start:
        yield from _of_elements([Gs1Element(one.ai, one.content) for one in gs1.elements], rules)


def _as_printed(gtin: str) -> str:
    """A UPC-A number comes from a reader of EAN-13 with a zero in front, which nobody prints."""
    return gtin[1:] if len(gtin) == 13 and gtin[0] == "0" else gtin


def _of_link(text: str, rules: DateRules) -> Iterator[Meaning]:
    try:
        link = GS1DigitalLinkURI.parse(text)
    except (ParseError, ValueError):
        contact = find_contact(text, keyed=False)
        if contact is not None:
            yield Meaning("contact", contact.value, contact.flags)
        return
    elements = (Gs1Element(one.ai.ai, one.value, not one.gtin_error) for one in link.element_strings)
    yield from _of_elements(tuple(elements), rules)


def _of_elements(elements: Sequence[Gs1Element], rules: DateRules) -> Iterator[Meaning]:
    failed = () if all(element.sound for element in elements) else ("check_failed",)
    yield Meaning("barcode_digits", ";".join(f"{e.ai}={e.content}" for e in elements), failed)
    for element in elements:
        if (meaning := meaning_of(element.ai, element.content, rules)) is not None:
            yield meaning


def meaning_of(ai: str, content: str, rules: DateRules) -> Meaning | None:
    """The field of its own that a GS1 element is: a date, lot, serial number or net amount; None where it is none."""
    if ai in DATE_OF and len(content) == GS1_DATE_DIGITS and content.isdigit():
        date = gs1_date(content, rules)
        value = date.latest if DATE_OF[ai] == "expiry_date" else date.printed
        return Meaning(DATE_OF[ai], value, (*date.flags, FROM_GS1))
    if ai in CODE_OF:
        return Meaning(CODE_OF[ai], content, (FROM_GS1,))
    if ai[:3] in AMOUNT_OF and len(ai) == 4 and content.isdigit():
        amount = f"{int(content) / 10 ** int(ai[3]):.6f}".rstrip("0").rstrip(".")
        return Meaning("weight_volume", f"{amount} {AMOUNT_OF[ai[:3]]}", (FROM_GS1,))
    return None
