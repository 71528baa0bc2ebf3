"""LabelDate: dates as labels print them, never guessed in silence.

What is printed decides; a date that can be read in two ways carries `ambiguous` and the other reading, one that
contradicts the configured order carries `order_conflict`, one that needed a letter turned into a digit carries
`repaired`, one that does not exist (31/02) carries `invalid` and has no value. A missing day stays missing
(`month_precision`); where something unread stands in the place of a missing part, that is told (`incomplete`).
Nothing is ever filled in from today.

Own rules, for free-text date parsers find dates in lot numbers and fill gaps with the current day.
"""

from __future__ import annotations

import calendar
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import date
from functools import lru_cache
from typing import Literal

from rapidfuzz.distance import Levenshtein

from edge_agent.stages.label_text import skeleton, unaccented

DateOrder = Literal["DMY", "MDY", "YMD"]
DEFAULT_WINDOW_YEARS = 20
MONTH = "month_precision"  # flag of a date that is printed without its day

# Letters OCR writes for digits (T for 7 and A for 4 from measured noise).
DIGIT_OF = str.maketrans("OoDdQIiLl|!ZzAaSsGbTtBgq", "000001111112244556677899")
_REAL = "[0-9]"
_LIKELY = "[0-9OoDQIil|!ZzASsGbTBgq]"

_MONTHS = (
    "jan january januar janv janvier ene enero gen gennaio januari janeiro",
    "feb february februar fev fevr fevrier febrero febbraio februari fevereiro",
    "mar march marz mrz mars marzo mrt maart marco",
    "apr april avr avril abr abril aprile",
    "may mai mayo mag maggio mei maio",
    "jun june juni juin junio giu giugno junho",
    "jul july juli juil juillet julio lug luglio julho",
    "aug august aout ago agosto augustus",
    "sep sept september septembre septiembre set settembre setembro",
    "oct october okt oktober octobre octubre ott ottobre out outubro",
    "nov november novembre noviembre novembro",
    "dec december dez dezember decembre dic diciembre dicembre dezembro",
)
_MONTH_OF = {name: number for number, names in enumerate(_MONTHS, 1) for name in names.split()}
MONTH_NAMES = frozenset(_MONTH_OF)  # unaccented, in lower case
_MONTH_NAMES = "|".join(sorted(_MONTH_OF, key=lambda name: (-len(name), name)))
_SEPARATORS = r"[\s./,:;'_~-]"
_PIECE_BEFORE = re.compile(rf"(?:^|[^\w])([\w?|]{{1,2}}|[\w?|]{{0,3}}[0-9][\w?|]{{0,3}}){_SEPARATORS}{{0,4}}$")
_PIECE_BEHIND = re.compile(
    rf"(?!\s[0-2]?[0-9]:[0-5][0-9](?![0-9]))"  # a time of day; nor an amount, nor a lot with its L
    rf"(?!\s[0-9]{{1,4}}(?:[.,][0-9]{{1,3}})?\s?(?:mg|kg|g|ml|cl|dl|l|oz|lb|Stk|pcs)(?!\w))"
    rf"(?:{_SEPARATORS}{{0,4}}(?=[\w?|]{{0,4}}[0-9])(?!L)[\w?|]{{1,5}}(?!\w)"
    rf"|{_SEPARATORS}{{0,4}}[OIlZSBGozsbg|?]{{1,2}}(?!\w)|[./-]\s?[\w?|]{{1,2}}(?!\w))"
)
_BEFORE_A_DATE = frozenset("le el il do du de di am im of no by on to at en em in al zu".split())


@dataclass(frozen=True)
class LabelDate:
    """A date found at `text[start:end]`; `month` and `day` are None where the label does not print them.

    `alternative` is the other reading (ISO 8601) of an ambiguous date. An `invalid` one has year 0.
    """

    year: int
    month: int | None
    day: int | None
    start: int
    end: int
    flags: tuple[str, ...] = ()
    alternative: str | None = None

    @property
    def valid(self) -> bool:
        return "invalid" not in self.flags

    @property
    def printed(self) -> str:
        """ISO 8601 in the precision printed: 2027-08-31, 2027-08 or 2027; empty when invalid."""
        if not self.valid:
            return ""
        return "-".join(f"{part:0{width}d}" for part, width in _parts(self.year, self.month, self.day))

    @property
    def latest(self) -> str:
        """The last day that the printed date covers: 2027-08 is 2027-08-31; empty when invalid."""
        if not self.valid:
            return ""
        month = self.month or 12
        return date(self.year, month, self.day or calendar.monthrange(self.year, month)[1]).isoformat()


