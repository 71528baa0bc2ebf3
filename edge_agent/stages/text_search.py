"""Text search: the boxes of one view, from the detector's first look to where it has to look again."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from edge_agent.records import TextBox
from edge_agent.stages.images import Image
from edge_agent.stages.merge import merged
from edge_agent.stages.quality import Flag, can_be_strengthened, look, strengthened
from edge_agent.stages.text_detector import TextDetector
from edge_agent.stages.views import View
from edge_agent.stages.zoom import edge_hints, hints_of_print, is_large, is_shrunk, steps_of, windows


@dataclass(frozen=True, eq=False)
class Found:
    """Where text is in a view: `boxes` in px of `image`, which is the view's own or, where its print is faint, that
    one strengthened. `quality`: what is wrong with the view; looked for only where no text was found at first.
    `unsearched`: more of it hints at small text than may be looked at again."""

    image: Image
    boxes: tuple[TextBox, ...]
    quality: tuple[Flag, ...] = ()
    unsearched: bool = False


def search(view: View, probability: npt.NDArray[np.uint8], detector: TextDetector) -> Found:
    """The boxes of a view from its probability map, uint8 (H', W').

    Where the view was made much smaller for the detector, hints of small text are looked at again at full size; where
    there is no text and the print is faint, the picture is strengthened and searched once more.
    """
    image = view.image
    closer, unsearched = looked_closer(image, probability, detector.boxes(probability, image), detector)
    boxes = merged(closer)
    if boxes:
        return Found(image, boxes, unsearched=unsearched)
    seen = look(image)
    if seen.is_faint and view.strengthens and can_be_strengthened(image):
        image = strengthened(image)
        boxes = merged(detector.detect(image))
    return Found(image, boxes, seen.flags, unsearched)


def looked_closer(
    image: Image, probability: npt.NDArray[np.uint8], boxes: tuple[TextBox, ...], detector: TextDetector
) -> tuple[tuple[TextBox, ...], bool]:
    """The boxes, those of small text found anew at full size, and whether some may be where it was not looked again."""
    height_px, width_px = image.shape[:2]
    if not is_shrunk(probability, width_px):
        return boxes, False
    most = detector.settings.max_windows
    steps = steps_of(image, probability.shape[1], probability.shape[0])
    closer, unsearched = windows(hints_of_print(probability, steps), boxes, width_px, height_px, most)
    if not boxes and not closer:
        closer, unsearched = windows(edge_hints(steps), boxes, width_px, height_px, most)
    scale = probability.shape[1] / width_px
    kept = [box for box in boxes if is_large(box, scale) or not any(window.holds(box) for window in closer)]
    found = [window.moved(box) for window in closer for box in detector.detect(window.of(image))]
    return (*kept, *found), unsearched
