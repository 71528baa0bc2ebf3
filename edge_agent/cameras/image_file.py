"""Image file: a still image from disk, checked before it is decoded, upright, as uint8 (H, W, 3) BGR."""

from __future__ import annotations

import stat
from collections.abc import Callable
from pathlib import Path

import cv2
import numpy as np

from edge_agent.cameras.base import Array, Image
from edge_agent.cameras.image_header import ImageHeader, check_complete, read_header
from edge_agent.cameras.jpeg import SPARE_BYTES, decode_jpeg
from edge_agent.cameras.pixels import check_pixels, to_bgr
from edge_agent.errors import FrameError

SUFFIXES = frozenset(
    {".jpg", ".jpeg", ".jpe", ".png", ".bmp", ".dib", ".webp", ".tif", ".tiff", ".pbm", ".pgm", ".ppm"}
)
# no need to look into these
VIDEO_SUFFIXES = frozenset({".avi", ".mp4", ".mkv", ".mov", ".m4v", ".webm", ".mpg", ".mpeg", ".ts", ".h264", ".h265"})
HEAD_BYTES = 65_536
BYTES_PER_PIXEL = 8  # four channels of 16 bits: an uncompressed file has no more
METADATA_BYTES = 16_777_216  # colour profiles, thumbnails, comments

# Exif 2.32, tag 274: where the stored row 0 and column 0 belong -> how to turn the picture upright
_UPRIGHT: dict[int, Callable[[Array], Array]] = {
    1: lambda image: image,
    2: lambda image: image[:, ::-1],
    3: lambda image: image[::-1, ::-1],
    4: lambda image: image[::-1],
    5: lambda image: image.swapaxes(0, 1),
    6: lambda image: np.rot90(image, -1),
    7: lambda image: image[::-1, ::-1].swapaxes(0, 1),
    8: np.rot90,
}


def read_image_file(path: Path, max_pixels: int, bit_depth: int | None = None) -> Image:
    """The image in `path`, as `decode_image` gives it; raises FrameError naming the file and what is wrong."""
    try:
        status = path.stat()
        _check_regular(status.st_mode)
        _check_bytes(status.st_size, max_pixels)
        return decode_image(path.read_bytes(), max_pixels, bit_depth)
    except OSError as exc:
        raise FrameError(f"{path.name!r} cannot be read: {exc.strerror}") from exc
    except FrameError as exc:
        raise FrameError(f"{path.name!r}: {exc}") from exc


def decode_image(
    content: bytes, max_pixels: int, bit_depth: int | None = None, spare_bytes: int = SPARE_BYTES
) -> Image:
    """The image in an image file's bytes, upright, uint8 (H, W, 3) BGR.

    Its size is read from the header and held against `max_pixels` before anything is decoded; a file that is cut
    short or damaged is refused. Raises FrameError. `spare_bytes`: see decode_jpeg.
    """
    header = read_header(content)
    check_pixels(header.width_px, header.height_px, max_pixels)
    if header.width_px * header.height_px * header.pixel_bytes > max_pixels * BYTES_PER_PIXEL:
        raise FrameError(
            f"picture has {header.width_px}x{header.height_px} pixels of {header.pixel_bytes} bytes; expected at most "
            f"{BYTES_PER_PIXEL} bytes a pixel where there are as many as {max_pixels}; write it with 8 or 16 bits"
        )
    check_complete(content, header)
    decoded = decode_jpeg(content, spare_bytes) if header.format == "jpeg" else None
    if decoded is None:
        decoded = _decode(content, header)
    return to_bgr(_UPRIGHT[header.orientation](decoded), max_pixels, bit_depth)


def _decode(content: bytes, header: ImageHeader) -> Array:
    """The picture as stored, by OpenCV."""
    try:
        # any other flag drops the alpha channel or the lower half of 16 bits
        decoded = cv2.imdecode(np.frombuffer(content, np.uint8), cv2.IMREAD_UNCHANGED)
    except cv2.error as exc:
        raise FrameError(f"{header.format} image cannot be decoded: {exc.err}") from exc
    if decoded is None:
        raise FrameError(f"{header.format} image of {header.width_px}x{header.height_px} cannot be decoded: damaged")
    return np.asarray(decoded)


def is_image(path: Path) -> bool:
    """Whether the file's ending says image; without an ending, or with a strange one, its first bytes decide."""
    suffix = path.suffix.lower()
    if suffix in SUFFIXES:
        return True
    if suffix in VIDEO_SUFFIXES:
        return False
    try:
        _check_regular(path.stat().st_mode)
        with path.open("rb") as file:
            read_header(file.read(HEAD_BYTES))
    except (FrameError, OSError):
        return False
    return True


def _check_regular(mode: int) -> None:
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):  # reading tells of a folder
        raise FrameError("is a pipe, socket or device; expected a file")  # a pipe would be waited for


def _check_bytes(size_bytes: int, max_pixels: int) -> None:
    if size_bytes > max_pixels * BYTES_PER_PIXEL + METADATA_BYTES:
        raise FrameError(f"file has {size_bytes} bytes, too many for an image of at most {max_pixels} pixels")
