"""Labels: made-up products, and a renderer that draws their labels the same way every time.

The font is the one that Pillow carries in itself: no font package is needed and every machine draws the same.
It covers ASCII. The GTINs begin with 952, the prefix that GS1 keeps for demonstrations; the URLs are example.com.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date
from functools import lru_cache
from typing import TYPE_CHECKING, Literal

import numpy as np
import numpy.typing as npt

from edge_agent.demo import ean13
from edge_agent.errors import ConfigError

if TYPE_CHECKING:
    from PIL import ImageDraw, ImageFont

Colour = tuple[int, int, int]  # red, green, blue, as Pillow has them

DESIGN_WIDTH = 640  # layouts are drawn in these units and scaled to the size asked for
DESIGN_HEIGHT = 440
SUPERSAMPLING = 2  # drawn so many times larger, then averaged: smooth curves and bars of fractional width
PAPER: Colour = (250, 250, 246)
INK: Colour = (24, 24, 28)
GREY: Colour = (110, 110, 114)


@dataclass(frozen=True)
class Label:
    """What one label says. `expiry_key` and `expiry_form` (strftime) are how the maker prints the date."""

    product: str
    maker: str
    lot: str
    expiry: date
    serial: str
    net_weight: str
    gtin: str
    url: str
    layout: Literal["band", "frame", "side"] = "band"
    colour: Colour = (16, 62, 112)
    lot_key: str = "LOT"
    expiry_key: str = "EXP"
    expiry_form: str = "%Y-%m-%d"
    note: str = "Store cool and dry"

    @property
    def expiry_text(self) -> str:
        return self.expiry.strftime(self.expiry_form).upper()

    @property
    def lines(self) -> tuple[str, ...]:
        """Every line of text on the label."""
        return (self.maker, self.product, self.note, *self.marks, self.gtin)

    @property
    def marks(self) -> tuple[str, ...]:
        """The lines that change from item to item, and those that a reader looks for."""
        return (
            f"{self.lot_key} {self.lot}",
            f"{self.expiry_key} {self.expiry_text}",
            f"S/N {self.serial}",
            f"NET WT {self.net_weight}",
            self.url,
        )


@dataclass(frozen=True, eq=False)
class PlacedText:
    """Where a text stands: `quad` float32 (4, 2) px, clockwise from the text's own top-left."""

    text: str
    quad: npt.NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class RenderedLabel:
    """`image` uint8 (H, W, 3) BGR and every text on it, in px of that image."""

    image: npt.NDArray[np.uint8]
    texts: tuple[PlacedText, ...]


def render_label(label: Label, width_px: int = DESIGN_WIDTH) -> RenderedLabel:
    """The label, `width_px` wide and 11/16 as high. Raises ConfigError where Pillow is not installed."""
    if width_px < 160:
        raise ValueError(f"a label {width_px} px wide cannot be read; expected at least 160")
    size = (width_px, round(DESIGN_HEIGHT * width_px / DESIGN_WIDTH))
    return _drawn(size, width_px / DESIGN_WIDTH, lambda sheet: LAYOUTS[label.layout](sheet, label))


def draw_texts(width_px: int, height_px: int, rows: Sequence[tuple[float, float, str, float]]) -> RenderedLabel:
    """Paper with texts: of each row the place of its capitals' top-left, what it says, and its size, px. Raises
    ConfigError where Pillow is not installed."""

    def draw(sheet: _Sheet) -> None:
        for x, y, text, size_px in rows:
            sheet.text(x, y, text, size_px)

    return _drawn((width_px, height_px), 1.0, draw)


def _drawn(size: tuple[int, int], scale: float, draw: Callable[[_Sheet], None]) -> RenderedLabel:
    """What `draw` makes of a sheet of `size` px, `scale` px to its unit."""
    try:
        from PIL import Image, ImageDraw
    except ModuleNotFoundError as exc:
        raise ConfigError(
            "drawing the sample labels needs the Python package 'pillow'; run: pip install 'edge-agent[demo]'"
        ) from exc
    picture = Image.new("RGB", (size[0] * SUPERSAMPLING, size[1] * SUPERSAMPLING), PAPER)
    sheet = _Sheet(ImageDraw.Draw(picture), SUPERSAMPLING * scale, [])
    draw(sheet)
    rgb = np.asarray(picture.resize(size, Image.Resampling.BOX), np.uint8)
    texts = tuple(PlacedText(placed.text, placed.quad / np.float32(SUPERSAMPLING)) for placed in sheet.placed)
    return RenderedLabel(np.ascontiguousarray(rgb[:, :, ::-1]), texts)