@dataclass(frozen=True)
class DateRules:
    """How dates are read here: `order` of a printed all-number date, `today` (None: the clock is not trusted) and
    how many years around today a date may lie before it is called `implausible`."""

    order: DateOrder = "DMY"
    today: date | None = None
    window_years: int = DEFAULT_WINDOW_YEARS

    def full_year(self, digits: str) -> int:
        """Four digits as they are; two digits in the century that lies nearest to today, else in 20xx."""
        year = int(digits)
        if len(digits) > 2:
            return year
        if self.today is None:
            return 2000 + year
        century = self.today.year - self.today.year % 100
        return min((century + year + shift for shift in (-100, 0, 100)), key=lambda y: abs(y - self._year))

    def plausible(self, year: int, *, short: bool = False) -> bool:
        """Whether `year` lies within the window; a `short` one of two digits within half of it."""
        window = self.window_years / 2 if short else self.window_years
        return self.today is None or abs(year - self._year) <= window

    @property
    def _year(self) -> int:
        return self.today.year if self.today else 2000


Parts = Mapping[str, str]
_Day = tuple[int, int, int]
Reader = Callable[[Parts, DateRules], "LabelDate | None"]


@dataclass(frozen=True)
class _Form:
    """One way to print a date: its pattern, its reader, and whether it means a date only behind a date's phrase."""

    pattern: re.Pattern[str]
    read: Reader
    keyed_only: bool = False
    on_folded: bool = False  # matched against the unaccented text in lower case, where month names are


def find_dates(text: str, rules: DateRules, *, keyed: bool) -> tuple[LabelDate, ...]:
    """Dates in a clean text, left to right. `keyed`: the text stands behind a phrase such as EXP or MFG.

    Only a keyed text may hold short forms (09/28, 271130) and digits that OCR turned into letters.
    """
    found = _without_lone_years(text, _scan(text, _forms(_REAL), rules, keyed=keyed))
    if keyed and not found:
        found = [replace(d, flags=(*d.flags, "repaired")) for d in _scan(text, _forms(_LIKELY), rules, keyed=True)]
    found = [_judged(_with_leftovers(text, d), rules, text[d.start : d.end]) for d in found if keyed or d.valid]
    found = [d for d in found if "implausible" not in d.flags or (keyed and "repaired" not in d.flags)]
    return tuple(sorted(found, key=lambda d: d.start))


def same_date(one: str, two: str, *, by_month: bool) -> bool:
    """Whether two dates (ISO 8601, each in the precision printed) can be one day; `by_month`: one of them has no day,
    whatever its value says."""
    if by_month:
        return one[:7] == two[:7]
    return bool(one and two) and (one.startswith(two) or two.startswith(one))


def gs1_date(digits: str, rules: DateRules) -> LabelDate:
    """A GS1 date YYMMDD; day 00 is the whole month (GS1 General Specifications 3.4). `digits` has six digits."""
    year, month, day = rules.full_year(digits[:2]), int(digits[2:4]), int(digits[4:])
    if not 1 <= month <= 12 or (day and not _exists(year, month, day)):
        return LabelDate(0, None, None, 0, len(digits), ("invalid",))
    flags = () if day else (MONTH,)
    return _judged(LabelDate(year, month, day or None, 0, len(digits), flags), rules, digits[:2])


