"""Groups: which layers of a model are quantised, or left float, together.

Found from the graph's structure alone, so that a new model needs no list of names. A layer is in exactly one group.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import onnx
from onnx import NodeProto

from edge_agent.calibrate.layers import (
    CARRIERS,
    Surroundings,
    has_weight,
    is_bias,
    is_pool,
    is_product,
    layers,
    name_of,
    surroundings,
)
from edge_agent.calibrate.recipe import Recipe
from edge_agent.errors import ConfigError
from edge_agent.models.convolutions import CONVOLUTIONS
from edge_agent.models.convolutions import groups_of as channel_groups
from edge_agent.models.graph import Graph
from edge_agent.models.spec import Task

# Why groups stay float unless the recipe asks for them. Figures: Xeon with AVX512-VNNI, 2026-11-30, 60 frames.
ALWAYS_FLOAT: Mapping[str, str] = {
    "head": "the last layers decide every pixel or character, and are few",
    "stem": "the first layer sees raw pixels: an eighth bit lost there is lost everywhere, and it is small",
    "gates": "squeeze-and-excite gates scale whole channels: a small error there moves everything, and they are tiny",
    "attention": "products of two activations have no weights to gain by, and Softmax needs their small differences",
    "ffn2": "its input has rare values far from the rest, which one scale for all cannot hold",
}
# TensorRT 8.6 does not build these as INT8 in the PP-OCR recognisers, so they need a reason in the recipe
LINEAR_FLOAT = "TensorRT 8.6 builds no INT8 matrix product inside a recogniser's attention"


@dataclass(frozen=True)
class Group:
    """Layers that are quantised together, by the name of their first outputs, in the graph's order.

    `default_float`: stays float when nothing else is said; `why_float` is the reason then, else empty.
    """

    name: str
    nodes: tuple[str, ...]
    weight_bytes: int
    default_float: bool
    why_float: str


def groups_of(model: onnx.ModelProto, task: Task, recipe: Recipe) -> tuple[Group, ...]:
    """The groups of a float model: every layer with stored weights, and the MatMuls of attention, in exactly one.

    `recipe` names groups that stay float or are to be tried although they are float by default, and single nodes
    that stay float (each of these alone in a group `float`). Raises ConfigError for a name that the model lacks.
    """
    graph = Graph(model)
    kinds = Kinds(graph, task)
    members: dict[str, list[NodeProto]] = {}
    for node in layers(graph):
        name = "float_nodes" if name_of(node) in recipe.float_nodes else kinds.of(node)
        members.setdefault(name, []).append(node)
    refuse_unknown(recipe, members, [name_of(node) for node in layers(graph)])
    return tuple(_group(graph, name, nodes, task, recipe) for name, nodes in members.items())


def chosen_nodes(groups: Iterable[Group]) -> tuple[str, ...]:
    """The nodes of the groups that are quantised by default."""
    return tuple(node for group in groups if not group.default_float for node in group.nodes)


def _group(graph: Graph, name: str, nodes: list[NodeProto], task: Task, recipe: Recipe) -> Group:
    weights = {node.input[1]: graph.constants[node.input[1]].nbytes for node in nodes if has_weight(graph, node)}
    reason = why_float(name, task, recipe)
    return Group(name, tuple(name_of(node) for node in nodes), sum(weights.values()), bool(reason), reason)


def why_float(name: str, task: Task, recipe: Recipe) -> str:
    """Why the group stays float by default; empty where it is quantised."""
    if name == "float_nodes" or matches(name, recipe.float_groups):
        return "the recipe says so"
    if matches(name, recipe.quantised_groups):
        return ""
    if name in ("ffn1", "linear", "out", "qkv") and task == "text_recognition":
        return LINEAR_FLOAT
    return ALWAYS_FLOAT.get(name, "")


def matches(name: str, patterns: Iterable[str]) -> bool:
    """Whether the group's name is one of the patterns; `*` at a pattern's end stands for any ending."""
    return any(name.startswith(pattern[:-1]) if pattern.endswith("*") else name == pattern for pattern in patterns)


def refuse_unknown(recipe: Recipe, groups: Iterable[str], nodes: Iterable[str]) -> None:
    """Raises ConfigError when the recipe names a group or node that the model does not have."""
    known = sorted(set(groups))
    for pattern in (*recipe.float_groups, *recipe.quantised_groups):
        if not any(matches(name, [pattern]) for name in known):
            raise ConfigError(
                f"the recipe names group {pattern}, which the model lacks; its groups: {', '.join(known)}"
            )
    missing = sorted(set(recipe.float_nodes) - set(nodes))
    if missing:
        raise ConfigError(
            f"the recipe's float_nodes name {', '.join(missing)}, which the model lacks; a node is named by its first "
            "output and must be a Conv, ConvTranspose, Gemm or MatMul"
        )


class Kinds:
    """Says of each layer of one graph what it is there for."""

    def __init__(self, graph: Graph, task: Task) -> None:
        self.graph = graph
        self.around: Surroundings = surroundings(graph)
        self.by_name = {name_of(node): node for node in layers(graph)}
        self.gates = self._gates()
        self.head = set() if task == "text_embedding" else self._head()
        self.neck = self._neck()

    def of(self, node: NodeProto) -> str:
        """The group's name: what a layer is, and for the convolutions of the backbone at which stride."""
        name = name_of(node)
        if name in self.head:
            return "head"
        if name in self.gates:
            return "gates"
        if is_product(self.graph, node):
            return "attention"
        if node.op_type not in CONVOLUTIONS:
            return self._linear(node)
        if not self.around.makers.get(node.input[0]):
            return "stem"
        shape = self._shape(node)
        return f"neck.{shape}" if name in self.neck else f"{shape}.s{self.around.stride[name]}"

    def _shape(self, node: NodeProto) -> str:
        weight = self.graph.constants[node.input[1]]
        if channel_groups(node) > 1:
            return "depthwise"
        return "pointwise" if set(weight.shape[2:]) == {1} else "full"

    def _linear(self, node: NodeProto) -> str:
        readers = self._readers_beyond(name_of(node))
        makers = self.around.makers.get(node.input[0], frozenset())
        if any(is_product(self.graph, reader) for reader in readers):
            return "qkv"
        if makers and all(is_product(self.graph, self.by_name[maker]) for maker in makers):
            return "out"
        if self._normalised(node.input[0]):
            return "ffn1"
        made = self.graph.producer.get(node.input[0])
        activated = made is not None and (made.op_type in CARRIERS or made.op_type == "Mul")
        if activated and any(self.by_name[maker].op_type in ("Gemm", "MatMul") for maker in makers):
            return "ffn2"
        return "linear"

    def _normalised(self, name: str) -> bool:
        return self.graph.made_by(name, "LayerNormalization") is not None

    def _readers_beyond(self, name: str) -> list[NodeProto]:
        """The layers that read the tensor, as it is or carried on, shifted and scaled by constants."""
        found: list[NodeProto] = []
        for reader in self.graph.readers[name]:
            if name_of(reader) in self.by_name:
                found.append(reader)
            elif reader.op_type in CARRIERS or is_bias(self.graph, reader):
                found += [node for out in reader.output for node in self._readers_beyond(out)]
        return found

    def _gates(self) -> set[str]:
        """The layers behind a pooling of whole pictures, up to where what they make meets the picture again."""
        behind: set[str] = set()
        gates: set[str] = set()
        for node in self.graph.nodes:
            source = node.input[0] if node.input else ""
            follows = source in behind and (node.op_type in CARRIERS or name_of(node) in self.by_name)
            if is_pool(self.graph, node) or follows:
                behind.add(name_of(node))
                if follows and name_of(node) in self.by_name:
                    gates.add(name_of(node))
        return gates

    def _head(self) -> set[str]:
        """The last layers before the outputs, back to where branches of the network join."""
        head: set[str] = set()
        found = {maker for name in self.graph.outputs for maker in self.around.makers.get(name, ())}
        while found:
            head |= found
            found = {maker for name in found for maker in self._in_line(self.by_name[name].input[0])} - head
        return head

    def _in_line(self, name: str) -> set[str]:
        """The layers that make the tensor when nothing but a chain, or a sum of layers, lies between."""
        node = self.graph.producer.get(name)
        if node is None:
            return set()
        if name_of(node) in self.by_name:
            return {name_of(node)}
        if node.op_type in CARRIERS:
            return self._in_line(node.input[0])
        if node.op_type == "Add" and all(source in self.by_name for source in node.input):
            return set(node.input)
        return set()

    def _neck(self) -> set[str]:
        """The layers whose results are brought to one size with others', and all that follow these."""
        neck: set[str] = set()
        for name, node in self.by_name.items():
            fed = not neck.isdisjoint(self.around.makers.get(node.input[0], frozenset()))
            if fed or node.input[0] in self.around.resized or self._meets_resized(name):
                neck.add(name)
        return neck

    def _meets_resized(self, name: str) -> bool:
        """Whether the tensor is enlarged, or joined with one that was, before the next layer but gates reads it."""
        for reader in self.graph.readers[name]:
            if name_of(reader) in self.by_name:
                continue
            if name_of(reader) in self.around.resized:
                return True
            if not is_pool(self.graph, reader) and self._meets_resized(name_of(reader)):
                return True
        return False
