"""Values: what each field accepts behind its phrase, and what proves itself without one.

Every reader takes clean text and returns the value with its place in that text, or None. `certainty` 0..1 is
what the form of the value is worth; doubt is told by flags.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from edge_agent.stages.code_fields import AMOUNT_OF, CODE_OF, DATE_OF, FROM_GS1, meaning_of
from edge_agent.stages.codes import PrintedCode, find_code, find_gtin, find_marked_lot, find_trailing_code
from edge_agent.stages.contacts import find_contact
from edge_agent.stages.dates import find_dates, names_week
from edge_agent.stages.gs1_text import Gs1Text, find_gs1
from edge_agent.stages.label_date import DateRules, LabelDate
from edge_agent.stages.line_shape import names_town
from edge_agent.stages.quantities import Quantity, bare_count, best_quantity, find_quantities, only_quantity

DATE_FIELDS = ("expiry_date", "manufacture_date")
TEXT_FIELDS = ("product_name", "ingredients", "warning", "address")
UNNAMED_DATE = "date"

Kind = Literal["date", "code", "quantity", "gtin", "contact", "text"]
KINDS: Mapping[str, Kind] = {
    "expiry_date": "date",
    "manufacture_date": "date",
    "lot": "code",
    "serial_number": "code",
    "weight_volume": "quantity",
    "barcode_digits": "gtin",
    "contact": "contact",
    **dict.fromkeys(TEXT_FIELDS, "text"),
}
# What stands in a line's gist for the value in it, so that its digits do not drown its words; a date leaves nothing.
_STAND_INS: Mapping[Kind, str] = {"date": "", "gtin": "4006381333931", "quantity": "500 g", "code": "A1234"}

# How far a flag lowers the certainty of a value.
_DOUBTS = {
    "invalid": 0.2,
    "unreadable": 0.2,
    "check_failed": 0.4,
    "implausible": 0.4,
    "ambiguous": 0.5,
    "order_conflict": 0.5,
    "incomplete": 0.4,
    "repaired": 0.6,
    "no_digits": 0.6,
    "no_key": 0.6,
    "unit_assumed": 0.8,
    "clock_untrusted": 0.9,
    "year_precision": 0.6,
}
_DIGITS_FIRST = re.compile(r"\W*\w{0,3}[0-9]")
_DIGIT_OF_A_WORD = re.compile(r"[0-9][^\W\d_]{3}")  # of Vol1korn, no volume
_WORD = re.compile(r"[^\W\d_]{3}")
# How many digits behind a phrase are meant as a value, by what the value is.
LEAST_DIGITS: Mapping[Kind, int] = {"date": 3, "quantity": 1, "gtin": 6, "contact": 6, "code": 3}
# the GS1 identifiers that may stand between the phrase and the value, by what the value is
_COUNTS = frozenset({"30", "37"})
_IDENTIFIERS: Mapping[Kind, frozenset[str]] = {
    "date": frozenset(DATE_OF),
    "code": frozenset(CODE_OF),
    "quantity": frozenset(AMOUNT_OF) | _COUNTS,
}


@dataclass(frozen=True)
class ReadRules:
    """How values are read: dates, telephone numbers without a country (`region`), and what each field's value is."""

    dates: DateRules = field(default_factory=DateRules)
    region: str | None = None
    kinds: Mapping[str, Kind] = field(default_factory=lambda: KINDS)


@dataclass(frozen=True)
class Value:
    """One field's value, found at `text[start:end]` of the text that was read."""

    name: str
    value: str
    start: int
    end: int
    flags: tuple[str, ...] = ()
    alternatives: tuple[str, ...] = ()

    @property
    def doubted(self) -> bool:
        """Whether the digits themselves are in doubt, not only their order or precision."""
        return bool({"repaired", "implausible", "incomplete", "invalid", "unreadable"} & set(self.flags))

    @property
    def certainty(self) -> float:
        return min((_DOUBTS.get(flag, 1.0) for flag in self.flags), default=1.0)


