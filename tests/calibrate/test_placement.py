from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import NodeProto, helper, numpy_helper
from onnxruntime.quantization import CalibrationDataReader, QuantFormat, quantize_static

from edge_agent.calibrate.groups import groups_of
from edge_agent.calibrate.placement import faults
from edge_agent.calibrate.quantise import quantise, tensors_to_measure
from edge_agent.calibrate.recipe import Recipe
from edge_agent.models.spec import ModelSpec
from tests.calibrate import small_nets
from tests.calibrate.test_groups import ENGINES, SHIPPED

ALL = ("stem", "deep", "gate.a", "gate.b", "wide", "down", "lateral", "side", "smooth", "head.a", "head.b")


class Pictures(CalibrationDataReader):  # type: ignore[misc]
    def __init__(self) -> None:
        self.feeds = iter([small_nets.picture(seed) for seed in range(3)])

    def get_next(self) -> Any:
        return next(self.feeds, None)


def sound() -> onnx.ModelProto:
    model = small_nets.detector()
    ranges = dict.fromkeys(tensors_to_measure(model, ALL, "tensorrt"), (-2.0, 3.0))
    return quantise(model, ranges, ALL, "tensorrt")


def node_of(model: onnx.ModelProto, output: str) -> NodeProto:
    return next(node for node in model.graph.node if node.output[0] == output)


def store(model: onnx.ModelProto, name: str, value: Any) -> None:
    kept = [constant for constant in model.graph.initializer if constant.name != name]
    del model.graph.initializer[:]
    model.graph.initializer.extend([*kept, numpy_helper.from_array(np.asarray(value), name)])


def uint8_zero(model: onnx.ModelProto) -> None:
    store(model, "gated.zero", np.array(0, np.uint8))


def shifted_zero(model: onnx.ModelProto) -> None:
    store(model, "gated.zero", np.array(3, np.int8))


def no_zero(model: onnx.ModelProto) -> None:
    del node_of(model, "gated.quantised").input[2]


def scale_for_each_channel(model: onnx.ModelProto) -> None:
    store(model, "gated.scale", np.ones(8, np.float32))


def scale_of_zero(model: onnx.ModelProto) -> None:
    store(model, "gated.scale", np.array(0, np.float32))


def other_scale_behind(model: onnx.ModelProto) -> None:
    store(model, "other", np.array(1, np.float32))
    node_of(model, "gated.dequantised").input[1] = "other"


def wrong_axis(model: onnx.ModelProto) -> None:
    node_of(model, "down.w.axis0.dequantised").attribute[0].i = 1


def quantised_bias(model: onnx.ModelProto) -> None:
    store(model, "steps", np.zeros(16, np.int8))
    place = next(n for n, node in enumerate(model.graph.node) if node.output[0] == "down")
    names = ["steps", "gated.scale", "gated.zero"]
    model.graph.node.insert(place, helper.make_node("DequantizeLinear", names, ["down.b.dequantised"]))
    node_of(model, "down").input[2] = "down.b.dequantised"


def float_input(model: onnx.ModelProto) -> None:
    node_of(model, "down").input[0] = "skipped"


def float_weight(model: onnx.ModelProto) -> None:
    store(model, "plain", np.ones((16, 8, 3, 3), np.float32))
    node_of(model, "down").input[1] = "plain"


def left_without_its_pair(model: onnx.ModelProto) -> None:
    model.graph.node.append(helper.make_node("Cast", ["gated.quantised"], ["whole"], to=onnx.TensorProto.FLOAT))


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (uint8_zero, "uint8 zero point"),
        (shifted_zero, "zero point 3"),
        (no_zero, "no zero point"),
        (scale_for_each_channel, "activations have 8 scales"),
        (scale_of_zero, "zero, negative"),
        (other_scale_behind, "differs from that"),
        (wrong_axis, "axis 1; expected axis 0"),
        (quantised_bias, "the bias is quantised"),
        (float_input, "the input is not quantised"),
        (float_weight, "the second input is not quantised"),
        (left_without_its_pair, "something else than DequantizeLinear"),
    ],
    ids=lambda value: value.__name__ if callable(value) else "",
)
def test_each_broken_rule_is_named(damage: Callable[[onnx.ModelProto], None], said: str) -> None:
    model = sound()
    assert faults(model) == []
    damage(model)
    assert said in "\n".join(faults(model))


def test_float_model_has_nothing_to_compute_in_int8() -> None:
    assert faults(small_nets.detector()) == ["the model has no QuantizeLinear: nothing of it would compute in INT8"]


def test_what_onnxruntime_writes_by_default_breaks_the_rules(tmp_path: Path) -> None:
    source, made = tmp_path / "float.onnx", tmp_path / "int8.onnx"
    model = small_nets.detector()
    for node in model.graph.node:
        node.name = node.output[0]
    onnx.save(model, source)
    quantize_static(source, made, Pictures(), quant_format=QuantFormat.QDQ)
    said = "\n".join(faults(onnx.load(made)))
    assert "the bias is quantised" in said
    assert "zero point" in said


def test_onnxruntime_scheme_is_not_for_tensorrt() -> None:
    model = small_nets.detector()
    ranges = dict.fromkeys(tensors_to_measure(model, ALL, "onnxruntime"), (-2.0, 3.0))
    assert faults(quantise(model, ranges, ALL, "onnxruntime"))


@pytest.mark.parametrize("file", [file for file in SHIPPED if "cpu" not in file])
def test_every_layer_of_a_shipped_model_may_be_quantised_for_tensorrt(file: str) -> None:
    path = ENGINES / file
    if not path.is_file():
        pytest.skip(f"{path} is absent: `edge-agent models fetch`")
    model = onnx.load(path)
    groups = groups_of(model, ModelSpec.load(ENGINES, path.parent.name).task, Recipe())
    nodes = [node for group in groups for node in group.nodes]
    ranges = dict.fromkeys(tensors_to_measure(model, nodes, "tensorrt"), (-2.0, 3.0))
    assert faults(quantise(model, ranges, nodes, "tensorrt")) == []
