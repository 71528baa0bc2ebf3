"""Reading order: rows by the text's own height and skew, not by pixels."""

from __future__ import annotations

import numpy as np
import pytest

from edge_agent.records import Quad
from edge_agent.stages.reading_order import reading_order

# x, y, width, height (field case OCR-8): values stand a little higher or lower than their keys
ROW = [
    ("Batch:", 60, 104, 90, 30),
    ("A123", 260, 96, 80, 30),
    ("Expiry:", 480, 102, 95, 30),
    ("08/2026", 680, 92, 120, 30),
]


def quads(boxes: list[tuple[str, int, int, int, int]], angle_deg: float, scale: float) -> list[Quad]:
    angle = np.radians(angle_deg)
    turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    return [
        Quad((np.array([[x, y], [x + w, y], [x + w, y + h], [x, y + h]]) @ turn.T * scale).astype(np.float32))
        for _, x, y, w, h in boxes
    ]


@pytest.mark.parametrize("angle_deg", [0.0, 3.0, -8.0, 40.0])
@pytest.mark.parametrize("scale", [1.0, 4.0, 0.3])
def test_row_reads_left_to_right_when_turned_and_scaled(angle_deg: float, scale: float) -> None:
    shuffled = [ROW[3], ROW[1], ROW[0], ROW[2]]
    order = reading_order(quads(shuffled, angle_deg, scale))
    assert [shuffled[n][0] for n in order] == ["Batch:", "A123", "Expiry:", "08/2026"]


def test_row_of_short_texts_whose_own_angles_are_a_little_off_is_one_row() -> None:
    """As a detector finds the drawn row: some 26 px high, turned by what a px more or less at an end makes."""
    found = [(108, 300, 28.2, 0.63), (103, 740, 26.3, 0.0), (115, 105, 25.5, 0.79), (116, 528, 29.2, 2.98)]
    quads = []
    for y, x, height, angle_deg in found:
        along = np.array([np.cos(np.radians(angle_deg)), np.sin(np.radians(angle_deg))]) * 45
        across = np.array([-along[1], along[0]]) * height / 90
        corners = [-along - across, along - across, along + across, -along + across]
        quads.append(Quad((np.array(corners) + np.array([x, y])).astype(np.float32)))
    assert reading_order(quads) == [2, 0, 3, 1]


@pytest.mark.parametrize("angle_deg", [0.0, 5.0])
def test_rows_stay_apart_down_to_tight_line_spacing(angle_deg: float) -> None:
    boxes = [(f"{row}{column}", column * 300, row * 32, 200, 30) for row in range(6) for column in range(3)]
    order = reading_order(quads(boxes[::-1], angle_deg, 1.0))
    assert [boxes[::-1][n][0] for n in order] == [name for name, *_ in boxes]


def test_small_print_beside_a_headline_keeps_its_own_rows() -> None:
    boxes = [("HEAD", 0, 0, 300, 90), ("a", 320, 5, 80, 20), ("b", 320, 60, 80, 20)]
    order = reading_order(quads(boxes, 0.0, 1.0))
    assert [boxes[n][0] for n in order].index("a") < [boxes[n][0] for n in order].index("b")


def test_nothing_has_no_order() -> None:
    assert reading_order([]) == []