def read_value(name: str, text: str, rules: ReadRules) -> Value | None:
    """The value of field `name` in the text behind its phrase; None where there is none.

    Digits that make no value are told as `unreadable`, for a label that says EXP or NET WT means one.
    """
    kind = rules.kinds[name]
    if (gs1 := find_gs1(text, keyed=True)) is not None and _is_behind_identifier(kind, text, gs1):
        return _of_identifier(name, kind, gs1, rules)
    value = _READERS[kind](name, text, rules)
    least = LEAST_DIGITS.get(kind)
    if value is not None or least is None or kind == "code" or "%" in text[:24]:
        return value
    if not _DIGITS_FIRST.match(text) and not (kind == "date" and names_week(text[:24])):
        return None
    if names_town(text[:24]) or (kind == "quantity" and _DIGIT_OF_A_WORD.match(text)):
        return None
    if _digits_meant(text[:24]) < least:
        return None
    return Value(name, "", 0, len(text.rstrip()), ("unreadable",))


def _digits_meant(text: str) -> int:
    """How many digits a text has, with the letters beside them that OCR writes for digits."""
    words = [word for word in text.split() if any(c in "0123456789" for c in word)]
    return sum(c in "0123456789" or (c in "OoIlZSBGTQD" and len(word) < 12) for word in words for c in word)


def readings(text: str, rules: ReadRules) -> dict[str, Value]:
    """What each field would read in a text of words without a phrase: only these can an encoder's name mean."""
    found = {}
    for name, kind in rules.kinds.items():
        if kind == "text":
            continue
        value = _read_trailing(name, text) if kind == "code" else read_value(name, text, rules)
        if value is not None and value.value and not {"unit_assumed", "implausible"} & set(value.flags):
            found[name] = value
    codes = [name for name in found if rules.kinds[name] == "code"]
    gtin = found.get("barcode_digits")
    if gtin is not None and "check_failed" in gtin.flags:
        del found["barcode_digits"]
    elif gtin is not None and not gtin.flags:
        taken = [*codes, "contact"] if len(gtin.value) > 8 else codes
        found = {name: value for name, value in found.items() if name not in taken}
    return found


def gist(text: str, values: Mapping[str, Value], rules: ReadRules) -> str:
    """The words of a text for the encoder: the value that it holds taken out, or a plain one of its kind in its place.

    Digits say next to nothing about a line's meaning, and where they are misread they say something else.
    """
    for kind, stand_in in _STAND_INS.items():
        value = next((value for name, value in values.items() if rules.kinds[name] == kind), None)
        if value is not None:
            return (text[: value.start] + stand_in + text[value.end :]).strip(" :;.-") or text
    return text


def _read_trailing(name: str, text: str) -> Value | None:
    code = find_trailing_code(text)
    return None if code is None else Value(name, code.value, code.start, code.end)


def read_dates(names: tuple[str, ...], text: str, rules: ReadRules) -> list[Value]:
    """The dates of a text behind several date phrases (`MFG/EXP 01/2026 01/2028`), given out in order.

    One date for two phrases is nobody's: it comes back as UNNAMED_DATE.
    """
    found = find_dates(text, rules.dates, keyed=True)
    if len(names) == len(found):
        return [_keyed_date(name, one, rules) for name, one in zip(names, found, strict=True)]
    return [_date_value(UNNAMED_DATE, one, "no_key") for one in found if one.valid]


def without_dates(text: str, rules: ReadRules) -> str:
    """`text` with blanks where its dates are, for the lot of `LOT EXP A1 08/2027`."""
    for one in find_dates(text, rules.dates, keyed=True):
        text = text[: one.start] + " " * (one.end - one.start) + text[one.end :]
    return text


