"""Time is a parameter: engines of these tests take as long as they are told by moving the clock."""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np
import pytest

from edge_agent.backends.base import Array, Feed, TensorSpec
from edge_agent.calibrate.timing import (
    LEAST_LAPS,
    Timing,
    TimingLimits,
    WeightedFeed,
    compare_speed,
    in_proportion,
    shape_of,
    weighted,
)
from edge_agent.errors import EngineError, SensorError
from edge_agent.telemetry.energy import EnergyCounter, EnergySources
from tests.fakes import FakeEngine

INPUT = TensorSpec("image", "uint8", (None, 48, None, 3))
NO_ENERGY = EnergySources((), ("no counter here",))
LAPS = TimingLimits(warm_up_laps=1, most_laps=10, seconds=1e9, block_s=1.0)


class Clock:
    """Seconds that go by when an engine says so."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.drift = 1.0
        self.order: list[str] = []

    def __call__(self) -> float:
        return self.now

    def engine(self, name: str, took_s: Callable[[Feed], float]) -> FakeEngine:
        def answer(feed: Feed) -> dict[str, Array]:
            self.order.append(name)
            self.now += took_s(feed) * self.drift
            return {}

        return FakeEngine(answer, (INPUT,))


def feed(width_px: int, rows: int = 1) -> Feed:
    return {"image": np.zeros((rows, 48, width_px, 3), np.uint8)}


def width_of(one: Feed) -> int:
    return int(one["image"].shape[2])


def timed(
    float_s: Callable[[Feed], float],
    int8_s: Callable[[Feed], float],
    feeds: tuple[WeightedFeed, ...],
    limits: TimingLimits = LAPS,
) -> Timing:
    clock = Clock()
    return compare_speed(clock.engine("float", float_s), clock.engine("int8", int8_s), feeds, limits, NO_ENERGY, clock)


def test_speedup_is_float_time_over_int8_time() -> None:
    timing = timed(lambda _: 0.03, lambda _: 0.02, weighted([feed(320)]))
    assert timing.speedup == pytest.approx(1.5)
    assert (timing.speedup_low, timing.speedup_high) == (pytest.approx(1.5), pytest.approx(1.5))
    assert (timing.float_.p50_ms, timing.int8.p95_ms) == (pytest.approx(30), pytest.approx(20))
    assert (timing.laps, timing.float_.runs, timing.int8.runs) == (10, 20, 20)


def test_engines_run_by_turns_and_begin_by_turns() -> None:
    clock = Clock()
    engines = clock.engine("A", lambda _: 0.01), clock.engine("B", lambda _: 0.01)
    compare_speed(*engines, weighted([feed(64), feed(128)]), TimingLimits(0, 2, 1e9), NO_ENERGY, clock)
    assert "".join(clock.order) == "ABBAABBA" + "BAABBAAB"


def test_feeds_count_as_often_as_their_shape_was_recorded() -> None:
    feeds = weighted([feed(100), feed(100), feed(100), feed(400)])
    assert [(f.shape, f.weight) for f in feeds] == [("1x48x100x3", 3.0), ("1x48x400x3", 1.0)]
    timing = timed(lambda f: width_of(f) / 1e4, lambda _: 0.01, feeds)
    assert timing.float_.mean_ms == pytest.approx((3 * 10 + 40) / 4)
    assert timing.speedup == pytest.approx(1.75)
    assert (timing.float_.p50_ms, timing.float_.p95_ms) == (pytest.approx(10), pytest.approx(40))
    assert [(f.float_ms, f.int8_ms) for f in timing.feeds] == [pytest.approx((10, 10)), pytest.approx((40, 10))]


def test_weights_come_from_the_sites_own_count_where_it_is_given() -> None:
    feeds = weighted([feed(100), feed(400), feed(64)], {"1x48x100x3": 90, "1x48x400x3": 10, "9x9": 5})
    assert {f.shape: f.weight for f in feeds} == {"1x48x100x3": 90.0, "1x48x400x3": 10.0, "1x48x64x3": 1.0}


def test_of_many_shapes_a_few_stand_for_all() -> None:
    feeds = weighted((feed(w) for w in range(1, 31)), most_shapes=3)
    assert [(f.shape, f.weight) for f in feeds] == [("1x48x5x3", 10.0), ("1x48x15x3", 10.0), ("1x48x25x3", 10.0)]
    frequent = weighted((feed(w) for w in [*range(1, 31), *[20] * 60]), most_shapes=3)
    assert [(f.shape, f.weight) for f in frequent] == [("1x48x15x3", 30.0), ("1x48x20x3", 60.0)]


def test_shapes_are_measured_from_small_to_large() -> None:
    assert [f.shape for f in weighted([feed(640), feed(64, rows=2), feed(96)])] == [
        "1x48x96x3",
        "2x48x64x3",
        "1x48x640x3",
    ]


def test_one_slow_run_does_not_change_the_ratio() -> None:
    slow = iter([*[0.02] * 8, 3.0])
    timing = timed(lambda _: 0.03, lambda _: next(slow, 0.02), weighted([feed(320)]))
    assert timing.speedup == pytest.approx(1.5)
    assert timing.int8.p95_ms == pytest.approx(20)


def test_machine_that_slows_down_meets_both_engines_alike() -> None:
    clock = Clock()

    def slower(took_s: float) -> Callable[[Feed], float]:
        def took(_: Feed) -> float:
            clock.drift *= 1.01
            return took_s

        return took

    timing = compare_speed(
        clock.engine("float", slower(0.01)),
        clock.engine("int8", slower(0.01)),
        weighted([feed(320)]),
        LAPS,
        NO_ENERGY,
        clock,
    )
    assert timing.speedup == pytest.approx(1.0, abs=0.001)


def test_spread_tells_noise_and_is_the_same_each_time() -> None:
    def noisy(seed: int, mean_s: float) -> Callable[[Feed], float]:
        rng = np.random.default_rng(seed)
        return lambda _: float(mean_s * rng.uniform(0.7, 1.3))

    first, second = (timed(noisy(1, 0.03), noisy(2, 0.02), weighted([feed(320)])) for _ in range(2))
    assert first == second
    assert first.speedup_low < first.speedup < first.speedup_high
    assert first.speedup_low == pytest.approx(1.5, abs=0.5)
    calm = timed(lambda _: 0.03, lambda _: 0.02, weighted([feed(320)]))
    assert first.speedup_high - first.speedup_low > calm.speedup_high - calm.speedup_low


@pytest.mark.parametrize(("seconds", "most_laps", "laps"), [(0.0, 50, LEAST_LAPS), (0.95, 50, 10), (1e9, 7, 7)])
def test_measuring_ends_by_time_or_count(seconds: float, most_laps: int, laps: int) -> None:
    limits = TimingLimits(warm_up_laps=3, most_laps=most_laps, seconds=seconds)
    timing = timed(lambda _: 0.03, lambda _: 0.02, weighted([feed(320)]), limits)
    assert timing.laps == laps


def test_first_runs_do_not_count() -> None:
    first = iter([9.0, 9.0])
    timing = timed(lambda _: next(first, 0.03), lambda _: 0.02, weighted([feed(320)]))
    assert timing.float_.p95_ms == pytest.approx(30)


def test_energy_is_none_without_a_counter_and_the_reason_is_told() -> None:
    timing = timed(lambda _: 0.03, lambda _: 0.02, weighted([feed(320)]))
    assert (timing.float_.energy_j, timing.int8.energy_j, timing.energy_ratio) == (None, None, None)
    assert timing.no_energy == ("no counter here",)


def test_energy_of_a_run_is_measured_in_blocks_of_either_engine() -> None:
    clock = Clock()
    spent = {"float": 6.0, "int8": 2.0}

    def joules() -> float:  # a counter that ticks in whole steps of 10 J and wraps
        return float(sum(spent[name] for name in clock.order) // 10 * 10 % 100_000)

    engines = clock.engine("float", lambda _: 0.01), clock.engine("int8", lambda _: 0.01)
    energy = EnergySources((EnergyCounter("package-0", joules, 100_000), EnergyCounter("gpu", lambda: 0.0)), ())
    timing = compare_speed(*engines, weighted([feed(320)]), LAPS, energy, clock)
    assert timing.float_.energy_j == pytest.approx(6.0, rel=0.05)
    assert timing.int8.energy_j == pytest.approx(2.0, rel=0.1)
    assert timing.energy_ratio == pytest.approx(3.0, rel=0.1)
    blocks = re.findall("f+|i+", "".join(name[0] for name in clock.order[44:]))
    assert [block[0] for block in blocks] == ["f", "i", "f", "i", "f", "i"]  # A BB A B AA B, equal neighbours joined


def test_energy_is_per_run_of_the_sites_mixture() -> None:
    clock = Clock()
    spent_j = [0.0]

    def took(one: Feed) -> float:
        spent_j[0] += width_of(one)
        return 0.01

    feeds = weighted([feed(100)] * 3 + [feed(500)])
    energy = EnergySources((EnergyCounter("board", lambda: spent_j[0]),), ())
    timing = compare_speed(clock.engine("a", took), clock.engine("b", took), feeds, LAPS, energy, clock)
    assert timing.float_.energy_j == timing.int8.energy_j == pytest.approx((3 * 100 + 500) / 4)


def test_counter_that_falls_silent_leaves_energy_out_and_speed_in() -> None:
    clock = Clock()
    reads = [0]

    def joules() -> float:
        reads[0] += 1
        if reads[0] > 3:
            raise SensorError("the board's power could not be read for 5 s")
        return float(reads[0])

    energy = EnergySources((EnergyCounter("board", joules),), ())
    engines = clock.engine("a", lambda _: 0.02), clock.engine("b", lambda _: 0.01)
    timing = compare_speed(*engines, weighted([feed(320)]), LAPS, energy, clock)
    assert timing.speedup == pytest.approx(2.0)
    assert (timing.float_.energy_j, timing.int8.energy_j) == (None, None)
    assert timing.no_energy == ("the board's power could not be read for 5 s",)


def test_feeds_of_a_block_are_spread_by_weight() -> None:
    assert in_proportion([1.0]) == [0] * 24
    order = in_proportion([3, 1, 0.001], 8)
    assert (order.count(0), order.count(1), order.count(2)) == (6, 2, 1)
    assert order[:4].count(0) == 3


def test_shape_is_that_of_the_largest_input() -> None:
    assert shape_of({"mask": np.zeros((2, 3)), "image": np.zeros((1, 4, 5, 3), np.uint8)}) == "1x4x5x3"


def test_no_feed_is_a_fault_and_a_failing_engine_passes_through() -> None:
    with pytest.raises(ValueError, match="no feed"):
        timed(lambda _: 0.03, lambda _: 0.02, ())

    def broken(_: Feed) -> float:
        raise EngineError("out of memory")

    with pytest.raises(EngineError, match="out of memory"):
        timed(lambda _: 0.03, broken, weighted([feed(320)]))
