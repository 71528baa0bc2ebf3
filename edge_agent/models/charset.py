"""Charset: which character a class of the recogniser stands for, and which classes a cut head keeps.

A charset is a tuple of strings, one a class: class 0 is the CTC blank (""), then the characters as trained, then
the space, which PP-OCR appends. Files are JSON lists: no character, U+2028 or U+0085 say, is taken for a line end.
"""

from __future__ import annotations

import json
import string
import unicodedata
from collections.abc import Sequence
from pathlib import Path

from edge_agent.errors import ModelError

BLANK = ""
# what lots, dates, serial numbers and the like are written in, and what is mistaken for it; the blank first
CODE_CHARACTERS = (BLANK, " ", *string.digits, *string.ascii_uppercase, *string.ascii_lowercase, *"./-:,()+#*&%|")
# Latin letters no European language writes today; each looks like a letter that one does
OLD_LETTERS = frozenset("ĸŉſĿŀĲĳ")
OTHER_LETTERS = frozenset("ȘșȚțẞ")
LABEL_SYMBOLS = frozenset(
    "€£¥¢₤₺₽"  # money
    "°±×÷¹²³⁴⁵⁶⁷⁸⁹⁰µμΩΩ≤≥≈≠√∞∅⌀‰½¼¾℃℉Å′″"  # quantities
    "§¶†‡•·…¿¡–—‘’‚“”„«»‹›"  # text
    "™®©℠№ªº℮←↑→↓↔▲△▼♻⚠☎★☆●○■□✓✔♀♂"  # marks
)


def from_metadata(text: str, *, space_appended: bool) -> tuple[str, ...]:
    """The charset from an ONNX file's `character` entry: one character a line, the blank put first.

    Split at U+000A alone: str.splitlines would break at characters that a charset may hold.
    """
    characters = text.removesuffix("\n").split("\n")
    characters = [character.removesuffix("\r") for character in characters]
    return (BLANK, *characters, " ") if space_appended else (BLANK, *characters)


def codes(charset: Sequence[str]) -> list[int]:
    """The classes of the code characters that the charset has, in the order of CODE_CHARACTERS."""
    classes = {character: n for n, character in reversed(list(enumerate(charset)))}
    return [classes[character] for character in CODE_CHARACTERS if character in classes]


def latin(charset: Sequence[str]) -> list[int]:
    """The classes to keep for labels in Latin script, ascending, the blank first."""
    return [i for i, character in enumerate(charset) if i == 0 or _is_latin(character)]


def _is_latin(character: str) -> bool:
    if len(character) != 1:
        return False
    if " " <= character <= "~" or character in LABEL_SYMBOLS or character in OTHER_LETTERS:
        return True
    is_letter = unicodedata.category(character) in ("Lu", "Ll")
    return is_letter and "À" <= character <= "ž" and character not in OLD_LETTERS


def write(charset: Sequence[str]) -> bytes:
    """The charset as the bytes of a JSON file, ASCII only."""
    return json.dumps(list(charset), ensure_ascii=True, separators=(",", ":")).encode("ascii") + b"\n"


def read(path: Path) -> tuple[str, ...]:
    """The charset in a JSON file; ModelError where it is not a list of strings that starts with the blank."""
    try:
        value = json.loads(path.read_bytes())
    except (OSError, ValueError) as exc:
        raise ModelError(f"{path.name} cannot be read as JSON ({exc}); run edge-agent models fetch") from exc
    if not isinstance(value, list) or not all(isinstance(entry, str) for entry in value) or value[:1] != [BLANK]:
        raise ModelError(
            f"{path.name} is not a list of strings that starts with the blank; run edge-agent models fetch"
        )
    return tuple(value)
