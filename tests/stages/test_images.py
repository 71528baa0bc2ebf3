"""Images: sizes that the detector can take, crops that show the text upright."""

from __future__ import annotations

import cv2
import numpy as np
import pytest

from edge_agent.records import Quad
from edge_agent.stages.images import detector_size, resized, warp_quad, within


@pytest.mark.parametrize(
    ("width", "height", "expected"),
    [
        (1280, 720, (1312, 736)),  # what the models' own authors feed for this frame
        (640, 480, (992, 736)),
        (4000, 3000, (1984, 1504)),  # the longer side is capped before rounding
        (12000, 90, (1984, 32)),
        (5, 5, (736, 736)),
        (1, 3000, (32, 1984)),
    ],
)
def test_detector_size_meets_both_sides_and_the_multiple(width: int, height: int, expected: tuple[int, int]) -> None:
    assert detector_size(width, height, 736, 2000, 32) == expected


def test_resize_to_the_same_size_is_the_same_array() -> None:
    image = np.zeros((8, 8, 3), np.uint8)
    assert resized(image, 8, 8) is image


def test_warp_takes_a_turned_text_upright() -> None:
    upright = np.full((20, 60, 3), 255, np.uint8)
    upright[:, :30] = (10, 20, 200)  # left half red, in BGR
    frame = np.zeros((100, 100, 3), np.uint8)
    frame[10:70, 20:40] = cv2.rotate(upright, cv2.ROTATE_90_CLOCKWISE)  # now reads downwards
    quad = Quad(np.array([[40, 10], [40, 70], [20, 70], [20, 10]], np.float32))
    crop = warp_quad(frame, quad, 60, 20)
    assert np.abs(crop[2:-2, 2:27].astype(int) - (10, 20, 200)).max() <= 2
    assert crop[2:-2, 33:-2].min() >= 250


def test_warp_repeats_the_edge_outside_the_frame() -> None:
    frame = np.full((10, 10, 3), 77, np.uint8)
    quad = Quad(np.array([[-5, -5], [15, -5], [15, 15], [-5, 15]], np.float32))
    assert (warp_quad(frame, quad, 20, 20) == 77).all()


def test_warp_of_a_large_text_averages_thin_strokes() -> None:
    frame = np.zeros((480, 480, 3), np.uint8)
    frame[:, ::8] = 255  # stripes of 1 px every 8: a plain sample every 10 px would hit or miss them
    quad = Quad(np.array([[0, 0], [480, 0], [480, 480], [0, 480]], np.float32))
    crop = warp_quad(frame, quad, 48, 48)
    assert abs(float(crop.mean()) - 255 / 8) < 6
    assert crop.std() < 30


def test_warp_starts_from_whole_pixels_at_the_texts_own_size() -> None:
    frame = np.random.default_rng(0).integers(0, 255, (60, 120, 3)).astype(np.uint8)
    quad = Quad(np.array([[10.3, 9.6], [90.4, 9.7], [90.2, 34.4], [9.8, 34.3]], np.float32))
    assert (warp_quad(frame, quad, 80, 24) == frame[10:34, 10:90]).all()


@pytest.mark.parametrize("side", [0.2, 1, 3])
def test_warp_of_a_text_smaller_than_a_pixel_is_a_crop_all_the_same(side: float) -> None:
    frame = np.full((20, 20, 3), 50, np.uint8)
    quad = Quad(np.array([[5, 5], [5 + side, 5], [5 + side, 5 + side], [5, 5 + side]], np.float32))
    assert warp_quad(frame, quad, 32, 48).shape == (48, 32, 3)


@pytest.mark.parametrize("length", [33_000, 66_000])
@pytest.mark.parametrize("turned", [False, True])
def test_warp_takes_from_a_frame_longer_than_16_bits_count(length: int, turned: bool) -> None:
    frame = np.full((60, length, 3), 40, np.uint8)
    frame[10:40, length - 500 : length - 400] = (10, 20, 200)
    points = np.array([[length - 500, 10], [length - 400, 10], [length - 400, 40], [length - 500, 40]], np.float32)
    if turned:
        frame, points = np.ascontiguousarray(frame.swapaxes(0, 1)), points[:, ::-1]
    crop = warp_quad(frame, Quad(points), 100, 30)
    assert crop.shape == (30, 100, 3)
    assert (crop == (10, 20, 200)).all()


def test_warp_takes_a_text_longer_than_16_bits_count() -> None:
    frame = np.zeros((60, 70_000, 3), np.uint8)
    frame[:, 35_000:] = 200
    quad = Quad(np.array([[0, 0], [69_999, 0], [69_999, 59], [0, 59]], np.float32))
    crop = warp_quad(frame, quad, 30_000, 48)
    assert crop.shape == (48, 30_000, 3)
    assert (crop[:, :14_990] == 0).all()
    assert (crop[:, 15_010:] == 200).all()


def test_part_of_a_long_frame_is_warped_as_the_whole_would_be() -> None:
    picture = np.random.default_rng(0).integers(0, 255, (60, 300, 3)).astype(np.uint8)
    frame = np.concatenate([picture, np.zeros((60, 40_000, 3), np.uint8)], axis=1)
    whole = np.concatenate([picture, np.zeros((60, 100, 3), np.uint8)], axis=1)
    points = np.array([[0, 5], [80, 12], [76, 40], [-4, 33]], np.float32)
    for shift in (-3, 100):
        quad = Quad(points + np.array([shift, 0], np.float32))
        difference = warp_quad(frame, quad, 80, 24).astype(int) - warp_quad(whole, quad, 80, 24)
        assert np.abs(difference).max() <= 8  # of noise from 0 to 255


def test_image_within_its_bound_stays_and_a_larger_one_is_made_smaller() -> None:
    image = np.zeros((300, 400, 3), np.uint8)
    assert within(image, 120_000) == (image, 1.0)
    small, times = within(image, 30_000)
    assert small.shape == (150, 200, 3) and times == 2.0
    assert within(np.zeros((1, 9000, 3), np.uint8), 100)[0].shape[0] == 1
    assert within(image, 14_000)[1] == 3.0, "2.93 times, where whole pixels are averaged at little loss"
    assert 2.4 < within(image, 20_000)[1] < 2.5, "three times would lose too much"


def test_a_very_large_image_is_made_smaller_without_aliasing() -> None:
    stripes = np.zeros((6000, 6000, 3), np.uint8)
    stripes[:, ::2] = 200  # finer than what is made, side by side
    stripes[4000:] = 100
    small = resized(stripes, 500, 600)
    assert np.unique(small[:400]).tolist() == [100]
    assert np.unique(small[400:]).tolist() == [100]
    pages = np.repeat(np.arange(10, 250, 2, dtype=np.uint8), 50)[:, None, None]
    made = resized(np.ascontiguousarray(np.broadcast_to(pages, (6000, 4500, 3))), 450, 120)
    assert np.abs(made[:, 0, 0].astype(int) - np.arange(10, 250, 2)).max() <= 2, "no row is moved"