@lru_cache(maxsize=64)
def _font(size_px: int) -> ImageFont.FreeTypeFont:
    from PIL import ImageFont

    font = ImageFont.load_default(size=size_px)
    if not isinstance(font, ImageFont.FreeTypeFont):
        raise ConfigError("this Pillow was built without FreeType and cannot draw labels; install the wheel from pip")
    return font


@dataclass
class _Sheet:
    """A drawing surface in design units that remembers every text it draws."""

    draw: ImageDraw.ImageDraw
    scale: float
    placed: list[PlacedText]

    def box(self, x: float, y: float, width: float, height: float) -> tuple[float, float, float, float]:
        s = self.scale
        return x * s, y * s, (x + width) * s - 1, (y + height) * s - 1

    def fill(self, x: float, y: float, width: float, height: float, colour: Colour) -> None:
        self.draw.rectangle(self.box(x, y, width, height), fill=colour)

    def outline(self, x: float, y: float, width: float, height: float, line: float, colour: Colour) -> None:
        self.draw.rounded_rectangle(
            self.box(x, y, width, height), 14 * self.scale, outline=colour, width=max(1, round(line * self.scale))
        )

    def text(
        self, x: float, y: float, text: str, size: float, colour: Colour = INK, bold: float = 0.0, fit: float = 0.0
    ) -> None:
        """Writes `text` with its capitals' top-left at (x, y); `fit` > 0 is the width that it must not pass."""
        while fit and size > 14 and _font(round(size * self.scale)).getlength(text) > fit * self.scale:
            size -= 1
        font, stroke = _font(round(size * self.scale)), round(bold * self.scale)
        rise = font.getbbox("H", anchor="ls")[1]
        origin = (x * self.scale, y * self.scale - rise)
        self.draw.text(origin, text, colour, font, "ls", stroke_width=stroke, stroke_fill=colour)
        left, top, right, bottom = self.draw.textbbox(origin, text, font, "ls", stroke_width=stroke)
        self.placed.append(PlacedText(text, _quad(left, top, right, bottom)))

    def barcode(self, x: float, y: float, gtin: str, module: float, height: float) -> None:
        """An EAN-13 with its digits below; a bar is a whole number of the sheet's own pixels."""
        step = max(1, round(module * self.scale))
        left, top, bottom = round(x * self.scale), round(y * self.scale), round((y + height) * self.scale)
        for i, bar in enumerate(ean13.bars(gtin)):
            if bar == "1":
                self.draw.rectangle((left + i * step, top, left + (i + 1) * step - 1, bottom), fill=INK)
        width = ean13.MODULES * step / self.scale
        size = 22.0
        length = _font(round(size * self.scale)).getlength(gtin) / self.scale
        self.text(x + (width - length) / 2, y + height + 8, gtin, size)


def _quad(left: float, top: float, right: float, bottom: float) -> npt.NDArray[np.float32]:
    return np.array([[left, top], [right, top], [right, bottom], [left, bottom]], np.float32)


def _band(sheet: _Sheet, label: Label) -> None:
    """Maker in a coloured band across the top, marks in one column, barcode at the lower right."""
    sheet.fill(0, 0, DESIGN_WIDTH, 66, label.colour)
    sheet.text(28, 22, label.maker, 30, PAPER, 0.6, fit=470)
    _emblem(sheet, 588, 33, 20, PAPER, label.colour)
    sheet.text(28, 92, label.product, 42, INK, 1.1, fit=584)
    sheet.text(28, 144, label.note, 22, GREY, fit=584)
    sheet.fill(28, 180, 584, 3, label.colour)
    _marks(sheet, label, 28, 206, 30, 46, 300)
    sheet.barcode(368, 206, label.gtin, 2.5, 146)
    sheet.outline(2, 2, DESIGN_WIDTH - 4, DESIGN_HEIGHT - 4, 3, label.colour)


def _frame(sheet: _Sheet, label: Label) -> None:
    """A double frame, the marks in a ruled box on the right, barcode at the lower left."""
    sheet.outline(4, 4, DESIGN_WIDTH - 8, DESIGN_HEIGHT - 8, 4, label.colour)
    sheet.outline(14, 14, DESIGN_WIDTH - 28, DESIGN_HEIGHT - 28, 1.5, label.colour)
    _emblem(sheet, 64, 62, 28, label.colour, PAPER)
    sheet.text(110, 38, label.maker, 24, label.colour, 0.6, fit=490)
    sheet.text(110, 74, label.product, 40, INK, 1.1, fit=490)
    sheet.text(110, 122, label.note, 21, GREY, fit=490)
    sheet.fill(34, 160, 572, 2, label.colour)
    sheet.barcode(48, 190, label.gtin, 2.5, 156)
    _marks(sheet, label, 338, 190, 29, 44, 276)


