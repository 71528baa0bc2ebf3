"""Encoder: makes of a sentence encoder's graph, as others export it, one with the tensors that the stage feeds.

    input_ids int32 (N, S), attention_mask int32 (N, S)  ->  sentence_embedding float32 (N, D), each of length 1

Exporters differ: int64 inputs, a third input token_type_ids (all zero for single texts), vectors per token
(last_hidden_state) instead of one per text. The differences are nodes at both ends.
"""

from __future__ import annotations

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from edge_agent.errors import ModelError
from edge_agent.models.surgery import clone, describe_value, rename_input, stored_names

IDS, MASK, TYPES = "input_ids", "attention_mask", "token_type_ids"
VECTOR = "sentence_embedding"
PER_TOKEN = ("last_hidden_state", "token_embeddings")
MIN_NORM = 1e-6  # 1e-12 vanishes in FP16


def agreed_encoder(model: onnx.ModelProto) -> onnx.ModelProto:
    """The graph with the agreed tensors; ModelError names inputs and outputs that this cannot be done with."""
    model = clone(model)
    graph = model.graph
    output = _chosen_output(graph)
    rank, width = _rank_and_width(output)
    source = str(output.name)
    taken = {name for node in graph.node for name in node.output}
    if VECTOR in taken:
        _rename(graph, VECTOR, f"{VECTOR}.inner")
        source = f"{VECTOR}.inner" if source == VECTOR else source
    head = _int32_inputs(graph)
    for position, node in enumerate(head):
        graph.node.insert(position, node)
    graph.node.extend(_pooled(graph, source) if rank == 3 else [])
    graph.node.extend(_normalised(graph, "pool.mean" if rank == 3 else source))
    del graph.output[:]
    graph.output.append(helper.make_tensor_value_info(VECTOR, TensorProto.FLOAT, ["N", width]))
    return model


def _chosen_output(graph: onnx.GraphProto) -> onnx.ValueInfoProto:
    outputs = {value.name: value for value in graph.output}
    for name in (VECTOR, *PER_TOKEN):
        if name in outputs:
            return outputs[name]
    if len(outputs) == 1 and "logits" not in outputs:
        return graph.output[0]
    found = ", ".join(describe_value(value) for value in graph.output)
    raise ModelError(f"the graph gives {found}; expected {VECTOR} (N, D), or {' or '.join(PER_TOKEN)} (N, S, D)")


def _rank_and_width(output: onnx.ValueInfoProto) -> tuple[int, int]:
    tensor = output.type.tensor_type
    dims = tensor.shape.dim
    if tensor.elem_type != TensorProto.FLOAT or len(dims) not in (2, 3) or dims[-1].dim_value < 1:
        raise ModelError(
            f"the graph gives {describe_value(output)}; expected float32 of 2 or 3 dimensions, the last of fixed size"
        )
    return len(dims), int(dims[-1].dim_value)


def _int32_inputs(graph: onnx.GraphProto) -> list[onnx.NodeProto]:
    """Puts int32 inputs in place of the graph's own and returns the nodes that lead from one to the other."""
    stored = stored_names(graph)
    inputs = [value for value in graph.input if value.name not in stored]
    names = {str(value.name) for value in inputs}
    integers = all(v.type.tensor_type.elem_type in (TensorProto.INT32, TensorProto.INT64) for v in inputs)
    if not {IDS, MASK} <= names or names - {IDS, MASK, TYPES} or not integers:
        found = ", ".join(describe_value(value) for value in inputs)
        raise ModelError(f"the graph takes {found}; expected {IDS} and {MASK}, perhaps {TYPES}, int32 or int64 (N, S)")
    nodes = []
    for value in inputs:
        name, kind = str(value.name), value.type.tensor_type.elem_type
        inner = f"{name}.inner"
        source = IDS if name == TYPES else name
        nodes.append(helper.make_node("Cast", [source], [inner], to=kind))
        if name == TYPES:
            zero = numpy_helper.from_array(np.array(0, helper.tensor_dtype_to_np_dtype(kind)), f"{TYPES}.zero")
            graph.initializer.append(zero)
            nodes.append(helper.make_node("Mul", [inner, f"{TYPES}.zero"], [f"{TYPES}.zeros"]))
            inner = f"{TYPES}.zeros"
        rename_input(graph, name, inner)
        graph.input.remove(value)
    for name in (IDS, MASK):
        graph.input.append(helper.make_tensor_value_info(name, TensorProto.INT32, ["N", "S"]))
    return nodes


def _pooled(graph: onnx.GraphProto, source: str) -> list[onnx.NodeProto]:
    """Mean over the tokens that are there: pool.mean (N, D)."""
    graph.initializer.append(numpy_helper.from_array(np.array([1], np.int64), "pool.tokens"))
    graph.initializer.append(numpy_helper.from_array(np.array([2], np.int64), "pool.last"))
    graph.initializer.append(numpy_helper.from_array(np.array(1, np.float32), "pool.one"))
    return [
        helper.make_node("Cast", [MASK], ["pool.mask"], to=TensorProto.FLOAT),
        helper.make_node("Unsqueeze", ["pool.mask", "pool.last"], ["pool.weights"]),
        helper.make_node("Mul", [source, "pool.weights"], ["pool.kept"]),
        helper.make_node("ReduceSum", ["pool.kept", "pool.tokens"], ["pool.sum"], keepdims=0),
        helper.make_node("ReduceSum", ["pool.mask", "pool.tokens"], ["pool.count"], keepdims=1),
        helper.make_node("Max", ["pool.count", "pool.one"], ["pool.count.clamped"]),
        helper.make_node("Div", ["pool.sum", "pool.count.clamped"], ["pool.mean"]),
    ]


def _normalised(graph: onnx.GraphProto, source: str) -> list[onnx.NodeProto]:
    """Length 1: sentence_embedding (N, D)."""
    graph.initializer.append(numpy_helper.from_array(np.array([1], np.int64), "norm.axis"))
    graph.initializer.append(numpy_helper.from_array(np.array(MIN_NORM, np.float32), "norm.least"))
    return [
        helper.make_node("Mul", [source, source], ["norm.squares"]),
        helper.make_node("ReduceSum", ["norm.squares", "norm.axis"], ["norm.power"], keepdims=1),
        helper.make_node("Sqrt", ["norm.power"], ["norm.length"]),
        helper.make_node("Max", ["norm.length", "norm.least"], ["norm.clamped"]),
        helper.make_node("Div", [source, "norm.clamped"], [VECTOR]),
    ]


def _rename(graph: onnx.GraphProto, old: str, new: str) -> None:
    for node in graph.node:
        for place, name in enumerate(node.output):
            if name == old:
                node.output[place] = new
    rename_input(graph, old, new)
