"""Placement: does a Q/DQ model keep the rules of TensorRT's explicit quantisation, as far as the file alone tells.

The rules, of TensorRT 8.5 to 11: INT8 (or FP8) with zero point 0; activations with one scale; weights stored and with
one scale, or one for each output channel; those of convolutions in int8, those of matrix products in float; a bias
in float; a DequantizeLinear behind each QuantizeLinear. A file that breaks one is refused by TensorRT's parser or
builder, or silently computed in float.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import onnx
from onnx import NodeProto

from edge_agent.calibrate.layers import LAYER_TYPES, channel_axis, name_of
from edge_agent.models.convolutions import CONVOLUTIONS
from edge_agent.models.graph import Array, Graph, attributes

QUANTISERS = ("DequantizeLinear", "QuantizeLinear")


def faults(model: onnx.ModelProto) -> list[str]:
    """What breaks the rules, one sentence each, naming the node by its first output; empty where nothing does."""
    graph = Graph(model)
    found: list[str] = []
    for node in graph.nodes:
        if node.op_type in QUANTISERS:
            found += pair_faults(graph, node)
        elif node.op_type in LAYER_TYPES:
            found += layer_faults(graph, node)
        elif node.op_type.startswith(("QLinear", "QAttention", "ConvInteger", "MatMulInteger")):
            found.append(f"{name_of(node)}: {node.op_type} is onnxruntime's own; TensorRT has no such operator")
    if not any(node.op_type == "QuantizeLinear" for node in graph.nodes):
        found.append("the model has no QuantizeLinear: nothing of it would compute in INT8")
    return found


def pair_faults(graph: Graph, node: NodeProto) -> Iterator[str]:
    """What is wrong with one QuantizeLinear or DequantizeLinear."""
    at = f"{name_of(node)} ({node.op_type})"
    if node.domain not in ("", "ai.onnx"):
        yield f"{at}: domain {node.domain}; TensorRT knows the one of ONNX alone"
    scale = graph.constants.get(node.input[1])
    if scale is None:
        yield f"{at}: the scale is computed; expected a stored one"
        return
    if not np.isfinite(scale).all() or not (scale > 0).all():
        yield f"{at}: a scale is zero, negative or not finite"
    yield from zero_faults(graph, node, at)
    if scale.size != 1 and stored_values(graph, node) is None:
        yield f"{at}: activations have {scale.size} scales; expected one for the tensor"
    source = graph.constants.get(node.input[0])
    if source is None or node.op_type == "QuantizeLinear":
        yield from partner_faults(graph, node, at)
    elif source.dtype != np.int8:
        yield f"{at}: stored {source.dtype} values; expected int8"


def stored_values(graph: Graph, node: NodeProto) -> Array | None:
    """What is stored before a pair, or before a DequantizeLinear alone; None before activations'."""
    made = graph.made_by(node.input[0], "QuantizeLinear") if node.op_type == "DequantizeLinear" else None
    return graph.constants.get((made or node).input[0])


def zero_faults(graph: Graph, node: NodeProto, at: str) -> Iterator[str]:
    """What is wrong with the zero point: it must be int8 zeros, and its type says what the tensor is stored in."""
    if len(node.input) < 3 or not node.input[2]:
        yield f"{at}: no zero point, which means uint8; expected int8 zeros"
        return
    zero = graph.constants.get(node.input[2])
    if zero is None:
        yield f"{at}: the zero point is computed; expected stored int8 zeros"
    elif zero.dtype != np.int8:
        yield f"{at}: {zero.dtype} zero point; expected int8"
    elif zero.any():
        yield f"{at}: zero point {int(zero[zero != 0].flat[0])}; expected 0"


def partner_faults(graph: Graph, node: NodeProto, at: str) -> Iterator[str]:
    """What is wrong with how a QuantizeLinear and a DequantizeLinear stand to each other."""
    if node.op_type == "QuantizeLinear":
        readers = graph.readers[name_of(node)]
        if not readers or any(reader.op_type != "DequantizeLinear" for reader in readers):
            yield f"{at}: read by something else than DequantizeLinear"
        return
    made = graph.made_by(node.input[0], "QuantizeLinear")
    if made is None:
        yield f"{at}: does not follow a QuantizeLinear"
    elif any(not same_value(graph, *names) for names in zip(made.input[1:], node.input[1:], strict=False)):
        yield f"{at}: scale or zero point differs from that of the QuantizeLinear before it"


def same_value(graph: Graph, first: str, second: str) -> bool:
    """Whether two stored values are equal."""
    return first == second or np.array_equal(graph.constants.get(first, np.nan), graph.constants.get(second, np.nan))


def layer_faults(graph: Graph, node: NodeProto) -> Iterator[str]:
    """What is wrong with the inputs of one Conv, ConvTranspose, Gemm or MatMul."""
    at = f"{name_of(node)} ({node.op_type})"
    quantised = [graph.made_by(name, "DequantizeLinear") for name in node.input]
    if node.op_type != "MatMul" and len(quantised) > 2 and quantised[2] is not None:
        yield f"{at}: the bias is quantised; expected float"
    if (quantised[0] is None) != (quantised[1] is None):
        missing = "input" if quantised[0] is None else "second input"
        yield f"{at}: the {missing} is not quantised, but the other one is; TensorRT wants both or none"
    weight = quantised[1]
    if weight is not None and (stored := stored_values(graph, weight)) is not None:
        yield from weight_faults(graph, node, weight, stored, at)
        if node.op_type not in CONVOLUTIONS and stored.dtype == np.int8:
            yield f"{at}: the weight is stored as int8; TensorRT 8.6 wants a matrix product's in float before Q/DQ"
    if node.op_type in CONVOLUTIONS and weight is not None and weight.input[0] not in graph.constants:
        yield f"{at}: the weight is not stored as int8"


def weight_faults(graph: Graph, node: NodeProto, pair: NodeProto, stored: Array, at: str) -> Iterator[str]:
    """What is wrong with how a stored weight is scaled."""
    scale = graph.constants.get(pair.input[1])
    if scale is None or scale.size == 1:
        return
    expected = channel_axis(node, stored.ndim)
    axis = int(attributes(pair).get("axis", 1)) % stored.ndim
    if axis != expected:
        yield f"{at}: the weight has a scale for each index of axis {axis}; expected axis {expected}, output channels"
    elif scale.size != stored.shape[axis]:
        yield f"{at}: the weight has {scale.size} scales for {stored.shape[axis]} output channels"
