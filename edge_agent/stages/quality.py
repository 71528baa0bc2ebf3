"""Quality: what is wrong with a picture in which little or no text was found, and faint print made strong.

Measured on the grey picture less its own slowly varying brightness, so that uneven light is neither print nor glare.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import cv2
import numpy as np
import numpy.typing as npt

from edge_agent.stages.images import Image

Flag = Literal["blank", "blurred", "dark", "faint", "glare", "unsearched"]

LOOK_PX = 1280  # the longer side of the picture that is measured
MOST_PX = 13_000_000  # of a picture that is strengthened: it takes some 20 bytes a pixel
NOISE_TIMES = 13.0  # of the noise left after smoothing; 1e6 px of noise alone have a range of 11 times that
LEAST_RANGE = 3.0  # grey levels: less is nothing, whatever the noise
FAINT_RANGE = 60.0  # grey levels between print and ground: below it print is faint
STRONG_RANGE = 200.0  # what faint print is strengthened to
DARK = 40.0  # grey level that hardly a pixel of a dark picture is above
SHARP_STEP = 0.12  # of the range: the steepest steps from px to px of a picture in focus are above it
STEEPEST = 0.999  # share of pixels whose steps are less steep than what is taken for the steepest


@dataclass(frozen=True)
class Look:
    """What was measured: `range` of grey around its surroundings, `noise` (standard deviation) in it, `brightest`,
    `steps` the steepest steps along x and along y as shares of the range."""

    range: float
    noise: float
    brightest: float
    steps: tuple[float, float]

    @property
    def is_blank(self) -> bool:
        """Whether there is nothing in the picture but its noise."""
        return self.range < max(LEAST_RANGE, NOISE_TIMES * self.noise)

    @property
    def is_faint(self) -> bool:
        """Whether what is in the picture hardly differs from its ground."""
        return not self.is_blank and self.range < FAINT_RANGE

    @property
    def is_blurred(self) -> bool:
        """Whether nothing in the picture is sharp along x, or nothing along y: out of focus, or moved."""
        return not self.is_blank and min(self.steps) < SHARP_STEP

    @property
    def flags(self) -> tuple[Flag, ...]:
        """What is wrong, in words."""
        found: list[tuple[Flag, bool]] = [
            ("blank", self.is_blank),
            ("dark", self.brightest < DARK),
            ("faint", self.is_faint),
            ("blurred", self.is_blurred),
        ]
        return tuple(flag for flag, is_so in found if is_so)


def look(image: Image) -> Look:
    """Measures a picture uint8 (H, W, 3) BGR."""
    grey = _grey(image)
    smooth = cv2.blur(grey.astype(np.float32), (3, 3))
    residual = smooth - _ground(smooth)
    low, high, _, _ = cv2.minMaxLoc(residual)
    span = high - low
    steps = tuple(_steepest(smooth, axis) / max(span, 1e-3) for axis in (1, 0))
    return Look(span, _noise(grey) / 3, float(smooth.max()), (steps[0], steps[1]))


def can_be_strengthened(image: Image) -> bool:
    """Whether the picture is small enough for the memory that it takes."""
    return bool(image.shape[0] * image.shape[1] <= MOST_PX)


def strengthened(image: Image) -> Image:
    """The picture with what differs from its surroundings made STRONG_RANGE strong; uint8 (H, W, 3) BGR."""
    grey = cv2.cvtColor(image, cv2.COLOR_BGR2GRAY).astype(np.float32)
    smooth = cv2.blur(grey, (3, 3))
    ground = _ground(smooth)
    low, high, _, _ = cv2.minMaxLoc(smooth - ground)
    gain = STRONG_RANGE / max(high - low, LEAST_RANGE)
    made = np.clip(128 + (grey - ground) * gain, 0, 255).astype(np.uint8)
    return np.asarray(cv2.cvtColor(made, cv2.COLOR_GRAY2BGR), np.uint8)


def _grey(image: Image) -> Image:
    """In grey, of large pictures every n-th pixel: noise is measured where it is, not where pixels were averaged."""
    step = max(1, round(max(image.shape[:2]) / LOOK_PX))
    return np.asarray(cv2.cvtColor(np.ascontiguousarray(image[::step, ::step]), cv2.COLOR_BGR2GRAY), np.uint8)


def _ground(grey: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """The slowly varying brightness."""
    side = max(3, min(grey.shape) // 3 | 1)
    return np.asarray(cv2.blur(grey, (side, side), borderType=cv2.BORDER_REFLECT), np.float32)


def _steepest(grey: npt.NDArray[np.float32], axis: int) -> float:
    steps = np.abs(np.diff(grey, axis=axis)).ravel()
    place = int(STEEPEST * (len(steps) - 1))
    return float(np.partition(steps, place)[place]) if len(steps) else 0.0


def _noise(grey: Image) -> float:
    """Standard deviation of the noise (Immerkaer, Fast Noise Variance Estimation, 1996), by the median: print has few
    pixels, noise has all."""
    if min(grey.shape) < 3:
        return 0.0
    mask = np.array([[1, -2, 1], [-2, 4, -2], [1, -2, 1]], np.float32)
    response = np.abs(cv2.filter2D(grey, cv2.CV_32F, mask)[1:-1, 1:-1])
    return float(np.median(response)) / 0.6745 / 6.0
