"""Pixels: every array that OpenCV can hand over is read right or refused by name."""

from __future__ import annotations

import tracemalloc
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from edge_agent.cameras.pixels import to_bgr
from edge_agent.errors import FrameError

MAX_PIXELS = 1_000_000


def bgr(height: int = 5, width: int = 7) -> npt.NDArray[np.uint8]:
    rng = np.random.default_rng(1)
    return rng.integers(0, 256, (height, width, 3)).astype(np.uint8)


def converted(array: object, bit_depth: int | None = None) -> npt.NDArray[np.uint8]:
    image = to_bgr(array, MAX_PIXELS, bit_depth)
    assert image.dtype == np.uint8
    assert image.ndim == 3
    assert image.shape[2] == 3
    assert image.flags.c_contiguous
    return image


def test_bgr_picture_passes_without_a_copy() -> None:
    picture = bgr()
    assert converted(picture) is picture


@pytest.mark.parametrize("shape", [(5, 7), (5, 7, 1)])
def test_grey_picture_gets_three_equal_channels(shape: tuple[int, ...]) -> None:
    grey = np.arange(35, dtype=np.uint8).reshape(shape)
    image = converted(grey)
    assert image.shape == (5, 7, 3)
    for channel in range(3):
        assert np.array_equal(image[:, :, channel], grey.reshape(5, 7))


def test_red_stays_in_the_third_channel() -> None:
    red = np.zeros((4, 4, 4), np.uint8)
    red[:] = (0, 0, 255, 255)
    assert converted(red)[0, 0].tolist() == [0, 0, 255]


def test_see_through_pixels_are_laid_on_grey_128() -> None:
    picture = np.zeros((1, 4, 4), np.uint8)
    picture[0] = [(255, 255, 255, 0), (0, 0, 0, 0), (255, 255, 255, 255), (0, 0, 200, 128)]
    assert converted(picture)[0].tolist() == [[128] * 3, [128] * 3, [255] * 3, [64, 64, 164]]


def test_large_see_through_picture_is_composited_alike_in_every_strip() -> None:
    picture = np.tile(np.array([[[10, 20, 30, 51]]], np.uint8), (700, 3, 1))
    image = converted(picture)
    assert np.unique(image.reshape(-1, 3), axis=0).tolist() == [[104, 106, 108]]


def test_every_colour_of_every_opacity_is_rounded_to_the_nearest() -> None:
    colour, opacity = np.meshgrid(np.arange(256), np.arange(256))
    image = converted(np.dstack([colour, colour, colour, opacity]).astype(np.uint8))
    assert np.array_equal(image[:, :, 0], np.floor((colour * opacity + 128 * (255 - opacity)) / 255 + 0.5))


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_large_float_picture_needs_little_memory_beside_itself(dtype: type[np.floating[Any]]) -> None:
    picture: npt.NDArray[Any] = np.linspace(0, 1, 3_000_000).reshape(1000, 1000, 3).astype(dtype)
    tracemalloc.start()
    converted(picture)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 5_000_000


def test_alpha_that_is_zero_everywhere_is_padding() -> None:
    picture = np.dstack([bgr(), np.zeros((5, 7), np.uint8)])
    assert np.array_equal(converted(picture), bgr())


def test_sixteen_bits_are_scaled_not_cut() -> None:
    grey = np.array([[0, 257, 128 * 257, 65535]], np.uint16)
    assert converted(grey)[0, :, 0].tolist() == [0, 1, 128, 255]
    colour = bgr().astype(np.uint16) * 257
    assert np.array_equal(converted(colour), bgr())


def test_declared_bit_depth_decides_what_white_is() -> None:
    twelve_bits = np.array([[0, 2048, 4095, 5000]], np.uint16)
    assert converted(twelve_bits, bit_depth=12)[0, :, 0].tolist() == [0, 128, 255, 255]


def test_sixteen_bit_alpha_is_laid_on_grey_too() -> None:
    picture = np.zeros((1, 2, 4), np.uint16)
    picture[0] = [(65535, 65535, 65535, 0), (65535, 0, 0, 65535)]
    assert converted(picture)[0].tolist() == [[128] * 3, [255, 0, 0]]


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_floats_in_unit_range_are_scaled_to_255(dtype: type) -> None:
    assert converted(np.array([[0, 0.5, 1]], dtype))[0, :, 0].tolist() == [0, 128, 255]


def test_bool_is_black_and_white() -> None:
    assert converted(np.array([[True, False]]))[0, :, 0].tolist() == [255, 0]


def test_foreign_byte_order_is_read_right() -> None:
    assert converted(np.array([[0, 65535, 257]], ">u2"))[0, :, 0].tolist() == [0, 255, 1]
    assert converted(np.array([[0, 1]], ">f4"))[0, :, 0].tolist() == [0, 255]


@pytest.mark.parametrize(
    "view",
    [
        lambda p: p[:, ::-1],
        lambda p: p[::-1],
        lambda p: p[:, :, ::-1],
        lambda p: p[::2, ::3],
        lambda p: p.transpose(1, 0, 2),
        np.asfortranarray,
        lambda p: np.broadcast_to(p[:1], p.shape),
    ],
    ids=["mirrored", "upside_down", "rgb_view", "every_other", "transposed", "fortran", "broadcast"],
)
def test_views_with_odd_strides_are_read_right(view) -> None:  # type: ignore[no-untyped-def]
    for picture in (bgr(), bgr().astype(np.uint16) * 257):
        odd = view(picture)
        expected = (odd // 257).astype(np.uint8) if odd.dtype == np.uint16 else odd
        assert np.array_equal(converted(odd), expected)


def test_read_only_picture_is_taken() -> None:
    picture = bgr()
    picture.flags.writeable = False
    assert np.array_equal(converted(picture), picture)


@pytest.mark.parametrize(
    ("array", "said"),
    [
        (None, "NoneType"),
        ([[1, 2]], "list"),
        (np.uint8(3), "uint8"),
        (np.zeros(5, np.uint8), "shape (5,)"),
        (np.zeros((1, 2, 3, 3), np.uint8), "shape (1, 2, 3, 3)"),
        (np.zeros((0, 5, 3), np.uint8), "empty (5x0)"),
        (np.zeros((5, 0), np.uint8), "empty (0x5)"),
        (np.zeros((5, 5, 0), np.uint8), "0 channels"),
        (np.zeros((5, 5, 2), np.uint8), "2 channels (raw YUV? set pixel_format"),
        (np.zeros((5, 5, 5), np.uint8), "5 channels"),
        (np.zeros((5, 5), np.int8), "int8"),
        (np.zeros((5, 5), np.int16), "int16"),
        (np.zeros((5, 5), np.int32), "int32"),
        (np.zeros((5, 5), np.uint32), "uint32"),
        (np.zeros((5, 5), np.uint64), "uint64"),
        (np.zeros((5, 5, 3), np.complex64), "complex64"),
        (np.zeros((5, 5, 3), object), "object"),
        (np.full((5, 5), "x"), "<U1"),
        (np.full((5, 5), np.nan, np.float32), "not finite"),
        (np.array([[0, np.inf]], np.float32), "not finite"),
        (np.array([[0, 255]], np.float32), "values 0..255; expected 0..1"),
        (np.array([[-0.5, 1]], np.float64), "values -0.5..1; expected 0..1"),
        (np.zeros((1001, 1000), np.uint8), "1000x1001 = 1001000 pixels; at most 1000000"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_anything_else_is_refused_by_name(array: object, said: str) -> None:
    with pytest.raises(FrameError) as refusal:
        to_bgr(array, MAX_PIXELS)
    assert said in str(refusal.value)
