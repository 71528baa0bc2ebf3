"""TensorRT engines on a real GPU: right for every shape, no allocation, one thread, errors that stay errors."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from edge_agent.backends.base import Profile
from edge_agent.backends.plan_store import StoredPlan
from edge_agent.errors import ConfigError, EngineError, FrameError, ModelError
from tests.conftest import ROOT
from tests.gpu import support

pytestmark = pytest.mark.gpu

SHAPES = [(1, 32, 32, 3), (3, 64, 96, 3), (4, 96, 96, 3), (2, 96, 256, 3), (1, 64, 128, 3), (2, 32, 32, 3)]


RUBBISH = b"this is no plan " * 1000


def picture(shape: tuple[int, ...], seed: int) -> npt.NDArray[np.uint8]:
    return np.random.default_rng(seed).integers(0, 255, shape, np.uint8)


@pytest.fixture(scope="module")
def reference(small_model: Path) -> Any:
    ort = pytest.importorskip("onnxruntime")
    session = ort.InferenceSession(str(small_model), providers=["CPUExecutionProvider"])
    return lambda image: session.run(None, {"image": image})[0]


def close_enough(got: npt.NDArray[Any], expected: npt.NDArray[Any]) -> bool:
    return bool(np.allclose(got, expected, rtol=0.02, atol=0.02 * float(np.abs(expected).max())))


def test_outputs_are_those_of_onnxruntime_for_every_shape_and_both_profiles(engine: Any, reference: Any) -> None:
    assert len(engine.profiles) == 2
    for n, shape in enumerate(SHAPES * 4):
        image = picture(shape, n)
        assert close_enough(engine.infer({"image": image})["peak"], reference(image)), shape
    assert engine.counters.graph_launches > 0, engine.counters
    assert engine.counters.capture_failures == 0


def test_graphs_and_plain_launches_agree_to_the_bit(backend: Any, plans_dir: Path, small_model: Path) -> None:
    from edge_agent.backends.trt import TrtBackend

    with_graphs = backend.load(small_model, support.IMAGE_PROFILES)
    plain_backend = TrtBackend(support.settings(plans_dir, graphs=False), gpu=backend.gpu)
    without = plain_backend.load(small_model, support.IMAGE_PROFILES)
    for n, shape in enumerate(SHAPES * 5):
        image = picture(shape, n)
        a, b = with_graphs.infer({"image": image}), without.infer({"image": image})
        assert np.array_equal(a["peak"], b["peak"]), (n, shape)
    assert with_graphs.counters.graph_launches > without.counters.graph_launches == 0
    with_graphs.close()
    without.close()


def test_mapped_host_memory_gives_the_same_outputs_without_copies(
    backend: Any, plans_dir: Path, small_model: Path
) -> None:
    from edge_agent.backends.gpu import open_gpu
    from edge_agent.backends.trt import TrtBackend

    copying = backend.load(small_model, support.IMAGE_PROFILES)
    with open_gpu(mapped=True) as gpu:
        mapped = TrtBackend(support.settings(plans_dir), gpu=gpu).load(small_model, support.IMAGE_PROFILES)
        assert gpu.pool.counters()["device"].active_bytes <= max(gpu.scratch.size_bytes, 1)
        for n, shape in enumerate(SHAPES * 5):
            image = picture(shape, n)
            assert np.array_equal(mapped.infer({"image": image})["peak"], copying.infer({"image": image})["peak"]), n
        mapped.close()
    copying.close()


def test_few_lanes_give_the_same_outputs_as_many(plans_dir: Path, backend: Any, small_model: Path) -> None:
    from edge_agent.backends.trt import TrtBackend

    many = backend.load(small_model, support.IMAGE_PROFILES)
    few = TrtBackend(support.settings(plans_dir, max_lanes=2), gpu=backend.gpu).load(
        small_model, support.IMAGE_PROFILES
    )
    for n in range(60):
        image = picture(SHAPES[(n * 5) % len(SHAPES)], n)
        assert np.array_equal(many.infer({"image": image})["peak"], few.infer({"image": image})["peak"]), n
    assert few.counters.contexts == 2
    many.close()
    few.close()


def test_two_engines_under_way_at_once_do_not_disturb_each_other(backend: Any, small_model: Path) -> None:
    one = backend.load(small_model, support.IMAGE_PROFILES)
    two = backend.load(small_model, support.IMAGE_PROFILES)
    images = [picture(shape, n) for n, shape in enumerate(SHAPES)]
    alone = [one.infer({"image": image})["peak"] for image in images]
    for n in range(200):
        first, second = n % len(images), (n * 5 + 1) % len(images)
        one.enqueue({"image": images[first]})
        two.enqueue({"image": images[second]})
        assert np.array_equal(two.collect()["peak"], alone[second]), n
        assert np.array_equal(one.collect()["peak"], alone[first]), n
    one.close()
    two.close()


def test_two_thousand_frames_of_changing_shapes_allocate_nothing(backend: Any, engine: Any) -> None:
    for n, shape in enumerate(SHAPES * 3):
        engine.infer({"image": picture(shape, n)})
    before, free, contexts = backend.gpu.pool.counters(), backend.gpu.free_bytes(), engine.counters.contexts
    for n in range(2000):
        engine.infer({"image": picture(SHAPES[(n * 5) % len(SHAPES)], n % 7)})
    assert backend.gpu.pool.counters() == before
    assert engine.counters.contexts == contexts
    assert abs(backend.gpu.free_bytes() - free) <= 4 << 20


def test_shape_outside_the_profiles_is_a_frame_error_and_the_next_frame_is_right(engine: Any, reference: Any) -> None:
    good = picture((2, 64, 64, 3), 1)
    engine.infer({"image": good})
    for shape in [(5, 32, 32, 3), (1, 31, 32, 3), (2, 96, 257, 3), (4, 96, 97, 3)]:
        with pytest.raises(FrameError, match="fits no profile"):
            engine.infer({"image": np.zeros(shape, np.uint8)})
    assert close_enough(engine.infer({"image": good})["peak"], reference(good))


def test_wrong_thread_gets_an_engine_error(engine: Any) -> None:
    errors: list[str] = []

    def elsewhere() -> None:
        try:
            engine.infer({"image": picture((1, 32, 32, 3), 0)})
        except EngineError as exc:
            errors.append(str(exc))

    thread = threading.Thread(target=elsewhere, name="mqtt")
    thread.start()
    thread.join()
    assert len(errors) == 1
    assert "thread 'mqtt'" in errors[0]
    engine.infer({"image": picture((1, 32, 32, 3), 0)})


def test_plan_of_rubbish_is_refused_in_tensorrts_words_moved_aside_and_rebuilt(backend: Any, small_model: Path) -> None:
    key = backend.key(small_model, support.IMAGE_PROFILES)
    backend.store.save(key, RUBBISH, 1.0, 1 << 30)
    engine = backend.load(small_model, support.IMAGE_PROFILES)
    assert any("is refused by TensorRT" in note for note in backend.notes), backend.notes
    engine.infer({"image": picture((1, 32, 32, 3), 0)})
    engine.close()


def test_model_that_cannot_be_parsed_is_a_model_error(backend: Any, tmp_path: Path) -> None:
    path = tmp_path / "broken.onnx"
    path.write_bytes(b"\x08\x08garbage" * 100)
    with pytest.raises(ModelError, match="cannot read broken.onnx"):
        backend.load(path, support.IMAGE_PROFILES)


def test_fifty_good_and_fifty_failing_reloads_leave_memory_where_it_was(
    backend: Any, small_model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = backend.key(small_model, support.IMAGE_PROFILES)
    image = picture((2, 64, 64, 3), 3)

    def reload() -> None:
        engine = backend.load(small_model, support.IMAGE_PROFILES)
        for _ in range(3):
            engine.infer({"image": image})
        engine.close()

    def grown() -> int:
        return int(first - backend.gpu.free_bytes())

    reload()
    first = backend.gpu.free_bytes()
    for _ in range(50):
        reload()
    assert grown() <= 8 << 20, f"{grown()} bytes more in use after 50 good reloads"
    plan_bytes = backend.store.load(key).manifest.plan_bytes
    asked = sum(backend.gpu.pool._asked.values())
    for n in range(50):
        if n % 2:
            with pytest.raises(ModelError, match="does not load the plan"):
                backend._engine(StoredPlan(backend.store.load(key).manifest, RUBBISH))
        else:
            # the weights are loaded and the contexts made, then the buffers are refused
            with monkeypatch.context() as patch, pytest.raises(ConfigError, match="over the budget"):
                patch.setattr(backend.gpu.pool, "budget_bytes", asked + plan_bytes)
                backend.load(small_model, support.IMAGE_PROFILES)
    assert grown() <= 8 << 20, f"{grown()} bytes more in use after 50 failing reloads"
    reload()


CHILD = """
import logging, signal, sys, time
from pathlib import Path
import numpy as np
from edge_agent.backends.trt import TrtBackend
from tests.gpu import support

