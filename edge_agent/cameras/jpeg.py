"""JPEG: decoded so that damage is heard of.

OpenCV decodes with libjpeg-turbo as well, but paints over what it cannot decode, calls the picture good, and leaves a
line on stderr for each: a lot number read from such a picture differs by a letter and looks sure.
"""

from __future__ import annotations

import re

import numpy as np
import simplejpeg

from edge_agent.cameras.base import Array
from edge_agent.errors import FrameError

# libjpeg's warnings (jerror.h) after which a part of the picture is made up
_DAMAGE = re.compile(r"premature end|bad huffman code|instead of RST|extraneous bytes before marker", re.IGNORECASE)
_LEFT_OVER = re.compile(r"(\d+) extraneous bytes before marker 0xd9")
# At most so many bytes left over before the end marker: some cameras write them behind a whole picture. They are
# libjpeg's count, which leaves out the up to 7 that it has read ahead.
SPARE_BYTES = 8
_COLOURS = {"Gray": "GRAY", "YCbCr": "BGR", "RGB": "BGR"}


class SpareBytes(FrameError):
    """A few bytes are left over behind the picture: the camera's habit, or a sign that some before were damaged."""


def decode_jpeg(content: bytes, spare_bytes: int = SPARE_BYTES) -> Array | None:
    """The picture, uint8 (H, W, 1) grey or (H, W, 3) BGR, not turned; None where it is of a kind that is not decoded
    here (CMYK, 12 bits). Raises FrameError where a part of the picture is missing or damaged, its subclass SpareBytes
    where all that tells so is more than `spare_bytes`, but not more than SPARE_BYTES, before the end marker."""
    try:
        colours = _COLOURS.get(simplejpeg.decode_jpeg_header(content)[2])
    except ValueError:
        return None
    if colours is None:
        return None
    try:
        return np.asarray(simplejpeg.decode_jpeg(content, colours))
    except ValueError as exc:
        warning = str(exc)
    if not _DAMAGE.search(warning):
        return None
    left_over = _left_over(warning, content)
    if left_over is None or left_over > spare_bytes:
        kind = FrameError if left_over is None or left_over > SPARE_BYTES else SpareBytes
        raise kind(f"JPEG is damaged: {warning.removeprefix('Corrupt JPEG data: ')}")
    return np.asarray(simplejpeg.decode_jpeg(content, colours, strict=False))


def _left_over(warning: str, content: bytes) -> int | None:
    """How many bytes are left over before the end marker, padding aside; None where something else is wrong."""
    found = _LEFT_OVER.search(warning)
    if found is None:
        return None
    count, end = int(found[1]), content.rfind(b"\xff\xd9")
    return count if content[end - count : end].strip(b"\x00\xff") else 0
