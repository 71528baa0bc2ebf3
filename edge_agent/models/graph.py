"""Graph: an ONNX graph one can rewrite: who makes a tensor, who reads it, what is constant."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
from onnx import NodeProto, helper, numpy_helper, shape_inference

Array = npt.NDArray[Any]
Dims = tuple[int | None, ...]
# looks at one node; where its pattern is there, changes the graph and returns True
Rule = Callable[["Graph", NodeProto], bool]


class Graph:
    """A model's main graph while it is being rewritten. `to_model` gives the result; the model given stays as it was.

    Constants (initializers and Constant nodes) are numpy arrays by tensor name. Tensors keep the shapes that shape
    inference found at the start (`dims`, `types`); tensors made later have none.
    """

    def __init__(self, model: onnx.ModelProto) -> None:
        self.model = model
        self.constants: dict[str, Array] = {t.name: numpy_helper.to_array(t) for t in model.graph.initializer}
        self.nodes: list[NodeProto] = []
        self.producer: dict[str, NodeProto] = {}
        self.readers: defaultdict[str, list[NodeProto]] = defaultdict(list)
        self.outputs = {value.name for value in model.graph.output}
        self.dims, self.types = inferred(model)
        self._last_name = 0
        for original in model.graph.node:
            node = NodeProto()
            node.CopyFrom(original)
            if node.op_type == "Constant" and node.attribute[0].name == "value":
                self.constants[node.output[0]] = numpy_helper.to_array(node.attribute[0].t)
            else:
                self._link(node)
                self.nodes.append(node)

    def _link(self, node: NodeProto) -> None:
        for name in node.output:
            self.producer[name] = node
        for name in node.input:
            self.readers[name].append(node)

    def constant(self, name: str) -> Array | None:
        """The value of a constant tensor, None for any other."""
        return self.constants.get(name)

    def made_by(self, name: str, *op_types: str) -> NodeProto | None:
        """The node that makes the tensor when it is one of `op_types`, else None."""
        node = self.producer.get(name)
        return node if node is not None and node.op_type in op_types else None

    def only_reader(self, name: str) -> NodeProto | None:
        """The one node that reads the tensor; None when several inputs do or the graph gives it out."""
        readers = self.readers[name]
        return readers[0] if len(readers) == 1 and name not in self.outputs else None

    def feeds_only(self, name: str) -> bool:
        """Whether exactly one input in the graph reads the tensor, and nobody outside."""
        return self.only_reader(name) is not None

    def add_constant(self, value: Array, like: str) -> str:
        """Stores a constant under a new name that tells where it came from."""
        name = self.new_name(like)
        self.constants[name] = value
        return name

    def new_name(self, like: str) -> str:
        """A tensor name not in use."""
        stem = like.split("~", maxsplit=1)[0]
        while True:
            self._last_name += 1
            name = f"{stem}~{self._last_name}"
            if name not in self.constants and name not in self.producer:
                return name

    def insert_before(self, place: NodeProto, *nodes: NodeProto) -> None:
        """Puts nodes in front of `place`, so that the order stays topological."""
        position = self._position(place)
        self.nodes[position:position] = nodes
        for node in nodes:
            self._link(node)

    def insert_behind(self, place: NodeProto, node: NodeProto) -> None:
        """Puts a node that reads the output of `place` between it and all who read it so far."""
        old, new = place.output[0], node.output[0]
        for reader in list(self.readers[old]):
            for position, name in enumerate(reader.input):
                if name == old:
                    self.set_input(reader, position, new)
        self.nodes.insert(self._position(place) + 1, node)
        self._link(node)
        if old in self.outputs:  # the graph goes on giving out the name it promised
            inner = self.new_name(old)
            self.rename_output(place, inner)
            self.set_input(node, list(node.input).index(old), inner)
            self.rename_output(node, old)
            for reader in list(self.readers[new]):
                for position, name in enumerate(reader.input):
                    if name == new:
                        self.set_input(reader, position, old)

    def set_input(self, node: NodeProto, position: int, name: str) -> None:
        """Lets the node read another tensor at an input."""
        self.readers[node.input[position]].remove(node)
        node.input[position] = name
        self.readers[name].append(node)

    def add_input(self, node: NodeProto, name: str) -> None:
        """Gives the node one more input."""
        node.input.append(name)
        self.readers[name].append(node)

    def rename_output(self, node: NodeProto, name: str) -> None:
        """Lets the node make the tensor `name`, whose own producer must have been removed."""
        del self.producer[node.output[0]]
        node.output[0] = name
        self.producer[name] = node

    def replace(self, old: str, new: str) -> None:
        """Lets every reader of `old` read `new`; where the graph gives `old` out, `new`'s producer takes that name."""
        for node in list(self.readers[old]):
            for position, name in enumerate(node.input):
                if name == old:
                    self.set_input(node, position, new)
        if old in self.outputs:
            self.producer.pop(old, None)
            for node in list(self.readers[new]):
                for position, name in enumerate(node.input):
                    if name == new:
                        self.set_input(node, position, old)
            self.rename_output(self.producer[new], old)

    def remove(self, node: NodeProto) -> None:
        """Takes a node out whose outputs nobody reads any more."""
        del self.nodes[self._position(node)]
        for name in node.input:
            self.readers[name].remove(node)
        for name in node.output:
            if self.producer.get(name) is node:
                del self.producer[name]

    def remove_unread(self) -> None:
        """Takes out every node whose outputs nobody reads, and then those that only such nodes read."""
        for node in reversed(list(self.nodes)):
            if not any(self.readers[name] or name in self.outputs for name in node.output):
                self.remove(node)

    def _position(self, node: NodeProto) -> int:
        return next(n for n, candidate in enumerate(self.nodes) if candidate is node)

    def to_model(self) -> onnx.ModelProto:
        """The graph as a model: same inputs and outputs, opsets and metadata; constants that are read, as stored."""
        self.remove_unread()
        model = onnx.ModelProto()
        model.CopyFrom(self.model)
        graph = model.graph
        del graph.node[:]
        del graph.initializer[:]
        del graph.value_info[:]
        graph.node.extend(self.nodes)
        graph.initializer.extend(
            numpy_helper.from_array(np.ascontiguousarray(value), name)
            for name, value in self.constants.items()
            if self.readers[name] or name in self.outputs
        )
        return model


