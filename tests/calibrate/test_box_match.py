from __future__ import annotations

import cv2
import numpy as np
import pytest

from edge_agent.calibrate.box_match import matched, quad_iou, same_places
from edge_agent.records import Quad


def box(x: float, y: float, width: float, height: float, angle_deg: float = 0.0) -> Quad:
    """An upright box by its top-left corner, turned about its centre."""
    return Quad(cv2.boxPoints(((x + width / 2, y + height / 2), (width, height), angle_deg)))


def drawn_iou(first: Quad, second: Quad, scale: int = 8) -> float:
    """The same by counting pixels."""
    masks = []
    for quad in (first, second):
        mask = np.zeros((100 * scale, 100 * scale), np.uint8)
        cv2.fillPoly(mask, [np.round(quad.points * scale).astype(np.int32)], 1)
        masks.append(mask.astype(bool))
    return float((masks[0] & masks[1]).sum() / (masks[0] | masks[1]).sum())


@pytest.mark.parametrize(
    ("second", "iou"),
    [
        (box(10, 10, 40, 10), 1.0),
        (box(30, 10, 40, 10), 1 / 3),
        (box(20, 12, 10, 4), 0.1),
        (box(60, 60, 20, 10), 0.0),
        (box(50, 10, 20, 10), 0.0),
    ],
)
def test_iou_of_upright_boxes_is_what_their_sides_say(second: Quad, iou: float) -> None:
    assert quad_iou(box(10, 10, 40, 10), second) == pytest.approx(iou, abs=1e-5)


def test_iou_of_turned_boxes_is_what_counting_pixels_says() -> None:
    rng = np.random.default_rng(4)
    for _ in range(40):
        x, y, angle = rng.uniform(20, 40), rng.uniform(20, 40), rng.uniform(-80, 80)
        first = box(x, y, 40, 14, angle)
        second = box(x + rng.uniform(-9, 9), y + rng.uniform(-9, 9), 36, 12, angle + rng.uniform(-25, 25))
        assert quad_iou(first, second) == pytest.approx(drawn_iou(first, second), abs=0.02)
        assert quad_iou(first, second) == pytest.approx(quad_iou(second, first), abs=1e-5)


def test_order_of_corners_makes_no_difference() -> None:
    first, second = box(10, 10, 40, 10, 20), box(12, 11, 40, 10, 25)
    anticlockwise = Quad(second.points[::-1].copy())
    assert quad_iou(first, anticlockwise) == pytest.approx(quad_iou(first, second))


def test_box_without_area_matches_nothing() -> None:
    line = Quad(np.array([[0, 0], [10, 0], [10, 0], [0, 0]], np.float32))
    assert quad_iou(line, line) == 0.0
    assert matched([line], [line]) == []


def test_each_box_is_matched_once_and_the_nearest_wins() -> None:
    first = [box(0, 0, 40, 10), box(100, 0, 40, 10)]
    second = [box(100, 1, 40, 10), box(4, 0, 40, 10), box(1, 0, 40, 10)]
    assert matched(first, second) == [(0, 2), (1, 0)]


def test_boxes_that_share_too_little_do_not_match() -> None:
    assert matched([box(0, 0, 40, 10)], [box(20, 0, 40, 10)]) == []
    assert matched([], [box(0, 0, 4, 4)]) == matched([box(0, 0, 4, 4)], []) == []


def test_one_box_around_two_words_is_the_place_of_both() -> None:
    words = [box(0, 0, 30, 10), box(0, 50, 30, 10), box(40, 0, 30, 10)]
    merged = [box(0, 50, 31, 10), box(0, 0, 70, 10)]
    assert same_places(words, merged) == [([0, 2], [1]), ([1], [0])]


def test_box_that_only_one_detector_found_is_a_place_of_its_own() -> None:
    assert same_places([box(0, 0, 30, 10)], [box(0, 40, 30, 10)]) == [([0], []), ([], [0])]


def test_frame_full_of_boxes_is_matched_in_good_time() -> None:
    quads = [box(50 * (n % 25), 20 * (n // 25), 45, 15) for n in range(500)]
    assert matched(quads, quads) == [(n, n) for n in range(500)]
    assert all(place == ([n], [n]) for n, place in enumerate(same_places(quads, quads)))
