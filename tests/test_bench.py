"""Bench: figures of made engines by a made clock."""

from __future__ import annotations

import numpy as np
import pytest

from edge_agent.backends.base import Array, Feed, TensorSpec
from edge_agent.bench import Duration, Latency, bench_engine, made_feed, timed_runs
from edge_agent.errors import ConfigError
from tests.fakes import FakeEngine

IMAGE = TensorSpec("image", "uint8", (None, 48, None, 3))


def test_percentiles_are_nearest_rank() -> None:
    latency = Latency.of([n / 1000 for n in range(100, 0, -1)])
    assert (latency.count, latency.p50_ms, latency.p95_ms, latency.p99_ms) == (100, 50, 95, 99)
    assert latency.mean_ms == 50.5
    assert Latency.of([0.002]).p99_ms == 2.0


def test_warm_up_is_not_counted() -> None:
    now = [0.0]
    calls: list[int] = []

    def run(n: int) -> int:
        now[0] += 1.0
        calls.append(n)
        return n

    runs = timed_runs(run, Duration(warm_up_s=3, seconds=5), lambda: now[0])
    assert calls == list(range(8))
    assert runs == [(1.0, n) for n in range(3, 8)]


def test_engine_figures_come_from_its_own_halves() -> None:
    now = [0.0]

    def slow(feed: Feed) -> dict[str, Array]:
        now[0] += 0.010
        return {"index": np.zeros((len(feed["image"]), 4), np.int32)}

    class Engine(FakeEngine):
        def enqueue(self, feed: Feed) -> None:
            super().enqueue(feed)
            now[0] += 0.001

    figures = bench_engine(Engine(slow, (IMAGE,)), {"image": (2, 48, 96, 3)}, Duration(0.05, 0.2), lambda: now[0])
    assert figures["latency"]["p50_ms"] == 11.0
    assert figures["enqueue"]["p50_ms"] == 1.0
    assert figures["runs_per_s"] == pytest.approx(1 / 0.011, rel=1e-3)
    assert figures["outputs"] == {"index": [2, 4]}


@pytest.mark.parametrize(
    ("shapes", "says"),
    [({"image": (1, 32, 32, 3)}, "does not fit"), ({"picture": (1, 48, 32, 3)}, "no input 'picture'")],
)
def test_shape_that_does_not_fit_is_refused(shapes: dict[str, tuple[int, ...]], says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        made_feed((IMAGE,), shapes)


def test_made_feed_masks_are_ones_and_tokens_are_numbers() -> None:
    mask = TensorSpec("attention_mask", "int32", (None, None))
    tokens = TensorSpec("input_ids", "int64", (None, None))
    feed = made_feed((mask, tokens), {"attention_mask": (2, 8), "input_ids": (2, 8)})
    assert feed["attention_mask"].all()
    assert feed["input_ids"].dtype == np.int64
    assert feed["input_ids"].max() < 256
