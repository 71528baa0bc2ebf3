"""Meter: joules of an interval, and never a figure for one that was not looked at."""

from __future__ import annotations

import pytest

from edge_agent.errors import SensorError
from edge_agent.telemetry.meter import EnergyMeter, per


def test_energy_is_the_mean_of_two_looks_times_the_time_between() -> None:
    meter = EnergyMeter(0.0)
    for at, watts in ((0.0, 10.0), (1.0, 10.0), (2.0, 20.0)):
        meter.power(watts, at)
    assert meter.take(2.0) == 25.0
    meter.power(20.0, 3.0)
    assert meter.take(3.0) == 20.0
    assert meter.total_j == 45.0


def test_interval_with_a_gap_is_not_known_and_the_next_one_is() -> None:
    meter = EnergyMeter(0.0)
    meter.power(10.0, 0.0)
    meter.lost("in1_input: No such file")
    meter.power(10.0, 8.0)
    meter.power(10.0, 9.0)
    lost = meter.take(9.0)
    assert isinstance(lost, SensorError)
    assert "No such file" in str(lost)
    meter.power(10.0, 10.0)
    assert meter.take(10.0) == 10.0


def test_pause_longer_than_a_gap_counts_as_not_looked_at() -> None:
    meter = EnergyMeter(0.0)
    meter.power(10.0, 0.0)
    meter.power(10.0, 100.0)
    assert "often enough" in str(meter.take(100.0))


def test_interval_without_length_is_not_known() -> None:
    assert isinstance(EnergyMeter(5.0).take(5.0), SensorError)


def test_cost_of_nothing_is_not_known() -> None:
    assert per(12.0, 5, "frame was read") == 2.4
    with pytest.raises(SensorError, match="no frame was read in the interval"):
        per(12.0, 0, "frame was read")
    with pytest.raises(SensorError, match="gone"):
        per(SensorError("gone"), 5, "frame was read")
