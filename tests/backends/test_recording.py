"""Recording: what ran is kept, as it was; nothing else changes. tests/backends/test_contract.py holds the rest."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from edge_agent.backends.base import Array, Feed, Profiled, TensorSpec, TimedOnGpu
from edge_agent.backends.ort import OrtBackend
from edge_agent.backends.recording import RecordingEngine
from edge_agent.errors import CalibrationRefused, EngineError, FrameError
from tests.backends.small_models import fragile, mean_colour
from tests.fakes import FakeEngine


def picture(value: int, count: int = 1, height: int = 4) -> Array:
    return np.full((count, height, 6, 3), value, np.uint8)


def recorded(path: Path) -> tuple[RecordingEngine, list[Feed]]:
    kept: list[Feed] = []
    return RecordingEngine(OrtBackend(1).load(path), kept.append), kept


def test_each_feed_that_ran_is_handed_on_in_order(tmp_path: Path) -> None:
    engine, kept = recorded(mean_colour(tmp_path / "model.onnx"))
    engine.infer({"image": picture(1)})
    engine.enqueue({"image": picture(2, height=8)})
    assert len(kept) == 1, "a run under way has not ended well yet"
    engine.collect()
    assert [(feed["image"].shape[1], int(feed["image"].max())) for feed in kept] == [(4, 1), (8, 2)]
    assert engine.runs == 2


def test_feed_is_copied_so_that_a_buffer_used_again_does_not_change_it(tmp_path: Path) -> None:
    engine, kept = recorded(mean_colour(tmp_path / "model.onnx"))
    buffer = picture(1)
    engine.infer({"image": buffer[:, ::-1]})
    buffer[:] = 9
    np.testing.assert_array_equal(kept[0]["image"], picture(1))
    assert kept[0]["image"].flags.c_contiguous


def test_outputs_and_fingerprint_are_the_inner_engines(tmp_path: Path) -> None:
    plain = OrtBackend(1).load(mean_colour(tmp_path / "model.onnx"))
    engine, _ = recorded(tmp_path / "model.onnx")
    assert (engine.fingerprint, engine.inputs, engine.outputs) == (plain.fingerprint, plain.inputs, plain.outputs)
    feed = {"image": np.random.default_rng(0).integers(0, 256, (2, 5, 7, 3), np.uint8)}
    for name, array in plain.infer(feed).items():
        np.testing.assert_array_equal(engine.infer(feed)[name], array)


def test_feed_that_does_not_fit_is_not_recorded(tmp_path: Path) -> None:
    engine, kept = recorded(mean_colour(tmp_path / "model.onnx"))
    with pytest.raises(FrameError):
        engine.infer({"image": picture(1).astype(np.float32)})
    with pytest.raises(FrameError):
        engine.enqueue({"image": picture(1)[0]})
    with pytest.raises(EngineError):
        engine.collect()
    assert (kept, engine.runs) == ([], 0)


def test_run_that_fails_is_not_recorded(tmp_path: Path) -> None:
    engine, kept = recorded(fragile(tmp_path / "model.onnx"))
    with pytest.raises(EngineError):
        engine.infer({"image": picture(1)})
    engine.enqueue({"image": picture(2)})
    with pytest.raises(EngineError):
        engine.collect()
    assert (kept, engine.runs) == ([], 0)
    engine.infer({"image": picture(3, height=1)[:, :, :2]})
    assert len(kept) == 1


def test_feed_refused_while_a_run_is_under_way_does_not_take_its_place(tmp_path: Path) -> None:
    engine, kept = recorded(mean_colour(tmp_path / "model.onnx"))
    engine.enqueue({"image": picture(1)})
    with pytest.raises(EngineError):
        engine.enqueue({"image": picture(2)})
    engine.collect()
    assert [int(feed["image"].max()) for feed in kept] == [1]


def test_sink_that_cannot_keep_a_feed_is_heard(tmp_path: Path) -> None:
    def full(feed: Feed) -> None:
        raise CalibrationRefused("no space left")

    engine = RecordingEngine(OrtBackend(1).load(mean_colour(tmp_path / "model.onnx")), full)
    with pytest.raises(CalibrationRefused, match="no space left"):
        engine.infer({"image": picture(1)})


def test_measuring_is_not_offered_because_it_would_be_recorded(tmp_path: Path) -> None:
    engine, _ = recorded(mean_colour(tmp_path / "model.onnx"))
    assert not isinstance(engine, Profiled)
    assert not isinstance(engine, TimedOnGpu)


def test_closing_closes_the_inner_engine() -> None:
    inner = FakeEngine(lambda feed: {}, (TensorSpec("image", "uint8", (None, None, None, 3)),))
    RecordingEngine(inner, lambda feed: None).close()
    assert inner.closed
