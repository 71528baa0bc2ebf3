"""Float16 versions of real model files: same inputs and outputs, nearly the same values, sensitive parts left alone."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

from edge_agent.backends.half import half_precision
from edge_agent.errors import ModelError
from tests.backends.small_models import layered


def run(model: bytes, image: np.ndarray) -> np.ndarray:
    return onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"]).run(None, {"image": image})[0]


def test_converted_model_takes_and_gives_the_same_with_nearly_the_same_values(tmp_path: Path) -> None:
    path = layered(tmp_path / "net.onnx")
    content = half_precision(path)
    image = np.random.default_rng(0).integers(0, 255, (2, 16, 24, 3), np.uint8)
    before, after = run(path.read_bytes(), image), run(content, image)
    assert before.dtype == after.dtype == np.float32
    assert np.allclose(before, after, rtol=0.02)
    assert not np.array_equal(before, after)


def test_weights_are_float16_and_softmax_is_not(tmp_path: Path) -> None:
    model = onnx.shape_inference.infer_shapes(onnx.load_from_string(half_precision(layered(tmp_path / "net.onnx"))))
    assert {tensor.data_type for tensor in model.graph.initializer if tensor.name.startswith("w")} == {
        TensorProto.FLOAT16
    }
    types = {value.name: value.type.tensor_type.elem_type for value in model.graph.value_info}
    softmaxes = [node for node in model.graph.node if node.op_type == "Softmax"]
    assert softmaxes
    assert {types[node.input[0]] for node in softmaxes} == {TensorProto.FLOAT}


def test_batch_norm_of_tiny_variances_keeps_its_values(tmp_path: Path) -> None:
    image = helper.make_tensor_value_info("image", TensorProto.FLOAT, ["N", 3, 4, 4])
    out = helper.make_tensor_value_info("out", TensorProto.FLOAT, ["N", 3, 4, 4])
    inputs = ("scale", "bias", "mean", "variance")
    values = {"scale": [1e-3] * 3, "bias": [0.0] * 3, "mean": [0.0] * 3, "variance": [1e-9, 3e-8, 1e-7]}
    weights = [numpy_helper.from_array(np.array(values[name], np.float32), name) for name in inputs]
    node = helper.make_node("BatchNormalization", ["image", *inputs], ["out"], epsilon=1e-9)
    graph = helper.make_graph([node], "norm", [image], [out], weights)
    path = tmp_path / "norm.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    feed = np.random.default_rng(0).standard_normal((1, 3, 4, 4)).astype(np.float32)
    assert np.allclose(run(path.read_bytes(), feed), run(half_precision(path), feed), rtol=0.01, atol=1e-3)


def test_float16_model_is_left_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "half.onnx"
    path.write_bytes(half_precision(layered(tmp_path / "net.onnx")))
    assert onnx.load_from_string(half_precision(path)) == onnx.load(path)


def test_rubbish_is_a_model_error(tmp_path: Path) -> None:
    path = tmp_path / "net.onnx"
    path.write_bytes(b"\xff\xff not a model")
    with pytest.raises(ModelError, match=r"net\.onnx cannot be converted to float16"):
        half_precision(path)


def test_missing_onnxruntime_is_named_with_the_way_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "onnxruntime.transformers.float16", None)
    with pytest.raises(ModelError, match="needs onnxruntime.*or build as fp32 or int8"):
        half_precision(layered(tmp_path / "net.onnx"))
