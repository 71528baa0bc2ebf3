"""What the builder tells TensorRT, in every version; models are real ONNX files."""

from __future__ import annotations

import dataclasses
import io
import json
import os
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from edge_agent.backends.base import Profile
from edge_agent.backends.build_job import BuildFailed, BuildRequest
from edge_agent.backends.model_file import file_sha256
from edge_agent.backends.plan import BuildOptions, Environment, PlanKey
from edge_agent.backends.plan_store import PlanStore
from tests.backends import fake_trt
from tests.backends.small_models import mean_colour

PROFILE = Profile({"image": (1, 8, 8, 3)}, {"image": (2, 16, 16, 3)}, {"image": (4, 32, 32, 3)})
WIDE = Profile({"image": (1, 8, 8, 3)}, {"image": (1, 8, 64, 3)}, {"image": (1, 8, 128, 3)})
ENVIRONMENT = Environment("10.3.0", "8.7", "Fake Orin", 8)


@pytest.fixture(params=fake_trt.VERSIONS)
def trt(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Any:
    return fake_trt.install(monkeypatch, request.param)


@pytest.fixture
def ten(monkeypatch: pytest.MonkeyPatch) -> Any:
    return fake_trt.install(monkeypatch, "10.3.0")


def request_for(path: Path, *profiles: Profile, **options: Any) -> BuildRequest:
    key = PlanKey("net", file_sha256(path), profiles or (PROFILE,), BuildOptions("fp32"), ENVIRONMENT)
    key = dataclasses.replace(key, options=dataclasses.replace(key.options, **options))
    return BuildRequest(path, path.parent / "plans", key, 256 << 20)


@pytest.fixture
def net(tmp_path: Path) -> Path:
    return mean_colour(tmp_path / "net.onnx")


def quantised(path: Path, weights: Any = np.float32) -> Path:
    """`image` uint8 -> Cast -> QuantizeLinear -> DequantizeLinear -> Mul -> `out`."""
    nodes = [
        helper.make_node("Cast", ["image"], ["x"], to=TensorProto.FLOAT),
        helper.make_node("QuantizeLinear", ["x", "scale"], ["q"]),
        helper.make_node("DequantizeLinear", ["q", "scale"], ["out"]),
    ]
    return saved(path, nodes, [numpy_helper.from_array(np.array(1, weights), "scale")])


def half(path: Path) -> Path:
    """`image` uint8 -> Cast to float16 -> Mul -> Cast -> `out`."""
    nodes = [
        helper.make_node("Cast", ["image"], ["x"], to=TensorProto.FLOAT16),
        helper.make_node("Mul", ["x", "two"], ["y"]),
        helper.make_node("Cast", ["y"], ["out"], to=TensorProto.FLOAT),
    ]
    return saved(path, nodes, [numpy_helper.from_array(np.array(2, np.float16), "two")])


def saved(path: Path, nodes: list[onnx.NodeProto], constants: list[onnx.TensorProto]) -> Path:
    shape = ["N", "H", "W", 3]
    image = helper.make_tensor_value_info("image", TensorProto.UINT8, shape)
    out = helper.make_tensor_value_info("out", TensorProto.FLOAT, shape)
    model = helper.make_model(
        helper.make_graph(nodes, "net", [image], [out], constants), opset_imports=[helper.make_opsetid("", 17)]
    )
    onnx.save(model, path)
    return path


def test_profiles_and_options_reach_the_builder(trt: Any, net: Path) -> None:
    said: list[dict[str, Any]] = []
    request = request_for(net, PROFILE, WIDE, optimisation_level=1, tactic_sources=("JIT_CONVOLUTIONS",))
    content = trt.build.build(request, said.append)
    assert content.startswith(fake_trt.MAGIC)
    config = trt.seen["config"]
    shapes = [[shape.shape for shape in profile.shapes["image"]] for profile in config.profiles]
    assert shapes == [[p.min["image"], p.opt["image"], p.max["image"]] for p in (PROFILE, WIDE)]
    assert config.builder_optimization_level == 1
    assert config.profiling_verbosity.name == "LAYER_NAMES_ONLY"
    assert trt.seen["workspace"] == 256 << 20
    assert trt.seen["tactic_sources"] == 0b10000
    assert all(event["event"] == "progress" for event in said)


def test_details_of_layers_are_kept_on_wish_and_bind_the_plan_to_nothing(trt: Any, net: Path) -> None:
    request = dataclasses.replace(request_for(net), detailed=True)
    assert BuildRequest.from_json(request.to_json()) == request
    trt.build.build(request, lambda event: None)
    assert trt.seen["config"].profiling_verbosity.name == "DETAILED"
    assert request.key == request_for(net).key


def test_int8_model_is_built_as_int8_and_as_nothing_else(trt: Any, tmp_path: Path) -> None:
    path = quantised(tmp_path / "q.onnx")
    trt.build.build(request_for(path, precision="int8"), lambda event: None)
    for precision in ("fp16", "fp32"):
        with pytest.raises(BuildFailed, match="quantised .* build it as int8") as failure:
            trt.build.build(request_for(path, precision=precision), lambda event: None)
        assert failure.value.kind == "model"


def test_int8_needs_a_quantised_model(trt: Any, net: Path) -> None:
    with pytest.raises(BuildFailed, match=r"int8 needs an ONNX with QuantizeLinear.*edge-agent calibrate"):
        trt.build.build(request_for(net, precision="int8"), lambda event: None)


@pytest.mark.parametrize("precision", ["fp32", "fp16"])
def test_graph_is_converted_to_float16_where_the_graph_alone_decides(trt: Any, net: Path, precision: str) -> None:
    trt.build.build(request_for(net, precision=precision), lambda event: None)
    assert trt.seen["half"] == (trt.api.strongly_typed_only() and precision == "fp16")


@pytest.mark.parametrize("precision", ["fp32", "fp16"])
def test_graph_is_converted_to_float16_where_that_is_asked_for(trt: Any, net: Path, precision: str) -> None:
    trt.build.build(request_for(net, precision=precision, explicit_half=True), lambda event: None)
    assert trt.seen["half"] == (precision == "fp16")


def test_float16_graph_is_built_as_it_is(trt: Any, tmp_path: Path) -> None:
    trt.build.build(request_for(half(tmp_path / "half.onnx"), precision="fp16"), lambda event: None)
    assert trt.seen["half"]


def test_dynamic_model_without_profiles_is_refused(ten: Any, net: Path) -> None:
    request = request_for(net)
    request = dataclasses.replace(request, key=dataclasses.replace(request.key, profiles=()))
    with pytest.raises(BuildFailed, match="inputs image have dynamic shapes"):
        ten.build.build(request, lambda event: None)


@pytest.mark.parametrize(
    ("profile", "said"),
    [
        (Profile({"x": (1,)}, {"x": (1,)}, {"x": (1,)}), r"profile names \['x'\]; the inputs are \['image'\]"),
        (Profile({"image": (2, 8, 8, 3)}, {"image": (1, 8, 8, 3)}, {"image": (1, 8, 8, 3)}), "image is refused: Shape"),
    ],
)
def test_profile_that_does_not_fit_the_model_is_refused(ten: Any, net: Path, profile: Profile, said: str) -> None:
    with pytest.raises(BuildFailed, match=said):
        ten.build.build(request_for(net, profile), lambda event: None)


def test_builder_that_returns_nothing_is_told_with_the_loggers_words(trt: Any, net: Path) -> None:
    trt.refuse_build = "Error Code 9: Skipping tactic 0x1 due to insufficient workspace"
    with pytest.raises(BuildFailed, match="built nothing: ERROR: Error Code 9") as failure:
        trt.build.build(request_for(net), lambda event: None)
    assert failure.value.kind == "memory"


def test_timing_cache_of_another_make_is_left_out(ten: Any, net: Path) -> None:
    request = request_for(net)
    path = PlanStore(request.plans_dir).timing_cache_path(ENVIRONMENT)
    path.parent.mkdir()
    path.write_bytes(b"other make")
    ten.build.build(request, lambda event: None)
    assert path.read_bytes() == b"+measured"


@pytest.mark.parametrize(
    ("wanted_mib", "onnx_mib", "free_mib", "given_mib"),
    [(1024, 10, 8000, 1024), (1024, 10, 900, 358), (1024, 10, 500, 64), (256, 10, None, 256), (1024, 100, 1500, 688)],
)
def test_workspace_leaves_room_for_the_builder_itself(
    ten: Any, wanted_mib: int, onnx_mib: int, free_mib: int | None, given_mib: int
) -> None:
    free = None if free_mib is None else free_mib << 20
    assert ten.build.affordable_workspace(wanted_mib << 20, onnx_mib << 20, free) == given_mib << 20


def test_little_memory_lowers_the_workspace_and_says_so(ten: Any, net: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[dict[str, Any]] = []
    monkeypatch.setattr(ten.build, "available_bytes", lambda: 700 << 20)
    ten.build.build(request_for(net), said.append)
    assert ten.seen["workspace"] < 200 << 20
    assert any("little memory is free: workspace 187 MiB instead of 256" in str(event) for event in said)


def test_events_go_to_standard_output_and_native_prints_do_not(
    ten: Any, net: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO(json.dumps(request_for(net).to_json())))
    monkeypatch.setattr(ten.build, "be_the_first_to_go", lambda: None)
    real = ten.Builder.build_serialized_network

    def noisy(*arguments: Any) -> Any:
        os.write(1, b"printed by a native library\n")
        return real(*arguments)

    monkeypatch.setattr(ten.Builder, "build_serialized_network", noisy)
    mine = os.dup(1)
    try:
        assert ten.build.main([]) == 0
    finally:
        os.dup2(mine, 1)
        os.close(mine)
    out, err = capfd.readouterr()
    assert [json.loads(line)["event"] for line in out.splitlines()][-1] == "done"
    assert "native library" in err


def test_failure_is_an_event_and_an_exit_code(
    ten: Any, net: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO(json.dumps(request_for(net, precision="int8").to_json())))
    monkeypatch.setattr(ten.build, "be_the_first_to_go", lambda: None)
    mine = os.dup(1)
    try:
        assert ten.build.main([]) == 1
    finally:
        os.dup2(mine, 1)
        os.close(mine)
    last = json.loads(capfd.readouterr().out.splitlines()[-1])
    assert (last["event"], last["kind"]) == ("failed", "model")


def test_nothing_is_freed_while_its_list_lives(ten: Any, net: Path) -> None:
    held: list[Any] = []
    ten.build.build(request_for(net), lambda event: None, held)
    kinds = {type(thing).__name__ for thing in held}
    assert {"Builder", "OnnxParser"} <= kinds
    assert len(held) == 7  # with messages, logger, network, config and the plan's memory
