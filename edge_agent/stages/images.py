"""Images: sizes, resizing and perspective crops; pure functions on uint8 (H, W, 3) BGR arrays."""

from __future__ import annotations

import cv2
import numpy as np
import numpy.typing as npt

from edge_agent.records import Quad

Image = npt.NDArray[np.uint8]

MAX_SHRINK = 8  # a crop is never made more than so many times larger than what is kept of it


def detector_size(
    width_px: int, height_px: int, min_side_px: int, max_side_px: int, multiple_px: int
) -> tuple[int, int]:
    """(width, height) to resize a frame to: the shorter side at least `min_side_px`, the longer at most `max_side_px`
    (which wins), both rounded to a multiple of `multiple_px`, at least one multiple. Aspect changes by rounding only.
    """
    scale = max(1.0, min_side_px / min(width_px, height_px))
    scale = min(scale, max_side_px / max(width_px, height_px))
    return _rounded(width_px * scale, multiple_px), _rounded(height_px * scale, multiple_px)


def _rounded(length: float, multiple: int) -> int:
    return max(multiple, round(length / multiple) * multiple)


def resized(image: Image, width_px: int, height_px: int) -> Image:
    """The image at another size: bilinear, or area average where it shrinks to less than half (no aliasing)."""
    if image.shape[1] == width_px and image.shape[0] == height_px:
        return image
    shrinks = width_px * 2 < image.shape[1] or height_px * 2 < image.shape[0]
    return np.asarray(
        cv2.resize(image, (width_px, height_px), interpolation=cv2.INTER_AREA if shrinks else cv2.INTER_LINEAR),
        np.uint8,
    )


def warp_quad(image: Image, quad: Quad, width_px: int, height_px: int) -> Image:
    """The text inside `quad`, upright, exactly `height_px` x `width_px`; outside the frame its edge is repeated.

    In two steps, as the crops that text networks learn from are made: at its own size from whole pixels, cubic, then
    bilinear, or averaged where it shrinks to less than half. In one step they read a word in a hundred worse.
    """
    points = np.round(quad.points)
    sides = points[[1, 3]] - points[0], points[2] - points[[3, 1]]
    along, across = np.linalg.norm(sides, axis=2).max(axis=0)
    wide = int(np.clip(along, 1, MAX_SHRINK * width_px))
    high = int(np.clip(across, 1, MAX_SHRINK * height_px))
    corners = np.array([[0, 0], [wide, 0], [wide, high], [0, high]], np.float32)
    matrix = cv2.getPerspectiveTransform(points, corners)
    crop = cv2.warpPerspective(image, matrix, (wide, high), flags=cv2.INTER_CUBIC, borderMode=cv2.BORDER_REPLICATE)
    return resized(np.asarray(crop, np.uint8), width_px, height_px)
