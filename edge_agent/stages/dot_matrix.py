"""Dot matrix: print that is made of dots, as ink-jet printers do, is joined to strokes before it is read."""

from __future__ import annotations

from dataclasses import dataclass

import cv2
import numpy as np

from edge_agent.stages.images import Image

LEAST_DOTS = 12  # fewer say nothing of the pitch
MAX_DOT_SHARE = 0.05  # of the picture's shorter side: what is larger is no dot
MAX_DOTS = 4000
MAX_KERNEL_PER_PITCH = 0.95  # a wider closing would bridge the gap between two letters as well
MAX_KERNEL_PX = 31
SOFT = 0.35  # of the pitch: the standard deviation of the blur that makes strokes of rows of discs
PARTING = 0.6  # of the way from the usual threshold to the brightest print
REGULAR = 0.25  # of the pitch: how much the distances of most neighbouring dots differ


@dataclass(frozen=True)
class Dots:
    """The dots of a print, px: from the middle of one to the next, and across one."""

    pitch: float
    diameter: float

    @property
    def kernel_px(self) -> int:
        """The narrowest disc that joins dots side by side and, as far as it leaves letters apart, dots at a slant.

        A disc of radius R does not fit between two dots of radius r whose middles are 2 d apart, and so joins them,
        where R > (d^2 - r^2) / 2 r.
        """
        radius = self.diameter / 2
        beside, aslant = ((d**2 - radius**2) / radius for d in (self.pitch / 2, self.pitch / 2**0.5))
        side = max(beside + 1, min(aslant + 1, MAX_KERNEL_PER_PITCH * self.pitch), 2.0)
        return min(round(side), MAX_KERNEL_PX)


def joined_dots(image: Image) -> Image:
    """The picture uint8 (H, W, 3) BGR with neighbouring dots joined, the steps of their outlines smoothed; as it is
    where it holds no dots of one size."""
    grey = cv2.cvtColor(image, cv2.COLOR_BGR2GRAY)
    dark = is_dark_print(grey)
    dots = dots_of(255 - grey if dark else grey)
    if dots is None:
        return image
    kernel = cv2.getStructuringElement(cv2.MORPH_ELLIPSE, (dots.kernel_px, dots.kernel_px))
    operation = cv2.MORPH_OPEN if dark else cv2.MORPH_CLOSE  # of dark dots the light between them is opened away
    joined = cv2.morphologyEx(image, operation, kernel)
    return np.asarray(cv2.GaussianBlur(joined, (0, 0), SOFT * dots.pitch), np.uint8)


def is_dark_print(grey: Image) -> bool:
    """Whether the rarer pixels are the dark ones: print covers less than what it is printed on."""
    threshold, _ = cv2.threshold(grey, 0, 255, cv2.THRESH_BINARY | cv2.THRESH_OTSU)
    return bool(np.count_nonzero(grey > threshold) * 2 >= grey.size)


def dots_of(grey: Image) -> Dots | None:
    """The bright dots of a picture; None where most print is no dots, or they stand in no order. Dots that run into one
    another are parted where they are brightest."""
    threshold, _ = cv2.threshold(grey, 0, 255, cv2.THRESH_BINARY | cv2.THRESH_OTSU)
    brightest = float(np.percentile(grey[grey > threshold], 90)) if (grey > threshold).any() else threshold
    found = (dots_above(grey, threshold + part * (brightest - threshold)) for part in (0.0, PARTING))
    return next((dots for dots in found if dots is not None), None)


def dots_above(grey: Image, threshold: float) -> Dots | None:
    """The dots that are brighter than a threshold, if most of what is, is dots in order."""
    ink = (grey > threshold).astype(np.uint8)
    count, _, stats, centres = cv2.connectedComponentsWithStats(ink, connectivity=4)
    areas = stats[1:, cv2.CC_STAT_AREA]
    sides = np.maximum(stats[1:, cv2.CC_STAT_WIDTH], stats[1:, cv2.CC_STAT_HEIGHT])
    shortest = np.minimum(stats[1:, cv2.CC_STAT_WIDTH], stats[1:, cv2.CC_STAT_HEIGHT])
    is_dot = (areas >= 4) & (sides <= max(4.0, MAX_DOT_SHARE * min(grey.shape))) & (shortest * 1.6 >= sides)
    dots = centres[1:][is_dot]
    if count - 1 < LEAST_DOTS or not LEAST_DOTS <= len(dots) <= MAX_DOTS or areas[is_dot].sum() * 2 < areas.sum():
        return None
    distances = np.linalg.norm(dots[:, None] - dots[None], axis=2)
    np.fill_diagonal(distances, np.inf)
    low, pitch, high = np.percentile(distances.min(axis=1), (25, 50, 75))
    if high - low > REGULAR * pitch:
        return None
    return Dots(float(pitch), float(np.median(sides[is_dot])))
