"""Noise: what a reader does to the text of labels: look-alike characters, lost and stray spaces, lost characters.

The rates are those measured on read labels (mean share of wrong characters about a tenth); the same text is always
bent in the same way by the same draw.
"""

from __future__ import annotations

import random

# What is read in place of a character, most of it seen in read labels.
LOOK_ALIKES = {
    "0": "OoD",
    "1": "lI",
    "2": "Z",
    "4": "A",
    "5": "S",
    "6": "G",
    "7": "T1",
    "8": "B",
    "A": "4",
    "B": "8",
    "D": "0",
    "E": "F",
    "G": "6C",
    "I": "l1",
    "O": "0",
    "Q": "O",
    "S": "5",
    "T": "7",
    "Z": "2",
    "a": "oe",
    "b": "h",
    "c": "e",
    "e": "c",
    "f": "t",
    "g": "9q",
    "i": "l",
    "l": "1Ii",
    "m": "n",
    "n": "ri",
    "o": "a0",
    "r": "n",
    "s": "5",
    "t": "f",
    "u": "v",
    "v": "u",
    "w": "v",
    "y": "v",
    "é": "e",
    ".": ",",
    ",": ".",
    ":": ".",
    "/": "1",
    "-": "–",
}
SWAP, LOST, SPACE_LOST, SPACE_PUT = 0.075, 0.012, 0.22, 0.01


def noised(text: str, draw: int = 0) -> str:
    """`text` as a reader might give it; the same for the same text and draw."""
    chance = random.Random(f"{draw} {text}" if draw else text)
    out = []
    for char in text:
        if char == " ":
            out.append("" if chance.random() < SPACE_LOST else char)
        elif chance.random() < LOST and len(text) > 4:
            continue
        elif char in LOOK_ALIKES and chance.random() < SWAP:
            out.append(chance.choice(LOOK_ALIKES[char]))
        else:
            out.append(char)
        if chance.random() < SPACE_PUT:
            out.append(" ")
    return "".join(out).strip() or text
