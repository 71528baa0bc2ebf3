"""Lost days: what beside or within a month and a year tells that a day stood there, which nothing has read.

`.09.2027`, `2027-09-`, `Sep, 2027` and `12. 2027` are what is left of whole dates; `09.2027` is a month as printed.
"""

from __future__ import annotations

import re

# What the recogniser makes of a digit that it cannot read, and of print that is no character.
BLOT = '[■□▪▫▮▯●○◯◆◇★☆※*#%&@$^~"?_|{}\ufffd]'
_SEPARATORS = r"[\s./,:;'_~-]"
_LETTER = "[^\\W\\d_年월]"
_EVEN = re.compile(
    r"[0-9]+|[0-9]{2} [0-9]{4}|[0-9]{1,2}(\s?)[./-]\1[0-9]+|[0-9]{4}(\s?)(?:-\2[0-9]{2}|[./]\2[0-9]{1,2})"
    r"|[0-9]{4}\s?[年년]\s?[0-9]{1,2}\s?[月월]"
    rf"|{_LETTER}+(?:\.?\s?'?|(\s?)[/-]\3|\s?(?:de|del|of)\s)[0-9]+",
    re.IGNORECASE,
)
_SIGN_BEHIND = re.compile(r"[./-]|\s[./-]$")
_SIGN_BEFORE = re.compile(r"(.?)([./,-])$", re.DOTALL)
_BLOT_FOR_A_YEAR = re.compile(rf"\s(?=\S{{0,3}}{BLOT})(?:\w|{BLOT}){{2,4}}(?!\w)")
_PIECE = re.compile(rf"{_SEPARATORS}*(?:[0-9OIlZS]|{BLOT}){{0,2}}{_SEPARATORS}*")


def day_may_be_lost(before: str, behind: str, printed: str) -> bool:
    """Whether a date without a day, and some characters before and behind it, show that it had one."""
    if _EVEN.fullmatch(printed) is None or _sign_before(before, printed):
        return True
    if printed[0].isalpha():  # December 25 #027
        return re.search(r"[0-9]{4}", printed) is None and _BLOT_FOR_A_YEAR.match(behind) is not None
    year_last = re.search(r"[0-9]{4}$", printed) is not None
    return not year_last and not printed.isdigit() and _SIGN_BEHIND.match(behind) is not None


def is_piece(text: str) -> bool:
    """Whether a text beside a date may be a piece of it: a number of one or two digits, a blot, a sign."""
    return _PIECE.fullmatch(text) is not None


def begins_with_sign(before: str) -> bool:
    """Whether all that stands before a date on its line is a sign, which ends no key there: `.09.2027`, `- 09.2027`."""
    return re.fullmatch(r"\s*[./,-]+\s*", before) is not None


def _sign_before(before: str, printed: str) -> bool:
    """A sign that touches the date: its own, unless it ends the key, as in `EXP.09.2027` and `EXP:-09/27`."""
    sign = _SIGN_BEFORE.search(before)
    if sign is None:
        return False
    return sign[1].isspace() or sign[2] in "/," or (sign[2] in printed and (sign[2] == "-" or sign[1] == ":"))
