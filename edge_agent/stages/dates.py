"""Dates: dates as labels print them, never guessed in silence.

What is printed decides; a date that can be read in two ways carries `ambiguous` and the other reading, one that
contradicts the configured order carries `order_conflict`, one that needed a letter turned into a digit carries
`repaired`, one that does not exist (31/02) carries `invalid` and has no value. A missing day stays missing
(`month_precision`); where something unread stands in the place of a missing part, that is told (`incomplete`).
Nothing is ever filled in from today.

Own rules, for free-text date parsers find dates in lot numbers and fill gaps with the current day.
"""

from __future__ import annotations

import re
from dataclasses import replace

from edge_agent.stages.date_forms import WEEK, Form, forms
from edge_agent.stages.date_leftovers import has_leftovers
from edge_agent.stages.label_date import MONTH, NO_DATE, DateRules, LabelDate, exists
from edge_agent.stages.label_text import unaccented

# Letters OCR writes for digits (T for 7 and A for 4 from measured noise).
DIGIT_OF = str.maketrans("OoDdQIiLl|!ZzAaSsGbTtBgq", "000001111112244556677899")
_DOUBTS = frozenset({"incomplete", "invalid", "implausible"})
_WORD = re.compile(r"[^\W\d_]{3}")


def find_dates(text: str, rules: DateRules, *, keyed: bool) -> tuple[LabelDate, ...]:
    """Dates in a clean text, left to right. `keyed`: the text stands behind a phrase such as EXP or MFG.

    Only a keyed text may hold short forms (09/28, 271130) and digits that OCR turned into letters.
    """
    found = _read(text, rules, keyed=keyed, bent=False)
    if keyed and not found:
        found = _read(text, rules, keyed=True, bent=True)
    elif keyed and len(found) == 1 and _DOUBTS & set(found[0].flags):
        found = [_whole(text, found[0], rules)]
    found = [d for d in found if keyed or d.valid]
    found = [d for d in found if "implausible" not in d.flags or (keyed and "repaired" not in d.flags)]
    return tuple(sorted(found, key=lambda d: d.start))


def _read(text: str, rules: DateRules, *, keyed: bool, bent: bool) -> list[LabelDate]:
    found = _scan(text, forms(bent=bent), rules, keyed=keyed)
    if bent:
        found = [_with_leftovers(_as_digits(text, d), replace(d, flags=(*d.flags, "repaired"))) for d in found]
    else:
        found = [_with_leftovers(text, d) for d in _without_lone_years(text, found)]
    return [_judged(d, rules, text[d.start : d.end]) for d in found]


def _as_digits(text: str, found: LabelDate) -> str:
    """The text with the digits of a date that is all numbers as they are meant."""
    printed = text[found.start : found.end]
    if _WORD.search(printed):
        return text
    return f"{text[: found.start]}{printed.translate(DIGIT_OF)}{text[found.end :]}"


def _whole(text: str, piece: LabelDate, rules: DateRules) -> LabelDate:
    """The date of which a piece was read, where one character that was misread keeps it from being whole, such as the
    day of `2A.12.2026`; else the piece. One letter alone says too little of a day."""
    mended = _read(text, rules, keyed=True, bent=True)
    one = mended[0] if len(mended) == 1 else piece
    is_around = one.start <= piece.start and piece.end <= one.end and text[one.start : one.start + 2].isalnum()
    is_longer = one.end - one.start > piece.end - piece.start
    return one if is_around and is_longer and not _DOUBTS & set(one.flags) else piece


def names_week(text: str) -> bool:
    """Whether a clean text names a week of a year, `KW 12/27`, which is no date here: it has seven days."""
    return WEEK.search(unaccented(text)) is not None


def same_date(one: str, two: str, *, by_month: bool) -> bool:
    """Whether two dates (ISO 8601, each in the precision printed) can be one day; `by_month`: one of them has no day,
    whatever its value says."""
    if by_month:
        return one[:7] == two[:7]
    return bool(one and two) and (one.startswith(two) or two.startswith(one))


def gs1_date(digits: str, rules: DateRules) -> LabelDate:
    """A GS1 date YYMMDD; day 00 is the whole month (GS1 General Specifications 3.4). `digits` has six digits."""
    year, month, day = rules.full_year(digits[:2]), int(digits[2:4]), int(digits[4:])
    if not 1 <= month <= 12 or (day and not exists(year, month, day)):
        return replace(NO_DATE, end=len(digits))
    flags = () if day else (MONTH,)
    return _judged(LabelDate(year, month, day or None, 0, len(digits), flags), rules, digits[:2])


def _scan(text: str, ways: tuple[Form, ...], rules: DateRules, *, keyed: bool) -> list[LabelDate]:
    """Surer forms first; what one has claimed, even an invalid date, no later form may reinterpret."""
    if not any(map(str.isdigit, text)):
        return []
    folded = unaccented(text)
    taken = bytearray(len(text))  # 1 for each character that is a part of something
    for week in WEEK.finditer(folded):
        taken[week.start() : week.end()] = b"\1" * len(week[0])
    found: list[LabelDate] = []
    for form in ways:
        if form.keyed_only and not keyed:
            continue
        for match in form.pattern.finditer(folded if form.on_folded else text):
            if taken.find(1, *match.span()) >= 0 or not _digits_enough(match[0]):
                continue
            parts = {name: _digits(name, text[slice(*match.span(name))]) for name in match.groupdict() if match[name]}
            if not all(part.isdecimal() for name, part in parts.items() if name not in ("mon", "sep")):
                continue  # an accented letter, folded to one that is taken for a digit
            if (reading := form.read(parts, rules)) is not None:
                found.append(replace(reading, start=match.start(), end=match.end()))
                taken[match.start() : match.end()] = b"\1" * len(match[0])
    return found


def _without_lone_years(text: str, found: list[LabelDate]) -> list[LabelDate]:
    """A year counts alone only where it is all the digits there are: in `January l1, 2028` it is a piece."""
    if len(found) == 1 and found[0].valid and found[0].month is None:
        rest = text[: found[0].start] + text[found[0].end :]
        return [] if any(c in "0123456789" for c in rest) else found
    return [d for d in found if not d.valid or d.month is not None]


def _with_leftovers(text: str, found: LabelDate) -> LabelDate:
    told = found.valid and "incomplete" not in found.flags and has_leftovers(text, found)
    return replace(found, flags=(*found.flags, "incomplete")) if told else found


def _judged(found: LabelDate, rules: DateRules, printed: str) -> LabelDate:
    flags = found.flags
    short = re.search(r"[0-9]{4}", printed) is None or (found.day is None and not re.search(r"[./ -]", printed))
    if found.valid and rules.today is None:
        flags += ("clock_untrusted",)
    elif found.valid and not rules.plausible(found.year, short=short):
        flags += ("implausible",)
    return replace(found, flags=flags)


def _digits(name: str, part: str) -> str:
    return part if name == "mon" else part.replace(" ", "").translate(DIGIT_OF)


def _digits_enough(seen: str) -> bool:
    """At least half of the digits must have been read as digits: `IO/SO` is not a date."""
    real = sum(c.isdigit() for c in seen)
    return real * 2 >= sum(c.isdigit() or c in "OoDQIl|!ZzSBgq" for c in seen if c.isupper() or c.isdigit())
