"""Bench: how fast this machine reads. A pipeline end to end, or one engine by itself, over a duration after a warm-up.

Percentiles are nearest rank. Times are wall times unless named `gpu`, memory of the host is this process's resident
set. GPU memory is what the device has less than when the backend opened it: CUDA's context is in neither figure.
"""

from __future__ import annotations

import math
import resource
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Protocol, TypeVar, runtime_checkable

import numpy as np
import psutil

from edge_agent.backends.base import Array, Backend, Engine, Feed, Profiled, Shape, TensorSpec, TimedOnGpu
from edge_agent.backends.gpu import OnGpu
from edge_agent.backends.plan import Manifest
from edge_agent.backends.profiles import ShapeLog
from edge_agent.errors import ConfigError, FrameError
from edge_agent.pipeline import Pipeline
from edge_agent.records import Frame, Reading
from edge_agent.stages.images import Image
from edge_agent.telemetry.energy import EnergySources

Clock = Callable[[], float]
T = TypeVar("T")

GPU_RUNS = 50
LAYER_RUNS = 20


@runtime_checkable
class FromPlan(Protocol):
    """An engine that was loaded from a plan, and counts the shapes that it runs for the site's profiles."""

    manifest: Manifest
    shapes: ShapeLog


@runtime_checkable
class OnThreads(Protocol):
    """An engine that computes on the CPU."""

    threads: int


@dataclass(frozen=True)
class Latency:
    """Milliseconds of `count` runs."""

    count: int
    mean_ms: float
    p50_ms: float
    p95_ms: float
    p99_ms: float

    @staticmethod
    def of(seconds: Iterable[float]) -> Latency:
        """Of at least one run."""
        ordered = sorted(seconds)

        def percentile(share: float) -> float:
            return round(1e3 * ordered[max(0, math.ceil(share * len(ordered)) - 1)], 4)

        mean_ms = round(1e3 * sum(ordered) / len(ordered), 4)
        return Latency(len(ordered), mean_ms, percentile(0.50), percentile(0.95), percentile(0.99))


@dataclass(frozen=True)
class Duration:
    """How long to measure: `warm_up_s` uncounted, then `seconds`, at least one run of each."""

    warm_up_s: float = 2.0
    seconds: float = 10.0


@dataclass
class Runs:
    """Runs of engines: how long each took, how long its first half (`enqueue`), and all of them together, s."""

    took_s: list[float] = field(default_factory=list)
    enqueue_s: list[float] = field(default_factory=list)
    wall_s: float = 0.0
    outputs: Mapping[str, Array] = field(default_factory=dict)


def bench_pipeline(
    pipeline: Pipeline,
    images: Sequence[Image],
    duration: Duration,
    energy: EnergySources,
    clock: Clock = time.perf_counter,
) -> dict[str, Any]:
    """Frames/s and latency of each stage over `images` (uint8 (H, W, 3) BGR), by turns; no capture, no publishing.

    As in the agent, where engines compute beside the CPU the next frame's detection runs during this frame's work.
    """
    if not images:
        raise ConfigError("there is no frame to measure with; name a folder of pictures with --frames")
    frames = [Frame("bench", n, 0.0, 0.0, image) for n, image in enumerate(images)]

    def read(n: int) -> Reading:
        return pipeline.read(frames[n % len(frames)], lambda: frames[(n + 1) % len(frames)])

    timed_runs(read, duration.warm_up_s, clock)
    runs, cost = with_energy(energy, clock, lambda: timed_runs(read, duration.seconds, clock))
    pipeline.read(frames[len(runs) % len(frames)])  # ends the search that the last run began
    stages: dict[str, list[float]] = {}
    for _, reading in runs:
        for stage, ms in reading.timings_ms.items():
            stages.setdefault(stage, []).append(ms / 1e3)
    return {
        "backend": pipeline.backend.name,
        "engines": dict(pipeline.fingerprints),
        "frames": len(frames),
        "lines_per_frame": round(sum(len(reading.lines) for _, reading in runs) / len(runs), 2),
        "fps": round(len(runs) / sum(seconds for seconds, _ in runs), 3),
        "latency": {stage: asdict(Latency.of(seconds)) for stage, seconds in stages.items()},
        "power": power(cost, len(runs), "frame", energy),
        **memory(),
    }