logging.getLogger().addHandler(logging.NullHandler())  # what TensorRT merely warns of is not counted here
stop = []
signal.signal(signal.SIGTERM, lambda *_: stop.append(True))
model, plans = Path(sys.argv[1]), Path(sys.argv[2])
with TrtBackend(support.settings(plans)) as backend:
    for n in range(20):
        engine = backend.load(model, support.IMAGE_PROFILES)
        for _ in range(3):
            engine.infer({"image": np.full((1 + n % 2, 64, 64, 3), n, np.uint8)})
        if n < 19:
            engine.close()
    print("ready", flush=True)
    while not stop:
        engine.infer({"image": np.zeros((1, 64, 64, 3), np.uint8)})
        time.sleep(0.01)
    engine.close()
"""


def test_twenty_reloads_and_sigterm_end_with_exit_code_0_and_nothing_on_stderr(
    backend: Any, plans_dir: Path, small_model: Path
) -> None:
    backend.load(small_model, support.IMAGE_PROFILES).close()  # the plan is there
    command = [sys.executable, "-W", "ignore", "-c", CHILD, str(small_model), str(plans_dir)]
    child = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert child.stdout is not None
        assert child.stdout.readline() == "ready\n", child.communicate()[1]
        child.terminate()
        _, err = child.communicate(timeout=60)
    finally:
        child.kill()
    assert child.returncode == 0, err
    assert err == ""


def test_process_that_forgets_to_close_ends_without_a_context_stack_message(
    backend: Any, plans_dir: Path, small_model: Path
) -> None:
    backend.load(small_model, support.IMAGE_PROFILES).close()
    script = CHILD.partition("with TrtBackend")[0] + (
        "backend = TrtBackend(support.settings(plans))\n"
        "engine = backend.load(model, support.IMAGE_PROFILES)\n"
        'engine.infer({"image": np.zeros((1, 64, 64, 3), np.uint8)})\n'
    )
    command = [sys.executable, "-W", "ignore", "-c", script, str(small_model), str(plans_dir)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""


def test_static_model_needs_no_profile(backend: Any, tmp_path: Path) -> None:
    onnx = pytest.importorskip("onnx")
    (tmp_path / "static").mkdir()
    image = onnx.helper.make_tensor_value_info("image", onnx.TensorProto.UINT8, [1, 32, 32, 3])
    out = onnx.helper.make_tensor_value_info("out", onnx.TensorProto.FLOAT, [1, 32, 32, 3])
    nodes = [
        onnx.helper.make_node("Cast", ["image"], ["x"], to=onnx.TensorProto.FLOAT),
        onnx.helper.make_node("Relu", ["x"], ["out"]),
    ]
    model = onnx.helper.make_model(
        onnx.helper.make_graph(nodes, "static", [image], [out]),
        opset_imports=[onnx.helper.make_opsetid("", 17)],
        ir_version=8,
    )
    onnx.save(model, tmp_path / "static" / "model.onnx")
    engine = backend.load(tmp_path / "static" / "model.onnx")
    feed = picture((1, 32, 32, 3), 5)
    assert np.array_equal(engine.infer({"image": feed})["out"], feed.astype(np.float32))
    with pytest.raises(FrameError):
        engine.infer({"image": picture((2, 32, 32, 3), 5)})
    engine.close()


def test_profile_of_the_engine_is_the_one_asked_for(engine: Any) -> None:
    asked: tuple[Profile, ...] = support.IMAGE_PROFILES
    assert [dict(profile.max) for profile in engine.profiles] == [dict(profile.max) for profile in asked]
