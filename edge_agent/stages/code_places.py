"""Code places: the parts of a picture in which bars or the modules of a matrix can be at all, found by their edges.

A search for codes costs most where there is none: it follows the outline of every speck of noise. Edges of bars lie
close together along x or along y, those of modules along both; noise is weaker than they are, and a lone edge is not
close to another.
"""

from __future__ import annotations

import cv2
import numpy as np
import numpy.typing as npt

from edge_agent.stages.zoom import Window

Grey = npt.NDArray[np.uint8]  # (H, W)

CELL_PX = 16  # a multiple of the 8 px of zxing-cpp's blocks, which so are the same in a part and in the whole
EDGE = 18  # grey levels between neighbours in the picture at half its size
SHARE = 0.15  # of the pixels around a cell that lie at an edge: modules of up to 10 px have so many along x and along y
MARGIN_CELLS = 3  # quiet zones, and what light and dark are measured against
MOST = 0.7  # of the picture: where the parts cover more, parting it costs more than it saves


def edges(grey: Grey) -> tuple[Grey, Grey]:
    """By cell and its neighbours, how many pixels lie at an edge along x, and along y: 255 all of them."""
    high, wide = grey.shape
    half = cv2.resize(grey, (max(1, wide // 2), max(1, high // 2)), interpolation=cv2.INTER_AREA)
    cells = -(-wide // CELL_PX), -(-high // CELL_PX)
    along_x, along_y = (
        cv2.blur(cv2.resize(_steep(half, kernel), cells, interpolation=cv2.INTER_AREA), (3, 3))
        for kernel in (np.ones((1, 3), np.uint8), np.ones((3, 1), np.uint8))
    )
    return np.asarray(along_x, np.uint8), np.asarray(along_y, np.uint8)


def _steep(grey: Grey, kernel: npt.NDArray[np.uint8]) -> Grey:
    ranges = cv2.morphologyEx(grey, cv2.MORPH_GRADIENT, kernel)
    return np.asarray(cv2.threshold(ranges, EDGE, 255, cv2.THRESH_BINARY)[1], np.uint8)


def matrix_places(along_x: Grey, along_y: Grey) -> list[Window] | None:
    """Where a 2D code can be, by the edges of a picture, in its px, perhaps beyond its end; None: anywhere."""
    return _windows(np.minimum(along_x, along_y) > SHARE * 255)


def bar_places(along_x: Grey, along_y: Grey) -> list[Window] | None:
    """The same of a bar code."""
    return _windows(np.maximum(along_x, along_y) > SHARE * 255)


def _windows(hinting: npt.NDArray[np.bool_]) -> list[Window] | None:
    """Around the cells that hint at a code, grown until none meets another."""
    cells = cv2.dilate(hinting.astype(np.uint8), np.ones((2 * MARGIN_CELLS + 1,) * 2, np.uint8))
    boxes: list[list[int]] = []
    count = -1
    while len(boxes) != count:
        count = len(boxes)
        boxes = cv2.connectedComponentsWithStats(cells, connectivity=8)[2][1:, :4].tolist()
        for left, top, wide, high in boxes:
            cells[top : top + high, left : left + wide] = 1
    if cells.mean() > MOST:
        return None
    return [
        Window(left * CELL_PX, top * CELL_PX, (left + wide) * CELL_PX, (top + high) * CELL_PX)
        for left, top, wide, high in boxes
    ]
