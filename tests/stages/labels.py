"""Lines for tests of fields: text where a label has it."""

from __future__ import annotations

import math
import string
from collections.abc import Mapping

import numpy as np

from edge_agent.records import Lattice, Quad, TextBox, TextLine


def line(
    text: str,
    x: float = 0,
    y: float = 0,
    w: float = 300,
    h: float = 30,
    *,
    turn_deg: float = 0,
    confidence: float = 1.0,
    flags: tuple[str, ...] = (),
) -> TextLine:
    """A line in the box x, y, w, h px, all turned about the frame's origin."""
    corners = np.array([[x, y], [x + w, y], [x + w, y + h], [x, y + h]], np.float64)
    angle = math.radians(turn_deg)
    turned = corners @ np.array([[math.cos(angle), math.sin(angle)], [-math.sin(angle), math.cos(angle)]])
    return TextLine(text, confidence, TextBox(Quad(turned.astype(np.float32)), 1.0), flags)


def column(*texts: str) -> list[TextLine]:
    """Lines far below one another, so that none is another's neighbour."""
    return [line(text, 0, 200 * row) for row, text in enumerate(texts)]


def spelled(text: str, rivals: Mapping[str, tuple[str, float]] | None = None) -> Lattice:
    """The lattice of a line read as `text`: two steps a character and a blank, sure of each, but for a character in
    `rivals`, whose other reading has the given share of the probability. Spaces have no steps."""
    rivals = rivals or {}
    alphabet = ("", *sorted({*string.digits, *string.ascii_letters, *"./-:", *(c for c in text if c != " ")}))
    log_p, best, steps = [], [], []
    for char in text:
        if char == " ":
            steps.append((len(best), len(best)))
            continue
        shares = {char: 1.0} if char not in rivals else {char: 1 - rivals[char][1], rivals[char][0]: rivals[char][1]}
        steps.append((len(best), len(best) + 2))
        log_p += [[math.log(shares.get(c, 0) + 1e-9) for c in alphabet]] * 2
        log_p += [[math.log(1.0 if c == "" else 1e-9) for c in alphabet]]
        best += [char, char, ""]
    rows = np.array(log_p, np.float32).reshape(-1, len(alphabet))
    return Lattice(alphabet, rows, tuple(best), rows.max(axis=1), np.array(steps, np.int32).reshape(-1, 2))
