"""Places: where in a graph Q/DQ stand, for the layers that were chosen.

Scheme `tensorrt`: at the inputs of the chosen layers, and at the other input of an Add that alone reads a chosen
convolution, so that TensorRT adds it within the convolution; none elsewhere.

Scheme `onnxruntime`: onnxruntime computes a convolution in integers only when what it makes is quantised too, and
copies pictures to float and back wherever quantised and float meet. So Q/DQ stand in front of and behind the chosen
convolutions, all who read such a tensor read it quantised, and what lies between convolutions follows where integer
kernels exist (INTEGER_OPERATORS). Matrix products need their input quantised alone and make float.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Literal, get_args

from onnx import NodeProto

from edge_agent.calibrate.layers import is_layer, is_product, name_of, skip_add
from edge_agent.errors import CalibrationRefused
from edge_agent.models.convolutions import CONVOLUTIONS
from edge_agent.models.graph import Graph

Scheme = Literal["tensorrt", "onnxruntime"]
SCHEMES: tuple[Scheme, ...] = get_args(Scheme)
INTEGER_OPERATORS = frozenset({"Add", "Concat", "GlobalAveragePool", "MaxPool", "Mul", "Resize"})
KEEP_RANGE = frozenset({"MaxPool", "Resize"})  # integers only if what comes out has the scale of what went in


class Places:
    """Where Q/DQ stand in one graph.

    `chosen`: the layers to quantise, by name; `inputs`: which inputs of which nodes read by way of Q/DQ; `everywhere`:
    tensors that all who read them read so; `same_as`: tensors with the range of another; `tensors`: all that need a
    range of their own, for these layers or some of them (which of two that meet in an Add is the `residuals` one
    depends on which are chosen).
    """

    def __init__(self, graph: Graph, nodes: Collection[str], scheme: Scheme) -> None:
        """Raises CalibrationRefused for a node that is no layer of the graph."""
        layers = {name_of(node): node for node in graph.nodes if is_layer(graph, node)}
        if unknown := sorted(set(nodes) - set(layers)):
            raise CalibrationRefused(
                f"{', '.join(unknown)}: no such Conv, ConvTranspose, Gemm or MatMul in the model; a node is named by "
                "its first output, and the groups of another model's file do not fit"
            )
        self.chosen = {name: node for name, node in layers.items() if name in set(nodes)}
        self.inputs = {name: {0, 1} if is_product(graph, node) else {0} for name, node in self.chosen.items()}
        self.everywhere: set[str] = set()
        self.same_as: dict[str, str] = {}
        self.residuals: set[str] = set()
        if scheme == "tensorrt":
            self._add_residuals(graph)
        else:
            self._spread(graph)
        read = {graph.producer[name].input[position] for name, places in self.inputs.items() for position in places}
        self.tensors = {self.same_as.get(name, name) for name in read | self.everywhere | self.residuals}

    def _add_residuals(self, graph: Graph) -> None:
        for node in self.chosen.values():
            skip = skip_add(graph, node) if node.op_type in CONVOLUTIONS else None
            if skip is not None:
                # where two convolutions meet, the first one's result waits for the second, which adds it
                self.inputs[name_of(skip[0])] = {skip[1]}
                self.residuals.add(skip[0].input[skip[1]])

    def _spread(self, graph: Graph) -> None:
        for name, node in self.chosen.items():
            self.everywhere.add(node.input[0])
            if node.op_type in CONVOLUTIONS:
                self.everywhere.add(behind_relu(graph, name))
        for node in reversed(graph.nodes):
            if not self.everywhere.isdisjoint(node.output) and is_integer_operator(graph, node):
                self.everywhere |= set(computed_inputs(graph, node))
        for node in graph.nodes:
            if node.op_type in KEEP_RANGE and self.everywhere.issuperset([node.input[0], name_of(node)]):
                self.same_as[name_of(node)] = self.same_as.get(node.input[0], node.input[0])


def is_integer_operator(graph: Graph, node: NodeProto) -> bool:
    """Whether onnxruntime computes the node in uint8 when all it reads and makes is quantised."""
    if node.op_type not in INTEGER_OPERATORS:
        return False
    return node.op_type not in ("Add", "Mul") or len(computed_inputs(graph, node)) == 2


def computed_inputs(graph: Graph, node: NodeProto) -> list[str]:
    """The inputs of a node that are not stored."""
    return [name for name in node.input if name and name not in graph.constants]


def behind_relu(graph: Graph, name: str) -> str:
    """What a Relu makes of the tensor when nothing else reads it, else the tensor."""
    reader = graph.only_reader(name)
    return name_of(reader) if reader is not None and reader.op_type == "Relu" else name
