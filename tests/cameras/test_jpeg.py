"""JPEG: what a decoder would paint over is refused; what is whole is read as OpenCV reads it."""

from __future__ import annotations

import io
import random
from collections.abc import Callable

import cv2
import numpy as np
import numpy.typing as npt
import pytest
from PIL import Image as Pillow

from edge_agent.cameras.image_file import decode_image
from edge_agent.cameras.jpeg import SPARE_BYTES, SpareBytes, decode_jpeg
from edge_agent.errors import FrameError

Picture = npt.NDArray[np.uint8]
BASELINE = (cv2.IMWRITE_JPEG_QUALITY, 90)
PROGRESSIVE = (*BASELINE, cv2.IMWRITE_JPEG_PROGRESSIVE, 1)
RESTARTS = (*BASELINE, cv2.IMWRITE_JPEG_RST_INTERVAL, 8)
KINDS = pytest.mark.parametrize(
    "params", [BASELINE, PROGRESSIVE, RESTARTS], ids=["baseline", "progressive", "restarts"]
)


def label() -> Picture:
    """A picture with edges everywhere, as a label has, so that damage shows."""
    image = np.full((240, 320, 3), 210, np.uint8)
    rng = np.random.default_rng(3)
    for row in range(12, 236, 22):
        cv2.putText(image, "".join(rng.choice(list("LOTEXP0123456789"), 18)), (4, row), 2, 0.6, (20, 30, 40), 1)
    return image


def encoded(params: tuple[int, ...] = BASELINE, image: Picture | None = None) -> bytes:
    ok, content = cv2.imencode(".jpg", label() if image is None else image, list(params))
    assert ok
    return content.tobytes()


def by_opencv(content: bytes) -> Picture:
    return np.asarray(cv2.imdecode(np.frombuffer(content, np.uint8), cv2.IMREAD_UNCHANGED), np.uint8)


@KINDS
def test_a_whole_jpeg_is_the_picture_that_opencv_gives(params: tuple[int, ...]) -> None:
    content = encoded(params)
    assert np.array_equal(decode_image(content, 10**6), by_opencv(content))
    grey = encoded(params, cv2.cvtColor(label(), cv2.COLOR_BGR2GRAY))
    assert np.array_equal(decode_image(grey, 10**6)[:, :, 0], by_opencv(grey))


def overwritten(content: bytes, rng: random.Random) -> bytes:
    """60 bytes within the picture's scans replaced."""
    at = rng.randrange(content.index(b"\xff\xda") + 14, len(content) - 70)
    return content[:at] + rng.randbytes(60).replace(b"\xff", b"\x7f") + content[at + 60 :]


def cut_out(content: bytes, rng: random.Random) -> bytes:
    """400 bytes within the picture's scans missing."""
    at = rng.randrange(content.index(b"\xff\xda") + 14, len(content) - 410)
    return content[:at] + content[at + 400 :]


@KINDS
@pytest.mark.parametrize("damage", [overwritten, cut_out])
def test_damage_in_the_middle_is_mostly_noticed(
    params: tuple[int, ...], damage: Callable[[bytes, random.Random], bytes]
) -> None:
    """Some damage gives a valid stream of another picture: no decoder can tell. OpenCV takes nearly all for good."""
    content, rng = encoded(params), random.Random(7)
    wrong = noticed = by_opencv_too = 0
    for _ in range(40):
        damaged = damage(content, rng)
        shown = cv2.imdecode(np.frombuffer(damaged, np.uint8), cv2.IMREAD_COLOR)
        if shown is not None and (abs(shown.astype(int) - by_opencv(content)) > 40).sum() < 200:
            continue
        wrong += 1
        by_opencv_too += shown is None
        try:
            decode_image(damaged, 10**6, spare_bytes=0)
        except FrameError as exc:
            assert "damaged" in str(exc)
            noticed += 1
    assert wrong > 10
    assert noticed >= wrong * 0.75 > by_opencv_too


@pytest.mark.parametrize("extra", [b"\xa1\x55" * 4, b"\xa1\x55" * 6])
def test_a_few_bytes_behind_the_picture_are_a_question_for_the_caller(extra: bytes) -> None:
    content = encoded()
    padded = content[:-2] + extra + content[-2:]
    assert np.array_equal(decode_image(padded, 10**6), by_opencv(content))
    with pytest.raises(SpareBytes, match="extraneous bytes before marker 0xd9"):
        decode_image(padded, 10**6, spare_bytes=0)


def test_padding_behind_the_picture_is_no_damage() -> None:
    content = encoded()
    padded = content[:-2] + b"\x00" * 500 + content[-2:]
    assert np.array_equal(decode_image(padded, 10**6, spare_bytes=0), by_opencv(content))


def test_more_than_padding_behind_the_picture_is_damage() -> None:
    content = encoded()
    with pytest.raises(FrameError, match="extraneous bytes"):
        decode_image(content[:-2] + b"\xa1\x13" * SPARE_BYTES + content[-2:], 10**6)


def test_what_is_not_decoded_here_is_left_to_opencv() -> None:
    assert decode_jpeg(b"\xff\xd8 no jpeg") is None
    out = io.BytesIO()
    Pillow.fromarray(label()[:, :, ::-1]).convert("CMYK").save(out, "JPEG", quality=95)
    assert decode_jpeg(out.getvalue()) is None
    assert np.abs(decode_image(out.getvalue(), 10**6).astype(int) - label()).mean() < 20


def test_nothing_is_printed_for_a_damaged_picture(capfd: pytest.CaptureFixture[str]) -> None:
    """A camera behind a bad cable would else fill the log, a line a frame, past every limit."""
    content, rng = encoded(), random.Random(7)
    refused = 0
    for _ in range(20):
        try:
            decode_image(overwritten(content, rng), 10**6, spare_bytes=0)
        except FrameError:
            refused += 1
    assert refused > 5
    decode_image(content[:-2] + b"\xa1\x55" * 4 + content[-2:], 10**6)
    assert capfd.readouterr() == ("", "")
