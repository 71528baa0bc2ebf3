"""Glare: light so strong that print is lost in it, told by saturated pixels where a line of text breaks off."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import cv2
import numpy as np
import numpy.typing as npt

from edge_agent.records import Quad
from edge_agent.stages.images import Image

SATURATED = 250  # in all three channels
GRID = 640  # at most about so many pixels of a picture's longer side are looked at
LEAST_SHARE = 0.002  # of a picture: less is a highlight
LOST = 0.95  # of a gap: so much of it saturated, print may have been there
NEARLY_SATURATED = 235  # in all three channels: paper as white as this saturates where the light is a little stronger
WHITE_GROUND = 0.4  # of a line's own box nearly saturated: from here on its ground is as white as glare is
BESIDE = (0.3, 1.3)  # heights beyond a line's end, in which it is looked for
GAP = (1.0, 6.0)  # heights between two parts of one line that glare parted; a space is 0.3
LIKE_HEIGHT = 0.75
ON_ONE_ROW = 0.2  # of the height

Mask = npt.NDArray[np.bool_]


def find_glare(image: Image, quads: Sequence[Quad]) -> frozenset[int] | None:
    """Which of the lines of these quads break off in saturated pixels of the picture, uint8 (H, W, 3) BGR, so that a
    part of them may be lost; None without glare.

    On a ground that is itself nearly saturated only a line that goes on behind the gap tells that there is glare, and
    none is told to have lost a part: white paper parts columns as well.
    """
    step = max(1, max(image.shape[:2]) // GRID)
    small = np.ascontiguousarray(image[::step, ::step])
    saturated = brighter(small, SATURATED)
    if saturated.mean() < LEAST_SHARE:
        return None
    white_paper = brighter(small, NEARLY_SATURATED)
    quads = [Quad(quad.points / step) for quad in quads]
    lost: set[int] = set()
    told = False
    for n, quad in enumerate(quads):
        white = share(white_paper, quad, (0.0, quad.width_px / quad.height_px)) >= WHITE_GROUND
        places = gaps(quad, quads) if white else (*beside(quad), *gaps(quad, quads))
        if any(share(saturated, quad, span) >= LOST for span in places):
            told = True
            lost |= set() if white else {n}
    return frozenset(lost) if told else None


def brighter(image: Image, level: int) -> Mask:
    """Where all three channels are at `level` or above."""
    return np.asarray(cv2.inRange(image, (level,) * 3, (255,) * 3) > 0)


def beside(quad: Quad) -> tuple[tuple[float, float], tuple[float, float]]:
    """What lies before and behind a line, along it from its beginning, in its heights."""
    end = quad.width_px / quad.height_px
    return (-BESIDE[1], -BESIDE[0]), (end + BESIDE[0], end + BESIDE[1])


def gaps(quad: Quad, quads: Sequence[Quad]) -> Iterator[tuple[float, float]]:
    """The gap from a line to what goes on behind it on its row, along it from its beginning, in its heights."""
    along, across, end = *axes(quad), quad.width_px / quad.height_px
    for other in quads:
        low, high = sorted((quad.height_px, other.height_px))
        from_start = (other.points[[0, 3]].mean(axis=0) - quad.points[[0, 3]].mean(axis=0)) / quad.height_px
        begin = float(from_start @ along)
        if low < LIKE_HEIGHT * high or abs(float(from_start @ across)) > ON_ONE_ROW:
            continue
        if GAP[0] <= begin - end <= GAP[1]:
            yield end, begin


def share(mask: Mask, quad: Quad, span: tuple[float, float]) -> float:
    """How much of the mask stands in the part of a line's row between two places, in heights from its beginning; 0 for
    one that is not wholly in the picture. `quad` in px of the mask."""
    along, across = axes(quad)
    places = np.linspace(span[0], span[1], 13)[:, None, None] * along
    levels = np.linspace(0.15, 0.85, 7)[:, None] * across
    points = quad.points[0] + (places + levels) * quad.height_px
    columns, rows = np.round(points[..., 0]).astype(int), np.round(points[..., 1]).astype(int)
    if min(columns.min(), rows.min()) < 0 or columns.max() >= mask.shape[1] or rows.max() >= mask.shape[0]:
        return 0.0
    return float(mask[rows, columns].mean())


def axes(quad: Quad) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Unit vectors along a line and across it, downwards as its letters stand."""
    angle = np.radians(quad.angle_deg)
    along = np.array([np.cos(angle), np.sin(angle)])
    return along, np.array([-along[1], along[0]])
