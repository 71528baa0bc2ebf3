"""What onnxruntime's x86 kernels need of a graph before Q/DQ are put in; names of tensors stay.

onnxruntime fuses GELU only while both its readers share a tensor, which a DequantizeLinear of their own for each takes
away from it; five passes over every picture instead of one made INT8 slower than float.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import onnx
from onnx import NodeProto, helper

from edge_agent.calibrate.layers import is_pool, name_of
from edge_agent.models.graph import Graph, attributes

ORT_DOMAIN = "com.microsoft"


def for_onnxruntime(model: onnx.ModelProto) -> Graph:
    """The graph of the model with GELU as onnxruntime's own operator and means over pictures as pooling."""
    graph = Graph(model)
    for node in list(graph.nodes):
        if node.op_type == "Erf":
            fuse_gelu(graph, node)
        elif node.op_type == "ReduceMean" and attributes(node).get("keepdims", 1) and is_pool(graph, node):
            pool = helper.make_node("GlobalAveragePool", [node.input[0]], list(node.output))
            graph.insert_before(node, pool)
            graph.remove(node)
            graph.producer[name_of(pool)] = pool
    return graph


@dataclass(frozen=True)
class Gelu:
    """x / sqrt(2) -> Erf -> + 1 -> x x -> / 2, in either order of the last two factors."""

    source: str
    steps: tuple[NodeProto, ...]


def fuse_gelu(graph: Graph, erf: NodeProto) -> bool:
    """Puts one Gelu in place of the five nodes around an Erf that compute it."""
    found = find_gelu(graph, erf)
    if found is None:
        return False
    last = found.steps[-1]
    gelu = helper.make_node("Gelu", [found.source], [name_of(last)], domain=ORT_DOMAIN)
    graph.insert_before(last, gelu)
    for node in reversed(found.steps):
        graph.remove(node)
    graph.producer[name_of(gelu)] = gelu
    return True


def find_gelu(graph: Graph, erf: NodeProto) -> Gelu | None:
    """The GELU that an Erf belongs to, if it does."""
    scaled = graph.made_by(erf.input[0], "Div", "Mul")
    if scaled is None or not graph.feeds_only(name_of(scaled)):
        return None
    divisor = math.sqrt(2) if scaled.op_type == "Div" else math.sqrt(0.5)
    source = variable_of(graph, scaled, divisor)
    lifted = graph.only_reader(name_of(erf))
    if source is None or lifted is None or lifted.op_type != "Add" or variable_of(graph, lifted, 1.0) is None:
        return None
    product = graph.only_reader(name_of(lifted))
    if product is None or product.op_type != "Mul" or set(product.input) != {source, name_of(lifted)}:
        return None
    last = graph.only_reader(name_of(product))
    if last is None or last.op_type != "Mul" or variable_of(graph, last, 0.5) is None:
        return None
    return Gelu(source, (scaled, erf, lifted, product, last))


def variable_of(graph: Graph, node: NodeProto, number: float) -> str | None:
    """The computed input of a node whose other input is the stored `number`; the first of a Div."""
    for position, name in enumerate(node.input):
        stored = graph.constants.get(name)
        if stored is not None and stored.size == 1 and np.isclose(float(stored.flat[0]), number, rtol=1e-4):
            other = node.input[1 - position]
            fits = other not in graph.constants and (node.op_type != "Div" or position == 1)
            return str(other) if fits else None
    return None