def read_unnamed(text: str, rules: ReadRules) -> list[Value]:
    """What a text without a phrase proves by its form: GS1, GTIN, contact, quantity, a lot with its L, a date."""
    if (gs1 := find_gs1(text)) is not None:
        return [Value("barcode_digits", gs1.value, gs1.start, gs1.end, gs1.flags), *_gs1_values(gs1, rules)]
    if (gtin := find_gtin(text, keyed=False)) is not None:
        return [_doubted_as_date(_value("barcode_digits", gtin), text, rules)]
    if (quantity := only_quantity(text)) is not None:
        return [_value("weight_volume", quantity)]
    values = read_rest(text, rules)
    return [*values, *read_tail(text, max(value.end for value in values))] if values else []


def _doubted_as_date(gtin: Value, text: str, rules: ReadRules) -> Value:
    """Every tenth day, such as 20261016, has a check digit that holds."""
    is_day = len(gtin.value) == len("YYYYMMDD") and any(
        one.valid and "implausible" not in one.flags for one in find_dates(text, rules.dates, keyed=True)
    )
    return replace(gtin, flags=(*gtin.flags, "no_key")) if is_day else gtin


def read_rest(text: str, rules: ReadRules) -> list[Value]:
    """What stands beside other words or behind another value: contact, a lot with its L, a full date."""
    values = []
    if (contact := find_contact(text, keyed=False, region=rules.region)) is not None:
        values.append(Value("contact", contact.value, contact.start, contact.end, contact.flags))
    if (lot := find_marked_lot(text)) is not None:
        values.append(Value("lot", lot.value, lot.start, lot.end))
    values += [_date_value(UNNAMED_DATE, one, "no_key") for one in find_dates(text, rules.dates, keyed=False)]
    return [
        v for v in values if not (v.name != "contact" and contact and v.start < contact.end and v.end > contact.start)
    ]


def read_tail(text: str, start: int) -> list[Value]:
    """A quantity that is all that stands behind a value: `LOT 4711 500 g e`."""
    found = only_quantity(text[start:])
    if found is None or "repaired" in found.flags:
        return []
    return [replace(_value("weight_volume", found), start=start + found.start, end=start + found.end)]


def read_gtin_alone(text: str) -> list[Value]:
    """A GTIN of twelve digits and more that is all a text says, its check digit right."""
    found = find_gtin(text.lstrip(" :.#"), keyed=False)
    shift = len(text) - len(text.lstrip(" :.#"))
    if found is None or found.flags or len(found.value) < 12:
        return []
    return [Value("barcode_digits", found.value, found.start + shift, found.end + shift)]


def text_value(name: str, text: str) -> Value:
    """A field of words: its text with single spaces."""
    start = len(text) - len(text.lstrip(" :;.,-*"))
    return Value(name, " ".join(text[start:].split()), start, len(text.rstrip()))


def _read_date(name: str, text: str, rules: ReadRules) -> Value | None:
    """The first date behind the phrase; another that no word sets apart from it may be the one that is meant."""
    found = find_dates(text, rules.dates, keyed=True)
    if not found:
        return None
    value = _keyed_date(name, found[0], rules)
    if len(found) == 1 or not found[1].valid or _WORD.search(text[found[0].end : found[1].start]):
        return value
    other = _date_value(name, found[1]).value
    if other == value.value:
        return value
    flags = tuple(dict.fromkeys([*value.flags, "ambiguous"]))
    return replace(value, flags=flags, alternatives=(*value.alternatives, other))


def _keyed_date(name: str, found: LabelDate, rules: ReadRules) -> Value:
    return _doubted_if_expired(_date_value(name, found), rules)


def _doubted_if_expired(value: Value, rules: ReadRules) -> Value:
    """An expiry of years ago whose 1 can be a 7 that makes it one to come is told as ambiguous: OCR takes one for the
    other, and what has long expired seldom stands on a line."""
    today, year = rules.dates.today, value.value[:4]
    if value.name != "expiry_date" or today is None or value.alternatives or not year.endswith("1"):
        return value
    later = f"{int(year) + 6}{value.value[4:]}"
    if int(year) >= today.year or later <= today.isoformat():
        return value
    return replace(value, flags=(*value.flags, "ambiguous"), alternatives=(later,))


