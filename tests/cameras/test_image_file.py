"""Image files: upright, whole, sized before decoding; everything else is refused with the file's name."""

from __future__ import annotations

import io
import os
import resource
import struct
import time
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import numpy.typing as npt
import pytest
from PIL import Image as Pillow

from edge_agent.cameras.image_file import decode_image, is_image, read_image_file
from edge_agent.cameras.image_header import read_header
from edge_agent.errors import FrameError

MAX_PIXELS = 50_000_000
Picture = npt.NDArray[Any]


def picture(height: int = 48, width: int = 80) -> Picture:
    """A picture of smooth colour with one red corner, so that lossy formats keep it and turning shows."""
    y, x = np.mgrid[0:height, 0:width]
    image = np.dstack([y * 200 // height, x * 200 // width, np.full((height, width), 90)]).astype(np.uint8)
    image[: height // 3, : width // 3] = (0, 0, 255)
    return image


def noise(height: int = 240, width: int = 320) -> Picture:
    return np.random.default_rng(0).integers(0, 256, (height, width, 3)).astype(np.uint8)


def encoded(image: Picture, suffix: str, params: tuple[int, ...] = ()) -> bytes:
    ok, content = cv2.imencode(suffix, image, list(params))
    assert ok
    return content.tobytes()


def with_exif(image: Picture, kind: str, orientation: int) -> bytes:
    exif = Pillow.Exif()
    exif[0x0112] = orientation
    out = io.BytesIO()
    options: dict[str, Any] = {"lossless": True} if kind == "WEBP" else {"quality": 95} if kind == "JPEG" else {}
    Pillow.fromarray(image[:, :, ::-1]).save(out, kind, exif=exif, **options)
    return out.getvalue()


@pytest.mark.parametrize("suffix", [".png", ".bmp", ".webp", ".tiff", ".ppm", ".jpg"])
def test_each_format_gives_the_picture_it_holds(suffix: str) -> None:
    params = (cv2.IMWRITE_WEBP_QUALITY, 101) if suffix == ".webp" else ()
    image = decode_image(encoded(picture(), suffix, params), MAX_PIXELS)
    if suffix == ".jpg":
        assert np.abs(image.astype(int) - picture()).mean() < 3
    else:
        assert np.array_equal(image, picture())


@pytest.mark.parametrize("suffix", [".png", ".bmp", ".webp", ".tiff", ".ppm", ".jpg"])
def test_header_tells_the_size_without_decoding(suffix: str) -> None:
    header = read_header(encoded(picture(48, 80), suffix))
    assert (header.width_px, header.height_px) == (80, 48)


@pytest.mark.parametrize("save", [{"format": "PNG", "optimize": True}, {"format": "WEBP", "quality": 40}])
@pytest.mark.parametrize("mode", ["L", "LA", "P", "1", "RGBA"])
def test_palette_grey_and_alpha_files_are_read(mode: str, save: dict[str, Any]) -> None:
    out = io.BytesIO()
    Pillow.fromarray(picture()[:, :, ::-1]).convert(mode).save(out, **save)
    assert decode_image(out.getvalue(), MAX_PIXELS).shape == (48, 80, 3)


UPRIGHT: dict[int, Callable[[Picture], Picture]] = {
    1: lambda p: p,
    2: np.fliplr,
    3: lambda p: np.rot90(p, 2),
    4: np.flipud,
    5: lambda p: np.rot90(np.fliplr(p)),
    6: lambda p: np.rot90(p, 3),
    7: lambda p: np.rot90(np.fliplr(p), 3),
    8: np.rot90,
}


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "WEBP", "TIFF"])
@pytest.mark.parametrize("orientation", range(1, 9))
def test_exif_orientation_is_undone(kind: str, orientation: int) -> None:
    image = decode_image(with_exif(picture(), kind, orientation), MAX_PIXELS)
    expected = UPRIGHT[orientation](picture())
    assert image.shape == expected.shape
    assert np.abs(image.astype(int) - expected).mean() < 4


def test_exif_orientation_in_big_endian_and_damaged_exif() -> None:
    jpeg = encoded(picture(), ".jpg")
    for exif, shape in [
        (b"MM\0*\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0\x06\0\0\0\0\0\0", (80, 48, 3)),
        (b"MM\0*\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0\x63\0\0\0\0\0\0", (48, 80, 3)),  # orientation 99
        (b"MM\0*\xff\xff\xff\xff", (48, 80, 3)),  # the directory lies outside
    ]:
        segment = b"Exif\0\0" + exif
        content = jpeg[:2] + b"\xff\xe1" + struct.pack(">H", len(segment) + 2) + segment + jpeg[2:]
        assert decode_image(content, MAX_PIXELS).shape == shape


def tiff(*entries: tuple[int, int, int, int], beyond: bytes = b"") -> bytes:
    """A TIFF's first directory, (tag, type, count, value) each; an offset counts from the end of the directory."""
    head = b"II*\0\x08\0\0\0" + struct.pack("<H", len(entries))
    end = len(head) + 12 * len(entries) + 4
    for tag, kind, count, value in entries:
        content = struct.pack("<I", value + end if count > 2 else value)
        head += struct.pack("<HHI", tag, kind, count) + content
    return head + bytes(4) + beyond


@pytest.mark.parametrize(
    "entries",
    [
        [(256, 3, 1, 40_000), (256, 3, 1, 10), (257, 3, 1, 40_000), (257, 3, 1, 10)],
        [(256, 9, 1, 40_000), (256, 3, 1, 10), (257, 3, 1, 10)],
        [(256, 3, 2, 10), (257, 3, 1, 10)],
        [(256, 3, 1, 10), (257, 3, 1, 10), (277, 3, 1, 4), (277, 3, 1, 1)],
    ],
    ids=["twice", "of another type", "of two values", "samples twice"],
)
def test_tiff_in_whose_size_readers_may_differ_is_refused(entries: list[tuple[int, int, int, int]]) -> None:
    with pytest.raises(FrameError, match="damaged within its header"):
        decode_image(tiff(*entries), MAX_PIXELS)


def test_pixels_of_many_bytes_count_as_more_before_they_are_decoded() -> None:
    deep = encoded(np.zeros((30, 40, 3), np.float64), ".tiff")
    assert decode_image(deep, 3 * 1200).shape == (30, 40, 3)
    with pytest.raises(FrameError, match="40x30 pixels of 24 bytes; expected at most 8"):
        decode_image(deep, 3 * 1200 - 1)
    size = [(256, 3, 1, 30_000), (257, 3, 1, 1_000), (258, 3, 4, 0), (277, 3, 1, 4)]
    with pytest.raises(FrameError, match="30000x1000 pixels of 32 bytes"):
        decode_image(tiff(*size, beyond=struct.pack("<4H", 64, 64, 64, 64)), 50_000_000)


def test_see_through_text_is_readable_whether_white_or_black(tmp_path: Path) -> None:
    for ink in (0, 255):
        text = np.zeros((40, 120, 4), np.uint8)
        cv2.putText(text, "LOT 7", (5, 30), cv2.FONT_HERSHEY_SIMPLEX, 1, (ink, ink, ink, 255), 2)
        text[text[:, :, 3] == 0, :3] = ink  # the see-through part has the text's own colour
        (tmp_path / "text.png").write_bytes(encoded(text, ".png"))
        image = read_image_file(tmp_path / "text.png", MAX_PIXELS)
        assert image[0, 0].tolist() == [128] * 3
        assert np.abs(image.astype(int) - 128).max() >= 127, "the text has vanished"


def test_sixteen_bit_png_is_scaled_to_eight() -> None:
    image = decode_image(encoded(picture().astype(np.uint16) * 257, ".png"), MAX_PIXELS)
    assert np.array_equal(image, picture())


def test_bmp_with_unused_fourth_byte_is_not_see_through() -> None:
    pixels = bytes([10, 20, 30, 0] * 8)
    head = struct.pack("<IiiHHIIiiII", 40, 4, -2, 1, 32, 0, len(pixels), 0, 0, 0, 0)
    content = b"BM" + struct.pack("<IHHI", 54 + len(pixels), 0, 0, 54) + head + pixels
    assert decode_image(content, MAX_PIXELS)[0, 0].tolist() == [10, 20, 30]


def one_bit_png(side_px: int) -> bytes:
    """A side x side black 1-bit PNG: a handful of bytes for any number of pixels."""

    def chunk(kind: bytes, body: bytes) -> bytes:
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    deflate = zlib.compressobj(9)
    row = b"\0" * (1 + side_px // 8)
    rows = b"".join(deflate.compress(row * 1000) for _ in range(side_px // 1000)) + deflate.flush()
    header = struct.pack(">IIBBBBB", side_px, side_px, 1, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", rows) + chunk(b"IEND", b"")


def test_forty_thousand_squared_png_is_refused_before_decoding(tmp_path: Path) -> None:
    path = tmp_path / "huge.png"
    path.write_bytes(one_bit_png(40_000))
    assert path.stat().st_size < 300_000
    before_kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    started = time.process_time()
    with pytest.raises(FrameError, match=r"huge\.png.*40000x40000 = 1600000000 pixels; at most 50000000"):
        read_image_file(path, MAX_PIXELS)
    assert time.process_time() - started < 0.5, "the picture was decoded before it was refused"
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before_kib < 50_000


@pytest.mark.parametrize("suffix", [".png", ".bmp", ".webp", ".tiff", ".ppm", ".jpg"])
def test_pixel_cap_holds_for_every_format(suffix: str) -> None:
    with pytest.raises(FrameError, match="80x48 = 3840 pixels; at most 3839"):
        decode_image(encoded(picture(), suffix), 3839)
    assert decode_image(encoded(picture(), suffix), 3840).shape == (48, 80, 3)


def test_size_claimed_by_a_header_alone_costs_nothing() -> None:
    for content in (
        b"\xff\xd8\xff\xc0\0\x11\x08\xff\xff\xff\xff\x03",  # JPEG
        b"RIFF\x16\0\0\0WEBPVP8X\x0a\0\0\0\0\0\0\0\xff\xff\xff\xff\xff\xff",
        b"P5 99999 99999 255\n",
        b"II*\0\x08\0\0\0\x02\0\0\x01\x04\0\x01\0\0\0\xff\xff\xff\x7f\x01\x01\x04\0\x01\0\0\0\xff\xff\xff\x7f",
    ):
        with pytest.raises(FrameError, match="pixels; at most"):
            decode_image(content, MAX_PIXELS)


@pytest.mark.parametrize("suffix", [".png", ".bmp", ".webp", ".tiff", ".ppm", ".jpg"])
@pytest.mark.parametrize("kept", [0.0, 0.001, 0.1, 0.5, 0.95])
def test_truncated_file_is_refused(suffix: str, kept: float) -> None:
    content = encoded(noise(), suffix)
    with pytest.raises(FrameError):
        decode_image(content[: int(len(content) * kept)], MAX_PIXELS)


def test_jpeg_that_lacks_only_its_last_byte_is_refused() -> None:
    with pytest.raises(FrameError, match="cut short"):
        decode_image(encoded(noise(), ".jpg")[:-1], MAX_PIXELS)


def test_progressive_and_restarted_jpegs_and_trailing_bytes_are_whole() -> None:
    for params in ((cv2.IMWRITE_JPEG_PROGRESSIVE, 1), (cv2.IMWRITE_JPEG_RST_INTERVAL, 4)):
        content = encoded(noise(), ".jpg", params)
        assert decode_image(content, MAX_PIXELS).shape == (240, 320, 3)
        assert decode_image(content + b"\0" * 100, MAX_PIXELS).shape == (240, 320, 3)


def test_jpeg_with_a_piece_missing_between_restart_markers_is_refused() -> None:
    content = encoded(noise(), ".jpg", (cv2.IMWRITE_JPEG_RST_INTERVAL, 4))
    first, second = content.index(b"\xff\xd2"), content.index(b"\xff\xd4")
    with pytest.raises(FrameError, match="a piece is missing"):
        decode_image(content[:first] + content[second:], MAX_PIXELS)


def test_jpeg_with_foreign_bytes_in_the_middle_is_refused() -> None:
    content = bytearray(encoded(noise(), ".jpg"))
    middle = len(content) // 2
    content[middle : middle + 60] = b"\xff\x01" * 30
    with pytest.raises(FrameError, match="within the picture"):
        decode_image(bytes(content), MAX_PIXELS)


def test_png_with_flipped_bits_is_refused() -> None:
    content = bytearray(encoded(noise(), ".png"))
    content[len(content) // 2] ^= 0x55
    with pytest.raises(FrameError, match="checksum"):
        decode_image(bytes(content), MAX_PIXELS)


def test_noise_never_crashes_the_reader() -> None:
    rng = np.random.default_rng(7)
    sources = [encoded(noise(24, 32), suffix) for suffix in (".png", ".bmp", ".webp", ".tiff", ".ppm", ".jpg")]
    for content in sources:
        for _ in range(60):
            damaged = bytearray(content)
            for at in rng.integers(0, len(content), 4):
                damaged[at] = rng.integers(0, 256)
            try:
                image = decode_image(bytes(damaged), 100_000)
            except FrameError:
                continue
            assert image.dtype == np.uint8
            assert image.shape[2] == 3


@pytest.mark.parametrize(
    ("content", "said"),
    [(b"", "0 bytes"), (b"hello, world", "begins with 68 65 6c 6c"), (b"\x89PNG\r\n\x1a\n", "within its header")],
)
def test_what_is_no_image_is_refused_by_name(tmp_path: Path, content: bytes, said: str) -> None:
    path = tmp_path / "strange.png"
    path.write_bytes(content)
    with pytest.raises(FrameError, match="'strange.png'") as refusal:
        read_image_file(path, MAX_PIXELS)
    assert said in str(refusal.value)


def test_missing_file_and_folder_are_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(FrameError, match="'nowhere.png' cannot be read: No such file"):
        read_image_file(tmp_path / "nowhere.png", MAX_PIXELS)
    with pytest.raises(FrameError, match="cannot be read: Is a directory"):
        read_image_file(tmp_path, MAX_PIXELS)


@pytest.mark.parametrize("name", ["pipe.png", "pipe"])
def test_pipe_is_refused_and_not_waited_for(tmp_path: Path, name: str) -> None:
    os.mkfifo(tmp_path / name)
    with pytest.raises(FrameError, match=f"'{name}': is a pipe, socket or device; expected a file"):
        read_image_file(tmp_path / name, 10_000)
    assert is_image(tmp_path / name) == name.endswith(".png"), "an ending is enough, and nothing else is opened"


def test_file_of_too_many_bytes_is_not_even_read(tmp_path: Path) -> None:
    path = tmp_path / "sparse.png"
    with path.open("wb") as file:
        file.truncate(10**12)
    with pytest.raises(FrameError, match="too many for an image"):
        read_image_file(path, MAX_PIXELS)
