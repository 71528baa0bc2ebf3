"""Image header: format, size and orientation of a still image, read without decoding one pixel of it.

So a picture too large for the device is refused in microseconds, whatever its decoder would have done with it.
Formats after: ITU T.81 (JPEG), PNG 3rd edition, TIFF 6.0 and BigTIFF, Exif 2.32, WebP container (RFC 9649),
BITMAPINFOHEADER, Netpbm.
"""

from __future__ import annotations

import re
import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass

from edge_agent.errors import FrameError

FORMATS = "JPEG, PNG, BMP, WebP, TIFF, PBM, PGM and PPM"
_TIFF_MAGIC = (b"II*\0", b"MM\0*", b"II+\0", b"MM\0+")
_PNG_MAGIC = b"\x89PNG\r\n\x1a\n"
_TAG_WIDTH, _TAG_HEIGHT, _TAG_BITS, _TAG_ORIENTATION, _TAG_SAMPLES = 256, 257, 258, 274, 277
_SIZE_TAGS = {_TAG_WIDTH, _TAG_HEIGHT, _TAG_BITS, _TAG_SAMPLES}
_READ_TAGS = {*_SIZE_TAGS, _TAG_ORIENTATION}
_MAX_TAGS = 4096  # a directory has some dozens; this bounds the work on a damaged one
# within a scan, 0xFF is followed by 0 (stuffed), a restart marker, or another 0xFF (fill): all else ends the scan
_SCAN_END = re.compile(rb"\xff[^\x00\xd0-\xd7\xff]")
_RESTART = re.compile(rb"\xff([\xd0-\xd7])")
# between scans: tables, restart interval, number of lines, next scan, application data, comment
_BETWEEN_SCANS = {0xC4, 0xCC, 0xDB, 0xDC, 0xDD, 0xDA, *range(0xE0, 0xF0), 0xFE}


@dataclass(frozen=True)
class ImageHeader:
    """`format` is one of jpeg png bmp webp tiff pnm; the size is as stored, before `orientation` (Exif, 1..8).
    `pixel_bytes`: of a decoded pixel, at most."""

    format: str
    width_px: int
    height_px: int
    orientation: int = 1
    pixel_bytes: int = 8  # four channels of 16 bits; TIFF alone has more


def read_header(content: bytes) -> ImageHeader:
    """The header of an image file's bytes, whichever its name says; FrameError where it is none of FORMATS."""
    try:
        if content.startswith(b"\xff\xd8"):
            return _jpeg(content)
        if content.startswith(_PNG_MAGIC):
            return _png(content)
        if content.startswith(b"RIFF") and content[8:12] == b"WEBP":
            return _webp(content)
        if content.startswith(_TIFF_MAGIC):
            return _tiff(content)
        if content.startswith(b"BM"):
            return _bmp(content)
        if re.match(rb"P[1-6]\s", content):
            return _pnm(content)
    except (struct.error, IndexError, ValueError) as exc:
        raise FrameError("image is cut short or damaged within its header; write the file again") from exc
    if not content:
        raise FrameError("file is empty (0 bytes); expected an image")
    raise FrameError(f"not an image this program reads: begins with {content[:8].hex(' ')}; expected {FORMATS}")


def check_complete(content: bytes, header: ImageHeader) -> None:
    """Raises FrameError where the file is cut short or damaged in a way that its decoder might paint over.

    libjpeg fills the missing part of a half JPEG with grey and calls it good; a half label would be read.
    """
    if header.format == "jpeg":
        _check_jpeg(content)
    elif header.format == "png":
        _check_png(content)
    elif header.format == "webp" and struct.unpack_from("<I", content, 4)[0] + 8 > len(content):
        raise FrameError(f"WebP is cut short: {len(content)} bytes of {struct.unpack_from('<I', content, 4)[0] + 8}")


