"""Diversity: what counts as seen before, and which of many frames are kept."""

from __future__ import annotations

from collections.abc import Callable

import cv2
import numpy as np
import pytest

from edge_agent.calibrate.diversity import Gallery, choose, dhash, distance, impression_of
from tests.calibrate.made_frames import Image, jpeg, label_frame


def noisy(image: Image, sigma: float, seed: int = 0) -> Image:
    noise = np.random.default_rng(seed).normal(0, sigma, image.shape)
    return np.clip(image + noise, 0, 255).astype(np.uint8)


def shifted(image: Image, columns: int) -> Image:
    return np.roll(image, columns, axis=1)


def test_hash_has_64_bits_and_tells_scenes_apart() -> None:
    hashes = [dhash(label_frame(number)) for number in (0, 2, 3, 4)]
    assert all(0 <= value < 1 << 64 for value in hashes)
    assert min(distance(hashes[0], other) for other in hashes[1:]) > 6


def test_hash_of_a_flat_background_does_not_toss_coins_for_noise() -> None:
    flat = np.full((480, 640, 3), 90, np.uint8)
    assert [distance(dhash(noisy(flat, 6, seed)), dhash(flat)) for seed in range(3)] == [0, 0, 0]


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda image: noisy(image, 5), id="noise"),
        pytest.param(lambda image: cv2.imdecode(np.frombuffer(jpeg(image, 50), np.uint8), 1), id="jpeg"),
        pytest.param(lambda image: cv2.convertScaleAbs(image, alpha=0.9), id="less light"),
        pytest.param(lambda image: shifted(image, 1) // 2 + image // 2, id="half a pixel of shake"),
    ],
)
def test_same_scene_again_is_a_near_duplicate(change: Callable[[Image], Image]) -> None:
    gallery = Gallery()
    assert gallery.admits(impression_of(label_frame(1)))
    assert not gallery.admits(impression_of(change(label_frame(1))))
    assert len(gallery) == 1


def test_same_label_with_another_serial_number_is_another_frame() -> None:
    image = label_frame(3).copy()
    other = image.copy()
    other[200:216, 200:300] = np.where(other[200:216, 200:300] > 128, 20, 230)
    assert distance(dhash(image), dhash(other)) <= 6, "the coarse hash alone would drop it"
    gallery = Gallery()
    assert gallery.admits(impression_of(image))
    assert gallery.admits(impression_of(other))


def test_gallery_holds_more_than_it_had_room_for_at_first() -> None:
    gallery = Gallery()
    random = np.random.default_rng(0)
    frames = [cv2.resize(random.integers(0, 256, (9, 16, 3), np.uint8), (160, 90)) for _ in range(150)]
    assert all(gallery.admits(impression_of(frame)) for frame in frames)
    assert not any(gallery.admits(impression_of(frame)) for frame in frames)


@pytest.mark.parametrize("level", [0, 128, 255])
def test_frame_of_one_colour_is_flat_also_with_noise(level: int) -> None:
    assert impression_of(noisy(np.full((480, 640, 3), level, np.uint8), 4)).flat


def test_label_is_not_flat_and_neither_is_faint_print() -> None:
    assert not impression_of(label_frame(0)).flat
    faint = np.full((480, 640, 3), 128, np.uint8)
    cv2.putText(faint, "LOT A123", (60, 240), cv2.FONT_HERSHEY_SIMPLEX, 2.0, (112, 112, 112), 5)
    assert not impression_of(faint).flat


@pytest.mark.parametrize("shape", [(1, 1, 3), (1, 900, 3), (900, 1, 3), (3, 5, 3)])
def test_tiny_pictures_have_an_impression_too(shape: tuple[int, int, int]) -> None:
    assert impression_of(np.zeros(shape, np.uint8)).flat


def test_few_frames_are_all_chosen() -> None:
    assert choose([5, 5, 5], [0, 0, 0], 3) == [0, 1, 2]


def test_choice_is_spread_over_time_where_all_look_alike() -> None:
    chosen = choose([7] * 101, list(range(101)), 5)
    assert len(chosen) == 5
    assert {0, 50, 100} <= set(chosen)


def test_choice_takes_the_different_looking_of_one_moment() -> None:
    hashes = [0] * 50 + [(1 << 64) - 1] + [0] * 49
    assert 50 in choose(hashes, [0.0] * 100, 2)


def test_choice_takes_no_frame_twice_and_is_the_same_each_time() -> None:
    first = choose([3] * 40, [1.0] * 40, 7)
    assert len(set(first)) == 7
    assert first == choose([3] * 40, [1.0] * 40, 7)