def _scan(text: str, forms: tuple[_Form, ...], rules: DateRules, *, keyed: bool) -> list[LabelDate]:
    """Surer forms first; what one has claimed, even an invalid date, no later form may reinterpret."""
    folded = unaccented(text)
    found: list[LabelDate] = []
    for form in forms:
        if form.keyed_only and not keyed:
            continue
        for match in form.pattern.finditer(folded if form.on_folded else text):
            if any(match.start() < d.end and match.end() > d.start for d in found) or not _digits_enough(match[0]):
                continue
            parts = {name: _digits(name, text[slice(*match.span(name))]) for name in match.groupdict() if match[name]}
            if not all(part.isdecimal() for name, part in parts.items() if name not in ("mon", "sep")):
                continue  # an accented letter, folded to one that is taken for a digit
            if (reading := form.read(parts, rules)) is not None:
                found.append(replace(reading, start=match.start(), end=match.end()))
    return found


def _without_lone_years(text: str, found: list[LabelDate]) -> list[LabelDate]:
    """A year counts alone only where it is all the digits there are: in `January l1, 2028` it is a piece."""
    if len(found) == 1 and found[0].valid and found[0].month is None:
        rest = text[: found[0].start] + text[found[0].end :]
        return [] if any(c in "0123456789" for c in rest) else found
    return [d for d in found if not d.valid or d.month is not None]


def _with_leftovers(text: str, found: LabelDate) -> LabelDate:
    """Tells a date beside which stands what may be a piece of it: `AA.08.2027`, `202T-06-30`, `16/05/20 27`."""
    if not found.valid:
        return found
    printed = text[found.start : found.end]
    year_first, year_last = printed.startswith(str(found.year)), printed.endswith(str(found.year))
    piece = None if year_first else _PIECE_BEFORE.search(text[max(0, found.start - 12) : found.start])
    lost = piece is not None and (any(map(str.isdigit, piece[1])) or piece[1].lower() not in _BEFORE_A_DATE)
    if found.day is None or not (year_last or (year_first and printed[-2].isdigit())):
        lost = lost or _PIECE_BEHIND.match(text, found.end) is not None
    lost = lost or (found.day is None and text[: found.start].endswith("/"))
    lost = lost or (text[: found.start][-1:].isalpha() and re.match(r"[0-9](?![0-9])", printed) is not None)
    if lost or _unevenly_padded(printed):
        return replace(found, flags=(*found.flags, "incomplete"))
    return found


def _unevenly_padded(printed: str) -> bool:
    """Whether one number is padded with a zero and another is not: 2029-2-03 has lost a digit."""
    numbers = re.findall(r"[0-9]+", printed)
    return any(len(n) == 1 for n in numbers) and any(len(n) == 2 and n[0] == "0" for n in numbers)


def _judged(found: LabelDate, rules: DateRules, printed: str) -> LabelDate:
    flags = found.flags
    short = re.search(r"[0-9]{4}", printed) is None or (found.day is None and not re.search(r"[./ -]", printed))
    if found.valid and rules.today is None:
        flags += ("clock_untrusted",)
    elif found.valid and not rules.plausible(found.year, short=short):
        flags += ("implausible",)
    return replace(found, flags=flags)


def _digits(name: str, part: str) -> str:
    return part if name == "mon" else part.translate(DIGIT_OF)


def _digits_enough(seen: str) -> bool:
    """At least half of the digits must have been read as digits: `IO/SO` is not a date."""
    real = sum(c.isdigit() for c in seen)
    return real * 2 >= sum(c.isdigit() or c in "OoDQIl|!ZzSBgq" for c in seen if c.isupper() or c.isdigit())


def _parts(year: int, month: int | None, day: int | None) -> Iterator[tuple[int, int]]:
    yield year, 4
    if month is not None:
        yield month, 2
        if day is not None:
            yield day, 2


def _exists(year: int, month: int, day: int) -> bool:
    return 1 <= year <= 9999 and 1 <= month <= 12 and 1 <= day <= calendar.monthrange(year, month)[1]


def _made(year: int, month: int, day: int | None, *flags: str, alternative: str | None = None) -> LabelDate:
    if day is None:
        flags = (*flags, MONTH)
    return LabelDate(year, month, day, 0, 0, flags, alternative)


def _invalid() -> LabelDate:
    return LabelDate(0, None, None, 0, 0, ("invalid",))


def _iso(year: int, month: int, day: int) -> str:
    return f"{year:04d}-{month:02d}-{day:02d}"


# ---- readers: from the named parts of a match to a date ----


