"""Codes: what stands behind LOT and S/N, and the numbers that prove themselves by a check digit (GTIN).

A lot or serial is taken as printed: nothing in it tells an O from a 0, so nothing is repaired. A GTIN may be
mended, for its check digit says whether the mending holds; it is flagged all the same.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from edge_agent.stages.dates import DIGIT_OF, find_dates
from edge_agent.stages.label_date import DateRules
from edge_agent.stages.quantities import find_quantities

GTIN_DIGITS = (8, 12, 13, 14)
MAX_CODE_CHARS = 40

# A code's words; a time of day, a price or a percentage is none.
_CODE = re.compile(r"[^\W_](?:[\w./+-]{0,39}[^\W_])?")
_TIME = re.compile(r"[0-2]?[0-9]:[0-5][0-9](?::[0-5][0-9])?")
_DATE_LIKE = re.compile(r"[0-9]{1,4}[./-][0-9]{1,2}[./-][0-9]{1,4}|[0-9]{1,2}/[0-9]{4}")
_LOT_MARKER = re.compile(r"(?<![\w/.-])L[ .:-]{0,2}([0-9][0-9A-Z]{2,15}(?:[-/][0-9A-Z]{1,8})?)(?![\w])")
# all that stands behind a code, where it may be a piece of it, or another one: `A12 B`, `A12 / B13`
_MORE = re.compile(r"[\s,;/+&-]+((?=[A-Z0-9./-]*[0-9])[A-Z0-9./-]{1,20}|[A-Z]{1,2})\s*")
_FILLER = frozenset("no nr num number nº n° code id numero nummer cod".split())

_GROUPED = re.compile(r"(?<![\w])[0-9OoIlZASBGTDQ|](?:[ -]?[0-9OoIlZASBGTDQ|]){7,13}(?![\w])")
_BENT_DIGITS = frozenset("OoIl|")


@dataclass(frozen=True)
class PrintedCode:
    """A code at `text[start:end]`; `value` is as printed, without the spaces that group it."""

    value: str
    start: int
    end: int
    flags: tuple[str, ...] = ()


def find_code(text: str) -> PrintedCode | None:
    """The lot or serial at the head of a clean text that stands behind its phrase; None where none is printed."""
    words = [m for m in _CODE.finditer(text[: 4 * MAX_CODE_CHARS]) if not _TIME.match(text, m.start())]
    while words and words[0][0].casefold().strip(".") in _FILLER:
        words = words[1:]
    for at, word in enumerate(words[:2]):
        if any(c.isdigit() for c in word[0]) and not (_DATE_LIKE.fullmatch(word[0]) and _has_code(words[at + 1 :])):
            return _joined(text, words, at)
    if len(words) == 1 and re.fullmatch(r"[A-Z]{5,20}", words[0][0]):
        return PrintedCode(words[0][0], *words[0].span(), ("no_digits",))
    return None


def find_trailing_code(text: str) -> PrintedCode | None:
    """A code that ends a text of words: `Unit ID 4471-22`; the last word, with two digits and no small letters."""
    words = list(_CODE.finditer(text[-4 * MAX_CODE_CHARS :]))
    shift = max(0, len(text) - 4 * MAX_CODE_CHARS)
    if len(words) < 2 or _TIME.match(words[-1][0]) or _DATE_LIKE.fullmatch(words[-1][0]):
        return None
    code = words[-1][0]
    if text[shift + words[-1].end() :].lstrip()[:1] in tuple("%°"):
        return None
    if len(code) < 4 or sum(map(str.isdigit, code)) < 2 or any(map(str.islower, code)):
        return None
    return PrintedCode(code, words[-1].start() + shift, words[-1].end() + shift)


def find_marked_lot(text: str) -> PrintedCode | None:
    """A lot behind nothing but the EU's marker L (Directive 2011/91/EU): `L4711`; `value` has the marker."""
    match = _LOT_MARKER.search(text)
    return PrintedCode(f"L{match[1]}", *match.span()) if match else None


def find_gtin(text: str, *, keyed: bool) -> PrintedCode | None:
    """A GTIN-8, -12, -13 or -14 in a clean text, grouping spaces tolerated.

    Without a phrase (`keyed` False) it must be all the text says. A number whose check digit fails is told with
    `check_failed` and never mended into another; letters for digits are mended where the check digit then holds.
    """
    if not keyed:
        match = _GROUPED.fullmatch(text.strip())
        offset = len(text) - len(text.lstrip())
        return None if match is None else _gtin(match[0], offset, keyed=False)
    for match in _GROUPED.finditer(text):
        if (code := _gtin(match[0], match.start(), keyed=True)) is not None:
            return code
    return None


