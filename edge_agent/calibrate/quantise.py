"""Quantise: a float model and the ranges of its tensors become a Q/DQ model.

Scheme `tensorrt` is symmetric int8 with zero point 0, one scale for a tensor of activations, one per output channel of
a weight, float bias. Scheme `onnxruntime` is what onnxruntime's x86 kernels take: activations uint8 with a zero point,
weights int8 per output channel, bias int32. Where Q/DQ stand: edge_agent.calibrate.places. A scheme's source is the
file that its backend runs in float: for onnxruntime a detector's `model.cpu.onnx` (1.33 x float instead of 1.16 x).

Both are written here and not by onnxruntime's QDQQuantizer: that one quantises an operator type's inputs or outputs
everywhere or nowhere, so it cannot quantise the one residual input of an Add, and it knows nodes by names ours lack.

uint8 by int8 saturates in onnxruntime on x86 without VNNI (before Ice Lake and Zen 4): pairs of products are added in
16 bits there. What that does to text, the gates measure on the device; half the range of weights would cost everyone.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
from onnx import NodeProto, TensorProto, helper, numpy_helper

from edge_agent.calibrate.layers import channel_axis, has_weight, name_of
from edge_agent.calibrate.ort_graph import ORT_DOMAIN, for_onnxruntime
from edge_agent.calibrate.places import SCHEMES, Places, Scheme
from edge_agent.errors import CalibrationRefused
from edge_agent.models.convolutions import CONVOLUTIONS
from edge_agent.models.graph import Array, Graph

__all__ = ["SCHEMES", "Scheme", "quantise", "tensors_to_measure"]

Range = tuple[float, float]
PROVENANCE = "edge_agent."  # begins the keys of what a model says about where it came from


def quantise(
    model: onnx.ModelProto,
    ranges: Mapping[str, Range],
    nodes: Collection[str],
    scheme: Scheme,
    origin: Mapping[str, str] | None = None,
) -> onnx.ModelProto:
    """The model with the layers `nodes` in INT8; `model` stays as it was, and equal arguments give equal bytes.

    `nodes`: names of first outputs. `ranges`: (lowest, highest) of each of `tensors_to_measure`. `origin`: what else
    the result is to say about where it came from; its scheme, the number of its layers and the SHA-256 of the float
    model stand there anyway. Raises CalibrationRefused for a node that is no layer of the model, for a tensor without
    a range, for one whose range is empty or not finite, and for a model that is quantised already.
    """
    if any(node.op_type in ("DequantizeLinear", "QuantizeLinear") for node in model.graph.node):
        raise CalibrationRefused("the model is quantised already; give the float model it was made from")
    graph = graph_for(model, scheme)
    places = Places(graph, nodes, scheme)
    result = Writer(graph, ranges, scheme).write(places)
    said = {
        "scheme": scheme,
        "layers": str(len(places.chosen)),
        "source_sha256": hashlib.sha256(model.SerializeToString(deterministic=True)).hexdigest(),
        **(origin or {}),
    }
    for key, value in sorted(said.items()):
        result.metadata_props.add(key=PROVENANCE + key, value=value)
    return result


def tensors_to_measure(model: onnx.ModelProto, nodes: Collection[str], scheme: Scheme) -> tuple[str, ...]:
    """The tensors whose ranges `quantise` needs for these layers, in the graph's order; fewer layers need no others.

    Raises CalibrationRefused for a node that is no layer of the model.
    """
    graph = graph_for(model, scheme)
    wanted = Places(graph, nodes, scheme).tensors
    order = [value.name for value in model.graph.input] + [name for node in graph.nodes for name in node.output]
    return tuple(name for name in order if name in wanted)


def graph_for(model: onnx.ModelProto, scheme: Scheme) -> Graph:
    """The graph that Q/DQ are put into; every tensor it has is the model's own of that name."""
    return for_onnxruntime(model) if scheme == "onnxruntime" else Graph(model)