def _side(sheet: _Sheet, label: Label) -> None:
    """A coloured edge on the left, product first, maker at the foot."""
    sheet.fill(0, 0, 26, DESIGN_HEIGHT, label.colour)
    sheet.text(54, 30, label.product, 44, INK, 1.2, fit=554)
    sheet.text(54, 84, label.note, 22, GREY, fit=554)
    sheet.fill(54, 122, 554, 2, GREY)
    _marks(sheet, label, 54, 146, 30, 45, 286)
    sheet.barcode(362, 146, label.gtin, 2.5, 140)
    sheet.fill(54, 372, 554, 2, GREY)
    sheet.text(54, 394, label.maker, 25, label.colour, 0.6, fit=480)
    _emblem(sheet, 588, 404, 20, label.colour, PAPER)
    sheet.outline(2, 2, DESIGN_WIDTH - 4, DESIGN_HEIGHT - 4, 2, GREY)


LAYOUTS = {"band": _band, "frame": _frame, "side": _side}


def _marks(sheet: _Sheet, label: Label, x: float, y: float, size: float, step: float, fit: float) -> None:
    for row, text in enumerate(label.marks):
        bold = 0.5 if row < 3 else 0.0
        sheet.text(x, y + row * step, text, size if row < 4 else size - 6, INK, bold, fit)


def _emblem(sheet: _Sheet, x: float, y: float, radius: float, colour: Colour, inner: Colour) -> None:
    """A maker's mark without letters: a disc with a crescent cut into it."""
    for dx, dy, r, tint in ((0.0, 0.0, 1.0, colour), (0.12, -0.12, 0.72, inner), (0.3, -0.3, 0.5, colour)):
        centre_x, centre_y, reach = x + dx * radius, y + dy * radius, r * radius
        sheet.draw.ellipse(sheet.box(centre_x - reach, centre_y - reach, 2 * reach, 2 * reach), fill=tint)


def sample_labels(year: int) -> tuple[Label, ...]:
    """Six made-up products whose expiry dates lie in the two years after `year`.

    Their codes use no I, O and Q, as is common practice: those are too like 1 and 0 for people, too.
    """
    return (
        Label(
            "Sterile Saline Solution", "Clara Medical Ltd, Dublin", "A7K2093", date(year + 1, 8, 31), "48213-0917",
            "500 g", _gtin("952123456701"), "www.example.com/saline", "band", (16, 62, 112),
            note="Do not use if damaged",
        ),
        Label(
            "Dark Roast Coffee Beans", "Alto Roasters, 10121 Torino", "L24-1187", date(year + 1, 5, 17), "CB-558204",
            "1 kg", _gtin("952123456702"), "www.example.com/coffee", "frame", (104, 52, 24),
            expiry_key="BEST BEFORE", expiry_form="%d.%m.%y", note="Store in a cool, dry place",
        ),
        Label(
            "Epoxy Adhesive", "Bondwerk GmbH, 20457 Hamburg", "B230417", date(year + 2, 3, 28), "EX7-22914",
            "250 g", _gtin("952123456703"), "www.example.com/epoxy", "side", (176, 36, 32),
            lot_key="BATCH", note="Wear protective gloves",
        ),
        Label(
            "Granola with Honey", "Morgentau Foods Ltd, Cork", "G8814C", date(year + 1, 11, 23), "GR-310476",
            "375 g", _gtin("952123456704"), "www.example.com/granola", "band", (40, 96, 48),
            expiry_form="%d %b %Y", note="Contains oats and almonds",
        ),
        Label(
            "Lithium Grease NLGI 2", "Kugel AG, 70565 Stuttgart", "KL-90532", date(year + 2, 12, 15), "LG2-66381",
            "400 g", _gtin("952123456705"), "www.example.com/grease", "frame", (52, 52, 60),
            expiry_form="%d/%m/%Y", note="Keep away from open flame",
        ),
        Label(
            "Vitamin C Tablets 1000 mg", "Nordlicht Pharma AB, Malmo", "V4C7719", date(year + 2, 1, 30), "VC-204815",
            "120 g", _gtin("952123456706"), "www.example.com/vitamin", "side", (214, 116, 12),
            note="Keep out of reach of children",
        ),
    )  # fmt: skip


def _gtin(first_twelve: str) -> str:
    return first_twelve + ean13.check_digit(first_twelve)
