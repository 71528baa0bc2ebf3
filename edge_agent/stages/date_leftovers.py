"""Leftovers: what stands beside a date and may be a piece of it, such as the lost day of `AA.08.2027`."""

from __future__ import annotations

import re

from edge_agent.stages.label_date import LabelDate

_SEPARATORS = r"[\s./,:;'_~-]"
_PIECE_BEFORE = re.compile(rf"(?:^|[^\w])([\w?|]{{1,2}}|[\w?|]{{0,3}}[0-9][\w?|]{{0,3}}){_SEPARATORS}{{0,4}}$")
_PIECE_BEHIND = re.compile(
    rf"(?!\s[0-2]?[0-9]:[0-5][0-9](?![0-9]))"  # a time of day; nor an amount, nor a lot with its L
    rf"(?!\s[0-9]{{1,4}}(?:[.,][0-9]{{1,3}})?\s?(?:mg|kg|g|ml|cl|dl|l|oz|lb|Stk|pcs)(?!\w))"
    rf"(?:{_SEPARATORS}{{0,4}}(?=[\w?|]{{0,4}}[0-9])(?!L)[\w?|]{{1,5}}(?!\w)"
    rf"|{_SEPARATORS}{{0,4}}[OIlZSBGozsbg|?]{{1,2}}(?!\w)|[./-]\s?[\w?|]{{1,2}}(?!\w))"
)
_BEFORE_A_DATE = frozenset("le el il do du de di am im of no by on to at en em in al zu".split())
# What the recogniser makes of a digit that it cannot read, and of print that is no character.
_BLOT = '[■□▪▫▮▯●○◯◆◇★☆※*#%&@$^~"?_|{}\ufffd]'
_JOINED = re.compile(rf"{_BLOT}\s?[./,-]?\s?$|\s[./]\s?$|[^\W0-9][./-]$")
_BLOT_BEHIND = re.compile(rf"\s?[./,-]?\s?{_BLOT}")
_TOUCHED, _BLOTS_TOUCH = re.compile(rf"(?:{_BLOT}|[^\W0-9]|')$"), re.compile(rf"{_BLOT}(?:\w|{_BLOT})")
_ONE_DIGIT_FIRST, _ONE_DIGIT_LAST = re.compile(r"[0-9](?![0-9])"), re.compile(r"(?<![0-9])[0-9]$")
_TWO_DIGITS_LAST = re.compile(r"(?<![0-9])[0-9]{2}$")


def has_leftovers(text: str, found: LabelDate) -> bool:
    """Whether what stands beside a valid date may be a piece of it: `202T-06-30`, `16/05/20 27`, `3■.08.2027`."""
    printed, before, behind = text[found.start : found.end], text[: found.start], text[found.end :]
    year_first, year_last = printed.startswith(str(found.year)), printed.endswith(str(found.year))
    whole = found.day is not None and (year_last or (year_first and printed[-2].isdigit()))
    return (
        (not year_first and _piece_before(before[-12:]))
        or (not whole and _PIECE_BEHIND.match(text, found.end) is not None)
        or (found.day is None and _day_before(before[-4:], year_first))
        or (_ONE_DIGIT_FIRST.match(printed) is not None and _TOUCHED.search(before[-1:]) is not None)
        or _blot_behind(behind[:4], printed, without_day=found.day is None and year_first)
        or _unevenly_padded(printed)
    )


def _piece_before(before: str) -> bool:
    piece = _PIECE_BEFORE.search(before)
    return piece is not None and (any(map(str.isdigit, piece[1])) or piece[1].lower() not in _BEFORE_A_DATE)


def _day_before(before: str, year_first: bool) -> bool:
    """`/08/2027`, ` .08.2027`, `AOG-05-27`, `■■.08.2027`: what a separator joins to a month belongs to it."""
    return before.endswith("/") or (not year_first and _JOINED.search(before) is not None)


def _blot_behind(behind: str, printed: str, *, without_day: bool) -> bool:
    """`2027-10-■1`, `2027-10-1■`, `31.08.20■7`; a star behind two digits is a footnote's."""
    if without_day or _ONE_DIGIT_LAST.search(printed):
        return _BLOT_BEHIND.match(behind) is not None
    return _TWO_DIGITS_LAST.search(printed) is not None and _BLOTS_TOUCH.match(behind) is not None


def _unevenly_padded(printed: str) -> bool:
    """Whether one number is padded with a zero and another is not: 2029-2-03 has lost a digit."""
    numbers = re.findall(r"[0-9]+", printed)
    return any(len(n) == 1 for n in numbers) and any(len(n) == 2 and n[0] == "0" for n in numbers)
