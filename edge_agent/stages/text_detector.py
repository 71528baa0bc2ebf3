"""TextDetector: where in a frame is text? Differentiable binarization (Liao et al., arXiv:1911.08947) in three steps:
`preprocess` (resize), `engine.infer` (a probability per pixel), `postprocess` (boxes with scores)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import cv2
import numpy as np
import numpy.typing as npt

from edge_agent.backends.base import Engine
from edge_agent.records import Quad, TextBox
from edge_agent.stages.images import SHRUNK, Image, detector_size, resized

COARSE_PX = 1_800_000  # of a frame of which parts are looked at again: the detector takes some 300 MB a million
MIN_SIDE_PX = 3  # of a box in the probability map: smaller is noise


@dataclass(frozen=True)
class DetectorSettings:
    """How text is told from background; thresholds 0..1, sides in px."""

    min_side_px: int = 736
    max_side_px: int = 2000
    side_multiple_px: int = 32
    pixel_threshold: float = 0.3
    box_threshold: float = 0.5
    unclip_ratio: float = 1.6
    max_boxes: int = 500
    max_windows: int = 6


class TextDetector:
    """Finds the text boxes of a frame with a detector engine (`image` uint8 (1, H, W, 3) BGR -> `probability`
    uint8 (1, H, W), 255 = surely text)."""

    def __init__(self, engine: Engine, settings: DetectorSettings) -> None:
        self.engine = engine
        self.settings = settings
        self.left_out = 0  # regions beyond max_boxes, since the start
        self._begun: Image | None = None

    def begin(self, image: Image) -> None:
        """Starts looking at `image`, so that the engine computes while the CPU does other work; `probability` of the
        same image then only waits. What was begun before for another and not asked for is thrown away."""
        if self._begun is image:
            return
        if self._begun is not None:
            self._begun = None
            self.engine.collect()
        self.engine.enqueue({"image": preprocess(image, self.settings)})
        self._begun = image

    def probability(self, image: Image) -> npt.NDArray[np.uint8]:
        """The probability map of `image` (uint8 (H, W, 3) BGR), uint8 (H', W'), 255 = surely text."""
        self.begin(image)
        self._begun = None
        return np.asarray(self.engine.collect()["probability"][0], np.uint8)

    def boxes(self, probability: npt.NDArray[np.uint8], image: Image) -> tuple[TextBox, ...]:
        """Boxes in px of `image`, in no particular order; empty where there is no text."""
        regions = text_regions(probability, self.settings.pixel_threshold)
        self.left_out += max(0, len(regions) - self.settings.max_boxes)
        return boxes_around(regions, probability, image.shape[1], image.shape[0], self.settings)

    def detect(self, image: Image) -> tuple[TextBox, ...]:
        """`probability` and `boxes` in one."""
        return self.boxes(self.probability(image), image)

    def warm_up(self, width_px: int, height_px: int) -> None:
        """Runs once at the shape that frames of this size will have."""
        self.detect(np.zeros((height_px, width_px, 3), np.uint8))


def preprocess(image: Image, settings: DetectorSettings) -> npt.NDArray[np.uint8]:
    """The detector's input, uint8 (1, H', W', 3) BGR; normalisation happens in the graph."""
    high, wide = image.shape[:2]
    max_side_px = settings.max_side_px
    if max(wide, high) * SHRUNK > max_side_px:  # parts of it will be looked at again at full size
        max_side_px = min(max_side_px, round(max(wide, high) * (COARSE_PX / (wide * high)) ** 0.5))
    width_px, height_px = detector_size(wide, high, settings.min_side_px, max_side_px, settings.side_multiple_px)
    return np.ascontiguousarray(resized(image, width_px, height_px)[None])


def postprocess(
    probability: npt.NDArray[np.uint8], width_px: int, height_px: int, settings: DetectorSettings
) -> tuple[TextBox, ...]:
    """Boxes in px of a frame of `width_px` x `height_px` from its probability map, uint8 (H', W')."""
    regions = text_regions(probability, settings.pixel_threshold)
    return boxes_around(regions, probability, width_px, height_px, settings)


