"""Small model files for backend tests."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
from onnx import NodeProto, TensorProto, helper, numpy_helper


def mean_colour(path: Path, factor: float = 1.0) -> Path:
    """`image` uint8 (N, H, W, 3) -> `colour` float32 (N, 3), `factor` x the mean; `height` int64 (), H."""
    nodes = [
        helper.make_node("Cast", ["image"], ["float"], to=TensorProto.FLOAT),
        helper.make_node("ReduceMean", ["float"], ["mean"], axes=[1, 2], keepdims=0),
        helper.make_node("Mul", ["mean", "factor"], ["colour"]),
        helper.make_node("Shape", ["image"], ["shape"]),
        helper.make_node("Gather", ["shape", "one"], ["height"]),
    ]
    outputs = [
        helper.make_tensor_value_info("colour", TensorProto.FLOAT, ["N", 3]),
        helper.make_tensor_value_info("height", TensorProto.INT64, []),
    ]
    constants = [
        helper.make_tensor("factor", TensorProto.FLOAT, [], [factor]),
        helper.make_tensor("one", TensorProto.INT64, [], [1]),
    ]
    return save(path, nodes, ["N", "H", "W", 3], outputs, constants)


def echo_and_total(path: Path) -> Path:
    """`image` uint8 (N, H, W, 3) -> `echo` uint8, image + 1; `total` int32 (N,), its sum: what a fake plan computes."""
    nodes = [
        helper.make_node("Cast", ["image"], ["whole"], to=TensorProto.INT32),
        helper.make_node("Add", ["whole", "one"], ["more"]),
        helper.make_node("Cast", ["more"], ["echo"], to=TensorProto.UINT8),
        helper.make_node("ReduceSum", ["whole", "axes"], ["total"], keepdims=0),
    ]
    outputs = [
        helper.make_tensor_value_info("echo", TensorProto.UINT8, ["N", "H", "W", 3]),
        helper.make_tensor_value_info("total", TensorProto.INT32, ["N"]),
    ]
    constants = [
        helper.make_tensor("one", TensorProto.INT32, [], [1]),
        helper.make_tensor("axes", TensorProto.INT64, [3], [1, 2, 3]),
    ]
    return save(path, nodes, ["N", "H", "W", 3], outputs, constants)


def fragile(path: Path) -> Path:
    """`image` uint8 (N, H, W, 3) -> `rows` uint8 (2, 3): fails at run time unless N * H * W is 2."""
    nodes = [helper.make_node("Reshape", ["image", "shape"], ["rows"])]
    outputs = [helper.make_tensor_value_info("rows", TensorProto.UINT8, [2, 3])]
    return save(path, nodes, ["N", "H", "W", 3], outputs, [helper.make_tensor("shape", TensorProto.INT64, [2], [2, 3])])


def layered(path: Path) -> Path:
    """`image` uint8 (N, H, W, 3) -> `peak` float32 (N,): through layers of several sizes, as in a real network."""
    random = np.random.default_rng(0)
    nodes = [
        helper.make_node("Cast", ["image"], ["float"], to=TensorProto.FLOAT),
        helper.make_node("Transpose", ["float"], ["t0"], perm=[0, 3, 1, 2]),
    ]
    constants = []
    for n, (before, behind) in enumerate([(3, 32), (32, 32), (32, 64), (64, 32), (32, 16)]):
        weight = random.normal(0, 0.1, (behind, before, 1, 1)).astype(np.float32)
        constants.append(numpy_helper.from_array(weight, f"w{n}"))
        nodes.append(helper.make_node("Conv", [f"t{n}", f"w{n}"], [f"c{n}"]))
        nodes.append(helper.make_node("Softmax" if n % 2 else "Relu", [f"c{n}"], [f"t{n + 1}"]))
    nodes.append(helper.make_node("ReduceMax", ["t5"], ["peak"], axes=[1, 2, 3], keepdims=0))
    outputs = [helper.make_tensor_value_info("peak", TensorProto.FLOAT, ["N"])]
    return save(path, nodes, ["N", "H", "W", 3], outputs, constants)


def save(
    path: Path,
    nodes: list[NodeProto],
    input_shape: list[int | str],
    outputs: list[onnx.ValueInfoProto],
    constants: list[onnx.TensorProto],
) -> Path:
    image = helper.make_tensor_value_info("image", TensorProto.UINT8, input_shape)
    graph = helper.make_graph(nodes, "small", [image], outputs, constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(model)
    onnx.save(model, path)
    return path
