"""Drawing: a reading shown on its picture: every text outlined and numbered, what it says in a panel beside it.

Text is set with Pillow where it is installed (any script that one of the machine's fonts covers), else with
OpenCV's own strokes, which know ASCII only: other characters then show as `?`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import cv2
import numpy as np
import numpy.typing as npt

from edge_agent.plain_text import printable
from edge_agent.records import Quad, Reading

if TYPE_CHECKING:
    from PIL.ImageFont import FreeTypeFont

Picture = npt.NDArray[np.uint8]
Colour = tuple[int, int, int]  # blue, green, red
Box = tuple[int, int, int, int]  # left, top, right, bottom; px

PANEL: Colour = (34, 30, 28)
BRIGHT: Colour = (244, 244, 244)
DIM: Colour = (164, 160, 156)
PLAIN_LINE: Colour = (186, 172, 96)
FIELD_COLOURS: tuple[Colour, ...] = (
    (64, 188, 72), (36, 148, 250), (232, 120, 60), (200, 84, 190), (66, 84, 232),
    (190, 176, 40), (40, 190, 220), (150, 120, 250), (120, 200, 160), (90, 140, 180),
)  # fmt: skip
ROW_STEP = 1.35  # from row to row, in heights of a letter
FULL_SIZE_PX = 720  # pictures with a longer short side get larger letters, so that they read the same when shrunk

# tried in this order for text that Pillow's own font lacks; Debian and Ubuntu put them here
FONTS = (
    "/usr/share/fonts/truetype/dejavu/DejaVuSans.ttf",
    "/usr/share/fonts/truetype/noto/NotoSans-Regular.ttf",
    "/usr/share/fonts/opentype/noto/NotoSansCJK-Regular.ttc",
    "/usr/share/fonts/truetype/wqy/wqy-microhei.ttc",
    "/usr/share/fonts/truetype/droid/DroidSansFallbackFull.ttf",
)


class Letters(Protocol):
    """Sets text on pictures; sizes are the height of a line in px."""

    def width_px(self, text: str, size_px: int) -> int: ...

    def write(self, picture: Picture, x: int, y: int, text: str, size_px: int, colour: Colour) -> None:
        """Writes in place with the line's top-left corner at (x, y)."""
        ...


def annotated(image: Picture, reading: Reading, title: str = "") -> Picture:
    """A new picture: `image` (uint8 (H, W, 3) BGR) with the reading's outlines, and a panel on its right.

    The panel tells the fields and lines in full as far as they fit, and says how many do not.
    """
    scale = max(1.0, min(image.shape[:2]) / FULL_SIZE_PX)
    letters = choose_letters()
    colours = line_colours(reading)
    rows = [*_field_rows(reading, title or f"{reading.camera} #{reading.seq}"), *_line_rows(reading, colours)]
    least_height = max(image.shape[0], round(FULL_SIZE_PX * scale))
    panel = _Panel(letters, round(480 * scale), row_size(len(rows), least_height, scale))
    height = max(image.shape[0], min(panel.height_px(len(rows)), least_height))
    canvas = np.empty((height, image.shape[1] + panel.width, 3), np.uint8)
    canvas[:] = PANEL
    canvas[: image.shape[0], : image.shape[1]] = image
    _outline(canvas[: image.shape[0], : image.shape[1]], reading, colours, letters, scale)
    panel.draw(canvas, image.shape[1], rows)
    return canvas


def row_size(rows: int, height_px: int, scale: float) -> int:
    """The height of the panel's letters, px: smaller for many rows, as far as one can read them."""
    return max(round(14 * scale), min(round(22 * scale), int(height_px / (rows * ROW_STEP + 1))))


def line_colours(reading: Reading) -> dict[int, Colour]:
    """The colour of every line that a field was found in, by the line's index."""
    return {
        line: FIELD_COLOURS[n % len(FIELD_COLOURS)]
        for n, field in reversed(list(enumerate(reading.fields)))
        for line in field.lines
    }


def choose_letters() -> Letters:
    """Pillow's where it is installed, else OpenCV's."""
    try:
        from PIL import ImageFont
    except ModuleNotFoundError:
        return StrokeLetters()
    font = ImageFont.load_default(size=16)
    return PillowLetters() if isinstance(font, ImageFont.FreeTypeFont) else StrokeLetters()


