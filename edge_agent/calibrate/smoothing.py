"""Smoothing: channels that stand out are evened out before a matrix product, and its weights take up what that changes.

SmoothQuant (Xiao et al., "SmoothQuant", 2022, equation 4): X W = (X / d)(d W) for any divisor d of each channel; with
d = max|X|^strength / max|W|^(1 - strength) neither side holds values far from its others, and one scale serves a tensor
of activations. In float the result is the same. What an encoder's normalisation makes is read by a residual Add as
well, so the division is a Mul of its own in front of the products, not part of the normalisation's scale.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from pathlib import Path

import numpy as np
import numpy.typing as npt
import onnx
import onnxruntime
from onnx import NodeProto, TensorProto, helper

from edge_agent.backends.base import Feed
from edge_agent.backends.ort import ORT_ERRORS, PROVIDERS, session_options
from edge_agent.calibrate.layers import has_weight, name_of
from edge_agent.errors import CalibrationRefused, EngineError, in_one_line
from edge_agent.models.graph import Graph

Channels = npt.NDArray[np.float32]
LEAST = 1e-5  # of a channel that is next to nothing: it must not be blown up
EVENED = ".evened"  # ends the name of what is divided


def divisors_of(
    onnx_path: Path, nodes: Collection[str], feeds: Iterable[Feed], strength: float, threads: int
) -> dict[str, Channels]:
    """What to divide the channels by of each tensor that some of the layers `nodes` multiply by a stored matrix.

    Float32 (channels,) by tensor, their geometric mean 1.
    `strength` 0..1: how much of what stands out goes from the activations into the weights. Raises EngineError where
    the model fails on a feed, CalibrationRefused for activations that are not finite or without any feed.
    """
    model = onnx.load(onnx_path)
    graph = Graph(model)
    products = products_by_input(graph, nodes)
    if not products:
        return {}
    found = {}
    for tensor, largest in peaks(model, tuple(products), feeds, threads).items():
        weights = np.max([np.abs(graph.constants[node.input[1]]).max(axis=1) for node in products[tensor]], axis=0)
        activation, weight = np.maximum(largest, LEAST), np.maximum(weights, LEAST)
        divisor = activation**strength / weight ** (1 - strength)
        found[tensor] = (divisor / np.exp(np.log(divisor).mean())).astype(np.float32)
    return found


def peaks(
    model: onnx.ModelProto, tensors: Collection[str], feeds: Iterable[Feed], threads: int
) -> dict[str, npt.NDArray[np.float64]]:
    """The largest magnitude of each channel, the last axis, of each tensor over all feeds; `model` is changed."""
    del model.graph.output[:]
    model.graph.output.extend(helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in tensors)
    found: dict[str, npt.NDArray[np.float64]] = {}
    try:
        session = onnxruntime.InferenceSession(
            model.SerializeToString(), session_options(threads), providers=list(PROVIDERS)
        )
        for feed in feeds:
            for name, values in zip(tensors, session.run(list(tensors), dict(feed)), strict=True):
                largest = np.abs(values).max(axis=tuple(range(values.ndim - 1))).astype(np.float64)
                found[name] = np.maximum(found[name], largest) if name in found else largest
    except ORT_ERRORS as exc:
        raise EngineError(f"the float model failed while its channels were measured: {in_one_line(exc)}") from exc
    if len(found) < len(tensors):
        raise CalibrationRefused("no feed came to measure channels with; record them first")
    for name, largest in found.items():
        if not np.isfinite(largest).all():
            raise CalibrationRefused(f"tensor {name} held NaN or infinity; the float model is broken")
    return found


def smoothed(model: onnx.ModelProto, nodes: Collection[str], divisors: Mapping[str, npt.ArrayLike]) -> onnx.ModelProto:
    """The model that computes the same with its layers `nodes` behind evened channels; `model` stays as it was.

    Layers keep their names; a tensor X, divided, is `X.evened`. Layers whose input has no divisor stay as they are.
    """
    if not divisors:
        same = onnx.ModelProto()
        same.CopyFrom(model)
        return same
    graph = Graph(model)
    for tensor, products in products_by_input(graph, nodes).items():
        if tensor not in divisors:
            continue
        divisor = np.asarray(divisors[tensor], np.float32)
        factor, evened = f"{tensor}.factor", f"{tensor}{EVENED}"
        graph.constants[factor] = 1 / divisor
        multiply = helper.make_node("Mul", [tensor, factor], [evened])
        graph.insert_before(products[0], multiply)
        for node in products:
            weight = f"{node.input[1]}.behind.{evened}"  # a matrix may stand behind several tensors
            graph.constants[weight] = graph.constants[node.input[1]] * divisor[:, np.newaxis]
            graph.set_input(node, 0, evened)
            graph.set_input(node, 1, weight)
    return graph.to_model()


def products_by_input(graph: Graph, nodes: Collection[str]) -> dict[str, list[NodeProto]]:
    """The MatMuls by a stored matrix among the layers `nodes`, by the tensor that they read, in the graph's order."""
    found: dict[str, list[NodeProto]] = {}
    for node in graph.nodes:
        plain = node.op_type == "MatMul" and has_weight(graph, node) and graph.constants[node.input[1]].ndim == 2
        if plain and name_of(node) in nodes:
            found.setdefault(node.input[0], []).append(node)
    return found