def say_kernel_shape(graph: Graph, node: NodeProto, weight: str) -> None:
    """Where a convolution leaves it to its weights, it says how large its kernel is: TensorRT 8.6 cannot tell from
    weights that come out of a DequantizeLinear ("input tensor shape misaligns with the input kernel shape")."""
    if not any(attribute.name == "kernel_shape" for attribute in node.attribute):
        node.attribute.append(helper.make_attribute("kernel_shape", graph.constants[weight].shape[2:]))


class Writer:
    """Writes the Q/DQ model of one graph; used once."""

    def __init__(self, graph: Graph, ranges: Mapping[str, Range], scheme: Scheme) -> None:
        self.graph = graph
        self.ranges = ranges
        self.scheme = scheme
        self.nodes: list[NodeProto] = []
        self.constants: dict[str, Array] = dict(graph.constants)
        self.read_as: dict[str, str] = {}  # tensor or weight -> the output of its DequantizeLinear
        self.same_as: dict[str, str] = {}
        self.scale: dict[str, npt.NDArray[np.float32]] = {}  # of activations, by tensor

    def write(self, places: Places) -> onnx.ModelProto:
        """The model; nodes in the order of the float graph, Q/DQ in front of the first who reads them."""
        self.same_as = places.same_as
        for node in self.graph.nodes:
            before = list(node.input)
            for position, tensor in enumerate(before):
                if position in places.inputs.get(name_of(node), ()) or tensor in places.everywhere:
                    node.input[position] = self.activation(tensor)
            if name_of(node) in places.chosen and has_weight(self.graph, node):
                if node.op_type in CONVOLUTIONS:
                    say_kernel_shape(self.graph, node, before[1])
                node.input[1] = self.weight(node)
                if self.scheme == "onnxruntime" and node.op_type in CONVOLUTIONS and len(node.input) > 2:
                    node.input[2] = self.bias(node, before)
            elif node.op_type == "MatMul" and has_weight(self.graph, node):
                node.input[1] = self.half(node.input[1])
            self.nodes.append(node)
        return self._model()

    def activation(self, tensor: str) -> str:
        """The tensor behind one Q/DQ pair, which all share who read it so."""
        if tensor not in self.read_as:
            scale, zero = self.activation_scale(self.same_as.get(tensor, tensor))
            self.scale[tensor] = scale
            names = [self._store(f"{tensor}.scale", scale), self._store(f"{tensor}.zero", zero)]
            quantised = self._new(f"{tensor}.quantised")
            self.read_as[tensor] = self._new(f"{tensor}.dequantised")
            self.nodes.append(helper.make_node("QuantizeLinear", [tensor, *names], [quantised]))
            self.nodes.append(helper.make_node("DequantizeLinear", [quantised, *names], [self.read_as[tensor]]))
        return self.read_as[tensor]

    def activation_scale(self, tensor: str) -> tuple[npt.NDArray[np.float32], Array]:
        """Scale and zero point of a tensor of activations. Raises CalibrationRefused without a usable range."""
        low, high = self._range(tensor)
        if self.scheme == "tensorrt":
            return np.array(max(-low, high) / 127, np.float32), np.array(0, np.int8)
        scale = (high - low) / 255
        return np.array(scale, np.float32), np.array(round(-low / scale), np.uint8)

    def _range(self, tensor: str) -> Range:
        """The tensor's range, widened to hold zero, which padding and Relu need exactly."""
        if tensor not in self.ranges:
            raise CalibrationRefused(f"tensor {tensor} has no range; measure it before quantising the layer behind it")
        low, high = min(self.ranges[tensor][0], 0.0), max(self.ranges[tensor][1], 0.0)
        if not np.isfinite([low, high]).all() or high - low < np.finfo(np.float32).tiny * 1e3:
            raise CalibrationRefused(f"tensor {tensor} has the range {self.ranges[tensor]}; no scale comes from that")
        return low, high

    def weight(self, node: NodeProto) -> str:
        """The layer's weight behind a DequantizeLinear, one scale an output channel: stored as int8, but for TensorRT's
        matrix products as float behind a Q/DQ pair, since 8.6 builds them no other way ("convertMyelinWeightsToFp32:
        params.weights.type() != kINT8 failed")."""
        name = node.input[1]
        axis = channel_axis(node, self.graph.constants[name].ndim)
        key = f"{name}.axis{axis}"
        if key not in self.read_as:
            values, scales = quantised_weight(self.graph.constants[name], axis)
            self.scale[key] = scales
            by = [
                self._store(f"{key}.scale", scales),
                self._store(f"{key}.zero", np.zeros(scales.shape, np.int8)),
            ]
            if self.scheme == "tensorrt" and node.op_type not in CONVOLUTIONS:
                stored = self._new(f"{key}.quantised")
                self.nodes.append(helper.make_node("QuantizeLinear", [name, *by], [stored], axis=axis))
            else:
                stored = self._store(f"{key}.int8", values)
            self.read_as[key] = self._new(f"{key}.dequantised")
            self.nodes.append(helper.make_node("DequantizeLinear", [stored, *by], [self.read_as[key]], axis=axis))
        return self.read_as[key]

    def bias(self, node: NodeProto, float_inputs: list[str]) -> str:
        """The layer's bias as int32 in steps of input scale times weight scale, which onnxruntime adds up in."""
        tensor, weight, name = float_inputs[:3]
        axis = channel_axis(node, self.graph.constants[weight].ndim)
        scales = np.asarray(self.scale[tensor] * self.scale[f"{weight}.axis{axis}"], np.float32)
        key = f"{name}.of.{name_of(node)}"
        steps = np.round(self.graph.constants[name].astype(np.float64) / scales)
        inputs = [
            self._store(f"{key}.int32", np.clip(steps, -(2**31), 2**31 - 1).astype(np.int32)),
            self._store(f"{key}.scale", scales),
            self._store(f"{key}.zero", np.zeros(scales.shape, np.int32)),
        ]
        output = self._new(f"{key}.dequantised")
        self.nodes.append(helper.make_node("DequantizeLinear", inputs, [output], axis=0))
        return output

    def half(self, name: str) -> str:
        """A weight that stays float, stored in 16 bits: finer by far than INT8 around it, and half as large a file."""
        if name not in self.read_as:
            self.read_as[name] = self._new(f"{name}.float")
            stored = self._store(f"{name}.half", self.graph.constants[name].astype(np.float16))
            self.nodes.append(helper.make_node("Cast", [stored], [self.read_as[name]], to=TensorProto.FLOAT))
        return self.read_as[name]

    def _store(self, name: str, value: Array) -> str:
        self.constants[self._new(name)] = value
        return name

    def _new(self, name: str) -> str:
        if name in self.constants or name in self.graph.producer:
            raise CalibrationRefused(f"the model already has a tensor {name}; rename it in the source")
        return name

    def _model(self) -> onnx.ModelProto:
        model = onnx.ModelProto()
        model.CopyFrom(self.graph.model)
        del model.graph.node[:], model.graph.initializer[:], model.graph.value_info[:]
        model.graph.node.extend(self.nodes)
        if any(node.domain == ORT_DOMAIN for node in self.nodes):
            model.opset_import.append(helper.make_opsetid(ORT_DOMAIN, 1))
        read = {name for node in self.nodes for name in node.input} | self.graph.outputs
        model.graph.initializer.extend(
            numpy_helper.from_array(np.asarray(value, order="C"), name)
            for name, value in self.constants.items()
            if name in read
        )
        return model


def quantised_weight(weight: Array, axis: int) -> tuple[npt.NDArray[np.int8], npt.NDArray[np.float32]]:
    """The weight in symmetric int8 steps and the step of each channel along `axis`; a channel of zeros has step 1."""
    others = tuple(n for n in range(weight.ndim) if n != axis)
    largest = np.abs(weight).max(axis=others).astype(np.float64)
    scales = np.where(largest > 0, largest / 127, 1.0).astype(np.float32)
    shape: list[Any] = [1] * weight.ndim
    shape[axis] = -1
    return np.clip(np.round(weight / scales.reshape(shape)), -127, 127).astype(np.int8), scales