class StrokeLetters:
    """OpenCV's strokes: always there, ASCII only."""

    _FACE = cv2.FONT_HERSHEY_SIMPLEX

    def width_px(self, text: str, size_px: int) -> int:
        return int(cv2.getTextSize(_ascii(text), self._FACE, size_px / 38, max(1, size_px // 18))[0][0])

    def write(self, picture: Picture, x: int, y: int, text: str, size_px: int, colour: Colour) -> None:
        thickness = max(1, size_px // 18)
        baseline = (x, y + round(size_px * 0.76))
        cv2.putText(picture, _ascii(text), baseline, self._FACE, size_px / 38, colour, thickness, cv2.LINE_AA)


class PillowLetters:
    """Real type: Pillow's own font, or one of the machine's where that lacks a letter."""

    def width_px(self, text: str, size_px: int) -> int:
        return round(_font_for(text, _points(size_px)).getlength(printable(text)))

    def write(self, picture: Picture, x: int, y: int, text: str, size_px: int, colour: Colour) -> None:
        from PIL import Image, ImageDraw

        top, left = max(y, 0), max(x, 0)
        width = self.width_px(text, size_px) + 2
        part = picture[top : y + size_px + size_px // 3, left : x + width]
        if part.size == 0:
            return
        sheet = Image.fromarray(part)
        font = _font_for(text, _points(size_px))
        draw = ImageDraw.Draw(sheet)
        draw.text((x - left, y - top + round(size_px * 0.76)), printable(text), colour, font, anchor="ls")
        part[:] = np.asarray(sheet, np.uint8)


def _points(size_px: int) -> int:
    return max(8, round(size_px * 0.74))


@lru_cache(maxsize=256)
def _fonts(size: int) -> tuple[FreeTypeFont, ...]:
    from PIL import ImageFont

    own = ImageFont.load_default(size=size)
    assert isinstance(own, ImageFont.FreeTypeFont)  # choose_letters has seen to it
    return (own, *(ImageFont.truetype(path, size) for path in FONTS if Path(path).is_file()))


@lru_cache(maxsize=2048)
def _covers(font: FreeTypeFont, character: str) -> bool:
    """Whether the font has the character: one that it lacks is drawn like one that no font has."""
    return bytes(font.getmask(character)) != bytes(font.getmask("\U0010ffff")) or character.isspace()


def _font_for(text: str, size: int) -> FreeTypeFont:
    """Pillow's own where it has all that can be printed of the text, else the one that has most of it."""
    fonts, characters = _fonts(size), set(printable(text))
    return max(fonts, key=lambda font: (sum(_covers(font, c) for c in characters), font is fonts[0]))


def _ascii(text: str) -> str:
    return "".join(c if c.isascii() and c.isprintable() else "?" for c in text)


@dataclass(frozen=True)
class _Row:
    """One row of the panel: a mark and a name in front, the text, a figure at the right edge."""

    text: str
    figure: str = ""
    colour: Colour = BRIGHT
    mark: Colour | None = None
    mark_text: str = ""
    name: str = ""


def _field_rows(reading: Reading, title: str) -> Iterator[_Row]:
    yield _Row(title, "", DIM)
    for n, field in enumerate(reading.fields):
        colour = FIELD_COLOURS[n % len(FIELD_COLOURS)]
        yield _Row(field.value, f"{field.confidence:.2f}", BRIGHT, colour, name=field.name)
    if reading.fields:
        yield _Row("")


def _line_rows(reading: Reading, colours: dict[int, Colour]) -> Iterator[_Row]:
    yield _Row(f"{len(reading.lines)} lines" if reading.lines else (reason_text(reading.reason)), "", DIM)
    for n, line in enumerate(reading.lines):
        yield _Row(line.text, f"{line.confidence:.2f}", BRIGHT, colours.get(n, PLAIN_LINE), str(n + 1))


def reason_text(reason: str | None) -> str:
    """Why a reading has no lines, in words."""
    return "no text found" if reason in (None, "no_text") else str(reason)


@dataclass(frozen=True)
class _Panel:
    """The column of text at the right; sizes in px."""

    letters: Letters
    width: int
    size: int

    @property
    def step(self) -> int:
        return round(self.size * ROW_STEP)

    def height_px(self, rows: int) -> int:
        return rows * self.step + self.size

    def draw(self, canvas: Picture, left: int, rows: Sequence[_Row]) -> None:
        """All rows, or as many as fit and a last one that counts the rest."""
        room = max(1, (canvas.shape[0] - self.size) // self.step)
        shown = list(rows) if len(rows) <= room else [*rows[: room - 1], _Row(f"... {len(rows) - room + 1} more")]
        names = max(self.letters.width_px(row.name, self.size) for row in shown) + self.size // 2
        for n, row in enumerate(shown):
            self._row(canvas, left + self.size // 2, self.size // 2 + n * self.step, row, min(names, self.width // 3))

    def _row(self, canvas: Picture, x: int, y: int, row: _Row, name_width: int) -> None:
        right = x + self.width - self.size
        indent = round(self.size * 1.5) if row.mark else 0
        if row.name:
            name = fitted(row.name, name_width - self.size // 2, self.size, self.letters)
            self.letters.write(canvas, x + indent, y, name, self.size, DIM)
            indent += name_width
        if row.mark:
            _chip(canvas, (x, y, x + round(self.size * 1.25), y + self.size), row.mark, row.mark_text, self.letters)
        figure_width = self.letters.width_px(row.figure, self.size) if row.figure else 0
        text = fitted(row.text, right - x - indent - figure_width - self.size // 2, self.size, self.letters)
        self.letters.write(canvas, x + indent, y, text, self.size, row.colour)
        if row.figure:
            self.letters.write(canvas, right - figure_width, y, row.figure, self.size, DIM)


def fitted(text: str, width_px: int, size_px: int, letters: Letters) -> str:
    """The text, or as much of it as is `width_px` wide with `...` behind."""
    if letters.width_px(text, size_px) <= width_px:
        return text
    short, long = 0, len(text)  # the longest cut that fits, by halving
    while short < long:
        middle = (short + long + 1) // 2
        if letters.width_px(text[:middle] + "...", size_px) <= width_px:
            short = middle
        else:
            long = middle - 1
    return text[:short] + "..."


def _outline(picture: Picture, reading: Reading, colours: dict[int, Colour], letters: Letters, scale: float) -> None:
    """Outlines every line and puts its number beside it, where it covers no text if there is such a place."""
    names = {line: field.name for field in reversed(reading.fields) for line in field.lines}
    size = round(18 * scale)
    taken = [_bounds(line.box.quad) for line in reading.lines]
    for n, line in enumerate(reading.lines):
        colour = colours.get(n, PLAIN_LINE)
        thickness = max(1, round((2 if n in colours else 1) * scale))
        cv2.polylines(picture, [line.box.quad.points.round().astype(np.int32)], True, colour, thickness, cv2.LINE_AA)
        text = f"{n + 1} {names[n]}" if n in names else str(n + 1)
        width = letters.width_px(text, size - 2) + round(8 * scale)
        spot = free_spot(taken[n], (width, size), taken, (picture.shape[1], picture.shape[0]), round(4 * scale))
        taken.append(spot)
        _chip(picture, spot, colour, text, letters)


def free_spot(beside: Box, size: tuple[int, int], taken: Sequence[Box], within: tuple[int, int], gap: int) -> Box:
    """Where a chip of `size` (width, height) beside a text hides least of what is taken; it lies `within` the picture.

    Tried in this order: left, right, above, below, each at both ends.
    """
    left, top, right, bottom = beside
    width, height = size
    middle = (top + bottom - height) // 2
    corners = (
        (left - gap - width, middle), (right + gap, middle),
        (left, top - gap - height), (right - width, top - gap - height),
        (left, bottom + gap), (right - width, bottom + gap),
    )  # fmt: skip
    spots = []
    for x, y in corners:
        inside_x = min(max(x, 0), max(0, within[0] - width))
        inside_y = min(max(y, 0), max(0, within[1] - height))
        spots.append((inside_x, inside_y, inside_x + width, inside_y + height))
    return min(spots, key=lambda spot: sum(_overlap(spot, other) for other in taken))


def _bounds(quad: Quad) -> Box:
    x, y = quad.points[:, 0], quad.points[:, 1]
    return int(x.min()), int(y.min()), int(np.ceil(x.max())), int(np.ceil(y.max()))


def _overlap(a: Box, b: Box) -> int:
    """The area that two boxes share, px."""
    return max(0, min(a[2], b[2]) - max(a[0], b[0])) * max(0, min(a[3], b[3]) - max(a[1], b[1]))


def _chip(picture: Picture, box: Box, colour: Colour, text: str, letters: Letters) -> None:
    """A filled rectangle with text in the middle of it."""
    left, top, right, bottom = box
    cv2.rectangle(picture, (left, top), (right - 1, bottom - 1), colour, -1)
    if text:
        size = bottom - top - 2
        x = left + (right - left - letters.width_px(text, size)) // 2
        letters.write(picture, x, top, text, size, (16, 16, 16))
