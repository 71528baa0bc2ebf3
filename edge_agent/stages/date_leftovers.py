"""Leftovers: what stands beside or within a date and may be what is left of a lost piece: the day of `AA.08.2027`."""

from __future__ import annotations

import re

from edge_agent.stages.label_date import LabelDate
from edge_agent.stages.lost_days import BLOT, day_may_be_lost
from edge_agent.stages.months import MONTH_NAMES

NEAR_CHARS = 16  # a month's name and what may stand between it and a date
_SEPARATORS = r"[\s./,:;'_~-]"
_PIECE_BEFORE = re.compile(rf"(?:^|[^\w])([\w?|]{{1,2}}|[\w?|]{{0,3}}[0-9][\w?|]{{0,3}}){_SEPARATORS}{{0,4}}$")
_PIECE_BEHIND = re.compile(
    rf"(?!\s[0-2]?[0-9]:[0-5][0-9](?![0-9]))"  # a time of day; nor an amount, nor a lot with its L
    rf"(?!\s{{1,4}}[0-9]{{1,4}}(?:[.,][0-9]{{1,3}})?\s?(?:mg|kg|g|ml|cl|dl|l|oz|lb|Stk|pcs)(?!\w))"
    rf"(?:{_SEPARATORS}{{0,4}}(?=[\w?|]{{0,4}}[0-9])(?!L)[\w?|]{{1,5}}(?!\w)"
    rf"|{_SEPARATORS}{{0,4}}[0-9]{{1,2}}[A-Za-z]"
    rf"|{_SEPARATORS}{{0,4}}[OIlZSBGozsbg|?]{{1,2}}(?!\w)|[./-]\s?[\w?|]{{1,2}}(?!\w))"
)
_TIME_BEFORE = re.compile(r"(?<![0-9:.,])[0-2]?[0-9]:[0-5][0-9](?::[0-5][0-9])?\s$")
_BEFORE_A_DATE = frozenset(
    "le el il do du de di am im of no by on to at en em in al zu bis end ende fin fine date del fim einde".split()
)
_BLOTTED_BEFORE, _BLOTTED_BEHIND = re.compile(rf"(?:\w|{BLOT}){BLOT}$"), re.compile(rf"{BLOT}(?:\w|{BLOT})")
_MONTH = rf"(?:{'|'.join(MONTH_NAMES)})"
_MONTH_BEFORE = re.compile(rf"(?<![a-z]){_MONTH}[\s.,:/'-]{{0,3}}$", re.IGNORECASE)
_DAY_BEFORE = re.compile(rf"{BLOT}\s?[./,-]\s?$|\s[./]\s?$|[\w./,;:-]\s?{BLOT}\s?$")
_BLOT_BEFORE = re.compile(rf"{BLOT}\s?$")
_ORNAMENT = re.compile(rf"[\s.:]*{BLOT}\s?")  # where nothing but the end of a key stands before it: EXP: *08/2027*
_WORD_BEFORE = re.compile(r"([^\W0-9_]+)([./-]{0,3})$")
_MONTH_OF_A_YEAR = re.compile(r"([^\W_]+)[\s./-]{0,3}$")  # before a year alone: JL 2028
_DAY_BEHIND = re.compile(rf"\s?[./,-]\s?(?:{BLOT}|{_MONTH})|{BLOT}\s?[\w./,-]", re.IGNORECASE)
_DIGIT_BEFORE = re.compile(rf"(?:{BLOT}|[^\W0-9]|['/]|\s[.-])$")
_ONE_DIGIT_FIRST, _ONE_DIGIT_LAST = re.compile(r"[0-9](?![0-9])"), re.compile(r"(?<![0-9])[0-9]$")
_PART = re.compile(r"[0-9]+(?:st|nd|rd|th|er)?|[^\W0-9_]+", re.IGNORECASE)
_NAMELESS = re.compile(r"[0-9]+[\s./-]+[0-9]+|[0-9 ]+")  # behind a month's name it lacks what that says: NOV 10- 2031
_BEFORE_YEAR = ("", ".", ",", "'")
_SIGN = re.compile(r"\s?[年月日년월일]")
_HALF_A_YEAR = re.compile(r"(?<!20)20$")  # 12 SEP 20: what is left of 12 SEP 2027


