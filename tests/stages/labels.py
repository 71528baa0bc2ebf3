"""Lines for tests of fields: text where a label has it."""

from __future__ import annotations

import math

import numpy as np

from edge_agent.records import Quad, TextBox, TextLine


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
