"""Bench: figures of made engines by a made clock, and of a TensorRT engine over the fakes of TensorRT and CUDA."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from edge_agent.backends.base import Array, Feed, LayerTime, Profile, TensorSpec
from edge_agent.backends.gpu import gpu_bus_id
from edge_agent.backends.ort import OrtBackend
from edge_agent.backends.profiles import shapes_path
from edge_agent.backends.trt_settings import TrtSettings
from edge_agent.bench import (
    Duration,
    Latency,
    bench_engine,
    forget_shapes,
    gpu_memory,
    layers,
    made_feed,
    timed_runs,
)
from edge_agent.errors import ConfigError
from edge_agent.telemetry.energy import EnergyCounter, EnergySources
from tests.backends import fake_trt
from tests.backends.fake_cuda import fake_gpu
from tests.backends.small_models import mean_colour
from tests.fakes import FakeEngine

IMAGE = TensorSpec("image", "uint8", (None, 48, None, 3))
PROFILE = Profile({"image": (1, 8, 8, 3)}, {"image": (2, 16, 16, 3)}, {"image": (4, 32, 32, 3)})
NO_ENERGY = EnergySources((), ("no counters here",))
FEED = {"image": np.zeros((2, 48, 96, 3), np.uint8)}


class Clock:
    """Stands still unless it is moved."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