def _year_month_day(parts: Parts, rules: DateRules) -> LabelDate | None:
    """2027-08-31; a printed 2027-31-08 is read the other way round, and says so."""
    year, a, b = int(parts["y"]), int(parts["a"]), int(parts["b"])
    if _exists(year, a, b):
        return _made(year, a, b)
    return _made(year, b, a, "order_conflict") if _exists(year, b, a) else _invalid()


def _day_month_year(parts: Parts, rules: DateRules) -> LabelDate | None:
    """31/08/2027 and 31/08/27 by the configured order, with the other reading beside it."""
    a, b, last = int(parts["a"]), int(parts["b"]), parts["y"]
    if len(last) == 2 and rules.order == "YMD":
        year = rules.full_year(parts["a"])
        if len(parts["a"]) == 2 and _exists(year, b, int(last)):
            return _made(year, b, int(last))
    year = rules.full_year(last)
    day, month = (b, a) if rules.order == "MDY" else (a, b)
    if not _exists(year, month, day):
        return _made(year, day, month, "order_conflict") if _exists(year, day, month) else _invalid()
    if day != month and _exists(year, day, month):
        return _made(year, month, day, "ambiguous", alternative=_iso(year, day, month))
    if (other := _year_first(parts, rules, year)) is not None:
        return _made(year, month, day, "ambiguous", alternative=other)
    conflict = ("order_conflict",) if rules.order == "YMD" and len(last) == 2 else ()
    return _made(year, month, day, *conflict)


def _year_first(parts: Parts, rules: DateRules, year: int) -> str | None:
    """26.08.12 as 2026-08-12, where the configured order gives a date long past and this one a recent one."""
    if rules.today is None or len(parts["y"]) != 2 or len(parts["a"]) != 2 or year >= rules.today.year - 5:
        return None
    first, month, day = rules.full_year(parts["a"]), int(parts["b"]), int(parts["y"])
    near = rules.today.year - 5 <= first <= rules.today.year + 10
    return _iso(first, month, day) if near and _exists(first, month, day) else None


def _month_name(parts: Parts, rules: DateRules) -> LabelDate | None:
    """12 AUG 2026, AUG 2026, January 11, 2028, 2026-AUG-12."""
    month = month_number(parts["mon"])
    if month is None:
        return None
    year = rules.full_year(parts["y"])
    if "d" not in parts:
        return _made(year, month, None)
    return _made(year, month, int(parts["d"])) if _exists(year, month, int(parts["d"])) else _invalid()


def _month_year(parts: Parts, rules: DateRules) -> LabelDate | None:
    """08/2027 and 2027-08."""
    month = int(parts["m"])
    return _made(int(parts["y"]), month, None) if 1 <= month <= 12 else _invalid()


def _month_short_year(parts: Parts, rules: DateRules) -> LabelDate | None:
    """08/27 behind a date's phrase; 05/06 can be both ways round."""
    a, b = parts["m"], parts["y"]
    if rules.order == "YMD" and 1 <= int(b) <= 12 and len(b) == 2:
        a, b = b, a
    if not 1 <= int(a) <= 12:
        return _invalid()
    year = rules.full_year(b)
    if a != b and len(parts["m"]) == 2 and 1 <= int(b) <= 12:
        other = f"{rules.full_year(a):04d}-{int(b):02d}"
        return _made(year, int(a), None, "ambiguous", alternative=other)
    return _made(year, int(a), None)


def _eight_digits(parts: Parts, rules: DateRules) -> LabelDate | None:
    """20270831, or 31082027 by the configured order; only a year within the window counts."""
    s = parts["s"]
    year_first = (int(s[:4]), int(s[4:6]), int(s[6:]))
    return _from_digits(rules, year_first, _year_last(s[:2], s[2:4], int(s[4:]), rules), None)


def _six_digits(parts: Parts, rules: DateRules) -> LabelDate | None:
    """311027 by the configured order, 271031 and 102027 (a month) otherwise; a second reading is told."""
    s = parts["s"]
    year_first = (rules.full_year(s[:2]), int(s[2:4]), int(s[4:]))
    month = (int(s[2:]), int(s[:2])) if 1 <= int(s[:2]) <= 12 and _fits(rules, int(s[2:])) else None
    return _from_digits(rules, year_first, _year_last(s[:2], s[2:4], rules.full_year(s[4:]), rules), month)


