"""Merge: boxes of one text that the detector found twice, or in parts that overlap, become one."""

from __future__ import annotations

from collections.abc import Sequence

import cv2
import numpy as np
import numpy.typing as npt

from edge_agent.records import Quad, TextBox

NESTED = 0.8  # of the smaller box: so much inside the larger one, it is the same text
LIKE_HEIGHT = 0.6  # of the larger height: below it they are different print
ON_ONE_ROW = 0.15  # of the smaller height: how far apart across the text the centres of two parts of a line may be
PART_HEIGHT = 0.8  # the same of two parts of one line
OVERLAP = 0.3  # of the smaller height: how far two parts of one line lie over one another, at least
LIKE_ANGLE_DEG = 10.0


def merged(boxes: Sequence[TextBox]) -> tuple[TextBox, ...]:
    """The boxes without those nested in others of like height, overlapping parts of a line put together; in the order
    of the first of each."""
    found = list(boxes)
    n = 0
    while n < len(found):
        partner = next((m for m in near(found, n) if together(found[n], found[m]) is not None), None)
        if partner is None:
            n += 1
            continue
        whole = together(found[n], found[partner])
        assert whole is not None
        found[min(n, partner)] = whole
        del found[max(n, partner)]
        n = min(n, partner)
    return tuple(found)


def near(boxes: Sequence[TextBox], n: int) -> list[int]:
    """The boxes behind box `n` whose extent along x and y meets its own."""
    if n + 1 == len(boxes):
        return []
    points = np.stack([box.quad.points for box in boxes[n:]])
    low, high = points.min(axis=1), points.max(axis=1)
    meets = ((low[1:] <= high[0]) & (low[0] <= high[1:])).all(axis=1)
    return [int(m) + n + 1 for m in np.flatnonzero(meets)]


def together(one: TextBox, other: TextBox) -> TextBox | None:
    """Both boxes as one, if they are one text; else None."""
    large, small = (one, other) if area(one.quad) >= area(other.quad) else (other, one)
    heights = sorted((one.quad.height_px, other.quad.height_px))
    if heights[0] < LIKE_HEIGHT * heights[1]:
        return None
    shared, _ = cv2.intersectConvexConvex(large.quad.points, small.quad.points)
    if shared <= 0:
        return None
    score = max(one.score, other.score)
    if shared >= NESTED * area(small.quad):
        return TextBox(large.quad, score)
    angle = abs((one.quad.angle_deg - other.quad.angle_deg + 180) % 360 - 180)
    along, across = offset(large.quad, small.quad)
    overlap = (large.quad.width_px + small.quad.width_px) / 2 - along
    if (
        heights[0] < PART_HEIGHT * heights[1]
        or angle > LIKE_ANGLE_DEG
        or across > ON_ONE_ROW * heights[0]
        or overlap < OVERLAP * heights[0]
    ):
        return None
    return TextBox(around(large.quad, small.quad), score)


def area(quad: Quad) -> float:
    """Area of a quad, px^2."""
    return float(cv2.contourArea(quad.points))


def offset(of: Quad, to: Quad) -> tuple[float, float]:
    """How far the centre of `to` is from that of `of`, along its text and across."""
    angle = np.radians(of.angle_deg)
    along = np.array([np.cos(angle), np.sin(angle)])
    between = to.centre - of.centre
    return abs(float(between @ along)), abs(float(between @ np.array([-along[1], along[0]])))


def around(one: Quad, other: Quad) -> Quad:
    """The smallest rectangle around both that runs as the first."""
    angle = np.radians(one.angle_deg)
    turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    points: npt.NDArray[np.float64] = np.concatenate([one.points, other.points]) @ turn
    low, high = points.min(axis=0), points.max(axis=0)
    corners = np.array([low, [high[0], low[1]], high, [low[0], high[1]]])
    return Quad((corners @ turn.T).astype(np.float32))
