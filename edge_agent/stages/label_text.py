"""LabelText: one line's text made safe to read, with the way back to the characters as they were seen.

Odd characters are met here and nowhere else: control characters, direction marks, lone surrogates, full-width
forms, exotic spaces and dashes. Everything after this module sees plain text.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

_SPACES = {"Cc", "Zs", "Zl", "Zp"}
_DASHES = dict.fromkeys("‐‑‒–—―−﹘﹣", "-") | dict.fromkeys("‘’‚‛′`´", "'") | {"⁄": "/", "∕": "/", "·": ".", "•": " "}
_LETTERS = {"œ": "oe", "æ": "ae", "ø": "o", "ł": "l", "đ": "d", "ı": "i", "ð": "d", "þ": "th", "°": "o"}
# What OCR swaps most, folded to one letter, so that `L0T`, `LOT` and `1OT` are one word.
_CONFUSED = str.maketrans("0154289i67|", "olsazbglgtl")


@dataclass(frozen=True)
class LabelText:
    """`text` is clean; `text[i]` was made from `raw[at[i]]`, and `at` has one entry more, the end of `raw`."""

    text: str
    raw: str
    at: Sequence[int]

    def seen(self, start: int, end: int) -> str:
        """The characters as they came for `text[start:end]`."""
        if start >= end:
            return ""
        return self.raw[self.at[start] : self.at[end - 1] + 1]


@dataclass(frozen=True)
class Skeleton:
    """What is left of a text when case, accents, spaces, punctuation and OCR's usual swaps are taken away.

    `chars[i]` comes from position `at[i]` of the text.
    """

    chars: str
    at: Sequence[int]


def label_text(raw: str) -> LabelText:
    """`raw` in compatibility form (NFKC), one space for each control character, format characters dropped."""
    if raw.isascii() and raw.isprintable():
        return LabelText(raw, raw, range(len(raw) + 1))
    chars: list[str] = []
    at: list[int] = []
    for index, char in enumerate(raw):
        for piece in _plain(char):
            chars.append(piece)
            at.append(index)
    at.append(len(raw))
    return LabelText("".join(chars), raw, at)


def skeleton(text: str) -> Skeleton:
    """The skeleton of a clean text; linear in its length."""
    chars: list[str] = []
    at: list[int] = []
    for index, char in enumerate(text):
        for piece in _bones(char):
            chars.append(piece)
            at.append(index)
    return Skeleton("".join(chars), at)


def skeletons(texts: Sequence[str], between_words: str) -> list[str]:
    """The skeletons of many texts, a space for each white space and each character that stands between words."""
    chars = set().union(*texts)
    table = {ord(char): " " if char.isspace() or char in between_words else _bones(char) for char in chars}
    return [text.translate(table) for text in texts]


def unaccented(text: str) -> str:
    """`text` in lower case without accents, each character replaced by exactly one, so that positions stay."""
    return text.lower() if text.isascii() else "".join(map(_base, text))


@lru_cache(maxsize=8192)
def _plain(char: str) -> str:
    category = unicodedata.category(char)
    if category in _SPACES:
        return " "
    if category == "Cf":
        return ""
    if category == "Cs":
        return "\ufffd"
    if char in _DASHES:
        return _DASHES[char]
    if category == "Nd":  # Arabic, Devanagari, Thai ...: a digit is one, whoever writes it
        return str(unicodedata.decimal(char))
    form = unicodedata.decomposition(char)
    # Circled digits and vulgar fractions would fuse with the digits beside them: 1½ is not 11/2.
    if form.startswith(("<circle>", "<fraction>")):
        return char
    if form.startswith(("<super>", "<sub>")) and char.isdigit():
        return " "
    return "".join(_DASHES.get(piece, piece) for piece in unicodedata.normalize("NFKC", char))


@lru_cache(maxsize=8192)
def _bones(char: str) -> str:
    plain = unicodedata.normalize("NFKD", char.casefold()).casefold()  # again, for No of the sign is a capital
    bare = "".join(c for c in plain if not unicodedata.combining(c))
    kept = "".join(_LETTERS.get(c, c) for c in bare)
    return "".join(c for c in kept if c.isalnum() or c == "|").translate(_CONFUSED)


@lru_cache(maxsize=8192)
def _base(char: str) -> str:
    base = unicodedata.normalize("NFKD", char.lower())[:1]
    return base or char
