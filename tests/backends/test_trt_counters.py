"""What TrtBackend tells of memory and runs, and which models it has converted to float16."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from edge_agent.backends import gpu as gpu_module
from edge_agent.backends.base import Profile
from edge_agent.backends.model_file import has_convolutions
from edge_agent.backends.plan import BuildOptions
from edge_agent.backends.trt_settings import TrtSettings
from tests.backends import fake_trt
from tests.backends.fake_cuda import fake_gpu
from tests.backends.small_models import layered, mean_colour

PROFILE = Profile({"image": (1, 8, 8, 3)}, {"image": (2, 16, 16, 3)}, {"image": (4, 32, 32, 3)})


@pytest.fixture
def trt(monkeypatch: pytest.MonkeyPatch) -> Any:
    return fake_trt.install(monkeypatch, "10.3.0")


def model_in(folder: Path) -> Path:
    folder.mkdir()
    return mean_colour(folder / "model.onnx")


def backend_in(trt: Any, tmp_path: Path, **settings: Any) -> Any:
    return trt.backend.TrtBackend(TrtSettings(tmp_path / "plans", **settings), gpu=fake_gpu(trt.cuda))


def told_elsewhere(backend: Any) -> Any:
    """Its counters, as another thread sees them and JSON carries them."""
    told: list[Any] = []
    thread = threading.Thread(target=lambda: told.append(json.loads(json.dumps(backend.counters()))))
    thread.start()
    thread.join()
    return told[0]


def test_counters_tell_of_pool_and_runs_to_any_thread(trt: Any, tmp_path: Path) -> None:
    path = model_in(tmp_path / "tiny")
    with backend_in(trt, tmp_path) as backend:
        backend.store.save(backend.key(path, (PROFILE,)), fake_trt.plan(), 1.0, 1 << 30)
        engine = backend.load(path, (PROFILE,))
        for _ in range(3):
            engine.infer({"image": np.zeros((1, 8, 8, 3), np.uint8)})
        told = told_elsewhere(backend)
        assert set(told["engines"]) == {"tiny"}
        assert told["engines"]["tiny"]["graph_launches"] == 2
        assert told["engines"]["tiny"]["plain_launches"] == 1
        for pool in told["pool"].values():
            assert set(pool) == {"held_bytes", "active_bytes", "hits", "misses", "high_water_bytes"}
        assert 0 < told["pool"]["device"]["active_bytes"] <= told["pool"]["device"]["high_water_bytes"]
        assert told["scratch_bytes"] == backend.gpu.scratch.size_bytes > 0
        assert told["gpu_free_bytes"] == 1 << 30


def test_free_memory_is_looked_at_again_while_engines_run(
    trt: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = model_in(tmp_path / "tiny")
    with backend_in(trt, tmp_path) as backend:
        backend.store.save(backend.key(path, (PROFILE,)), fake_trt.plan(), 1.0, 1 << 30)
        engine = backend.load(path, (PROFILE,))
        monkeypatch.setattr(trt.cuda, "mem_get_info", lambda: (77, 1 << 33))
        engine.infer({"image": np.zeros((1, 8, 8, 3), np.uint8)})
        assert backend.counters()["gpu_free_bytes"] == 1 << 30, "looked at again too soon"
        monkeypatch.setattr(gpu_module, "FREE_MEMORY_EVERY_S", 0.0)
        engine.infer({"image": np.zeros((1, 8, 8, 3), np.uint8)})
        assert backend.counters()["gpu_free_bytes"] == 77


def test_closed_engines_leave_the_counters(trt: Any, tmp_path: Path) -> None:
    path = model_in(tmp_path / "tiny")
    with backend_in(trt, tmp_path) as backend:
        backend.store.save(backend.key(path, (PROFILE,)), fake_trt.plan(), 1.0, 1 << 30)
        engine = backend.load(path, (PROFILE,))
        engine.close()
        del engine
        assert backend.counters()["engines"] == {}


def test_models_without_convolutions_are_converted_where_that_is_wished(trt: Any, tmp_path: Path) -> None:
    encoder = model_in(tmp_path / "encoder")
    (tmp_path / "detector").mkdir()
    detector = layered(tmp_path / "detector" / "model.onnx")
    with backend_in(trt, tmp_path, half_encoders=True) as backend:
        assert backend.key(encoder).options == BuildOptions(explicit_half=True)
        assert backend.key(detector).options == BuildOptions()


def test_nothing_is_converted_in_fp32(trt: Any, tmp_path: Path) -> None:
    options = BuildOptions("fp32")
    with backend_in(trt, tmp_path, half_encoders=True, options=options) as backend:
        assert backend.key(model_in(tmp_path / "encoder")).options == options


@pytest.mark.parametrize(("operator", "found"), [("Conv", True), ("ConvTranspose", True), ("ConvInteger", False)])
def test_convolutions_are_found_in_the_file(tmp_path: Path, operator: str, found: bool) -> None:
    node = helper.make_node(operator, ["x", "Conv"], ["y"], name="Conv")
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, 3, 8, 8]) for name in "xy")
    (tmp_path / "model.onnx").write_bytes(
        helper.make_model(helper.make_graph([node], "ConvTranspose", [x], [y])).SerializeToString()
    )
    assert onnx.load(tmp_path / "model.onnx").graph.node[0].op_type == operator
    assert has_convolutions(tmp_path / "model.onnx") == found
    assert has_convolutions(tmp_path / "absent.onnx")
