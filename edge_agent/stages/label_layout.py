"""Layout: which line stands to the right of another or below it, in the text's own direction."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from edge_agent.records import Quad, TextLine

# In text heights: a value stands this close to its key, and a row's texts differ this little in height of place.
MAX_GAP_RIGHT = 12.0
MAX_GAP_BELOW = 1.5
MAX_GAP_BESIDE = 3.0
MAX_ROW_OFFSET = 0.6
MAX_ANGLE_DEG = 20.0


@dataclass(frozen=True)
class _Extent:
    """A quad along (`left`, `right`) and across (`top`, `bottom`) a direction, px."""

    left: float
    right: float
    top: float
    bottom: float

    @property
    def middle(self) -> float:
        return (self.top + self.bottom) / 2


def neighbours(lines: Sequence[TextLine], index: int) -> tuple[int, ...]:
    """The lines that can hold the value of the key on line `index`: the next on its row, then the next below."""
    key = lines[index].box.quad
    height = max(key.height_px, 1.0)
    own = _extent(key, key)
    right: tuple[float, int] | None = None
    below: tuple[float, int] | None = None
    for other, line in enumerate(lines):
        if other == index or _turned(key, line.box.quad):
            continue
        there = _extent(line.box.quad, key)
        gap = there.left - own.right
        is_level = _row_offset(key, line.box.quad) <= MAX_ROW_OFFSET * height
        if is_level and -0.5 * height <= gap <= MAX_GAP_RIGHT * height:
            right = min(right or (gap, other), (gap, other))
        gap = there.top - own.bottom
        overlap = min(own.right, there.right) - max(own.left, there.left)
        if overlap > 0 and -0.5 * height <= gap <= MAX_GAP_BELOW * height and there.middle > own.middle + 0.5 * height:
            below = min(below or (gap, other), (gap, other))
    return tuple(found[1] for found in (right, below) if found is not None)


def beside(lines: Sequence[TextLine], index: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The lines close before a line on its row, and those close behind it."""
    quad = lines[index].box.quad
    height, own = max(quad.height_px, 1.0), _extent(quad, quad)
    sides: tuple[list[int], list[int]] = ([], [])
    for other, line in enumerate(lines):
        if other == index or _turned(quad, line.box.quad) or _row_offset(quad, line.box.quad) > MAX_ROW_OFFSET * height:
            continue
        there = _extent(line.box.quad, quad)
        for found, gap in zip(sides, (own.left - there.right, there.left - own.right), strict=True):
            if -0.5 * height <= gap <= MAX_GAP_BESIDE * height:
                found.append(other)
    return tuple(sides[0]), tuple(sides[1])


def _row_offset(one: Quad, other: Quad) -> float:
    """How far the middles of two texts are apart across their direction, px: by that of the one which makes it less,
    for a short text's own angle may be some degrees off."""
    return min(abs(_extent(one, along).middle - _extent(other, along).middle) for along in (one, other))


def _extent(quad: Quad, along: Quad) -> _Extent:
    angle = math.radians(along.angle_deg)
    cos, sin = math.cos(angle), math.sin(angle)
    turned = np.asarray(quad.points, np.float64) @ np.array([[cos, -sin], [sin, cos]])
    (left, top), (right, bottom) = turned.min(axis=0), turned.max(axis=0)
    return _Extent(float(left), float(right), float(top), float(bottom))


def _turned(a: Quad, b: Quad) -> bool:
    turn = abs(a.angle_deg - b.angle_deg) % 360
    return min(turn, 360 - turn) > MAX_ANGLE_DEG
