from __future__ import annotations

import pytest

from edge_agent.stages.label_layout import neighbours
from tests.stages.labels import line

BOXES = [
    ("Batch:", 60, 104, 90, 30),
    ("A123", 260, 96, 80, 30),
    ("Expiry:", 480, 102, 95, 30),
    ("08/2026", 680, 92, 120, 30),
]


@pytest.mark.parametrize("turn_deg", [0.0, 3.0, -3.0, 90.0, 180.0])
@pytest.mark.parametrize("scale", [1, 4])
def test_next_on_the_row_is_found_whatever_the_size_and_turn(scale: int, turn_deg: float) -> None:
    lines = [line(text, *(scale * v for v in box), turn_deg=turn_deg) for text, *box in BOXES]
    assert neighbours(lines, 0) == (1,)
    assert neighbours(lines, 2) == (3,)


def test_value_is_found_though_the_keys_own_angle_is_some_degrees_off() -> None:
    key = line("Expiry:", 0, 0, 96, 28, turn_deg=3)
    assert neighbours([key, line("08/2026", 161, -10, 118, 26)], 0) == (1,)
    assert neighbours([key, line("08/2026", 161, -40, 118, 26)], 0) == ()


def test_line_below_is_found_and_the_far_one_is_not() -> None:
    lines = [line("LOT", 0, 0, 80), line("A123", 0, 36, 90), line("far", 0, 400, 90), line("aside", 900, 36, 90)]
    assert neighbours(lines, 0) == (1,)
    assert neighbours(lines, 2) == ()


def test_text_of_another_direction_is_no_neighbour() -> None:
    assert neighbours([line("LOT", 0, 0, 80), line("A123", 90, 0, 80, turn_deg=45)], 0) == ()