def check_digit_holds(digits: str) -> bool:
    """Whether the last digit is the modulo-10 check digit of the others (GS1 General Specifications 7.9)."""
    weighted = sum(int(d) * (3 if at % 2 else 1) for at, d in enumerate(reversed(digits)))
    return weighted % 10 == 0


def upc_a_of(digits: str) -> str | None:
    """The 12 digits that the 8 of a UPC-E number stand for (GS1 General Specifications 5.2.2.4); None where they have
    no check digit that holds."""
    if len(digits) != 8 or digits[0] not in "01":
        return None
    head, last = digits[1:6], digits[6]
    body = {
        "3": f"{head[:3]}00000{head[3:]}",
        "4": f"{head[:4]}00000{head[4:]}",
        **dict.fromkeys("012", f"{head[:2]}{last}0000{head[2:]}"),
    }.get(last, f"{head}0000{last}")
    whole = f"{digits[0]}{body}{digits[7]}"
    return whole if check_digit_holds(whole) else None


def _has_code(words: list[re.Match[str]]) -> bool:
    return any(any(c.isdigit() for c in word[0]) for word in words[:1])


def _joined(text: str, words: list[re.Match[str]], at: int) -> PrintedCode:
    """The code with its further groups: digits after digits (`1234 5678`), digits after one letter (`L 2214 B`)."""
    group = [words[at]]
    if at and re.fullmatch(r"[A-Z]{1,3}", words[at - 1][0]) and _touch(text, words[at - 1], words[at]):
        group.insert(0, words[at - 1])
    amounts = find_quantities(text[: 4 * MAX_CODE_CHARS], keyed=False)
    for word in words[at + 1 :]:
        if any(q.end > word.start() for q in amounts):
            break
        digits = group[-1][0].isdigit() and word[0].isdigit() and len(group[0][0]) < 13
        letter = group[-1][0].isdigit() and re.fullmatch(r"[A-Z]", word[0]) and word.end() == len(text.rstrip())
        if not (digits or letter) or not _touch(text, group[-1], word):
            break
        group.append(word)
    end = group[-1].end()
    more = _MORE.fullmatch(text, end)
    is_piece = more is not None and not any(q.end > end for q in amounts) and not _is_date(more[1])
    return PrintedCode("".join(w[0] for w in group), group[0].start(), end, ("incomplete",) if is_piece else ())


def _is_date(text: str) -> bool:
    return any(date.valid for date in find_dates(text, DateRules(), keyed=True))


def _touch(text: str, left: re.Match[str], right: re.Match[str]) -> bool:
    return text[left.end() : right.start()] == " "


def _gtin(seen: str, start: int, *, keyed: bool) -> PrintedCode | None:
    bare = seen.replace(" ", "").replace("-", "")
    if len(bare) not in GTIN_DIGITS or sum(map(str.isdigit, bare)) < 0.7 * len(bare):
        return None
    digits = bare.translate(DIGIT_OF)
    end = start + len(seen)
    flags = ("repaired",) if digits != bare else ()
    if check_digit_holds(digits):
        return PrintedCode(digits, start, end, flags) if flags or keyed or _may_be_one_gtin(seen) else None
    if flags and not {c for c in bare if not c.isdigit()} <= _BENT_DIGITS:
        return None  # a letter that codes have too: 2109B3300417
    if keyed and not flags and upc_a_of(digits) is not None:
        return PrintedCode(digits, start, end)
    if keyed or (len(digits) >= 12 and _grouped_like_a_gtin(seen)):
        return PrintedCode(digits, start, end, (*flags, "check_failed"))
    return None


def _may_be_one_gtin(seen: str) -> bool:
    """Whether its groups do not speak against it: every tenth telephone number (00 49 40 5550123) has a check digit."""
    return not seen.startswith("00") or len(re.split(r"[ -]", seen)) <= 2 or _grouped_like_a_gtin(seen)


def _grouped_like_a_gtin(seen: str) -> bool:
    """In one block, or as printed below bars: 1-6-6, 1-5-5-1, 4-4-4 and the like, with any of these spaces lost."""
    ends = {len(seen[: match.start()].replace(" ", "").replace("-", "")) for match in re.finditer(r"[ -]", seen)}
    return any(ends <= usual for usual in ({1, 7}, {1, 6, 11}, {4, 8}, {1, 3, 8, 13}, {6}))