def _from_digits(
    rules: DateRules, year_first: _Day, year_last: tuple[_Day, _Day], month: tuple[int, int] | None
) -> LabelDate | None:
    """The likeliest reading of bare digits: the configured order, a month, the year first, the other order."""
    ours, others = year_last
    ordered = [year_first, ours] if rules.order == "YMD" else [ours, year_first]
    readings: list[LabelDate] = [_made(*day) for day in ordered if _exists(*day) and _fits(rules, day[0])]
    if month is not None:
        readings.insert(0 if not readings or readings[0].printed != _iso(*ours) else 1, _made(*month, None))
    if others != ours and _exists(*others) and _fits(rules, others[0]):
        readings.append(_made(*others, "order_conflict"))
    if not readings:
        return None
    other = next((r.printed for r in readings[1:] if r.printed != readings[0].printed), None)
    return (
        readings[0]
        if other is None
        else replace(readings[0], flags=(*readings[0].flags, "ambiguous"), alternative=other)
    )


def _four_digits(parts: Parts, rules: DateRules) -> LabelDate | None:
    """0827 is August 2027, 2027 the whole year; both readings are told where both fit."""
    s = parts["s"]
    month, year = int(s[:2]), rules.full_year(s[2:])
    if s.startswith("20") and (rules.today is None or rules.plausible(int(s))):
        return LabelDate(int(s), None, None, 0, 0, ("year_precision",))
    if not 1 <= month <= 12 or not rules.plausible(year):
        return None
    if 1 <= int(s[2:]) <= 12 and s[:2] != s[2:]:
        return _made(year, month, None, "ambiguous", alternative=f"{rules.full_year(s[:2]):04d}-{s[2:]}")
    return _made(year, month, None)


def _year_last(a: str, b: str, year: int, rules: DateRules) -> tuple[_Day, _Day]:
    """Year, month, day of two numbers before a year: by the configured order, then by the other."""
    day_first, month_first = (year, int(b), int(a)), (year, int(a), int(b))
    return (month_first, day_first) if rules.order == "MDY" else (day_first, month_first)


def _fits(rules: DateRules, year: int) -> bool:
    """Whether digits that could be anything make a year of our time."""
    return 1990 <= year <= 2099 if rules.today is None else rules.plausible(year)


@lru_cache(maxsize=1024)
def month_number(name: str) -> int | None:
    """The month that `name` spells in one of the languages known, letters that OCR swaps allowed; else None.

    A short name must fit letter by letter: one letter of edit distance would make `EXP` a `SEP`.
    """
    plain = unaccented(name)
    if plain in _MONTH_OF:
        return _MONTH_OF[plain]
    bones = skeleton(name).chars
    folded = {skeleton(month).chars: number for month, number in _MONTH_OF.items()}
    if bones in folded:
        return folded[bones]
    if len(bones) < 5:
        return None
    near = {number for month, number in folded.items() if len(month) >= 5 and Levenshtein.distance(month, bones) <= 1}
    return near.pop() if len(near) == 1 else None


# ---- the forms, once for digits as read and once for digits as OCR may have bent them ----


