"""Misreadings: an example phrase as OCR might give it, so that the examples speak for bent lines too."""

from __future__ import annotations

import random

LOOK_ALIKES = {
    "0": "OD", "1": "lI", "2": "Z", "4": "A", "5": "S", "6": "G", "7": "T", "8": "B",
    "A": "4", "B": "8", "D": "0", "E": "F", "G": "6", "I": "l1", "O": "0", "S": "5", "T": "7", "Z": "2",
    "a": "o", "b": "h", "c": "e", "e": "c", "f": "t", "g": "9", "i": "l", "l": "1I", "m": "n", "n": "r", "o": "a0",
    "r": "n", "s": "5", "t": "f", "u": "v", "v": "u", "w": "v", "y": "v", ".": ",", ",": ".", ":": ".", "/": "1",
}  # fmt: skip
SWAPPED, LOST, SPACE_LOST = 0.07, 0.01, 0.2


def misread(text: str) -> str:
    """`text` with look-alike characters, lost characters and lost spaces; the same for the same text."""
    chance = random.Random(f"misread {text}")
    out = []
    for char in text:
        if char == " ":
            out.append("" if chance.random() < SPACE_LOST else char)
        elif char in LOOK_ALIKES and chance.random() < SWAPPED:
            out.append(chance.choice(LOOK_ALIKES[char]))
        elif chance.random() >= LOST:
            out.append(char)
    return "".join(out) or text
