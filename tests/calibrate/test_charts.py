from __future__ import annotations

import re
from itertools import pairwise

import pytest

from edge_agent.calibrate.charts import (
    MOST_BINS,
    TICKS_APART,
    Axis,
    axis_over,
    binned,
    histogram,
    log_axis_over,
    pair_of_bars,
    signed_bar,
)


def test_an_axis_always_holds_zero() -> None:
    assert axis_over([2.0, 5.0]) == Axis(0.0, 5.0)
    assert axis_over([-2.0, -1.0]) == Axis(-2.0, 0.0)
    assert axis_over([]).position(0.0) == 0.0
    assert axis_over([0.0]).position(0.0) == 0.0


def test_values_beyond_an_axis_end_at_its_edge() -> None:
    assert Axis(0.0, 2.0).position(9.0) == 100.0


def test_a_log_axis_is_the_same_to_both_sides_of_zero() -> None:
    axis = log_axis_over({"a": (-100.0, 100.0), "b": (0.0, 0.5)})
    assert axis.position(0.0) == pytest.approx(50.0)
    assert axis.position(-10.0) == pytest.approx(100 - axis.position(10.0))
    assert axis.position(100.0) - axis.position(10.0) == pytest.approx(
        axis.position(10.0) - axis.position(1.0), rel=0.05
    )


@pytest.mark.parametrize("ends", [(-100.0, 100.0), (0.0, 8.0), (-0.375, 4e4), (-1e-4, 3e-4), (-5.0, 0.0), (0.0, 0.0)])
def test_numbers_on_a_log_axis_never_touch(ends: tuple[float, float]) -> None:
    axis = log_axis_over({"a": ends, "b": (0.0, ends[1] / 1e6)})
    positions = [axis.position(tick) for tick in axis.ticks]
    assert 0.0 in axis.ticks
    assert all(axis.low <= tick <= axis.high for tick in axis.ticks)
    assert all(after - before >= TICKS_APART for before, after in pairwise(positions))


def test_a_bar_below_zero_has_another_colour_and_ends_at_zero() -> None:
    axis = Axis(-1.0, 3.0)
    assert 'class="loss" x="12.50%" y="2" width="12.50%"' in signed_bar(-0.5, axis, "gain", "loss")
    assert 'class="gain" x="25.00%" y="2" width="75.00%"' in signed_bar(3.0, axis, "gain", "loss")
    assert "rect" not in signed_bar(None, axis, "gain", "loss")


def test_two_bars_share_a_scale() -> None:
    assert re.findall(r'<rect [^>]*width="([\d.]+)%"', pair_of_bars(4.0, 1.0)) == ["100.00", "25.00"]
    assert re.findall(r'class="(\w+)" x', pair_of_bars(None, 1.0)) == ["int8"]


def test_few_values_keep_a_bar_each_and_many_are_joined() -> None:
    assert binned({320: 4, 224: 1}) == [("224", 1), ("320", 4)]
    many = binned(dict.fromkeys(range(100, 500, 7), 2))
    assert len(many) <= MOST_BINS
    assert sum(count for _, count in many) == 2 * len(range(100, 500, 7))
    assert many[0][0] == "100+"


def test_a_histogram_says_its_numbers_to_those_who_cannot_see_it() -> None:
    drawn = histogram({320: 4, 224: 1}, "px", "Widths")
    assert 'role="img" aria-label="Widths: 224 px 1 times, 320 px 4 times"' in drawn
    heights = [float(height) for height in re.findall(r'<rect [^>]*height="([\d.]+)"', drawn)]
    assert heights[1] == pytest.approx(4 * heights[0])
