"""Layers: the nodes of a float model that INT8 can compute, and what surrounds them.

A layer is a Conv, ConvTranspose, Gemm or MatMul. It is named by its first output: ONNX nodes may have no name.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from onnx import NodeProto

from edge_agent.models.convolutions import CONVOLUTIONS, POINTWISE_BINARY, POINTWISE_UNARY
from edge_agent.models.graph import Graph, attributes

LAYER_TYPES = (*CONVOLUTIONS, "Gemm", "MatMul")
# hand on what they get, element for element or rearranged
CARRIERS = POINTWISE_UNARY | {
    "Cast",
    "DepthToSpace",
    "Flatten",
    "Identity",
    "Reshape",
    "Slice",
    "Squeeze",
    "Transpose",
    "Unsqueeze",
}


def name_of(node: NodeProto) -> str:
    """What a layer is called: its first output."""
    return str(node.output[0])


def layers(graph: Graph) -> Iterator[NodeProto]:
    """The layers in the graph's order: with stored weights, or a MatMul of two computed tensors."""
    for node in graph.nodes:
        if is_layer(graph, node):
            yield node


def is_layer(graph: Graph, node: NodeProto) -> bool:
    """Whether the node multiplies by stored weights, or two computed tensors by each other."""
    if node.op_type not in LAYER_TYPES or node.input[0] in graph.constants:
        return False
    return has_weight(graph, node) or is_product(graph, node)


def has_weight(graph: Graph, node: NodeProto) -> bool:
    """Whether the second input of a layer is a stored weight of two dimensions or more."""
    weight = graph.constants.get(node.input[1])
    return weight is not None and weight.ndim >= 2


def is_product(graph: Graph, node: NodeProto) -> bool:
    """Whether the node is a MatMul of two computed tensors, as attention has them."""
    return node.op_type == "MatMul" and not any(name in graph.constants for name in node.input)


def channel_axis(node: NodeProto, rank: int) -> int:
    """The axis of a layer's weight along which output channels lie."""
    if node.op_type == "Conv":
        return 0
    if node.op_type == "ConvTranspose":
        return 1
    if node.op_type == "Gemm" and attributes(node).get("transB", 0):
        return 0
    return rank - 1


def skip_add(graph: Graph, node: NodeProto) -> tuple[NodeProto, int] | None:
    """The Add of two computed tensors that alone reads a layer's output, and the position of its other input."""
    reader = graph.only_reader(name_of(node))
    if reader is None or reader.op_type != "Add":
        return None
    other = 1 - list(reader.input).index(name_of(node))
    return None if reader.input[other] in graph.constants else (reader, other)


@dataclass(frozen=True)
class Surroundings:
    """Of every tensor: which layers made it last, whether it was enlarged before, and its stride in rows.

    `makers`: names of the nearest layers behind the tensor; `resized`: a Resize lies somewhere behind it;
    `stride`: rows of the input per row of the tensor.
    """

    makers: dict[str, frozenset[str]]
    resized: frozenset[str]
    stride: dict[str, int]


def surroundings(graph: Graph) -> Surroundings:
    """What lies behind each tensor of the graph, in one walk along it."""
    makers: dict[str, frozenset[str]] = {}
    resized: set[str] = set()
    stride: dict[str, int] = {}
    for node in graph.nodes:
        sources = picture_inputs(graph, node)
        behind = frozenset().union(*(makers.get(name, frozenset()) for name in sources))
        rows = max((stride.get(name, 1) for name in sources), default=1)
        for name in node.output:
            makers[name] = frozenset({name_of(node)}) if is_layer(graph, node) else behind
            stride[name] = rows * row_step(node)
            if node.op_type == "Resize" or not resized.isdisjoint(sources):
                resized.add(name)
    return Surroundings(makers, frozenset(resized), stride)


def picture_inputs(graph: Graph, node: NodeProto) -> list[str]:
    """The computed tensors whose values a node hands on; not those that only say shapes."""
    named = node.input[:1] if node.op_type in CARRIERS or node.op_type == "Resize" else node.input
    return [name for name in named if name and name not in graph.constants]


def row_step(node: NodeProto) -> int:
    """How many rows of its input a node goes on for each row of its output."""
    if node.op_type not in ("AveragePool", "Conv", "LpPool", "MaxPool"):
        return 1
    strides = attributes(node).get("strides", (1,))
    return math.prod(strides[:1])


def is_pool(graph: Graph, node: NodeProto) -> bool:
    """Whether the node makes one number of each channel: what a squeeze-and-excite gate looks at."""
    if node.op_type == "GlobalAveragePool":
        return True
    if node.op_type != "ReduceMean":
        return False
    axes = attributes(node).get("axes")
    if axes is None and len(node.input) > 1 and node.input[1] in graph.constants:
        axes = graph.constants[node.input[1]].tolist()
    return axes is not None and sorted(axes) in ([2, 3], [-2, -1])


def is_bias(graph: Graph, node: NodeProto) -> bool:
    """Whether the node adds, scales by or divides by a stored value."""
    return node.op_type in POINTWISE_BINARY and any(name in graph.constants for name in node.input)
