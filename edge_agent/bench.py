"""Bench: how fast this machine reads. A pipeline end to end, or one engine by itself, over a duration after a warm-up.

Percentiles are nearest rank. Memory is this process's resident set; times are wall times unless named `gpu`.
"""

from __future__ import annotations

import math
import resource
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import psutil

from edge_agent.backends.base import Array, Engine, Feed, Shape, TensorSpec
from edge_agent.errors import ConfigError
from edge_agent.pipeline import Pipeline
from edge_agent.records import Frame
from edge_agent.stages.images import Image

Clock = Callable[[], float]


@dataclass(frozen=True)
class Latency:
    """Milliseconds of `count` runs."""

    count: int
    mean_ms: float
    p50_ms: float
    p95_ms: float
    p99_ms: float

    @staticmethod
    def of(seconds: Sequence[float]) -> Latency:
        """Of at least one run."""
        ordered = sorted(seconds)

        def percentile(share: float) -> float:
            return round(1e3 * ordered[max(0, math.ceil(share * len(ordered)) - 1)], 3)

        mean_ms = round(1e3 * sum(ordered) / len(ordered), 3)
        return Latency(len(ordered), mean_ms, percentile(0.50), percentile(0.95), percentile(0.99))


@dataclass(frozen=True)
class Duration:
    """How long to measure: `warm_up_s` uncounted, then `seconds`, at least one run of each."""

    warm_up_s: float = 2.0
    seconds: float = 10.0


def bench_pipeline(
    pipeline: Pipeline, images: Sequence[Image], duration: Duration, clock: Clock = time.perf_counter
) -> dict[str, Any]:
    """Frames/s and latency of each stage over `images` (uint8 (H, W, 3) BGR), by turns; no capture, no publishing."""
    if not images:
        raise ConfigError("there is no frame to measure with; name a folder of pictures with --frames")
    frames = [Frame("bench", n, 0.0, 0.0, image) for n, image in enumerate(images)]
    runs = timed_runs(lambda n: pipeline.read(frames[n % len(frames)]), duration, clock)
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
        **memory(),
    }


def bench_engine(
    engine: Engine, shapes: Mapping[str, Shape], duration: Duration, clock: Clock = time.perf_counter
) -> dict[str, Any]:
    """Runs/s and latency of one engine on made inputs of these shapes, and how long the first half of a run takes."""
    feed = made_feed(engine.inputs, shapes)
    enqueued: list[float] = []

    def run(_: int) -> dict[str, Array]:
        began = clock()
        engine.enqueue(feed)
        enqueued.append(clock() - began)
        return engine.collect()

    runs = timed_runs(run, duration, clock)
    seconds = [took for took, _ in runs]
    return {
        "engine": engine.fingerprint,
        "shapes": {name: list(array.shape) for name, array in feed.items()},
        "outputs": {name: list(array.shape) for name, array in runs[-1][1].items()},
        "runs_per_s": round(len(runs) / sum(seconds), 3),
        "latency": asdict(Latency.of(seconds)),
        "enqueue": asdict(Latency.of(enqueued[-len(runs) :])),
        **memory(),
    }


def timed_runs(run: Callable[[int], Any], duration: Duration, clock: Clock) -> list[tuple[float, Any]]:
    """(seconds, result) of each counted call of `run`, which gets the number of the call."""
    n, began = 0, clock()
    while n == 0 or clock() - began < duration.warm_up_s:
        run(n)
        n += 1
    runs: list[tuple[float, Any]] = []
    began = clock()
    while not runs or clock() - began < duration.seconds:
        before = clock()
        result = run(n)
        runs.append((clock() - before, result))
        n += 1
    return runs


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
