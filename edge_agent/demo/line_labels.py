"""LineLabel: labels of three production lines (docs/verify.md), a few lines of text and perhaps a 2D code."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import cv2
import numpy as np
import numpy.typing as npt

from edge_agent.demo.labels import PAPER, PlacedText, RenderedLabel, draw_texts
from edge_agent.errors import ConfigError

WIDTH_PX, HEIGHT_PX = 560, 385
TEXT_X, FIRST_Y, ROW_PX = 30, 40, 78
SIZE_PX = 36
CODE_PX = 150


@dataclass(frozen=True)
class LineLabel:
    """What one label says: its `texts` line by line, and the GS1 `code` of a DataMatrix in brackets, "" none.

    `smeared` is the index of a line that somebody has wiped over while the ink was wet, None: all are clean.
    """

    texts: tuple[str, ...]
    code: str = ""
    smeared: int | None = None


def render_line_label(label: LineLabel) -> RenderedLabel:
    """The label. Raises ConfigError where a library that draws it is not installed."""
    rows = [(TEXT_X, FIRST_Y + ROW_PX * n, text, SIZE_PX) for n, text in enumerate(label.texts)]
    drawn = draw_texts(WIDTH_PX, HEIGHT_PX, rows)
    image = drawn.image.copy()
    if label.code:
        symbol = data_matrix(label.code)
        height, width = symbol.shape[:2]
        x, y = WIDTH_PX - width - 24, HEIGHT_PX - height - 24
        image[y : y + height, x : x + width] = symbol
    if label.smeared is not None:
        smear(image, drawn.texts[label.smeared])
    return RenderedLabel(image, drawn.texts)


def data_matrix(content: str) -> npt.NDArray[np.uint8]:
    """A GS1 DataMatrix of at most CODE_PX, its modules whole pixels, uint8 (H, W, 3) BGR; `content` with its
    identifiers in brackets."""
    try:
        import zxingcpp
    except ModuleNotFoundError as exc:
        raise ConfigError("drawing a DataMatrix needs the Python package 'zxing-cpp'") from exc
    made = zxingcpp.create_barcode(content, zxingcpp.BarcodeFormat.DataMatrix, gs1=True, force_square=True)
    modules = np.array(made.to_image(scale=1), np.uint8)
    scale = CODE_PX // len(modules)
    sized = modules.repeat(scale, axis=0).repeat(scale, axis=1)
    paper = np.array(PAPER[::-1], np.float32) / 255
    return np.asarray(cv2.cvtColor(sized, cv2.COLOR_GRAY2BGR) * paper, np.uint8)


def smear(image: npt.NDArray[np.uint8], text: PlacedText) -> None:
    """Wipes over a text in place: wet ink drawn out sideways until nobody can read it."""
    left, top = (max(0, int(value) - 6) for value in text.quad.min(axis=0))
    right, bottom = (int(value) + 6 for value in text.quad.max(axis=0))
    part = image[top:bottom, left:right]
    image[top:bottom, left:right] = cv2.GaussianBlur(cv2.blur(part, (90, 3)), (0, 0), 5)


def frame_of(labels: Sequence[LineLabel]) -> npt.NDArray[np.uint8]:
    """A camera's picture of labels side by side on a dark table, uint8 (H, W, 3) BGR."""
    frame = np.full((HEIGHT_PX + 120, (WIDTH_PX + 60) * len(labels) + 60, 3), 72, np.uint8)
    for n, label in enumerate(labels):
        x = 60 + (WIDTH_PX + 60) * n
        frame[60 : 60 + HEIGHT_PX, x : x + WIDTH_PX] = render_line_label(label).image
    return frame