def bench_engine(
    engines: Sequence[Engine],
    feed: Feed,
    duration: Duration,
    energy: EnergySources,
    clock: Clock = time.perf_counter,
) -> dict[str, Any]:
    """Runs/s and latency of engines of one model, and where they can tell it the GPU's own times.

    Several engines are enqueued in turn, so that up to so many runs are under way; a run's latency then holds the wait
    for the runs before it. Raises ConfigError for a feed that does not fit.
    """
    try:
        runs_in_turn(engines, feed, duration.warm_up_s, clock)
    except FrameError as exc:
        raise ConfigError(f"{exc} (--batch and --shape say what is run)") from exc
    runs, cost = with_energy(energy, clock, lambda: runs_in_turn(engines, feed, duration.seconds, clock))
    rate = len(runs.took_s) / runs.wall_s
    engine = engines[0]
    gpu = engine.gpu_times(feed, GPU_RUNS) if isinstance(engine, TimedOnGpu) else None
    return {
        "engine": engine.fingerprint,
        "streams": len(engines),
        "shapes": {name: list(array.shape) for name, array in feed.items()},
        "outputs": {name: list(array.shape) for name, array in runs.outputs.items()},
        "runs_per_s": round(rate, 3),
        "items_per_s": round(rate * next(iter(feed.values())).shape[0], 3),
        "latency": asdict(Latency.of(runs.took_s)),
        "enqueue": asdict(Latency.of(runs.enqueue_s)),
        "gpu": None
        if gpu is None
        else {
            part: asdict(Latency.of(ms / 1e3 for ms in times))
            for part, times in (("h2d", gpu.h2d_ms), ("compute", gpu.compute_ms), ("d2h", gpu.d2h_ms))
        },
        "power": power(cost, len(runs.took_s), "run", energy),
        **of_plan(engine),
        **({"threads": engine.threads} if isinstance(engine, OnThreads) else {}),
        **memory(),
    }


def layers(engine: Engine, feed: Feed, seconds: float, run_ms: float) -> list[dict[str, Any]]:
    """Each layer's mean time and share, in the order in which they run; over LAYER_RUNS runs of about `run_ms`, fewer
    where they would take longer than `seconds`. ConfigError where the engine cannot tell."""
    runs = max(1, min(LAYER_RUNS, int(1e3 * seconds / max(run_ms, 1e-3))))
    if not isinstance(engine, Profiled):
        raise ConfigError(f"engine {engine.fingerprint} cannot tell what its layers take; leave out --layers")
    return [
        {**asdict(layer), "ms": round(layer.ms, 5), "share": round(layer.share, 5)}
        for layer in engine.layers(feed, runs)
    ]


def timed_runs(run: Callable[[int], T], seconds: float, clock: Clock) -> list[tuple[float, T]]:
    """(seconds, result) of each call of `run`, which gets the number of the call; at least one."""
    runs: list[tuple[float, T]] = []
    began = clock()
    while not runs or clock() - began < seconds:
        before = clock()
        result = run(len(runs))
        runs.append((clock() - before, result))
    return runs


def runs_in_turn(engines: Sequence[Engine], feed: Feed, seconds: float, clock: Clock) -> Runs:
    """Runs of `feed` by these engines in turn, each started anew as soon as its run is collected; at least one."""
    runs = Runs()
    under_way: deque[tuple[Engine, float]] = deque()
    began = clock()

    def start(engine: Engine) -> None:
        before = clock()
        engine.enqueue(feed)
        runs.enqueue_s.append(clock() - before)
        under_way.append((engine, before))

    for engine in engines:
        start(engine)
    while under_way:
        engine, before = under_way.popleft()
        runs.outputs = engine.collect()
        runs.took_s.append(clock() - before)
        if clock() - began < seconds:
            start(engine)
    runs.wall_s = clock() - began
    return runs


