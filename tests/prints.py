"""Prints: small pictures of text as they are hard to read, drawn here."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import cv2
import numpy as np
import numpy.typing as npt
from PIL import Image, ImageDraw, ImageFont

Picture = npt.NDArray[np.uint8]

DEJAVU = Path("/usr/share/fonts/truetype/dejavu/DejaVuSans.ttf")
DATE_AND_LOT = ("EXP 12/08/2026", "LOT A0B1O8")


def drawn(
    lines: Sequence[str],
    size_px: int = 32,
    ground: int = 255,
    ink: int = 0,
    sides_px: tuple[int, int] = (640, 200),
) -> Picture:
    """Lines of text, the first at (20, 20), the next `size_px` + 12 below; uint8 (H, W, 3)."""
    picture = Image.new("L", sides_px, ground)
    font = ImageFont.truetype(DEJAVU, size_px) if DEJAVU.exists() else ImageFont.load_default(size_px)
    for n, text in enumerate(lines):
        ImageDraw.Draw(picture).text((20, 20 + n * (size_px + 12)), text, fill=ink, font=font)
    return np.asarray(cv2.cvtColor(np.array(picture), cv2.COLOR_GRAY2BGR), np.uint8)


def placed(texts: Sequence[tuple[str, int, int, int, int]], sides_px: tuple[int, int], scale: int = 1) -> Picture:
    """Texts, each as large as its box x, y, width, height (px before scaling) holds; uint8 (H, W, 3)."""
    picture = Image.new("L", (sides_px[0] * scale, sides_px[1] * scale), 255)
    for text, x, y, width, height in texts:
        of_100_px = ImageFont.truetype(DEJAVU, 100) if DEJAVU.exists() else ImageFont.load_default(100)
        left, top, right, bottom = of_100_px.getbbox(text)
        size_px = int(scale * min(100 * width / (right - left), 100 * height / (bottom - top)))
        font = ImageFont.truetype(DEJAVU, size_px) if DEJAVU.exists() else ImageFont.load_default(size_px)
        left, top, _, _ = font.getbbox(text)
        ImageDraw.Draw(picture).text((x * scale - left, y * scale - top), text, fill=0, font=font)
    return np.asarray(cv2.cvtColor(np.array(picture), cv2.COLOR_GRAY2BGR), np.uint8)


def dotted(
    text: str, pitch_px: int = 8, radius_px: int = 3, ink: int = 40, ground: int = 235, width_px: int = 900
) -> Picture:
    """A line as an ink-jet printer makes it: a dot for each pixel of a bitmap font some 10 px high."""
    small = Image.new("1", (400, 16))
    ImageDraw.Draw(small).text((0, 0), text, fill=1, font=ImageFont.load_default_imagefont())
    rows, columns = np.nonzero(np.array(small))
    picture = np.full((220, width_px, 3), ground, np.uint8)
    for y, x in zip(rows - rows.min(), columns - columns.min(), strict=True):
        centre = (30 + int(x) * pitch_px, 50 + int(y) * pitch_px)
        cv2.circle(picture, centre, radius_px, (ink, ink, ink), -1, cv2.LINE_AA)
    return picture


def turned(picture: Picture, angle_deg: float, grown: float = 1.5) -> Picture:
    """A picture turned clockwise about its middle, on a white one `grown` times as large."""
    height, width = picture.shape[:2]
    wide, high = round(width * grown), round(height * grown) + width // 3
    matrix = cv2.getRotationMatrix2D((width / 2, height / 2), -angle_deg, 1)
    matrix[:, 2] += ((wide - width) / 2, (high - height) / 2)
    made = cv2.warpAffine(picture, matrix, (wide, high), borderValue=(255, 255, 255))
    return np.asarray(made, np.uint8)