@lru_cache(maxsize=2)
def _forms(digit: str) -> tuple[_Form, ...]:
    likely = digit != _REAL
    one_two, two, four = f"{digit}{{1,2}}", f"{digit}{{2}}", f"{digit}{{4}}"
    # A day or year is whole: no digit, no separator with a digit and no misread digit may touch it.
    head = r"(?<![0-9|])(?<![0-9][./,:;-])(?<!(?<![A-Za-z])[A-Za-z])"
    misread = r"[OoQDIilZzSsBbGgTAq|]"
    body = rf"(?![0-9])(?![./-]\s?(?:[0-9]|{misread}{{1,3}}[0-9]))(?!{misread}{{1,3}}(?:[0-9]|$|[\s./-]))"
    tail = rf"(?:(?=\s?[0-2]?[0-9]:[0-5][0-9])|{body})"
    gap = r"\s{0,2}[./,;-]\s{0,2}" if likely else r"\s{0,2}[./-]\s{0,2}"
    first = r"\s{0,2}[./,:;-]\s{0,2}" if likely else r"\s{0,2}(?P<sep>[./-])\s{0,2}"
    again = gap if likely else r"\s{0,2}(?P=sep)\s{0,2}"
    name = r"(?P<mon>[a-z0-9|]{3,10})" if likely else rf"(?P<mon>{_MONTH_NAMES})"
    lead = r"(?<![a-z0-9|])(?<![0-9][\s./,-])"
    link = r"(?:\s{0,2}[.,/'-]{0,2}\s{0,2}(?:de\s|del\s|of\s)?)"
    year = f"(?P<y>{four}|{two})"

    def numbers(pattern: str, read: Reader, *, keyed_only: bool = True) -> _Form:
        return _Form(re.compile(head + pattern + tail, re.ASCII), read, keyed_only)

    def names(pattern: str, *, keyed_only: bool = False) -> _Form:
        return _Form(re.compile(pattern + tail, re.ASCII | re.IGNORECASE), _month_name, keyed_only, on_folded=True)

    # Digits alone are a date only where no letter touches them: in 18JN2025 the month is lost.
    alone = r"(?<![A-Za-z])"

    forms = [
        _Form(re.compile(r"(?P<y>[0-9]{4})\s?年\s?(?P<a>[0-9]{1,2})\s?月\s?(?P<b>[0-9]{1,2})\s?日?"), _year_month_day),
        _Form(re.compile(r"(?P<y>[0-9]{4})\s?年\s?(?P<m>[0-9]{1,2})\s?月"), _month_year),
        numbers(rf"(?P<y>{four}){first}(?P<a>{one_two}){again}(?P<b>{one_two})", _year_month_day, keyed_only=likely),
        numbers(rf"(?P<a>{one_two}){first}(?P<b>{one_two}){again}(?P<y>{four})", _day_month_year, keyed_only=likely),
        names(rf"{head}(?P<d>{one_two})(?:st|nd|rd|th|er)?{link}{name}{link}{year}"),
        names(rf"{head}(?P<y>{four}){link}{name}{link}(?P<d>{one_two})"),
        numbers(rf"(?P<a>{two}){first}(?P<b>{two}){again}(?P<y>{two})", _day_month_year, keyed_only=likely),
        numbers(rf"(?P<a>{one_two}){first}(?P<b>{one_two}){again}(?P<y>{two})", _day_month_year),
        numbers(rf"(?P<y>{four}) (?P<a>{two}) (?P<b>{two})", _year_month_day),
        numbers(rf"(?P<a>{one_two}) (?P<b>{one_two}) (?P<y>{four}|{two})", _day_month_year),
    ]
    if likely:  # a slash read as 1 or l: 16/0212026
        forms += [
            numbers(r"(?P<a>[0-9]{2})[./-](?P<b>[0-9]{2})[1lI|](?P<y>[0-9]{4})", _day_month_year),
            numbers(r"(?P<a>[0-9]{2})[1lI|](?P<b>[0-9]{2})[./-](?P<y>[0-9]{4})", _day_month_year),
        ]
    forms += [
        names(rf"{lead}{name}{link}(?P<d>{one_two})(?:st|nd|rd|th)?(?:,\s?|\s)(?P<y>{four})"),
        names(rf"{lead}{name}{link}(?P<y>{four})"),
        names(rf"{lead}{name}{link}(?P<y>{two})", keyed_only=True),
        numbers(rf"(?P<m>{one_two}){gap}(?P<y>{four})", _month_year),
        numbers(rf"(?P<y>{four}){gap}(?P<m>{one_two})", _month_year),
        numbers(rf"(?<![A-Za-z][\s./,-])(?P<m>{one_two}) (?P<y>20{two})", _month_year),
        numbers(rf"{alone}(?P<s>{digit}{{8}})", _eight_digits),
        numbers(rf"(?P<m>{one_two}){gap}(?P<y>{two})", _month_short_year),
        numbers(rf"{alone}(?P<s>{digit}{{6}})", _six_digits),
        numbers(rf"{alone}(?P<s>{digit}{{4}})", _four_digits),
    ]
    return tuple(forms)