def with_energy(energy: EnergySources, clock: Clock, work: Callable[[], T]) -> tuple[T, dict[str, tuple[float, float]]]:
    """The result of `work`, and of each counter the joules and seconds that went by meanwhile."""
    before = [(counter, counter.read(), clock()) for counter in energy.counters]
    result = work()
    return result, {counter.name: (counter.since(before_j), clock() - at) for counter, before_j, at in before}


def power(
    cost: Mapping[str, tuple[float, float]], count: int, unit: str, energy: EnergySources
) -> dict[str, dict[str, float] | list[str]]:
    """Watts of each counter's device and joules per `unit`; under `absent` why there are no others."""
    figures: dict[str, dict[str, float] | list[str]] = {
        name: {"power_w": round(spent_j / max(seconds, 1e-9), 2), f"j_per_{unit}": round(spent_j / count, 5)}
        for name, (spent_j, seconds) in cost.items()
    }
    return {**figures, "absent": list(energy.absent)}


def of_plan(engine: Engine) -> dict[str, Any]:
    """Of an engine that has a plan: its size, precision and how long its build took."""
    if not isinstance(engine, FromPlan):
        return {}
    return {
        "plan_mb": round(engine.manifest.plan_bytes / 1e6, 2),
        "build_s": engine.manifest.build_s,
        "precision": engine.manifest.key.options.precision,
        "optimisation_level": engine.manifest.key.options.optimisation_level,
    }


def forget_shapes(engines: Iterable[Engine]) -> None:
    """Keeps what was measured out of the site's own count of shapes, from which profiles are suggested."""
    for engine in engines:
        if isinstance(engine, FromPlan):
            engine.shapes.runs.clear()


def gpu_memory(backend: Backend) -> dict[str, Any] | None:
    """What the GPU had when the backend opened it, has now, the scratch block, the pools; None without a GPU."""
    if not isinstance(backend, OnGpu):
        return None
    free_before_bytes, free_after_bytes = backend.gpu.free_at_start_bytes, backend.gpu.free_bytes()
    counters = backend.counters()
    return {
        "free_before_mb": round(free_before_bytes / 1e6, 1),
        "free_after_mb": round(free_after_bytes / 1e6, 1),
        "used_mb": round((free_before_bytes - free_after_bytes) / 1e6, 1),
        "scratch_mb": round(counters["scratch_bytes"] / 1e6, 1),
        "pool": counters["pool"],
    }


def made_feed(inputs: Sequence[TensorSpec], shapes: Mapping[str, Shape], seed: int = 0) -> Feed:
    """Arrays of the inputs' dtypes: noise for pictures, ones for masks, small numbers for tokens.

    Raises ConfigError for a shape that does not fit, or is missing where the input has dynamic dimensions.
    """
    rng = np.random.default_rng(seed)
    unknown = sorted(set(shapes) - {spec.name for spec in inputs})
    if unknown:
        raise ConfigError(f"there is no input {unknown[0]!r}; expected {', '.join(str(spec) for spec in inputs)}")
    feed: dict[str, Array] = {}
    for spec in inputs:
        shape = shapes.get(spec.name) or tuple(1 if size is None else size for size in spec.shape)
        if not spec.accepts(shape):
            raise ConfigError(f"shape {shape} does not fit {spec}; give one as --shape {spec.name}=1x48x320x3")
        if spec.name.endswith("mask"):
            feed[spec.name] = np.ones(shape, spec.dtype)
        elif np.issubdtype(np.dtype(spec.dtype), np.floating):
            feed[spec.name] = rng.random(shape, np.float32).astype(spec.dtype)
        else:
            feed[spec.name] = rng.integers(0, 256, shape).astype(spec.dtype)
    return feed


def memory() -> dict[str, float]:
    """Resident memory of this process now and at its peak, MB."""
    peak_kb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss  # getrusage(2): kilobytes on Linux
    return {
        "rss_mb": round(psutil.Process().memory_info().rss / 1e6, 1),
        "peak_rss_mb": round(peak_kb * 1024 / 1e6, 1),
    }
