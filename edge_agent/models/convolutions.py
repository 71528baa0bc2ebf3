"""Convolutions: what a rewrite asks of a convolution with stored weights, and how it changes them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from onnx import NodeProto

from edge_agent.models.graph import Array, Graph, attributes

CONVOLUTIONS = ("Conv", "ConvTranspose")
POINTWISE_UNARY = frozenset({"Clip", "Erf", "HardSigmoid", "HardSwish", "Identity", "Relu", "Sigmoid", "Tanh"})
POINTWISE_BINARY = frozenset({"Add", "Div", "Mul", "Sub"})
CHANNEL_MULTIPLE = 16  # one AVX-512 register of float32, a block of onnxruntime; also what tensor cores like


def has_constant_weights(graph: Graph, conv: NodeProto) -> bool:
    return all(name in graph.constants for name in conv.input[1:] if name)


def weight_of(graph: Graph, conv: NodeProto) -> Array:
    return graph.constants[conv.input[1]]


def groups_of(conv: NodeProto) -> int:
    return int(attributes(conv).get("group", 1))


def output_channels(graph: Graph, conv: NodeProto) -> int:
    weight = weight_of(graph, conv)
    return int(weight.shape[0] if conv.op_type == "Conv" else weight.shape[1] * groups_of(conv))


def input_channels(graph: Graph, conv: NodeProto) -> int:
    weight = weight_of(graph, conv)
    return int(weight.shape[1] * groups_of(conv) if conv.op_type == "Conv" else weight.shape[0])


def pads_nothing(conv: NodeProto) -> bool:
    settings = attributes(conv)
    return not any(settings.get("pads", ())) and settings.get("auto_pad", b"NOTSET") in (b"NOTSET", b"VALID")


def is_pointwise(graph: Graph, node: NodeProto) -> bool:
    """Whether the node is a plain 1x1 convolution with constant weights."""
    if node.op_type != "Conv" or not has_constant_weights(graph, node):
        return False
    strides = attributes(node).get("strides", ())
    kernel = weight_of(graph, node).shape[2:]
    return kernel == (1, 1) and groups_of(node) == 1 and pads_nothing(node) and all(s == 1 for s in strides)


def foldable_convolution(graph: Graph, name: str) -> NodeProto | None:
    """The convolution with constant weights that makes the tensor for one reader only."""
    conv = graph.made_by(name, *CONVOLUTIONS)
    if conv is None or not graph.feeds_only(name) or not has_constant_weights(graph, conv):
        return None
    return conv


def reading_convolutions(graph: Graph, name: str) -> list[NodeProto] | None:
    """All readers of the tensor when each is a convolution of it with constant weights, else None."""
    readers = graph.readers[name]
    fits = name not in graph.outputs and all(
        reader.op_type in CONVOLUTIONS and reader.input[0] == name and has_constant_weights(graph, reader)
        for reader in readers
    )
    return list(readers) if fits else None


def set_weight(graph: Graph, conv: NodeProto, weight: Array) -> None:
    graph.set_input(conv, 1, graph.add_constant(weight.astype(np.float32), conv.input[1]))


def set_bias(graph: Graph, conv: NodeProto, bias: Array) -> None:
    name = graph.add_constant(bias.astype(np.float32), conv.input[1] + ".bias")
    if len(conv.input) > 2:
        graph.set_input(conv, 2, name)
    else:
        graph.add_input(conv, name)


def scale_outputs(graph: Graph, conv: NodeProto, factor: npt.NDArray[np.float64]) -> None:
    """Multiplies what a convolution gives by a factor per output channel, (C,)."""
    weight = weight_of(graph, conv)
    if conv.op_type == "Conv":
        scaled = weight * factor.reshape(-1, *[1] * (weight.ndim - 1))
    else:  # (C_in, C_out / groups, ...): the input channels of group g make the g-th share of the output channels
        groups = groups_of(conv)
        by_group = weight.reshape(groups, -1, *weight.shape[1:])
        scaled = (by_group * factor.reshape(groups, 1, -1, *[1] * (weight.ndim - 2))).reshape(weight.shape)
    set_weight(graph, conv, scaled)
    if len(conv.input) > 2:
        set_bias(graph, conv, graph.constants[conv.input[2]] * factor)


def shift_outputs(graph: Graph, conv: NodeProto, shift: npt.NDArray[np.float64]) -> None:
    """Adds a number per output channel, (C,), to what a convolution gives."""
    bias = graph.constants[conv.input[2]] if len(conv.input) > 2 else np.zeros(1)
    set_bias(graph, conv, bias + shift)


def scale_inputs(graph: Graph, conv: NodeProto, factor: npt.NDArray[np.float64]) -> None:
    """Makes a convolution of x one that gives the same for x / factor, factor per input channel, (C,)."""
    weight = weight_of(graph, conv)
    if conv.op_type == "ConvTranspose":
        scaled = weight * factor.reshape(-1, *[1] * (weight.ndim - 1))
    else:
        groups = groups_of(conv)
        by_group = weight.reshape(groups, -1, *weight.shape[1:])
        scaled = (by_group * factor.reshape(groups, 1, -1, *[1] * (weight.ndim - 2))).reshape(weight.shape)
    set_weight(graph, conv, scaled)


@dataclass(frozen=True)
class Channels:
    """The output channels of a plain convolution that only plain convolutions read, directly or through pointwise
    operators; so they can be renumbered, dropped or added to."""

    graph: Graph
    source: NodeProto
    convolutions: tuple[NodeProto, ...]
    tensors: frozenset[str]

    @classmethod
    def made_by(cls, graph: Graph, node: NodeProto) -> Channels | None:
        """The channels that the node makes, when it is such a convolution."""
        if node.op_type != "Conv" or groups_of(node) != 1 or not has_constant_weights(graph, node):
            return None
        tensors, todo, between, convs = {node.output[0]}, [node.output[0]], [], []
        while todo:
            tensor = todo.pop()
            if tensor in graph.outputs or not graph.readers[tensor]:
                return None
            for reader in graph.readers[tensor]:
                if reader.op_type == "Conv" and groups_of(reader) == 1 and reader.input[0] == tensor:
                    if not has_constant_weights(graph, reader):
                        return None
                    convs.append(reader)
                elif reader.op_type in POINTWISE_UNARY | POINTWISE_BINARY:
                    between.append(reader)
                    if reader.output[0] not in tensors:
                        tensors.add(reader.output[0])
                        todo.append(reader.output[0])
                else:
                    return None
        others = {name for reader in between for name in reader.input if name and name not in tensors}
        if not all(name in graph.constants and graph.constants[name].size == 1 for name in others):
            return None
        return cls(graph, node, tuple(convs), frozenset(tensors))

    @property
    def count(self) -> int:
        return output_channels(self.graph, self.source)

    def select(self, kept: npt.NDArray[np.intp]) -> None:
        """Keeps these channels, in this order."""
        self._change(lambda value, axis: np.take(value, kept, axis))

    def fill_up(self, count: int) -> None:
        """Adds channels that are zero and weigh nothing."""
        missing = count - self.count
        self._change(lambda value, axis: np.pad(value, [(0, missing * (n == axis)) for n in range(value.ndim)]))

    def _change(self, change: Callable[[Array, int], Array]) -> None:
        graph, source = self.graph, self.source
        set_weight(graph, source, change(weight_of(graph, source), 0))
        if len(source.input) > 2:
            set_bias(graph, source, change(graph.constants[source.input[2]], 0))
        for conv in self.convolutions:
            set_weight(graph, conv, change(weight_of(graph, conv), 1))
        for name in self.tensors & graph.dims.keys():
            first, _, *rest = graph.dims[name]
            graph.dims[name] = (first, self.count, *rest)


def pointwise_chain(graph: Graph, name: str) -> tuple[list[NodeProto], NodeProto | None]:
    """The unary operators that the tensor comes through, and the node that they start from."""
    chain: list[NodeProto] = []
    node = graph.producer.get(name)
    while node is not None and node.op_type in POINTWISE_UNARY:
        chain.append(node)
        node = graph.producer.get(node.input[0])
    return chain, node