def _jpeg(content: bytes) -> ImageHeader:
    orientation, at = 1, 2
    while True:
        marker, at = _jpeg_marker(content, at)
        if marker in (0xD9, 0xDA):
            raise ValueError("no frame header before the scan")
        length = struct.unpack_from(">H", content, at)[0]
        if 0xC0 <= marker <= 0xCF and marker not in (0xC4, 0xC8, 0xCC):
            height, width = struct.unpack_from(">HH", content, at + 3)
            return ImageHeader("jpeg", width, height, orientation)
        if marker == 0xE1 and content[at + 2 : at + 8] == b"Exif\0\0":
            orientation = _exif_orientation(content[at + 8 : at + length])
        at += length


def _jpeg_marker(content: bytes, at: int) -> tuple[int, int]:
    """The marker at `at` (fill bytes skipped) and the offset behind it."""
    if content[at] != 0xFF:
        raise ValueError(f"no marker at byte {at}")
    while content[at] == 0xFF:
        at += 1
    return content[at], at + 1


def _check_jpeg(content: bytes) -> None:
    at = 2
    try:
        while True:
            marker, at = _jpeg_marker(content, at)
            if marker == 0xD9:
                return
            at += struct.unpack_from(">H", content, at)[0]
            if marker == 0xDA:
                at = _check_jpeg_scan(content, at)
    except (struct.error, IndexError) as exc:
        raise FrameError(f"JPEG is cut short: {len(content)} bytes and no end marker") from exc
    except ValueError as exc:
        raise FrameError(f"JPEG is damaged: {exc}") from exc


def _check_jpeg_scan(content: bytes, start: int) -> int:
    """The offset of the marker that ends the scan; ValueError where it or the restart order shows damage."""
    end = _SCAN_END.search(content, start)
    if end is None:
        raise IndexError
    marker = content[end.start() + 1]
    if marker != 0xD9 and marker not in _BETWEEN_SCANS:
        raise ValueError(f"marker {marker:#04x} at byte {end.start()} within the picture")
    restarts = [found[1][0] & 7 for found in _RESTART.finditer(content, start, end.start())]
    if any(got != count % 8 for count, got in enumerate(restarts)):
        raise ValueError("restart markers are out of order: a piece is missing")
    return end.start()


def _png(content: bytes) -> ImageHeader:
    if content[12:16] != b"IHDR":
        raise ValueError("no IHDR")
    width, height = struct.unpack_from(">II", content, 16)
    orientation, at = 1, 8
    while at + 8 <= len(content):
        length, kind = struct.unpack_from(">I4s", content, at)
        if kind == b"eXIf":
            orientation = _exif_orientation(content[at + 8 : at + 8 + length])
        at += length + 12
    return ImageHeader("png", width, height, orientation)


def _check_png(content: bytes) -> None:
    at, kind = 8, b""
    while kind != b"IEND":
        if at + 12 > len(content):
            raise FrameError(f"PNG is cut short: {len(content)} bytes and no end chunk")
        length, kind = struct.unpack_from(">I4s", content, at)
        end = at + 8 + length
        if end + 4 > len(content):
            raise FrameError(f"PNG is cut short: chunk {kind!r} needs {end + 4} bytes, the file has {len(content)}")
        if zlib.crc32(memoryview(content)[at + 4 : end]) != struct.unpack_from(">I", content, end)[0]:
            raise FrameError(f"PNG is damaged: chunk {kind!r} at byte {at} fails its checksum")
        at = end + 4


def _webp(content: bytes) -> ImageHeader:
    kind = content[12:16]
    if kind == b"VP8 ":
        width, height = struct.unpack_from("<HH", content, 26)
        return ImageHeader("webp", width & 0x3FFF, height & 0x3FFF)
    if kind == b"VP8L":
        bits = struct.unpack_from("<I", content, 21)[0]
        return ImageHeader("webp", (bits & 0x3FFF) + 1, ((bits >> 14) & 0x3FFF) + 1)
    if kind != b"VP8X":
        raise ValueError(f"unknown chunk {kind!r}")
    width, height = (int.from_bytes(content[at : at + 3], "little") + 1 for at in (24, 27))
    if len(content) < 30:
        raise ValueError("VP8X is short")
    orientation, at = 1, 12
    while at + 8 <= len(content):
        name, length = struct.unpack_from("<4sI", content, at)
        if name == b"EXIF":
            orientation = _exif_orientation(content[at + 8 : at + 8 + length].removeprefix(b"Exif\0\0"))
        at += 8 + length + (length & 1)
    return ImageHeader("webp", width, height, orientation)


