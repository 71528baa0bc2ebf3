"""Graphs made for one rewrite each, and the comparison of values before and after."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
import onnxruntime
from onnx import NodeProto, TensorProto, helper, numpy_helper

Array = npt.NDArray[Any]
node = helper.make_node
PICTURE = (2, 4, 6, 8)


def floats(*shape: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).normal(0, 1, shape).astype(np.float32)


def scalar(value: float) -> Array:
    return np.array(value, np.float32)


def made(
    nodes: Sequence[NodeProto],
    constants: Mapping[str, Array],
    shape: Sequence[int | str] = PICTURE,
    outputs: Sequence[str] = ("y",),
) -> onnx.ModelProto:
    graph = helper.make_graph(
        list(nodes),
        "made",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in outputs],
        [numpy_helper.from_array(np.asarray(value), name) for name, value in constants.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    model = onnx.shape_inference.infer_shapes(model)  # fills in the outputs' shapes
    del model.graph.value_info[:]
    onnx.checker.check_model(model)
    return model


def run(model: onnx.ModelProto, x: Array) -> list[Array]:
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return list(session.run(None, {session.get_inputs()[0].name: x}))


def operators(model: onnx.ModelProto) -> Counter[str]:
    return Counter(n.op_type for n in model.graph.node)


def changed(change: Callable[[onnx.ModelProto], onnx.ModelProto], model: onnx.ModelProto, x: Array) -> onnx.ModelProto:
    """The changed model, once its values for `x` are the same and the model given is still what it was."""
    before = model.SerializeToString()
    after = change(model)
    assert model.SerializeToString() == before, "the model given was changed"
    onnx.checker.check_model(after)
    for old, new in zip(run(model, x), run(after, x), strict=True):
        np.testing.assert_allclose(new, old, rtol=1e-4, atol=1e-5)
    return after


def shapes(model: onnx.ModelProto) -> set[tuple[int, ...]]:
    """The shapes of what a model stores."""
    return {tuple(tensor.dims) for tensor in model.graph.initializer}


def gelu(source: str, target: str) -> list[NodeProto]:
    return [
        node("Div", [source, "root2"], [target + "1"]),
        node("Erf", [target + "1"], [target + "2"]),
        node("Add", [target + "2", "one"], [target + "3"]),
        node("Mul", [source, target + "3"], [target + "4"]),
        node("Mul", [target + "4", "half"], [target]),
    ]


GELU = {"root2": scalar(np.sqrt(2)), "one": scalar(1), "half": scalar(0.5)}
