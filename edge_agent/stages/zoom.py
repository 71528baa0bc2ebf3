"""Zoom: a second look, at full size, at where a frame far larger than the detector's input may hold small text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import cv2
import numpy as np
import numpy.typing as npt

from edge_agent.records import Quad, TextBox
from edge_agent.stages.images import SHRUNK, Image, resized

HINT = 20  # of 255: from here on a pixel of the small map hints at text
PRINT = 8  # grey levels from px to px of the small picture: less is noise on a blank ground
PRINT_SHARE = 0.2  # of a cell's pixels; a speck of noise raises nine of them
EDGE = 40
SMALL_PX = 12  # high in the small map: a box so small is better looked for again
SIDE_PX = 960  # of a window, in px of the frame
CELL_PX = 8  # of the small map: windows are placed on a grid of these


@dataclass(frozen=True)
class Window:
    """A part of a frame, in its px."""

    left: int
    top: int
    right: int
    bottom: int

    def of(self, image: Image) -> Image:
        """The part of the image, uint8 (H, W, 3)."""
        return np.ascontiguousarray(image[self.top : self.bottom, self.left : self.right])

    def moved(self, box: TextBox) -> TextBox:
        """A box found in the window, in px of the frame."""
        return TextBox(Quad(box.quad.points + np.array([self.left, self.top], np.float32)), box.score)

    def holds(self, box: TextBox) -> bool:
        """Whether the centre of a box of the frame lies in it."""
        x, y = box.quad.centre
        return bool(self.left <= x < self.right and self.top <= y < self.bottom)


def windows(
    probability: npt.NDArray[np.uint8], boxes: Sequence[TextBox], width_px: int, height_px: int, most: int
) -> tuple[tuple[Window, ...], bool]:
    """Where to look again in a frame of `width_px` x `height_px`, at most `most` windows, those with most hints first,
    and whether hints are left that lie in none.

    `probability` uint8 (H', W') is the frame's small map, `boxes` (px of the frame) what was found in it. None where
    the frame was hardly made smaller.
    """
    if not is_shrunk(probability, width_px):
        return (), False
    scale = probability.shape[1] / width_px
    cells = hinting_cells(probability, [box for box in boxes if is_large(box, scale)], scale)
    reach = max(1, int(SIDE_PX * scale) // CELL_PX)
    found: list[Window] = []
    while len(found) < most and cells.any():
        counts = cv2.boxFilter(cells, -1, (reach, reach), normalize=False, borderType=cv2.BORDER_CONSTANT)
        row, column = divmod(int(counts.argmax()), counts.shape[1])
        found.append(_around(np.array([column + 0.5, row + 0.5]) * CELL_PX / scale, width_px, height_px))
        top, left = max(0, row - reach // 2), max(0, column - reach // 2)
        cells[top : row + reach // 2 + 1, left : column + reach // 2 + 1] = 0
    return tuple(found), bool(cells.any())


def is_shrunk(probability: npt.NDArray[np.uint8], width_px: int) -> bool:
    """Whether the map is of a frame of `width_px` that was made much smaller."""
    return bool(probability.shape[1] < SHRUNK * width_px)


def steps_of(image: Image, wide: int, high: int) -> npt.NDArray[np.uint8]:
    """How steep the picture, made (high, wide) small, is at each of its pixels: grey levels from px to px."""
    grey = cv2.cvtColor(resized(image, wide, high), cv2.COLOR_BGR2GRAY)
    return np.asarray(cv2.morphologyEx(grey, cv2.MORPH_GRADIENT, np.ones((3, 3), np.uint8)), np.uint8)


def hints_of_print(probability: npt.NDArray[np.uint8], steps: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
    """The small map, 0 where there is nothing near: of a large blank ground the detector says some 70 of 255."""
    near = cv2.blur(np.where(steps >= PRINT, 255, 0).astype(np.uint8), (CELL_PX, CELL_PX))
    return np.where(near >= PRINT_SHARE * 255, probability, 0).astype(np.uint8)


def edge_hints(steps: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
    """A map like the detector's that hints wherever the small picture has an edge: isolated letters of some 14 px leave
    no trace in the detector's."""
    return np.where(steps >= EDGE, 255, 0).astype(np.uint8)


def is_large(box: TextBox, scale: float) -> bool:
    """Whether a box of the frame is large enough in its small map to be believed."""
    return box.quad.height_px * scale >= SMALL_PX


def hinting_cells(
    probability: npt.NDArray[np.uint8], known: Sequence[TextBox], scale: float
) -> npt.NDArray[np.float32]:
    """1.0 for each cell of CELL_PX x CELL_PX of the map that hints at text outside the known boxes, else 0."""
    hints = (probability >= HINT).astype(np.uint8)
    for box in known:
        cv2.fillConvexPoly(hints, np.round(box.quad.points * scale).astype(np.int32), 0)
    high, wide = (-(-side // CELL_PX) for side in hints.shape)
    padded = np.zeros((high * CELL_PX, wide * CELL_PX), np.uint8)
    padded[: hints.shape[0], : hints.shape[1]] = hints
    return np.asarray(padded.reshape(high, CELL_PX, wide, CELL_PX).max(axis=(1, 3)), np.float32)


def _around(centre: npt.NDArray[np.float64], width_px: int, height_px: int) -> Window:
    """A window of SIDE_PX around a point, moved to lie in the frame."""
    left = int(np.clip(centre[0] - SIDE_PX / 2, 0, max(0, width_px - SIDE_PX)))
    top = int(np.clip(centre[1] - SIDE_PX / 2, 0, max(0, height_px - SIDE_PX)))
    return Window(left, top, min(left + SIDE_PX, width_px), min(top + SIDE_PX, height_px))
