"""Timing: how much faster INT8 is, both engines measured in one run, by turns, on the inputs that the site has.

Each lap runs every feed in the order A B B A, and every other lap B A A B, so that what drifts (heat, other programs)
meets both alike. A feed counts as often as its shape was recorded.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from edge_agent.backends.base import Engine, Feed
from edge_agent.errors import SensorError
from edge_agent.telemetry.energy import EnergySources

Clock = Callable[[], float]
Times = npt.NDArray[np.float64]

LEAST_LAPS = 2  # one in each order
RESAMPLES = 400
SPREAD = (5.0, 95.0)  # percentiles of the resampled ratios


@dataclass(frozen=True, eq=False)
class WeightedFeed:
    """A recorded feed that stands for all of its shape: `weight` is how often that was recorded."""

    feed: Feed
    shape: str
    weight: float


@dataclass(frozen=True)
class TimingLimits:
    """How long is measured: uncounted laps first, then laps until `seconds` have gone by or `most_laps` are made, at
    least LEAST_LAPS. Energy is measured in blocks of `block_s`, four of each engine, where there are counters."""

    warm_up_laps: int = 1
    most_laps: int = 50
    seconds: float = 20.0
    block_s: float = 2.0


@dataclass(frozen=True)
class FeedTimes:
    """One shape: its weight, and the median of one run of either engine."""

    shape: str
    weight: float
    float_ms: float
    int8_ms: float


@dataclass(frozen=True)
class RunTimes:
    """One engine: weighted mean of its feeds' medians, weighted percentiles (nearest rank) of all its runs, their
    number, and joules of one run (None without a counter; whole package or board, whoever uses it)."""

    mean_ms: float
    p50_ms: float
    p95_ms: float
    runs: int
    energy_j: float | None = None


@dataclass(frozen=True)
class Timing:
    """`speedup`: float time over INT8 time (above 1: INT8 is faster), and the interval that holds it in 90 % of
    resamplings of the laps (Efron's bootstrap, with a fixed seed)."""

    speedup: float
    speedup_low: float
    speedup_high: float
    float_: RunTimes
    int8: RunTimes
    feeds: tuple[FeedTimes, ...]
    laps: int
    no_energy: tuple[str, ...] = ()

    @property
    def energy_ratio(self) -> float | None:
        """Float joules over INT8 joules of one run; None where they are not known."""
        if not self.float_.energy_j or not self.int8.energy_j:
            return None
        return self.float_.energy_j / self.int8.energy_j


def shape_of(feed: Feed) -> str:
    """`8x48x320x3`: the shape of the feed's largest input, which tells the cost of a run."""
    largest = max(feed.values(), key=lambda array: (array.size, array.shape))
    return "x".join(map(str, largest.shape))


def weighted(
    feeds: Iterable[Feed], counts: Mapping[str, int] | None = None, most_shapes: int = 12
) -> tuple[WeightedFeed, ...]:
    """The first feed of each shape, weighted by how often the shape was recorded: by `counts` (shape -> count) where
    it tells, else by the feeds given. Of more than `most_shapes` shapes, `most_shapes` that stand for the others: in
    order of size, each in the middle of an equal share of the whole weight."""
    first: dict[str, Feed] = {}
    given: dict[str, int] = {}
    for feed in feeds:
        shape = shape_of(feed)
        first.setdefault(shape, feed)
        given[shape] = given.get(shape, 0) + 1
    weights = {shape: float((counts or {}).get(shape, count)) for shape, count in given.items()}
    by_size = sorted(weights, key=lambda shape: (max(array.size for array in first[shape].values()), shape))
    if len(by_size) > most_shapes:
        weights = _spread_over(by_size, weights, most_shapes)
    return tuple(WeightedFeed(first[shape], shape, weights[shape]) for shape in by_size if shape in weights)


def _spread_over(by_size: Sequence[str], weights: Mapping[str, float], most: int) -> dict[str, float]:
    """The shapes in the middle of `most` equal shares of the weight, each with its share; fewer where one shape is in
    the middle of several."""
    reached = np.cumsum([weights[shape] for shape in by_size])
    kept: dict[str, float] = {}
    for part in range(most):
        shape = by_size[int(np.searchsorted(reached, (part + 0.5) / most * reached[-1]))]
        kept[shape] = kept.get(shape, 0.0) + float(reached[-1]) / most
    return kept


def compare_speed(
    float_: Engine,
    int8: Engine,
    feeds: Sequence[WeightedFeed],
    limits: TimingLimits,
    energy: EnergySources,
    clock: Clock = time.perf_counter,
) -> Timing:
    """Runs both engines by turns over the feeds. `clock` in seconds.

    Raises ValueError without feeds, FrameError and EngineError as `infer` does.
    """
    if not feeds:
        raise ValueError("there is no feed to measure with; record feeds first")
    engines = (float_, int8)
    for lap in range(limits.warm_up_laps):
        _lap(engines, feeds, lap, clock)
    laps: list[Times] = []
    began = clock()
    while len(laps) < LEAST_LAPS or (len(laps) < limits.most_laps and clock() - began < limits.seconds):
        laps.append(_lap(engines, feeds, len(laps), clock))
    times = np.stack(laps)
    weights = np.array([feed.weight for feed in feeds], np.float64)
    medians_ms = 1e3 * np.median(times, axis=(0, 3))  # engine x feed
    joules, no_energy = energy_or_why_not(engines, feeds, limits.block_s, energy, clock)
    low, high = _spread(times, weights)
    return Timing(
        speedup=_speedup(times, weights),
        speedup_low=low,
        speedup_high=high,
        float_=_run_times(1e3 * times[:, 0], weights, medians_ms[0], joules[0]),
        int8=_run_times(1e3 * times[:, 1], weights, medians_ms[1], joules[1]),
        feeds=tuple(
            FeedTimes(one.shape, one.weight, float(float_ms), float(int8_ms))
            for one, float_ms, int8_ms in zip(feeds, *medians_ms, strict=True)
        ),
        laps=len(laps),
        no_energy=no_energy,
    )


def _lap(engines: tuple[Engine, Engine], feeds: Sequence[WeightedFeed], lap: int, clock: Clock) -> Times:
    """Seconds of each run, (engine, feed, 2)."""
    order = (0, 1, 1, 0) if lap % 2 == 0 else (1, 0, 0, 1)
    took = np.zeros((2, len(feeds), 2))
    for n, weighted_feed in enumerate(feeds):
        runs = [0, 0]
        for side in order:
            before = clock()
            engines[side].infer(weighted_feed.feed)
            took[side, n, runs[side]] = clock() - before
            runs[side] += 1
    return took


def _run_times(times_ms: Times, weights: Times, medians_ms: Times, energy_j: float | None) -> RunTimes:
    """Of one engine's runs, (lap, feed, 2)."""
    runs = np.moveaxis(times_ms, 1, -1)
    each = np.broadcast_to(weights, runs.shape).ravel()
    p50_ms, p95_ms = (_weighted_percentile(runs.ravel(), each, q) for q in (50.0, 95.0))
    return RunTimes(float(medians_ms @ weights / weights.sum()), p50_ms, p95_ms, runs.size, energy_j)


def _weighted_percentile(values: Times, weights: Times, q: float) -> float:
    """Nearest rank: the smallest value that, with all below it, holds at least q % of the weight."""
    order = np.argsort(values, kind="stable")
    reached = np.cumsum(weights[order])
    at = int(np.searchsorted(reached, q / 100 * reached[-1] - 1e-12))
    return float(values[order[min(at, len(values) - 1)]])


def _speedup(times: Times, weights: Times) -> float:
    """Weighted float time over weighted INT8 time; of each feed the median over laps of how A B B A compare, so that
    neither drift nor single slow runs tell."""
    by_lap = times.sum(axis=3)
    ratios = np.median(by_lap[:, 0] / np.maximum(by_lap[:, 1], 1e-12), axis=0)
    float_s = np.median(times[:, 0], axis=(0, 2))
    return float(float_s @ weights / max(float(float_s / np.maximum(ratios, 1e-12) @ weights), 1e-12))


def _spread(times: Times, weights: Times) -> tuple[float, float]:
    """The interval of the speedup over resampled laps."""
    rng = np.random.default_rng(0)
    picks = rng.integers(0, len(times), (RESAMPLES, len(times)))
    low, high = np.percentile([_speedup(times[laps], weights) for laps in picks], SPREAD)
    return float(low), float(high)


def energy_or_why_not(
    engines: tuple[Engine, Engine],
    feeds: Sequence[WeightedFeed],
    block_s: float,
    energy: EnergySources,
    clock: Clock,
) -> tuple[tuple[float | None, float | None], tuple[str, ...]]:
    """Joules of one run of either engine, and why there are none; a counter that falls silent ends no calibration."""
    try:
        return energy_per_run(engines, feeds, block_s, energy, clock), energy.absent
    except (SensorError, OSError) as exc:
        return (None, None), (*energy.absent, str(exc))


def energy_per_run(
    engines: tuple[Engine, Engine],
    feeds: Sequence[WeightedFeed],
    block_s: float,
    energy: EnergySources,
    clock: Clock,
) -> tuple[float | None, float | None]:
    """Joules of one run of either engine, all counters added: in blocks A B B A B A A B of at least `block_s`, in which
    feeds come in proportion to their weights. Counters tick too rarely to measure single runs. None without any."""
    if not energy.counters:
        return None, None
    order = in_proportion([feed.weight for feed in feeds])
    joules, runs = [0.0, 0.0], [0, 0]
    for side in (0, 1, 1, 0, 1, 0, 0, 1):
        before = [counter.read() for counter in energy.counters]
        began = clock()
        while True:
            for n in order:
                engines[side].infer(feeds[n].feed)
            runs[side] += len(order)
            if clock() - began >= block_s:
                break
        joules[side] += sum(c.since(j) for c, j in zip(energy.counters, before, strict=True))
    return joules[0] / runs[0], joules[1] / runs[1]


def in_proportion(weights: Sequence[float], slots: int = 24) -> list[int]:
    """Indices, each as often as its weight says in about `slots` places and at least once, spread evenly."""
    total = sum(weights)
    times = [max(1, round(slots * weight / total)) for weight in weights]
    return [n for _, n in sorted(((k + 0.5) / count, n) for n, count in enumerate(times) for k in range(count))]
