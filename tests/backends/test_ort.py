"""The onnxruntime backend: what it adds to the contract of all engines."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import numpy as np
import onnxruntime
import psutil
import pytest
from onnx import TensorProto, helper

from edge_agent.backends import ort
from edge_agent.backends.base import LayerTime
from edge_agent.backends.ort import OrtBackend, cpu_quota, node_times, session_options, usable_cores
from edge_agent.errors import EngineError, FrameError, ModelError
from tests.backends.small_models import fragile, layered, mean_colour, save


def test_fingerprint_names_library_file_and_precision(tmp_path: Path) -> None:
    path = mean_colour(tmp_path / "model.onnx")
    engine = OrtBackend(1).load(path)
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    assert engine.fingerprint == f"onnxruntime-{onnxruntime.__version__}:{digest[:12]}:fp32"
    engine.close()


def test_quantised_model_says_int8(tmp_path: Path) -> None:
    nodes = [helper.make_node("DequantizeLinear", ["image", "scale", "zero"], ["y"])]
    constants = [
        helper.make_tensor("scale", TensorProto.FLOAT, [], [0.5]),
        helper.make_tensor("zero", TensorProto.UINT8, [], [0]),
    ]
    outputs = [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["N", 3])]
    engine = OrtBackend(1).load(save(tmp_path / "model.onnx", nodes, ["N", 3], outputs, constants))
    assert engine.fingerprint.endswith(":int8")
    engine.close()


def test_failure_inside_a_run_is_an_engine_error_that_names_the_shapes(tmp_path: Path) -> None:
    engine = OrtBackend(1).load(fragile(tmp_path / "model.onnx"))
    assert engine.infer({"image": np.zeros((1, 1, 2, 3), np.uint8)})["rows"].shape == (2, 3)
    with pytest.raises(EngineError, match=r"\(1, 5, 7, 3\)"):
        engine.infer({"image": np.zeros((1, 5, 7, 3), np.uint8)})
    engine.close()


def test_input_type_that_numpy_lacks_is_a_model_error(tmp_path: Path) -> None:
    nodes = [helper.make_node("Cast", ["image"], ["y"], to=TensorProto.BFLOAT16)]
    outputs = [helper.make_tensor_value_info("y", TensorProto.BFLOAT16, ["N"])]
    path = save(tmp_path / "model.onnx", nodes, ["N"], outputs, [])
    with pytest.raises(ModelError, match="bfloat16"):
        OrtBackend(1).load(path)


def test_plain_sessions_still_work_beside_ours(tmp_path: Path) -> None:
    path = mean_colour(tmp_path / "model.onnx")
    engine = OrtBackend(2).load(path)
    other = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    image = np.full((1, 2, 2, 3), 9, np.uint8)
    np.testing.assert_array_equal(other.run(["colour"], {"image": image})[0], engine.infer({"image": image})["colour"])
    engine.close()


def test_threads_are_those_asked_for() -> None:
    assert session_options(3).intra_op_num_threads == 3
    assert OrtBackend(3).threads == 3
    assert OrtBackend(0).threads == ort.usable_cores()


def test_resident_memory_stays_flat_whatever_shapes_come(tmp_path: Path) -> None:
    engine = OrtBackend(1).load(layered(tmp_path / "model.onnx"))
    process, random = psutil.Process(), np.random.default_rng(0)
    engine.infer({"image": np.zeros((8, 48, 320, 3), np.uint8)})
    before = process.memory_info().rss
    for count, width in zip(random.integers(1, 9, 150), random.integers(2, 41, 150), strict=True):
        engine.infer({"image": np.zeros((int(count), 48, int(width) * 8, 3), np.uint8)})
    grown_mb = (process.memory_info().rss - before) / 2**20
    assert grown_mb < 10, f"grew by {grown_mb:.0f} MB"  # 45 with onnxruntime's own settings
    engine.close()


def test_nodes_are_timed_by_run_with_the_first_run_left_out(tmp_path: Path) -> None:
    engine = OrtBackend(1).load(mean_colour(tmp_path / "m.onnx"))
    layers = engine.layers({"image": np.zeros((2, 4, 6, 3), np.uint8)}, 3)
    cast = next(layer for layer in layers if layer.kind == "Cast")
    assert cast.tensors == "uint8 2x4x6x3 -> float 2x4x6x3"
    assert sum(layer.share for layer in layers) == pytest.approx(1.0)
    assert list(tmp_path.iterdir()) == [tmp_path / "m.onnx"], "the profile leaves no file"


def test_mean_is_over_the_runs_after_the_first() -> None:
    def run(ts: int, dur: int) -> list[dict[str, object]]:
        kernel = {"cat": "Node", "name": "conv_kernel_time", "ts": ts + 1, "dur": dur, "args": {"op_name": "Conv"}}
        before = {"cat": "Node", "name": "conv_fence_before", "ts": ts, "dur": 1}
        return [before, kernel, {"cat": "Session", "name": "model_run", "ts": ts, "dur": dur + 2}]

    events = [{"cat": "Session", "name": "session_initialization", "ts": 0, "dur": 5}]
    for ts, dur in ((10, 9000), (10_000, 2000), (20_000, 4000)):
        events += run(ts, dur)
    assert node_times(events, 2) == [LayerTime("conv", "Conv", 3.0, 1.0, " -> ")]


def test_closed_engine_and_wrong_feed_are_not_measured(tmp_path: Path) -> None:
    engine = OrtBackend(1).load(mean_colour(tmp_path / "m.onnx"))
    with pytest.raises(FrameError, match="expected"):
        engine.layers({"image": np.zeros((2, 4, 6, 3), np.float32)}, 1)
    engine.close()
    with pytest.raises(EngineError, match="closed"):
        engine.layers({"image": np.zeros((2, 4, 6, 3), np.uint8)}, 1)


def sys_tree(root: Path, siblings: dict[int, str], files: dict[str, str]) -> Path:
    for cpu, names in siblings.items():
        folder = root / f"devices/system/cpu/cpu{cpu}/topology"
        folder.mkdir(parents=True)
        (folder / "thread_siblings_list").write_text(names + "\n")
    for name, content in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(content)
    return root


@pytest.fixture
def eight_cpus(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: set(range(8)))


@pytest.mark.usefixtures("eight_cpus")
def test_hardware_threads_of_one_core_count_once(tmp_path: Path) -> None:
    siblings = {cpu: f"{cpu % 4},{cpu % 4 + 4}" for cpu in range(8)}
    assert usable_cores(sys_tree(tmp_path, siblings, {})) == 4


@pytest.mark.usefixtures("eight_cpus")
def test_cores_without_topology_count_each(tmp_path: Path) -> None:
    assert usable_cores(tmp_path) == 8


@pytest.mark.usefixtures("eight_cpus")
@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({"fs/cgroup/cpu.max": "max 100000\n"}, 8),
        ({"fs/cgroup/cpu.max": "150000 100000\n"}, 2),
        ({"fs/cgroup/cpu.max": "20000 100000\n"}, 1),
        ({"fs/cgroup/cpu.max": "nonsense\n"}, 8),
        ({"fs/cgroup/cpu/cpu.cfs_quota_us": "-1\n", "fs/cgroup/cpu/cpu.cfs_period_us": "100000\n"}, 8),
        ({"fs/cgroup/cpu/cpu.cfs_quota_us": "300000\n", "fs/cgroup/cpu/cpu.cfs_period_us": "100000\n"}, 3),
    ],
)
def test_container_quota_bounds_the_cores(files: dict[str, str], expected: int, tmp_path: Path) -> None:
    assert usable_cores(sys_tree(tmp_path, {}, files)) == expected


def test_no_cgroup_means_no_quota(tmp_path: Path) -> None:
    assert cpu_quota(tmp_path) is None