def _bmp(content: bytes) -> ImageHeader:
    start, size = struct.unpack_from("<II", content, 10)
    if size == 12:
        width, height, _, bits = struct.unpack_from("<HHHH", content, 18)
        compression = 0
    else:
        width, height, _, bits, compression = struct.unpack_from("<iiHHI", content, 18)
    height = abs(height)  # negative: rows run from the top
    if compression in (0, 3) and start + (width * bits + 31) // 32 * 4 * height > len(content):
        raise ValueError("rows are missing")
    return ImageHeader("bmp", width, height)


def _tiff(content: bytes) -> ImageHeader:
    # OpenCV's TIFF decoder turns the picture itself, so the orientation is not reported
    tags: dict[int, int] = {}
    for tag, count, value in _tiff_entries(content):
        if tag not in _SIZE_TAGS:
            continue
        if tag in tags or value is None or (count > 1 and tag != _TAG_BITS):
            raise ValueError(f"tag {tag} is there twice, or of a strange type: readers may differ in what it says")
        tags[tag] = value
    if _TAG_WIDTH not in tags or _TAG_HEIGHT not in tags:
        raise ValueError("no size in the first directory")
    bits = tags.get(_TAG_BITS, 1) * tags.get(_TAG_SAMPLES, 1)
    return ImageHeader("tiff", tags[_TAG_WIDTH], tags[_TAG_HEIGHT], pixel_bytes=-(-bits // 8))


def _tiff_entries(content: bytes) -> Iterator[tuple[int, int, int | None]]:
    """Tag, count and first value of the first directory's entries; the value None where it is no SHORT, LONG or
    LONG8."""
    order = "<" if content[:2] == b"II" else ">"
    big = content[2:4] in (b"+\0", b"\0+")
    at = struct.unpack_from(order + ("Q" if big else "I"), content, 8 if big else 4)[0]
    count = struct.unpack_from(order + ("Q" if big else "H"), content, at)[0]
    at += 8 if big else 2
    entry, value_at = (20, 12) if big else (12, 8)
    word = "Q" if big else "I"
    for start in range(at, at + min(count, _MAX_TAGS) * entry, entry):
        tag, kind, values = struct.unpack_from(order + "HH" + word, content, start)
        code = {3: "H", 4: "I", 16: "Q"}.get(kind)
        value = None
        if code is not None:
            fits = values * struct.calcsize(order + code) <= struct.calcsize(order + word)
            where = start + value_at if fits else struct.unpack_from(order + word, content, start + value_at)[0]
            value = struct.unpack_from(order + code, content, where)[0] if tag in _READ_TAGS else 0
        yield tag, values, value


def _exif_orientation(exif: bytes) -> int:
    """Orientation 1..8 of an Exif block (a TIFF without pictures); 1 where it is absent or damaged."""
    if not exif.startswith(_TIFF_MAGIC):
        return 1
    try:
        found = [value for tag, _, value in _tiff_entries(exif) if tag == _TAG_ORIENTATION and value is not None]
        orientation = found[-1] if found else 1
    except struct.error:
        return 1
    return orientation if 1 <= orientation <= 8 else 1


def _pnm(content: bytes) -> ImageHeader:
    found = re.match(rb"P[1-6](?:\s|#[^\n]*\n)+(\d{1,9})(?:\s|#[^\n]*\n)+(\d{1,9})\s", content)
    if found is None:
        raise ValueError("no size")
    return ImageHeader("pnm", int(found[1]), int(found[2]))