def has_leftovers(text: str, found: LabelDate) -> bool:
    """Whether a valid date may have lost a piece: `202T-06-30`, `16/05/20 27`, `3■.08.2027`, `1' APR 2027`."""
    printed, before = text[found.start : found.end], text[max(0, found.start - NEAR_CHARS) : found.start]
    behind = text[found.end : found.end + NEAR_CHARS]
    year_first, year_last = printed.startswith(str(found.year)), printed.endswith(str(found.year))
    whole = found.day is not None and (year_last or (year_first and printed[-2].isdigit()))
    two_digit_day = found.day is not None and not _ONE_DIGIT_FIRST.match(printed)
    return (
        (not year_first and _piece_before(before[-12:], two_digit_day))
        or (not whole and _PIECE_BEHIND.match(text, found.end) is not None)
        or (found.day is None and _day_beside(before, behind, printed, year_first=year_first, year_last=year_last))
        or (found.day is None and found.month is not None and day_may_be_lost(before, behind, printed))
        or (found.month is None and _month_beside(before))
        or (found.year == 2020 and _HALF_A_YEAR.search(printed) is not None)
        or (_NAMELESS.fullmatch(printed) is not None and _MONTH_BEFORE.search(before) is not None)
        or _digit_beside(before, behind, printed, whole=whole)
        or _unevenly_padded(printed)
        or _unevenly_joined(printed)
    )


def _piece_before(before: str, two_digit_day: bool) -> bool:
    if two_digit_day and _TIME_BEFORE.search(before):
        return False
    piece = _PIECE_BEFORE.search(before)
    return piece is not None and (any(map(str.isdigit, piece[1])) or piece[1].lower() not in _BEFORE_A_DATE)


def _day_beside(before: str, behind: str, printed: str, *, year_first: bool, year_last: bool) -> bool:
    """`/08/2027`, ` .08.2027`, `AOG-05-27`, `■■.08.2027`, `■■ AUG 2027`, `2027-10-■1`, `27.10.■1`."""
    if before.endswith("/") or (not year_last and _DAY_BEHIND.match(behind)):
        return True
    if year_first:
        return False
    word = _WORD_BEFORE.search(before)
    if word is not None and (word[2] or word[1].lower() not in _BEFORE_A_DATE):
        return True
    if _ORNAMENT.fullmatch(before) and any(sign in printed for sign in "./-"):
        return False
    return (_DAY_BEFORE.search(before) or _BLOT_BEFORE.search(before)) is not None


def _month_beside(before: str) -> bool:
    """Whether a word stands before a year that may be what is left of its month's name: `JL 2028`, but `end 2028`."""
    word = _MONTH_OF_A_YEAR.search(before)
    return word is not None and word[1].lower() not in _BEFORE_A_DATE


def _digit_beside(before: str, behind: str, printed: str, *, whole: bool) -> bool:
    """`■1 AUG 2027`, `2027-10-1■`, `31.08.20■7`, `20*30-07-25`; a star behind two digits is a footnote's."""
    if _BLOTTED_BEFORE.search(before) or (not whole and _BLOTTED_BEHIND.match(behind)):
        return True
    if _ONE_DIGIT_FIRST.match(printed) and _DIGIT_BEFORE.search(before):
        return True
    own = "".join(_links(printed))
    return _ONE_DIGIT_LAST.search(printed) is not None and (
        re.match(rf"{BLOT}|[^\W0-9年月日년월일]", behind) is not None
        or (behind[:1] in tuple(".':,;/-") and (behind[0] == "-" or behind[0] not in own))
    )


def _unevenly_padded(printed: str) -> bool:
    """Whether one number is padded with a zero and another is not: 2029-2-03 has lost a digit."""
    numbers = re.findall(r"[0-9]+", printed)
    return any(len(n) == 1 for n in numbers) and any(len(n) == 2 and n[0] == "0" for n in numbers)


def _unevenly_joined(printed: str) -> bool:
    """Whether what joins the parts may be a lost digit: `27. 1.27`, `1APR 2027`, `MAY -6 2031`, `2027年10月1 日`."""
    signs = {sign[0].isspace() for sign in _SIGN.findall(printed)}
    parts, links = _PART.findall(printed), _links(printed)
    if signs or len(links) != 2:
        return len(signs) == 2 and any(len(part) == 1 for part in parts if part.isdigit())
    one, two = links
    single = any(len(part) == 1 for part in parts if part.isdigit())
    if all(part.isdigit() for part in parts):
        # 25 2 2027 and 2027-12-2 are printed with all their zeros; 20 -08-31 has lost half of its year
        padded = one.isspace() or (one == "-" and len(parts[0]) == 4)
        return (single and padded) or (one != two and (single or parts[0] == "20"))
    if one == two:
        return False
    if parts[0].isalpha():
        glued = single and (not one or "  " in one) and " " in two
        return glued or one.strip() not in ("", ".") or two.strip() not in ("", ",", ", '")
    return single and (
        one.strip() not in ("", ".")
        or len(one) > 2 - (one[:1] == " ")
        or two.strip() not in _BEFORE_YEAR
        or (not one) != (not two)
    )


def _links(printed: str) -> list[str]:
    """What stands between the parts of a date."""
    return _PART.split(printed)[1:-1]
