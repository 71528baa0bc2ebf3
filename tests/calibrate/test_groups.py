from __future__ import annotations

import onnx
import pytest

from edge_agent.calibrate.groups import Group, groups_of
from edge_agent.calibrate.layers import is_layer
from edge_agent.calibrate.recipe import Recipe
from edge_agent.errors import ConfigError
from edge_agent.models.graph import Graph
from edge_agent.models.spec import ModelSpec
from tests.calibrate import small_nets
from tests.conftest import ROOT

ENGINES = ROOT / "engines"
SHIPPED = [
    "minilm-l6-v2/model.onnx",
    "ppocrv4-mobile-det/model.cpu.onnx",
    "ppocrv4-mobile-det/model.onnx",
    "ppocrv4-mobile-rec/model.latin.onnx",
    "ppocrv6-small-det/model.cpu.onnx",
    "ppocrv6-small-det/model.onnx",
    "ppocrv6-small-rec/model.latin.onnx",
]


def by_name(groups: tuple[Group, ...]) -> dict[str, Group]:
    return {group.name: group for group in groups}


def shipped(file: str) -> tuple[onnx.ModelProto, dict[str, Group]]:
    path = ENGINES / file
    if not path.is_file():
        pytest.skip(f"{path} is absent: `edge-agent models fetch`")
    model = onnx.load(path)
    return model, by_name(groups_of(model, ModelSpec.load(ENGINES, path.parent.name).task, Recipe()))


def test_layers_are_grouped_by_what_they_are_there_for() -> None:
    groups = by_name(groups_of(small_nets.detector(), "text_detection", Recipe()))
    assert {name: group.nodes for name, group in groups.items()} == {
        "stem": ("stem",),
        "depthwise.s2": ("deep",),
        "gates": ("gate.a", "gate.b"),
        "pointwise.s2": ("wide",),
        "full.s4": ("down",),
        "neck.pointwise": ("lateral", "side"),
        "neck.full": ("smooth",),
        "head": ("head.a", "head.b"),
    }


def test_group_weighs_what_its_weights_take() -> None:
    groups = by_name(groups_of(small_nets.detector(), "text_detection", Recipe()))
    assert groups["gates"].weight_bytes == 2 * 8 * 4 * 4


@pytest.mark.parametrize("file", SHIPPED)
def test_every_layer_of_a_shipped_model_is_in_exactly_one_of_few_groups(file: str) -> None:
    model, groups = shipped(file)
    graph = Graph(model)
    members = [node for group in groups.values() for node in group.nodes]
    assert sorted(members) == sorted(node.output[0] for node in graph.nodes if is_layer(graph, node))
    assert 5 <= len(groups) <= 18
    assert all(bool(group.why_float) == group.default_float for group in groups.values())


@pytest.mark.parametrize("file", [file for file in SHIPPED if "det" in file])
def test_detector_has_stem_gates_neck_and_head(file: str) -> None:
    model, groups = shipped(file)
    producer = {name: node for node in model.graph.node for name in node.output}
    assert len(groups["stem"].nodes) == 1
    assert len(groups["gates"].nodes) >= 20
    assert len(groups["neck.pointwise"].nodes) in (4, 8)
    assert all(producer[node].op_type == "Conv" for node in groups["head"].nodes)
    assert {"stem", "gates", "head"} == {name for name, group in groups.items() if group.default_float}


@pytest.mark.parametrize("file", [file for file in SHIPPED if "rec" in file])
def test_recogniser_has_its_transformer_apart_and_float(file: str) -> None:
    _, groups = shipped(file)
    counts = {name: len(groups[name].nodes) for name in ("qkv", "attention", "out", "ffn1", "ffn2", "head")}
    assert counts == {"qkv": 2, "attention": 4, "out": 2, "ffn1": 2, "ffn2": 2, "head": 1}
    assert all(groups[name].default_float for name in counts)


def test_encoder_leaves_attention_and_the_second_product_of_each_feed_forward_float() -> None:
    _, groups = shipped("minilm-l6-v2/model.onnx")
    counts = {name: (len(group.nodes), group.default_float) for name, group in groups.items()}
    assert counts == {
        "qkv": (18, False),
        "attention": (12, True),
        "out": (6, False),
        "ffn1": (6, False),
        "ffn2": (6, True),
    }


def test_recipe_turns_groups_and_nodes() -> None:
    recipe = Recipe(float_groups=("neck.*",), quantised_groups=("stem",), float_nodes=("wide",))
    groups = by_name(groups_of(small_nets.detector(), "text_detection", recipe))
    assert groups["neck.full"].default_float and groups["neck.pointwise"].default_float
    assert not groups["stem"].default_float
    assert groups["float_nodes"].nodes == ("wide",) and groups["float_nodes"].default_float


@pytest.mark.parametrize(
    ("recipe", "named"),
    [
        (Recipe(float_groups=("nick.*",)), "nick"),
        (Recipe(quantised_groups=("stems",)), "stems"),
        (Recipe(float_nodes=("gated",)), "gated"),
    ],
)
def test_recipe_naming_what_the_model_lacks_is_refused(recipe: Recipe, named: str) -> None:
    with pytest.raises(ConfigError, match=named):
        groups_of(small_nets.detector(), "text_detection", recipe)
