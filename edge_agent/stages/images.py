"""Images: sizes, resizing and perspective crops; pure functions on uint8 (H, W, 3) BGR arrays."""

from __future__ import annotations

import math

import cv2
import numpy as np
import numpy.typing as npt

from edge_agent.records import Quad

Image = npt.NDArray[np.uint8]

LONGEST_SIDE = 32_766  # px; OpenCV 4 warps nothing longer, neither from nor to: it counts in 16 bits
CUBIC_REACH = 2  # px around a point that cubic interpolation looks at
SHRUNK = 0.75  # a frame made smaller than this for the detector is looked at again, in parts
LARGE_PX = 25_000_000  # of an image of which not every row is looked at where it is made much smaller
MOST_ROWS = 4  # of which one is looked at then
NEAR_WHOLE = 1.1  # times what is asked for
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
    """The image at another size: bilinear, or area average where it shrinks to less than half (no aliasing).

    Of a very large one, some rows alone are averaged, at least two for each of the rows that are made: most of the
    time would go to reading the others.
    """
    if image.shape[1] == width_px and image.shape[0] == height_px:
        return image
    shrinks = width_px * 2 < image.shape[1] or height_px * 2 < image.shape[0]
    is_large = image.shape[0] * image.shape[1] > LARGE_PX
    every = min(MOST_ROWS, image.shape[0] // (2 * height_px)) if shrinks and is_large else 1
    return np.asarray(
        cv2.resize(
            image[:: max(1, every)],
            (width_px, height_px),
            interpolation=cv2.INTER_AREA if shrinks else cv2.INTER_LINEAR,
        ),
        np.uint8,
    )


def within(image: Image, most_px: int) -> tuple[Image, float]:
    """The image made smaller until it has at most so many pixels, and how many times it was larger each way: a whole
    number of times where one is near, which OpenCV does in a third of the time."""
    times = max(1.0, (image.shape[0] * image.shape[1] / most_px) ** 0.5)
    if times == 1.0:
        return image, 1.0
    whole = math.ceil(times)
    high, wide = (side // whole for side in image.shape[:2])
    if whole <= NEAR_WHOLE * times and min(high, wide) > 0:
        part = image[: high * whole, : wide * whole]
        return np.asarray(cv2.resize(part, (wide, high), interpolation=cv2.INTER_AREA), np.uint8), float(whole)
    return resized(image, max(1, int(image.shape[1] / times)), max(1, int(image.shape[0] / times))), times


def warp_quad(image: Image, quad: Quad, width_px: int, height_px: int) -> Image:
    """The text inside `quad`, upright, exactly `height_px` x `width_px`; outside the frame its edge is repeated.

    In two steps, as the crops that text networks learn from are made: at its own size from whole pixels, cubic, then
    bilinear, or averaged where it shrinks to less than half. In one step they read a word in a hundred worse.
    """
    image, points = warpable(image, np.round(quad.points))
    sides = points[[1, 3]] - points[0], points[2] - points[[3, 1]]
    along, across = np.linalg.norm(sides, axis=2).max(axis=0)
    wide = int(np.clip(along, 1, min(MAX_SHRINK * width_px, LONGEST_SIDE)))
    high = int(np.clip(across, 1, min(MAX_SHRINK * height_px, LONGEST_SIDE)))
    corners = np.array([[0, 0], [wide, 0], [wide, high], [0, high]], np.float32)
    matrix = cv2.getPerspectiveTransform(points, corners)
    crop = cv2.warpPerspective(image, matrix, (wide, high), flags=cv2.INTER_CUBIC, borderMode=cv2.BORDER_REPLICATE)
    return resized(np.asarray(crop, np.uint8), width_px, height_px)


def warpable(image: Image, points: npt.NDArray[np.float32]) -> tuple[Image, npt.NDArray[np.float32]]:
    """The image and the points (4, 2) in it, as they are where OpenCV can warp the image; else the part around the
    points, made smaller where it is still too long."""
    if max(image.shape[:2]) <= LONGEST_SIDE:
        return image, points
    size = np.array(image.shape[1::-1])
    left, top = np.clip(points.min(axis=0).astype(int) - CUBIC_REACH, 0, size - 1)
    right, bottom = np.clip(points.max(axis=0).astype(int) + CUBIC_REACH + 1, (left + 1, top + 1), size)
    part = image[top:bottom, left:right]
    scale = np.minimum(LONGEST_SIDE / np.array(part.shape[1::-1]), 1.0)
    wide, high = np.maximum(np.array(part.shape[1::-1]) * scale, 1).astype(int)
    return resized(part, int(wide), int(high)), ((points - (left, top)) * scale).astype(np.float32)
