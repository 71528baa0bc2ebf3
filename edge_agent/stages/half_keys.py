"""Half keys: what names a value only together with it: a letter (`E 12/2027`, `B: 4471`), a phrase of which OCR has
left a piece (`MH: 27.02.2028`, `Us betore 2029-10`).

A letter counts where just such a value follows; a piece of a phrase only at a line's beginning, and where one field
alone has a phrase that it can be.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator

from edge_agent.stages.bent_words import ANY
from edge_agent.stages.key_phrases import BENDABLE, KeyPhrase, KeyTable, words_of

MAX_CHARS = 300  # of a line
MIN_PIECE, MAX_PIECE = 2, 10  # letters of a piece of a phrase; a longer phrase is found by its distance
TWICE_CHARS = 5  # from here on two letters may be wrong
ERRORS = 2  # what a piece of a phrase counts as
DATE_NAMES = frozenset({"expiry_date", "manufacture_date"})

_APART = r"(?<![\w.,/&+-])"
_FREE = rf"{_APART}(?<![A-Za-z]\s)"  # behind a word the letter belongs to it: Green E 12/2027
_DIGIT = "[0-9OoIlZSBG]"
_WHOLE_DATE = (
    rf"(?={_DIGIT}{{1,2}}[./,-]\s?{_DIGIT}{{1,2}}[./,-](?:{_DIGIT}{{2}}){{1,2}}(?![\w/-])"
    rf"|2{_DIGIT}{{3}}[./-]{_DIGIT}{{1,2}}(?:[./-]{_DIGIT}{{1,2}})?(?![\w/-])"
    rf"|{_DIGIT}{{1,2}}[./-][2Z][0OoD]{_DIGIT}{{2}}(?![\w/-])|[0-9]{{1,2}}\s?[A-Z]{{3}}\s?(?:20)?[0-9]{{2}}(?!\w))"
)
_CODE = (
    r"(?![0-9]{1,4}[./-][0-9]{1,2}[./-])(?=[A-Z0-9/-]*[0-9][A-Z0-9/-]*[0-9])"
    r"(?![\w.,/-]+\s?(?:mm|cm|m|x|×|in|kg|g|ml|l)\b)"
)
_MARKS = tuple(
    (re.compile(pattern), name)
    for name, pattern in (
        ("expiry_date", rf"{_FREE}(?:E[.,]?D|F[.,]?V|P[EÉeé][Rr]|E)[.,]?\s?:?\s*{_WHOLE_DATE}"),
        ("manufacture_date", rf"{_FREE}(?:P[.,]?D|M[.,]?D|Ü[.,]?T|PRO|M|P)[.,]?\s?:?\s*{_WHOLE_DATE}"),
        ("lot", rf"{_FREE}[LB]\s?[:#]\s?{_CODE}"),
        ("serial_number", rf"{_APART}(?:S(?:[/1l|\\]|I(?=N\s?[:.#]))N[o°]?|N[/1l|]S)[\s:.#]{{0,3}}{_CODE}"),
        ("serial_number", rf"{_APART}VIN[\s:.]{{0,3}}(?=[A-HJ-NPR-Z0-9]{{17}}(?!\w))"),
        ("barcode_digits", rf"{_FREE}PC\s?:?\s?(?=[0-9]{{12,14}}(?!\w))"),
    )
)
_VALUE = re.compile(r"[\s:.;,#-]{0,4}[A-Z]{0,3}[0-9]")
_DATE = re.compile(
    r"[\s:.;,#-]{0,4}[0-9OIlZSBT]{1,4}\s?(?:[./-]\s?[0-9OIlZSBT]{1,4}(?![A-Z0-9])|[./-]\s?[0-9OIlZSBT]{1,2}\s?[./-]|[A-Za-z]{3,9}\.?\s?[0-9OIlZSBT]{2,4})"
)


def half_keys(text: str, keys: Collection[KeyPhrase], table: KeyTable) -> list[KeyPhrase]:
    """The half keys of a clean text beside the phrases found in it."""
    if len(text) > MAX_CHARS:
        return []
    marks = [
        KeyPhrase(name, match.start(), match.start() + len(match[0].rstrip(" :#")), 1, 0, sure=False)
        for pattern, name in _MARKS
        for match in pattern.finditer(text)
        if all(match.end() <= key.start or match.start() >= key.end for key in keys)
    ]
    piece = None if keys or marks else _piece_of_phrase(text, table)
    return [*marks, *([piece] if piece else [])]


def _piece_of_phrase(text: str, table: KeyTable) -> KeyPhrase | None:
    starts, ends, bones = words_of(text)
    chars = ""
    for end, bone in zip(ends, bones, strict=True):
        chars += bone
        if len(chars) > MAX_PIECE:
            return None
        seen = text[starts[0] : end]
        readable = len(chars) > MIN_PIECE or (len(chars) == MIN_PIECE and seen.isupper())
        if not readable or not seen[0].isalpha() or seen.casefold() in table.refused or not _VALUE.match(text, end):
            continue
        name = _name_of(chars, table, dated=_DATE.match(text, end) is not None)
        if name is not None:
            return KeyPhrase(name, starts[0], end, len(chars), ERRORS, sure=False)
    return None


def _name_of(chars: str, table: KeyTable, *, dated: bool) -> str | None:
    """The one field whose phrase these letters can be, the fewest of them wrong."""
    for most in (1, 2) if len(chars) >= TWICE_CHARS else (1,):
        if names := {table.pieces[phrase] for phrase in _meant_by(chars, table, most)}:
            fitting = (names & DATE_NAMES or names) if dated else names - DATE_NAMES
            return fitting.pop() if len(fitting) == 1 else None
    return None


def _meant_by(chars: str, table: KeyTable, most: int) -> Iterator[str]:
    """The phrases that these letters are when so many of them at most are bent, one perhaps lost; with three letters
    too many real words are one bent letter away, and with two only known words are one lost letter away."""
    if len(chars) > 3:
        yield from (phrase for bends, phrase in table.bent_pieces.meant_by(chars, most) if bends)
    for at in range(len(chars) + 1):
        for _, phrase in table.bent_pieces.meant_by(f"{chars[:at]}{ANY}{chars[at:]}", most - 1):
            if len(chars) > MIN_PIECE or phrase in BENDABLE:
                yield phrase
