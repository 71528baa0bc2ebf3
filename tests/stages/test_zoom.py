"""Zoom: windows are placed where a small map hints at text, and nowhere else."""

from __future__ import annotations

import numpy as np
import pytest

from edge_agent.records import Quad, TextBox
from edge_agent.stages.zoom import SIDE_PX, edge_hints, hints_of_print, steps_of, windows
from tests.prints import DATE_AND_LOT, drawn


def box(left: float, top: float, width: float, height: float) -> TextBox:
    return TextBox(
        Quad(np.array([[left, top], [left + width, top], [left + width, top + height], [left, top + height]])), 0.9
    )


def hinting(*places: tuple[int, int]) -> np.ndarray:
    """The map of a frame of 4000 x 3000 at half its size, with a weak hint at each place."""
    probability = np.zeros((1504, 2000), np.uint8)
    for x, y in places:
        probability[y : y + 3, x : x + 10] = 40
    return probability


def test_frame_that_was_hardly_made_smaller_is_not_looked_at_again() -> None:
    assert windows(np.full((736, 1280), 255, np.uint8), [], 1280, 720, 6) == ((), False)
    assert windows(np.full((752, 1504), 255, np.uint8), [], 2000, 1000, 6) == ((), False)


def test_each_hint_lies_in_a_window_at_full_size() -> None:
    places = [(300, 260), (1600, 700), (5, 1490), (1980, 1490)]
    found, left_out = windows(hinting(*places), [], 4000, 3000, 6)
    assert (len(found), left_out) == (4, False)
    for x, y in places:
        assert any(w.left <= 2 * x < w.right and w.top <= 2 * y < w.bottom for w in found), (x, y)
    assert {(w.right - w.left, w.bottom - w.top) for w in found} == {(SIDE_PX, SIDE_PX)}
    assert all(w.left >= 0 and w.top >= 0 and w.right <= 4000 and w.bottom <= 3000 for w in found)


def test_hints_near_each_other_share_a_window() -> None:
    found, _ = windows(hinting((500, 500), (520, 540), (600, 600)), [], 4000, 3000, 6)
    assert len(found) == 1


def test_there_are_never_more_windows_than_allowed_and_the_fullest_come_first() -> None:
    everywhere = np.full((1504, 2000), 200, np.uint8)
    found, left_out = windows(everywhere, [], 4000, 3000, 6)
    assert (len(found), left_out) == (6, True)
    few = hinting((100, 100), (1500, 1000), (1520, 1040), (1540, 1080))
    (first,), left_out = windows(few, [], 4000, 3000, 1)
    assert left_out
    assert first.holds(box(3000, 2000, 40, 20)) and not first.holds(box(200, 200, 40, 20))


def test_text_that_is_large_enough_is_not_looked_for_again_and_small_text_is() -> None:
    probability = np.zeros((1504, 2000), np.uint8)
    probability[500:520, 500:700] = 255
    assert windows(probability, [box(990, 990, 420, 60)], 4000, 3000, 6) == ((), False)
    assert len(windows(probability, [box(990, 1000, 420, 20)], 4000, 3000, 6)[0]) == 1


def test_box_of_a_window_is_moved_to_its_place_in_the_frame() -> None:
    (window,), _ = windows(hinting((1000, 700)), [], 4000, 3000, 6)
    moved = window.moved(box(10, 20, 30, 10))
    assert moved.quad.points[0].tolist() == [window.left + 10, window.top + 20]
    assert window.of(np.zeros((3000, 4000, 3), np.uint8)).shape == (SIDE_PX, SIDE_PX, 3)


@pytest.mark.parametrize("size", [(9000, 700), (700, 9000)])
def test_window_of_a_narrow_frame_is_as_narrow(size: tuple[int, int]) -> None:
    width, height = size
    probability = np.full((max(1, height // 5), max(1, width // 5)), 255, np.uint8)
    for window in windows(probability, [], width, height, 3)[0]:
        assert window.of(np.zeros((height, width, 3), np.uint8)).shape[:2] == (min(960, height), min(960, width))


def test_edges_hint_where_the_detector_saw_nothing() -> None:
    frame = np.full((3000, 4000, 3), 235, np.uint8)
    frame[2000:2120, 3000:3400] = drawn(DATE_AND_LOT, 28, ground=235, ink=20, sides_px=(400, 120))
    hints = edge_hints(steps_of(frame, 2000, 1504))
    assert hints.shape == (1504, 2000) and hints.any()
    (window,), _ = windows(hints, [], 4000, 3000, 6)
    assert window.holds(box(3020, 2020, 200, 30))
    assert not edge_hints(steps_of(np.full((3000, 4000, 3), 235, np.uint8), 2000, 1504)).any()


@pytest.mark.parametrize(("ground", "ink"), [(255, 20), (128, 112)])
def test_blank_ground_hints_at_nothing_whatever_the_detector_says(ground: int, ink: int) -> None:
    frame = np.full((3000, 4000, 3), ground, np.uint8)
    frame[2000:2120, 3000:3400] = drawn(DATE_AND_LOT, 28, ground=ground, ink=ink, sides_px=(400, 120))
    frame = np.clip(frame + np.random.default_rng(0).normal(0, 3, (3000, 4000, 1)), 0, 255).astype(np.uint8)
    hints = hints_of_print(np.full((1152, 1536), 70, np.uint8), steps_of(frame, 1536, 1152))
    (window,), left_out = windows(hints, [], 4000, 3000, 6)
    assert window.holds(box(3020, 2020, 200, 30)) and not left_out
