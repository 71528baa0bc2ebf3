"""Forms: the ways in which labels print a date, once for digits as read and once for digits as OCR may have bent them.

The named parts of a pattern are what its reader takes: y a year, m a month's number, mon its name, d a day, a and b
a day and a month in either order, s digits alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from edge_agent.stages.date_readers import (
    Reader,
    day_month_year,
    eight_digits,
    four_digits,
    month_name,
    month_short_year,
    month_year,
    six_digits,
    year_month_day,
)
from edge_agent.stages.months import MONTH_NAMES

# A day or year is whole: no digit, no separator with a digit and no misread digit may touch it.
_MISREAD = r"[OoQDIilZzSsBbGgTAq|]"
_HEAD = r"(?<![0-9|])(?<![0-9][./,:;-])(?<!(?<![A-Za-z])[A-Za-z])"
_BODY = (
    rf"(?![0-9年月日년월일])(?![./-]\s?(?:[0-9]|{_MISREAD}{{1,3}}[0-9]))(?!{_MISREAD}{{1,3}}(?:[0-9]|$|[\s./-]))"
    r"(?!(?<![0-9]{3}):[0-5][0-9](?!:))"  # two digits before minutes are hours
)
_TIME_BEHIND = r"(?=\s?[0-2]?[0-9]:[0-5][0-9]|(?<=[0-9]{2})T[0-2][0-9]:?[0-5][0-9])"  # T: ISO 8601's
_TAIL = rf"(?:{_TIME_BEHIND}|{_BODY})"
_BEFORE_NAME = r"(?<![a-z0-9|])(?<![0-9][\s./,-])"
_LINK = r"(?:\s{0,2}[.,/'-]{0,2}\s{0,2}(?:de\s|del\s|of\s)?)"
# Digits alone are a date only where no letter touches them: in 18JN2025 the month is lost.
_ALONE = r"(?<![A-Za-z])"
_NAMES = "|".join(sorted(MONTH_NAMES, key=lambda name: (-len(name), name)))


# A week of a year is no month of it: KW 12/27, Week 10/2027, 10/27 KW. Matched against the unaccented text.
_WEEKS = r"(?:[kcw]w|wk|weeks?|(?:kalender)?woche|sem|semaine|semana|settimana|uge|vecka)"
WEEK = re.compile(
    rf"(?<![a-z]){_WEEKS}[\s.:]{{0,3}}[0-9oilzsb|]{{1,2}}[\s./-]{{1,3}}(?:[0-9]{{4}}|[0-9]{{2}})(?![0-9]|[./-][0-9])"
    rf"|(?<![0-9./-])[0-9]{{1,4}}[./-][0-9]{{1,4}}\s?(?:{_WEEKS}|w)(?![a-z])"
)


@dataclass(frozen=True)
class Form:
    """One way to print a date: its pattern, its reader, and whether it means a date only behind a date's phrase."""

    pattern: re.Pattern[str]
    read: Reader
    keyed_only: bool = False
    on_folded: bool = False  # matched against the unaccented text in lower case, where month names are


@dataclass(frozen=True)
class _Print:
    """How one character of a date may stand there: patterns of a digit, of what separates, of a month's name."""

    digit: str
    gap: str  # between month and year
    first: str  # behind the first number of three
    again: str  # behind the second
    name: str
    stray: str = ""  # a space within a number whose sign says where it ends
    broken_year: str = ""

    @property
    def one_two(self) -> str:
        return f"{self.digit}{{1,2}}"

    @property
    def two(self) -> str:
        return f"{self.digit}{{2}}"

    @property
    def four(self) -> str:
        return f"(?:{self.digit}{{4}}{self.broken_year})"

    @property
    def year(self) -> str:
        return f"(?P<y>{self.four}|{self.two})"


_AS_READ = _Print(
    digit="[0-9]",
    gap=r"\s{0,2}[./-]\s{0,2}",
    first=r"\s{0,2}(?P<sep>[./-])\s{0,2}",
    again=r"\s{0,2}(?P=sep)\s{0,2}",
    name=rf"(?P<mon>{_NAMES})",
)
_BENT = _Print(
    digit="[0-9OoDQIil|!ZzASsGbTBgq]",
    gap=r"\s{0,2}[./,;-]\s{0,2}",
    first=r"\s{0,2}[./,:;-]\s{0,2}",
    again=r"\s{0,2}[./,;-]\s{0,2}",
    # before a year of its own that touches it (16 NOVZ026), before no letter or digit, or up to a last letter
    name=r"(?P<mon>[a-z0-9|]{3,10}?(?=[2z][0od][0-9oilzsb]{2})|[a-z0-9|]{3,10}(?![a-z0-9|])|[a-z0-9|]{2,9}[a-z|])",
    stray=" ?",
    broken_year="|2 0[0-9]{2}|20 [0-9]{2}|20[0-9] [0-9]",
)


@lru_cache(maxsize=2)
def forms(*, bent: bool) -> tuple[Form, ...]:
    """Every form, the surer ones first; `bent`: also digits and separators that OCR took for something else."""
    how = _BENT if bent else _AS_READ
    lost_slash = tuple(_with_a_lost_slash(how)) if bent else ()
    return (*_with_signs(how), *_of_three_parts(how, keyed_only=bent), *lost_slash, *_of_two_parts(how))