def text_regions(probability: npt.NDArray[np.uint8], threshold: float) -> Sequence[npt.NDArray[np.int32]]:
    """The contours of the connected regions whose probability is above `threshold`, in px of the map."""
    region = (probability > round(threshold * 255)).view(np.uint8)
    region = cv2.dilate(region, np.ones((2, 2), np.uint8))
    contours, _ = cv2.findContours(region, cv2.RETR_LIST, cv2.CHAIN_APPROX_SIMPLE)
    return tuple(contours)


def boxes_around(
    contours: Sequence[npt.NDArray[np.int32]],
    probability: npt.NDArray[np.uint8],
    width_px: int,
    height_px: int,
    settings: DetectorSettings,
) -> tuple[TextBox, ...]:
    """The boxes of the regions, in px of the frame; of more than `max_boxes` regions the largest.

    A box is the smallest rectangle around a region, kept when the mean probability inside reaches `box_threshold`,
    then grown by area * unclip_ratio / perimeter (eq. 10 of the paper): the network is trained to see text shrunk.
    For a rectangle that offset and the box around it have a closed form.
    """
    scale = np.array([width_px / probability.shape[1], height_px / probability.shape[0]], np.float32)
    boxes = []
    for contour in largest(contours, settings.max_boxes):
        (centre, (side_a, side_b), angle) = cv2.minAreaRect(contour)
        if min(side_a, side_b) < MIN_SIDE_PX:
            continue
        score = box_score(probability, cv2.boxPoints((centre, (side_a, side_b), angle)))
        if score < settings.box_threshold:
            continue
        grow = settings.unclip_ratio * side_a * side_b / (side_a + side_b)  # 2 x the offset: both sides of the box
        corners = cv2.boxPoints((centre, (side_a + grow, side_b + grow), angle)) * scale
        limit = np.array([width_px - 1, height_px - 1], np.float32)
        quad = Quad(from_top_left(np.clip(corners, 0, limit)))
        if quad.width_px > MIN_SIDE_PX and quad.height_px > MIN_SIDE_PX:
            boxes.append(TextBox(quad, score))
    return tuple(boxes)


def largest(contours: Sequence[npt.NDArray[np.int32]], count: int) -> Sequence[npt.NDArray[np.int32]]:
    """At most `count` contours, those around the largest areas."""
    if len(contours) <= count:
        return contours
    return sorted(contours, key=cv2.contourArea, reverse=True)[:count]


def box_score(probability: npt.NDArray[np.uint8], corners: npt.NDArray[np.float32]) -> float:
    """Mean probability 0..1 inside a rectangle given by its corners (4, 2) in px of the map."""
    low = np.clip(np.floor(corners.min(axis=0)).astype(int), 0, [probability.shape[1] - 1, probability.shape[0] - 1])
    high = np.clip(np.ceil(corners.max(axis=0)).astype(int), 0, [probability.shape[1] - 1, probability.shape[0] - 1])
    mask = np.zeros((high[1] - low[1] + 1, high[0] - low[0] + 1), np.uint8)
    cv2.fillPoly(mask, [(corners - low).astype(np.int32)], 1)
    return float(cv2.mean(probability[low[1] : high[1] + 1, low[0] : high[0] + 1], mask)[0]) / 255


def from_top_left(corners: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """A rectangle's corners (4, 2) clockwise from the top-left of text that leans at most 45 degrees either way."""
    by_x = corners[np.argsort(corners[:, 0], kind="stable")]
    top_left, bottom_left = by_x[:2][np.argsort(by_x[:2, 1], kind="stable")]
    top_right, bottom_right = by_x[2:][np.argsort(by_x[2:, 1], kind="stable")]
    return np.stack([top_left, top_right, bottom_right, bottom_left]).astype(np.float32)
