"""Real models, changed in a known way by nodes put before their outputs or behind their inputs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
import onnx
from onnx import NodeProto, helper, numpy_helper

from edge_agent.backends.ort import OrtEngine

THREADS = 1


def engine_of(model: onnx.ModelProto, folder: Path, name: str) -> OrtEngine:
    path = folder / f"{name}.onnx"
    path.write_bytes(model.SerializeToString())
    return OrtEngine(path, THREADS)


def clipped(path: Path, output: str, low: float, high: float) -> onnx.ModelProto:
    """The model whose output never leaves low..high."""
    model = onnx.load(path)
    dtype = output_dtype(model, output)
    bounds = [stored(model, "edit.low", np.array(low, dtype)), stored(model, "edit.high", np.array(high, dtype))]
    return before_output(model, output, [helper.make_node("Clip", ["edit.inner", *bounds], [output])])


def mapped(path: Path, output: str, table: npt.NDArray[np.int32]) -> onnx.ModelProto:
    """The model whose integer output is looked up in a table."""
    model = onnx.load(path)
    names = [stored(model, "edit.table", table), "edit.inner"]
    return before_output(model, output, [helper.make_node("Gather", names, [output])])


def added(path: Path, output: str, value: float) -> onnx.ModelProto:
    """The model with a number added to its output."""
    model = onnx.load(path)
    number = stored(model, "edit.number", np.array(value, output_dtype(model, output)))
    return before_output(model, output, [helper.make_node("Add", ["edit.inner", number], [output])])


def blind(path: Path) -> onnx.ModelProto:
    """The model that sees the same grey whatever picture it is given."""
    model = onnx.load(path)
    source = model.graph.input[0].name
    grey = stored(model, "edit.grey", np.array(127, np.uint8))
    for node in model.graph.node:
        for n, name in enumerate(node.input):
            if name == source:
                node.input[n] = "edit.seen"
    model.graph.node.insert(0, helper.make_node("Clip", [source, grey, grey], ["edit.seen"]))
    return model


def shaken(path: Path, share: float, seed: int = 0) -> onnx.ModelProto:
    """The model with noise on its stored matrices: `share` of each one's standard deviation."""
    model = onnx.load(path)
    rng = np.random.default_rng(seed)
    for tensor in model.graph.initializer:
        weight = numpy_helper.to_array(tensor)
        if weight.ndim >= 2 and weight.dtype == np.float32 and weight.size > 64:
            noise = rng.standard_normal(weight.shape).astype(np.float32) * weight.std() * share
            tensor.CopyFrom(numpy_helper.from_array(weight + noise, tensor.name))
    return model


def before_output(model: onnx.ModelProto, output: str, nodes: Sequence[NodeProto]) -> onnx.ModelProto:
    for node in model.graph.node:
        for names in (node.input, node.output):
            for n, name in enumerate(names):
                if name == output:
                    names[n] = "edit.inner"
    model.graph.node.extend(nodes)
    return model


def stored(model: onnx.ModelProto, name: str, value: npt.NDArray[np.generic]) -> str:
    model.graph.initializer.append(numpy_helper.from_array(value, name))
    return name


def output_dtype(model: onnx.ModelProto, output: str) -> np.dtype[np.generic]:
    kind = next(o.type.tensor_type.elem_type for o in model.graph.output if o.name == output)
    return np.dtype(helper.tensor_dtype_to_np_dtype(kind))