class SlowEngine(FakeEngine):
    """Takes 1 ms to enqueue and 10 ms to collect."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        super().__init__(self._slow, (IMAGE,))

    def _slow(self, feed: Feed) -> dict[str, Array]:
        self.clock.now += 0.010
        return {"index": np.zeros((len(feed["image"]), 4), np.int32)}

    def enqueue(self, feed: Feed) -> None:
        super().enqueue(feed)
        self.clock.now += 0.001


@pytest.fixture
def tensorrt(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Any]:
    """A TrtBackend over the fakes that has a plan for tmp_path/tiny/model.onnx."""
    fake = fake_trt.install(monkeypatch, "10.3.0")
    (tmp_path / "tiny").mkdir()
    path = mean_colour(tmp_path / "tiny" / "model.onnx")
    with fake.backend.TrtBackend(TrtSettings(tmp_path / "plans"), gpu=fake_gpu(fake.cuda)) as backend:
        backend.store.save(backend.key(path, (PROFILE,)), fake_trt.plan(), 12.5, 1 << 30)
        backend.path = path
        yield backend


def test_percentiles_are_nearest_rank() -> None:
    latency = Latency.of([n / 1000 for n in range(100, 0, -1)])
    assert (latency.count, latency.p50_ms, latency.p95_ms, latency.p99_ms) == (100, 50, 95, 99)
    assert latency.mean_ms == 50.5
    assert Latency.of([0.002]).p99_ms == 2.0


def test_runs_are_numbered_and_end_with_the_time() -> None:
    clock = Clock()

    def run(n: int) -> int:
        clock.now += 1.0
        return n

    assert timed_runs(run, 3, clock) == [(1.0, n) for n in range(3)]
    assert timed_runs(run, 0, clock) == [(1.0, 0)], "at least one"


def test_engine_figures_come_from_its_own_halves() -> None:
    clock = Clock()
    engine = SlowEngine(clock)
    figures = bench_engine([engine], FEED, Duration(0.05, 0.2), NO_ENERGY, clock)
    assert figures["latency"]["p50_ms"] == 11.0
    assert figures["enqueue"]["p50_ms"] == 1.0
    assert figures["runs_per_s"] == pytest.approx(1 / 0.011, rel=1e-3)
    assert figures["items_per_s"] == pytest.approx(2 / 0.011, rel=1e-3)
    assert figures["outputs"] == {"index": [2, 4]}
    assert figures["gpu"] is None
    assert figures["latency"]["count"] == 19
    assert len(engine.feeds) == 5 + 19, "the warm-up is not counted"


def test_several_engines_run_in_turn_with_all_under_way() -> None:
    clock = Clock()
    engines = [SlowEngine(clock), SlowEngine(clock)]
    figures = bench_engine(engines, FEED, Duration(0, 0.2), NO_ENERGY, clock)
    assert figures["streams"] == 2
    assert figures["latency"]["p50_ms"] == 22.0, "a run waits for the one of the other engine"
    assert figures["runs_per_s"] == pytest.approx(1 / 0.011, rel=1e-3)
    assert [engine.under_way for engine in engines] == [None, None]


def test_energy_is_divided_by_time_and_runs() -> None:
    clock = Clock()
    energy = EnergySources((EnergyCounter("package-0", lambda: 20.0 * clock.now),), ("no GPU",))
    figures = bench_engine([SlowEngine(clock)], FEED, Duration(0.5, 0.2), energy, clock)
    assert figures["power"]["package-0"] == {"power_w": 20.0, "j_per_run": 0.22}
    assert figures["power"]["absent"] == ["no GPU"]


def test_feed_that_the_engine_refuses_is_the_options_fault() -> None:
    engine = FakeEngine(lambda feed: {}, (IMAGE,))
    with pytest.raises(ConfigError, match="--batch and --shape"):
        bench_engine([engine], {"image": np.zeros((1, 32, 32, 3), np.uint8)}, Duration(0, 0), NO_ENERGY)


def test_tensorrt_engine_tells_gpu_times_plan_and_memory(tensorrt: Any) -> None:
    engine = tensorrt.load(tensorrt.path, (PROFILE,))
    feed = made_feed(engine.inputs, {"image": (2, 16, 16, 3)})
    figures = bench_engine([engine], feed, Duration(0, 0.05), NO_ENERGY)
    # the fake's GPU time is work done: one copy in, two kernels, two copies out
    assert [figures["gpu"][part]["p50_ms"] for part in ("h2d", "compute", "d2h")] == [1.0, 2.0, 2.0]
    assert figures["gpu"]["compute"]["count"] == 50
    assert (figures["build_s"], figures["precision"], figures["optimisation_level"]) == (12.5, "fp16", 3)
    assert figures["plan_mb"] == round(len(fake_trt.plan()) / 1e6, 2)
    memory = gpu_memory(tensorrt)
    assert memory is not None
    assert memory["pool"]["device"]["held_bytes"] > 0
    assert memory["free_before_mb"] == round((1 << 30) / 1e6, 1)
    assert gpu_bus_id(tensorrt) == "0000:3B:00.0"


def test_tensorrt_streams_are_engines_of_one_plan(tensorrt: Any) -> None:
    engines = [tensorrt.load(tensorrt.path, (PROFILE,)) for _ in range(3)]
    feed = made_feed(engines[0].inputs, {"image": (4, 8, 8, 3)})
    figures = bench_engine(engines, feed, Duration(0, 0.05), NO_ENERGY)
    assert figures["latency"]["count"] >= 3
    assert len({engine.stream.handle for engine in engines}) == 3
    assert figures["items_per_s"] == pytest.approx(4 * figures["runs_per_s"], rel=1e-3)


def test_measured_shapes_do_not_count_as_the_sites(tensorrt: Any, tmp_path: Path) -> None:
    engine = tensorrt.load(tensorrt.path, (PROFILE,))
    bench_engine([engine], made_feed(engine.inputs, {"image": (1, 8, 8, 3)}), Duration(0, 0), NO_ENERGY)
    forget_shapes([engine])
    engine.close()
    assert not shapes_path(tmp_path / "plans", "tiny").exists()


def test_layers_of_either_backend_share_out_the_whole(tensorrt: Any) -> None:
    with_cpu = OrtBackend(1).load(tensorrt.path)
    for engine in (tensorrt.load(tensorrt.path, (PROFILE,)), with_cpu):
        feed = made_feed(engine.inputs, {"image": (2, 16, 16, 3)})
        rows = layers(engine, feed, 0.1, 20.0)
        assert len(rows) > 1
        assert sum(row["share"] for row in rows) == pytest.approx(1.0, abs=1e-3)
        assert all(row["name"] and row["ms"] >= 0 for row in rows)
    with_cpu.close()


@pytest.mark.parametrize(("seconds", "run_ms", "runs"), [(10.0, 1.0, 20), (2.0, 500.0, 4), (0.0, 500.0, 1)])
def test_layers_take_no_longer_than_the_measurement(seconds: float, run_ms: float, runs: int) -> None:
    class Engine(FakeEngine):
        def layers(self, feed: Feed, runs: int) -> list[LayerTime]:
            return [LayerTime("only", "", float(runs), 1.0, "")]

    assert layers(Engine(lambda feed: {}, (IMAGE,)), FEED, seconds, run_ms)[0]["ms"] == runs


def test_engine_that_knows_no_layers_is_refused() -> None:
    with pytest.raises(ConfigError, match="leave out --layers"):
        layers(FakeEngine(lambda feed: {}, (IMAGE,)), FEED, 1.0, 1.0)


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
