"""Vitals: rates and percentiles over a window, with a clock that the test turns."""

from __future__ import annotations

import math
import random
import threading

import numpy as np
import pytest

from edge_agent.telemetry.vitals import MAX_LATENCIES, Vitals


class Clock:
    def __init__(self) -> None:
        self.now = 1000.25

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def vitals(clock: Clock) -> Vitals:
    return Vitals(window_s=10.0, clock=clock)


def run(vitals: Vitals, clock: Clock, seconds: float, fps: int) -> None:
    for _ in range(round(seconds * fps)):
        clock.now += 1 / fps
        vitals.count("cam", "offered")


def test_first_rate_is_null_and_not_infinite(vitals: Vitals, clock: Clock) -> None:
    vitals.count("cam", "offered", 5)
    assert vitals.fps() == {"cam": {"offered": None, "processed": None, "dropped": None, "failed": None}}
    clock.now += 0.9
    assert vitals.fps()["cam"]["offered"] is None


def test_rate_is_right_from_the_first_second_on_and_for_ever(vitals: Vitals, clock: Clock) -> None:
    vitals.count("cam", "offered")
    for _ in range(60):
        run(vitals, clock, 1.0, 32)
        assert vitals.fps()["cam"]["offered"] == pytest.approx(32, abs=0.1)  # one frame in ten seconds
    assert vitals.frames()["cam"]["offered"] == 1 + 60 * 32


def test_two_readers_do_not_disturb_one_another(vitals: Vitals, clock: Clock) -> None:
    vitals.count("cam", "offered")
    run(vitals, clock, 5.0, 8)
    assert vitals.fps() == vitals.fps()


def test_rate_forgets_what_is_older_than_the_window(vitals: Vitals, clock: Clock) -> None:
    vitals.count("cam", "offered")
    run(vitals, clock, 5.0, 20)
    clock.now += 12
    assert vitals.fps()["cam"]["offered"] == 0.0


def test_processed_and_dropped_are_counted_apart(vitals: Vitals, clock: Clock) -> None:
    vitals.count("cam", "offered")
    for _ in range(40):
        clock.now += 0.1
        vitals.count("cam", "offered", 4)
        vitals.count("cam", "processed")
        vitals.count("cam", "dropped", 3)
    assert vitals.fps()["cam"] == {"offered": 40.0, "processed": 10.0, "dropped": 30.0, "failed": 0.0}
    assert vitals.frames()["cam"] == {"offered": 161, "processed": 40, "dropped": 120, "failed": 0}


def test_memory_is_bounded_by_the_window_and_not_by_the_rate(vitals: Vitals, clock: Clock) -> None:
    vitals.count("cam", "offered")
    for _ in range(100):
        run(vitals, clock, 1.0, 100)
        vitals.timed({"detect": 1.0})
    assert len(vitals._rates["cam"]["offered"]._by_second) <= 13
    for _ in range(MAX_LATENCIES + 10):
        vitals.timed({"detect": 1.0})
    assert len(vitals._latencies_ms["detect"]) == MAX_LATENCIES


def test_percentiles_are_the_nearest_rank_of_the_window(vitals: Vitals) -> None:
    values = [float(n) for n in range(1, 101)]
    random.Random(7).shuffle(values)
    for ms in values:
        vitals.timed({"detect": ms, "recognise": 2 * ms})
    assert vitals.latency_ms() == {
        "detect": {"p50": 50.0, "p95": 95.0, "p99": 99.0},
        "recognise": {"p50": 100.0, "p95": 190.0, "p99": 198.0},
    }
    expected = np.percentile(values, [50, 95, 99], method="inverted_cdf")
    assert list(vitals.latency_ms()["detect"].values()) == list(expected)


def test_single_latency_is_every_percentile(vitals: Vitals) -> None:
    vitals.timed({"detect": 3.0})
    assert vitals.latency_ms() == {"detect": {"p50": 3.0, "p95": 3.0, "p99": 3.0}}


def test_stage_without_recent_frames_has_null_percentiles(vitals: Vitals, clock: Clock) -> None:
    vitals.timed({"detect": 3.0})
    clock.now += 11
    assert vitals.latency_ms() == {"detect": {"p50": None, "p95": None, "p99": None}}


def test_latency_that_is_not_finite_is_left_out(vitals: Vitals) -> None:
    vitals.timed({"detect": math.nan})
    vitals.timed({"detect": math.inf, "extract": 1.0})
    assert vitals.latency_ms() == {"extract": {"p50": 1.0, "p95": 1.0, "p99": 1.0}}


def test_removed_camera_is_forgotten(vitals: Vitals) -> None:
    vitals.count("cam", "offered")
    vitals.forget("cam")
    vitals.forget("cam")
    assert vitals.fps() == {}


def test_threads_lose_no_count() -> None:
    vitals = Vitals()

    def work(camera: str) -> None:
        for _ in range(2000):
            vitals.count(camera, "offered")
            vitals.timed({"detect": 1.0})

    threads = [threading.Thread(target=work, args=(f"cam-{n % 2}",)) for n in range(4)]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        vitals.sections()
    assert {camera: frames["offered"] for camera, frames in vitals.frames().items()} == {"cam-0": 4000, "cam-1": 4000}
