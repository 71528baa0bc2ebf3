"""Reading order: rows from top to bottom, each from left to right, by the text's own height and skew."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from edge_agent.records import Quad

SAME_ROW = 0.5  # of the smaller text height: how far apart two centres on one row may be, across the text


def reading_order(quads: Sequence[Quad]) -> list[int]:
    """Indices of `quads` in the order a person reads them."""
    if not quads:
        return []
    centres = turned_back(np.stack([quad.centre for quad in quads]), skew_rad(quads))
    heights = [quad.height_px for quad in quads]
    rows: list[list[int]] = []
    for n in sorted(range(len(quads)), key=lambda n: centres[n][1]):
        row = next((row for row in reversed(rows) if on_row(n, row, centres, heights)), None)
        if row is None:
            rows.append([n])
        else:
            row.append(n)
    rows.sort(key=lambda row: float(np.mean([centres[n][1] for n in row])))
    return [n for row in rows for n in sorted(row, key=lambda n: centres[n][0])]


def on_row(n: int, row: Sequence[int], centres: npt.NDArray[np.float64], heights: Sequence[float]) -> bool:
    """Whether text `n` stands on the row: level with the member nearest to it on one of its sides. Short texts tell
    little of the skew, so that what is far along a row seems to stand a little higher or lower."""
    sides: tuple[list[int], list[int]] = ([], [])
    for member in row:
        sides[bool(centres[member][0] > centres[n][0])].append(member)
    nearest = [min(side, key=lambda member: abs(centres[member][0] - centres[n][0])) for side in sides if side]
    return any(abs(float(centres[m][1] - centres[n][1])) <= SAME_ROW * min(heights[m], heights[n]) for m in nearest)


def skew_rad(quads: Sequence[Quad]) -> float:
    """The direction that most text runs in: the median angle, each quad counting by its length."""
    angles = np.radians([quad.angle_deg for quad in quads])
    lengths = np.array([quad.width_px for quad in quads])
    order = np.argsort(angles)
    half = np.searchsorted(np.cumsum(lengths[order]), lengths.sum() / 2)
    return float(angles[order][min(half, len(quads) - 1)])


def turned_back(points: npt.NDArray[np.float32], angle_rad: float) -> npt.NDArray[np.float64]:
    """Points (N, 2) turned by -angle about the origin, so that text of that angle runs along x."""
    cos, sin = np.cos(angle_rad), np.sin(angle_rad)
    return np.asarray(points @ np.array([[cos, -sin], [sin, cos]]), np.float64)