def _with_signs(how: _Print) -> Iterator[Form]:
    """2027年8月31日, 2027년 8월 31일 and 2027年8月, but no month where a day is lost before its sign: 2027年8月?日."""
    year = rf"(?<![0-9])(?P<y>{how.stray.join([how.digit] * 4)})\s?[年년]\s?"
    one_two = rf"{how.digit}(?:{how.stray}{how.digit})?"
    lost_day = r"(?!\s?\S{0,3}\s?[日일])"
    day = rf"(?P<a>{one_two})\s?[月월]\s?(?P<b>{one_two})(?![0-9])(?:\s?[日일]|{lost_day})"
    yield Form(re.compile(year + day), year_month_day)
    yield Form(re.compile(rf"{year}(?P<m>{one_two})\s?[月월]{lost_day}"), month_year)


def _of_three_parts(how: _Print, *, keyed_only: bool) -> Iterator[Form]:
    one_two, two, four, first, again = how.one_two, how.two, how.four, how.first, how.again
    yield _numbers(rf"(?P<y>{four}){first}(?P<a>{one_two}){again}(?P<b>{one_two})", year_month_day, keyed_only)
    yield _numbers(rf"(?P<a>{one_two}){first}(?P<b>{one_two}){again}(?P<y>{four})", day_month_year, keyed_only)
    yield _names(rf"{_HEAD}(?P<d>{one_two})(?:st|nd|rd|th|er)?{_LINK}{how.name}{_LINK}{how.year}")
    yield _names(rf"{_HEAD}(?P<y>{four}){_LINK}{how.name}{_LINK}(?P<d>{one_two})")
    yield _numbers(rf"(?P<a>{two}){first}(?P<b>{two}){again}(?P<y>{two})", day_month_year, keyed_only)
    yield _numbers(rf"(?P<a>{one_two}){first}(?P<b>{one_two}){again}(?P<y>{two})", day_month_year)
    yield _numbers(rf"(?P<y>{four}) (?P<a>{two}) (?P<b>{two})", year_month_day)
    yield _numbers(rf"(?P<a>{one_two}) (?P<b>{one_two}) (?P<y>{four}|{two})", day_month_year)


def _with_a_lost_slash(how: _Print) -> Iterator[Form]:
    """A slash read as 1 or l, or another sign lost, between numbers that are whole: 16/0212026, 18.032027."""
    two, year, slash = how.two, f"(?P<y>[2Z][0OoD]{how.two})", "[1lI|]"
    yield _numbers(rf"(?P<a>{two})[./-](?P<b>{two}){slash}?{year}", day_month_year)
    yield _numbers(rf"(?P<a>{two}){slash}?(?P<b>{two})[./-]{year}", day_month_year)
    yield _numbers(rf"(?P<a>{two})[./-](?P<b>{two}){slash}(?P<y>{two})", day_month_year)
    yield _numbers(rf"{year}[./-](?P<a>{two}){slash}?(?P<b>{two})", year_month_day)
    yield _numbers(rf"{year}{slash}?(?P<a>{two})[./-](?P<b>{two})", year_month_day)


def _of_two_parts(how: _Print) -> Iterator[Form]:
    """Month names with what stands behind them, months without a day, and digits alone."""
    one_two, two, four, gap = how.one_two, how.two, how.four, how.gap
    yield _names(rf"{_BEFORE_NAME}{how.name}{_LINK}(?P<d>{one_two})(?:st|nd|rd|th)?(?:,\s?|\s|[./-])(?P<y>{four})")
    yield _names(rf"{_BEFORE_NAME}{how.name}(?P<d>{two})(?P<y>{four})")
    yield _names(rf"{_BEFORE_NAME}{how.name}{_LINK}(?P<d>{one_two})(?:,\s?|[./-])(?P<y>{two})", keyed_only=True)
    yield _names(rf"{_BEFORE_NAME}{how.name}{_LINK}(?P<y>{four})")
    a_year_behind = r"(?!\s?,\s?\w)"  # AUG 26, 2027
    yield _names(rf"{_BEFORE_NAME}{how.name}{_LINK}(?P<y>{two}){a_year_behind}", keyed_only=True)
    yield _numbers(rf"(?P<m>{one_two}){gap}(?P<y>{four})", month_year)
    yield _numbers(rf"(?P<y>{four}){gap}(?P<m>{one_two})", month_year)
    yield _numbers(rf"(?<![A-Za-z][\s./,-])(?<![A-Za-z]\s\s)(?P<m>{one_two}) (?P<y>20{two})", month_year)
    yield _numbers(rf"{_ALONE}(?P<s>{four}{how.digit}{{4}})", eight_digits)
    another_sign = r"(?!(?<=\.[0-9]{2}),(?:\s?20)?[0-9]{2}(?![\w./-]))"  # no February: 27.02,2028
    yield _numbers(rf"(?P<m>{one_two}){gap}(?P<y>{two}){another_sign}", month_short_year)
    yield _numbers(rf"{_ALONE}(?P<s>{how.digit}{{6}})", six_digits)
    yield _numbers(rf"{_ALONE}(?P<s>{how.digit}{{4}})", four_digits)


def _numbers(pattern: str, read: Reader, keyed_only: bool = True) -> Form:
    return Form(re.compile(_HEAD + pattern + _TAIL, re.ASCII), read, keyed_only)


def _names(pattern: str, *, keyed_only: bool = False) -> Form:
    return Form(re.compile(pattern + _TAIL, re.ASCII | re.IGNORECASE), month_name, keyed_only, on_folded=True)