def bypass(graph: Graph, node: NodeProto, source: str) -> bool:
    """Lets the readers of the node read `source`; False where a graph output would become an input or a constant."""
    if node.output[0] in graph.outputs and (source not in graph.producer or source in graph.outputs):
        return False
    if source in graph.constants and node.output[0] not in graph.constants:
        graph.constants[node.output[0]] = graph.constants[source]
        graph.remove(node)
        return True
    graph.replace(node.output[0], source)
    graph.remove(node)
    return True


def run_rules(graph: Graph, rules: Sequence[Rule]) -> None:
    """Offers every node to every rule, in turn, until none finds anything."""
    while sum(apply(rule, graph) for rule in rules):
        graph.remove_unread()


def apply(rule: Rule, graph: Graph) -> bool:
    """Offers every node to the rule; True when it changed any."""
    changed = False
    for node in list(graph.nodes):
        if graph.producer.get(node.output[0]) is node:  # not removed by an earlier change
            changed = rule(graph, node) or changed
    return changed


def inferred(model: onnx.ModelProto) -> tuple[dict[str, Dims], dict[str, int]]:
    """Each tensor's dimensions (None where unknown) and TensorProto type, as far as shape inference knows them."""
    graph = shape_inference.infer_shapes(model, data_prop=True).graph
    dims: dict[str, Dims] = {}
    types: dict[str, int] = {}
    for value in [*graph.input, *graph.value_info, *graph.output]:
        tensor = value.type.tensor_type
        types[value.name] = tensor.elem_type
        if tensor.HasField("shape"):
            dims[value.name] = tuple(dim.dim_value if dim.HasField("dim_value") else None for dim in tensor.shape.dim)
    return dims, types


def attributes(node: NodeProto) -> Mapping[str, Any]:
    """The node's attributes as plain values."""
    return {attribute.name: helper.get_attribute_value(attribute) for attribute in node.attribute}
