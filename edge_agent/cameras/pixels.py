"""Pixels: whatever array OpenCV hands over becomes uint8 (H, W, 3) BGR, or is refused by name."""

from __future__ import annotations

import cv2
import numpy as np

from edge_agent.cameras.base import Array, Image
from edge_agent.errors import FrameError

WANTED = "expected grey, BGR or BGRA pixels of type bool, uint8, uint16, or floating point in 0..1"
GREY = 128  # what lies behind see-through pixels: white text and black text both stand out from it
BLOCK_ROWS = 16  # what needs more than a byte a value is done in strips, so that a large picture needs little memory
FLOAT_TOLERANCE = 1e-3  # resampling overshoots 1.0 by rounding; more than this is another scale


def to_bgr(array: object, max_pixels: int, bit_depth: int | None = None) -> Image:
    """The picture as uint8 (H, W, 3) BGR, C-contiguous; the same object where it is that already.

    Taken: (H, W) and (H, W, 1) grey, (H, W, 3) BGR, (H, W, 4) BGRA laid on grey 128 (an alpha channel that is 0
    everywhere is unused padding, BGRx, and ignored). bool: False black, True white. uint16: scaled by 1 / 257, or
    by `bit_depth` significant bits where declared (a 12-bit sensor's 4095 is white). Floating point: 0..1 only.
    Raises FrameError for everything else: empty, too many pixels, other types, other channel counts, not finite.
    """
    if not isinstance(array, np.ndarray):
        raise FrameError(f"picture is {type(array).__name__}, not an array; {WANTED}")
    _check_shape(array, max_pixels)
    pixels = _to_uint8(array, bit_depth)
    channels = 1 if pixels.ndim == 2 else pixels.shape[2]
    if channels == 1:
        return np.asarray(cv2.cvtColor(pixels.reshape(pixels.shape[:2]), cv2.COLOR_GRAY2BGR), np.uint8)
    return pixels if channels == 3 else _lay_on_grey(pixels)


def check_pixels(width_px: int, height_px: int, max_pixels: int) -> None:
    """Raises FrameError for a picture without pixels or with more than `max_pixels`."""
    if width_px < 1 or height_px < 1:
        raise FrameError(f"picture is empty ({width_px}x{height_px}); expected at least one pixel")
    if width_px * height_px > max_pixels:
        raise FrameError(
            f"picture has {width_px}x{height_px} = {width_px * height_px} pixels; at most {max_pixels} are read "
            "(raise max_pixels if it is meant to be this large)"
        )


def _check_shape(array: Array, max_pixels: int) -> None:
    if array.ndim not in (2, 3):
        raise FrameError(f"picture has shape {array.shape}; expected (H, W) or (H, W, channels)")
    check_pixels(array.shape[1], array.shape[0], max_pixels)
    if array.ndim == 3 and array.shape[2] not in (1, 3, 4):
        hint = " (raw YUV? set pixel_format so that the driver converts it)" if array.shape[2] == 2 else ""
        raise FrameError(f"picture has {array.shape[2]} channels{hint}; {WANTED}")


def _to_uint8(array: Array, bit_depth: int | None) -> Image:
    """`array` as C-contiguous uint8 of the same shape."""
    if array.dtype == np.uint8:
        return np.ascontiguousarray(array, np.uint8)
    if array.dtype == np.bool_:
        return np.asarray(np.where(array, np.uint8(255), np.uint8(0)), np.uint8)
    if array.dtype.kind == "u" and array.dtype.itemsize == 2:
        native = np.ascontiguousarray(array, np.uint16)
        white = 65535 if bit_depth is None else (1 << bit_depth) - 1
        return _scaled(native, 255.0 / white)
    if array.dtype.kind == "f" and array.dtype.itemsize <= 8:
        return _from_unit_range(array)
    raise FrameError(f"picture has pixels of type {array.dtype}; {WANTED}")


def _from_unit_range(array: Array) -> Image:
    """Values of 0..1, all checked to lie in there, as 0..255."""
    low, high = float(array.min()), float(array.max())  # either is nan where a nan is anywhere
    if not (np.isfinite(low) and np.isfinite(high)):
        raise FrameError(f"picture of type {array.dtype} has values that are not finite; expected 0..1")
    if low < -FLOAT_TOLERANCE or high > 1.0 + FLOAT_TOLERANCE:
        raise FrameError(f"picture of type {array.dtype} has values {low:g}..{high:g}; expected 0..1")
    out = np.empty(array.shape, np.uint8)
    for top in range(0, len(array), BLOCK_ROWS):
        rows = slice(top, top + BLOCK_ROWS)
        out[rows] = _scaled(np.ascontiguousarray(array[rows], np.float32).clip(0.0, 1.0), 255.0)
    return out


def _scaled(pixels: Array, scale: float) -> Image:
    return np.asarray(cv2.convertScaleAbs(pixels, alpha=scale), np.uint8).reshape(pixels.shape)


def _lay_on_grey(bgra: Image) -> Image:
    alpha = bgra[:, :, 3]
    lowest, highest = int(alpha.min()), int(alpha.max())
    if lowest == 255 or highest == 0:
        return np.ascontiguousarray(bgra[:, :, :3])
    out = np.empty((*bgra.shape[:2], 3), np.uint8)
    for top in range(0, bgra.shape[0], BLOCK_ROWS):
        rows = slice(top, top + BLOCK_ROWS)
        opacity = bgra[rows, :, 3:].astype(np.uint16)
        mixed = bgra[rows, :, :3] * opacity  # with what is added at most 255 * 255 + 127
        mixed += GREY * (255 - opacity) + 127
        out[rows] = mixed // 255
    return out
