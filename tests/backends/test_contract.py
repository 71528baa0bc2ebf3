"""What every Engine promises, whatever computes it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from edge_agent.backends import BACKENDS
from edge_agent.backends.base import Array, Backend, Engine, Feed, TensorSpec
from edge_agent.backends.recording import RecordingEngine
from edge_agent.errors import EngineError, FrameError, ModelError
from edge_agent.registry import load
from tests.backends.small_models import mean_colour
from tests.fakes import FakeEngine

IMAGE = TensorSpec("image", "uint8", (None, None, None, 3))
KINDS = sorted(set(BACKENDS) - {"tensorrt"})  # tests/gpu holds it to the same promises, with profiles


def backend(kind: str) -> Backend:
    made: Backend = load(BACKENDS, kind, "backend")(1)
    return made


def fake(path: Path) -> FakeEngine:
    def answer(feed: Feed) -> dict[str, Array]:
        image = feed["image"]
        return {"colour": image.mean(axis=(1, 2), dtype=np.float32), "height": np.array(image.shape[1])}

    return FakeEngine(answer, (IMAGE,), (TensorSpec("colour", "float32", (None, 3)), TensorSpec("height", "int64", ())))


def recording(path: Path) -> Engine:
    return RecordingEngine(backend("onnxruntime").load(path), lambda feed: None)


@pytest.fixture(params=[*KINDS, "fake", "recording"])
def make(request: pytest.FixtureRequest) -> Callable[[Path], Engine]:
    if request.param == "fake":
        return fake
    if request.param == "recording":
        return recording
    return backend(request.param).load


@pytest.fixture
def engine(make: Callable[[Path], Engine], tmp_path: Path) -> Iterator[Engine]:
    made = make(mean_colour(tmp_path / "model.onnx"))
    yield made
    made.close()


def picture(value: int, count: int = 1, height: int = 4, width: int = 6) -> Array:
    return np.full((count, height, width, 3), value, np.uint8)


def test_engine_names_its_tensors(engine: Engine) -> None:
    assert engine.inputs == (IMAGE,)
    assert [(spec.name, spec.dtype) for spec in engine.outputs] == [("colour", "float32"), ("height", "int64")]


def test_outputs_come_by_name_and_fit_their_specs(engine: Engine) -> None:
    outputs = engine.infer({"image": picture(7, count=2)})
    assert list(outputs) == [spec.name for spec in engine.outputs]
    np.testing.assert_array_equal(outputs["colour"], np.full((2, 3), 7, np.float32))
    assert all(spec.accepts(outputs[spec.name].shape) for spec in engine.outputs)


def test_outputs_stay_valid_after_later_calls_and_close(engine: Engine) -> None:
    first = engine.infer({"image": picture(10)})["colour"]
    for value in range(20, 40):
        engine.infer({"image": picture(value)})
    engine.close()
    np.testing.assert_array_equal(first, [[10, 10, 10]])


def test_outputs_belong_to_the_caller(engine: Engine) -> None:
    first = engine.infer({"image": picture(10)})["colour"]
    first += 5
    np.testing.assert_array_equal(engine.infer({"image": picture(10)})["colour"], [[10, 10, 10]])


def test_feed_is_left_as_it_was(engine: Engine) -> None:
    image = picture(3)
    image.flags.writeable = False
    engine.infer({"image": image})
    assert (image == 3).all()


def test_view_with_strides_is_read_right(engine: Engine) -> None:
    image = np.random.default_rng(0).integers(0, 255, (2, 8, 12, 3), np.uint8)
    view = image[::-1, ::2, 1::3, ::-1]
    np.testing.assert_allclose(
        engine.infer({"image": view})["colour"], view.mean(axis=(1, 2)), rtol=1e-5, err_msg="strides were ignored"
    )


def test_shapes_may_change_from_call_to_call(engine: Engine) -> None:
    for height in (1, 9, 3):
        assert engine.infer({"image": picture(1, height=height)})["height"] == height


@pytest.mark.parametrize(
    "feed",
    [
        pytest.param({}, id="nothing"),
        pytest.param({"picture": picture(0)}, id="another name"),
        pytest.param({"image": picture(0), "mask": picture(0)}, id="one too many"),
        pytest.param({"image": picture(0).astype(np.float32)}, id="another type"),
        pytest.param({"image": picture(0)[0]}, id="another rank"),
        pytest.param({"image": picture(0)[..., :2]}, id="two channels"),
        pytest.param({"image": picture(0)[:0]}, id="empty"),
        pytest.param({"image": picture(0).tolist()}, id="a list"),
    ],
)
def test_feed_that_does_not_fit_is_a_frame_error(engine: Engine, feed: Feed) -> None:
    with pytest.raises(FrameError, match=r"feed has|image"):
        engine.infer(feed)
    engine.infer({"image": picture(1)})  # the engine lives on


def test_closing_twice_is_fine(engine: Engine) -> None:
    engine.close()
    engine.close()


@pytest.mark.parametrize("kind", KINDS)
def test_closed_engine_refuses_to_infer(kind: str, tmp_path: Path) -> None:
    engine = backend(kind).load(mean_colour(tmp_path / "model.onnx"))
    engine.close()
    with pytest.raises(EngineError, match="closed"):
        engine.infer({"image": picture(1)})


@pytest.mark.parametrize("kind", KINDS)
def test_fingerprint_tells_models_apart_by_their_bytes(kind: str, tmp_path: Path) -> None:
    paths = [mean_colour(tmp_path / "a.onnx"), mean_colour(tmp_path / "b.onnx"), mean_colour(tmp_path / "c.onnx", 2.0)]
    engines = [backend(kind).load(path) for path in paths]
    same, again, other = (engine.fingerprint for engine in engines)
    for engine in engines:
        engine.close()
    assert same == again != other


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("content", [None, b"", b"no model at all"], ids=["missing", "empty", "garbage"])
def test_file_that_is_no_model_is_a_model_error_that_names_it(kind: str, content: bytes | None, tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ModelError, match=r"model\.onnx.*models fetch"):
        backend(kind).load(path)


def test_two_halves_are_one_run(engine: Engine) -> None:
    engine.enqueue({"image": picture(7)})
    np.testing.assert_array_equal(engine.collect()["colour"], [[7, 7, 7]])


def test_second_run_before_the_first_is_collected_is_refused(engine: Engine) -> None:
    engine.enqueue({"image": picture(7)})
    with pytest.raises(EngineError):
        engine.enqueue({"image": picture(8)})
    np.testing.assert_array_equal(engine.collect()["colour"], [[7, 7, 7]])


def test_nothing_enqueued_means_nothing_to_collect(engine: Engine) -> None:
    with pytest.raises(EngineError):
        engine.collect()


def test_feed_that_does_not_fit_leaves_no_run_behind(engine: Engine) -> None:
    with pytest.raises(FrameError):
        engine.enqueue({"image": picture(7).astype(np.float32)})
    np.testing.assert_array_equal(engine.infer({"image": picture(9)})["colour"], [[9, 9, 9]])