def _date_value(name: str, found: LabelDate, *flags: str) -> Value:
    """An expiry without a day lasts to the month's end; any other date stays in the precision printed."""
    value = found.latest if name == "expiry_date" else found.printed
    return Value(name, value, found.start, found.end, (*found.flags, *flags), _only(found.alternative))


def _read_code(name: str, text: str, rules: ReadRules) -> Value | None:
    code = find_code(text)
    return None if code is None else Value(name, code.value, code.start, code.end, code.flags)


def _read_quantity(name: str, text: str, rules: ReadRules) -> Value | None:
    found = find_quantities(text, keyed=True)
    quantity = best_quantity(found) if found else bare_count(text)
    if quantity is None:
        return None
    start = min([q.start for q in found], default=quantity.start)
    return replace(_value(name, quantity), start=start, end=max(q.end for q in found or (quantity,)))


def _read_gtin(name: str, text: str, rules: ReadRules) -> Value | None:
    if (gs1 := find_gs1(text)) is not None:
        return Value(name, gs1.value, gs1.start, gs1.end, gs1.flags)
    code = find_gtin(text, keyed=True)
    return None if code is None else Value(name, code.value, code.start, code.end, code.flags)


def _read_contact(name: str, text: str, rules: ReadRules) -> Value | None:
    contact = find_contact(text, keyed=True, region=rules.region)
    return None if contact is None else Value(name, contact.value, contact.start, contact.end, contact.flags)


def _gs1_values(gs1: Gs1Text, rules: ReadRules) -> Iterator[Value]:
    """Dates, lot, serial and net amount of a GS1 text as fields of their own, flagged `from_gs1`."""
    bent = tuple(flag for flag in gs1.flags if flag == "repaired")
    for one in gs1.elements:
        meaning = meaning_of(one.ai, one.content, rules.dates)
        if meaning is not None:
            doubts = () if "invalid" in meaning.flags else one.flags
            flags = tuple(dict.fromkeys((*bent, *doubts, *meaning.flags)))
            yield _doubted_if_expired(Value(meaning.name, meaning.value, gs1.start, gs1.end, flags), rules)


def _is_behind_identifier(kind: Kind, text: str, gs1: Gs1Text) -> bool:
    """Whether a value stands behind a GS1 identifier of its kind: `LOT (10)AB12`."""
    ai = gs1.elements[0].ai
    known = _IDENTIFIERS.get(kind, frozenset())
    return (ai in known or ai[:3] in known) and not any(map(str.isalnum, text[: gs1.start]))


def _of_identifier(name: str, kind: Kind, gs1: Gs1Text, rules: ReadRules) -> Value | None:
    """The element of the field's name; of another name, as in `EXP (11)260131`, it is none."""
    first = gs1.elements[0]
    if kind == "quantity" and first.ai in _COUNTS and first.content.isdigit():
        return Value(name, f"{int(first.content)} pcs", gs1.start, gs1.end, (*first.flags, FROM_GS1))
    found = next((value for value in _gs1_values(gs1, rules) if value.name == name), None)
    if found is None and name not in KINDS and kind == "code":
        return Value(name, first.content, gs1.start, gs1.end, first.flags)
    return found or (None if kind == "code" else Value(name, "", gs1.start, gs1.end, ("unreadable",)))


def _value(name: str, found: PrintedCode | Quantity) -> Value:
    alternative = found.alternative if isinstance(found, Quantity) else None
    return Value(name, found.value, found.start, found.end, found.flags, _only(alternative))


def _only(alternative: str | None) -> tuple[str, ...]:
    return (alternative,) if alternative else ()


def _read_text(name: str, text: str, rules: ReadRules) -> Value | None:
    return text_value(name, text) if any(map(str.isalnum, text)) else None


_READERS: Mapping[Kind, Callable[[str, str, ReadRules], Value | None]] = {
    "date": _read_date,
    "code": _read_code,
    "quantity": _read_quantity,
    "gtin": _read_gtin,
    "contact": _read_contact,
    "text": _read_text,
}
