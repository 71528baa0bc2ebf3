"""Merge: nested and overlapping boxes of one text become one; others stay two."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest

from edge_agent.records import Quad, TextBox
from edge_agent.stages.merge import merged


def box(left: float, top: float, width: float, height: float, score: float = 0.8) -> TextBox:
    points = np.array([[left, top], [left + width, top], [left + width, top + height], [left, top + height]])
    return TextBox(Quad(points), score)


def turned(boxes: list[TextBox], angle_deg: float) -> list[TextBox]:
    angle = np.radians(angle_deg)
    turn = np.array([[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]])
    return [TextBox(Quad((b.quad.points @ turn).astype(np.float32)), b.score) for b in boxes]


def corners(found: TextBox) -> npt.NDArray[np.float32]:
    return found.quad.points


@pytest.mark.parametrize("angle_deg", [0, 3, -30, 90])
def test_nested_box_of_like_height_goes(angle_deg: float) -> None:
    boxes = turned([box(120, 24, 96, 42, 0.9), box(20, 20, 200, 50, 0.7)], angle_deg)
    (found,) = merged(boxes)
    np.testing.assert_allclose(corners(found), corners(boxes[1]))
    assert found.score == 0.9


@pytest.mark.parametrize("angle_deg", [0, 3, -30])
def test_overlapping_parts_of_a_line_become_one(angle_deg: float) -> None:
    (found,) = merged(turned([box(100, 50, 310, 60), box(373, 52, 372, 60)], angle_deg))
    expected = turned([box(100, 50, 645, 62)], angle_deg)[0]
    np.testing.assert_allclose(corners(found), corners(expected), atol=0.01)


def test_chain_of_parts_becomes_one_line() -> None:
    (found,) = merged([box(0, 0, 100, 40), box(300, 0, 100, 40), box(80, 0, 120, 40), box(180, 0, 140, 40)])
    np.testing.assert_allclose(corners(found), corners(box(0, 0, 400, 40)), atol=0.01)


@pytest.mark.parametrize(
    "boxes",
    [
        [box(20, 20, 200, 50), box(20, 400, 200, 50)],  # the same text twice, far apart
        [box(0, 0, 300, 120), box(10, 10, 60, 20)],  # small print within a large picture of letters
        [box(0, 0, 100, 40), box(95, 0, 100, 40)],  # neighbours that hardly touch
        [box(0, 0, 100, 40), box(80, 12, 100, 40)],  # not on one row
        [box(0, 0, 100, 40), box(0, 30, 100, 40)],  # one row below the other
    ],
)
def test_texts_of_their_own_stay(boxes: list[TextBox]) -> None:
    assert merged(boxes) == tuple(boxes)


def test_text_across_another_stays() -> None:
    across = turned([box(-20, -60, 120, 40)], 90)[0]
    assert len(merged([box(0, 0, 200, 40), across])) == 2


def test_nothing_and_one_stay() -> None:
    assert merged([]) == ()
    alone = box(0, 0, 9, 9)
    assert merged([alone]) == (alone,)


def test_many_boxes_are_merged_without_comparing_all_pairs_in_full() -> None:
    grid = [box(60 * n, 30 * m, 50, 20) for n in range(25) for m in range(20)]
    assert merged(grid) == tuple(grid)
