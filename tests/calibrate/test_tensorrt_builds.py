"""Every Q/DQ model that a shipped recipe can lead to is parsed and built by TensorRT-RTX, which needs no GPU for it.

Parser and builder ask where scales stand, not how large they are: ranges are made up, and the builder takes the first
kernel that does.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
import pytest

from edge_agent.backends.base import Profile
from edge_agent.backends.build_job import BuildRequest
from edge_agent.backends.model_file import file_sha256
from edge_agent.backends.plan import BuildOptions, PlanKey
from edge_agent.calibrate.groups import Group, groups_of
from edge_agent.calibrate.placement import faults
from edge_agent.calibrate.quantise import quantise, tensors_to_measure
from edge_agent.calibrate.recipe import Recipe, load_recipe
from edge_agent.calibrate.smoothing import products_by_input, smoothed
from edge_agent.models.graph import Graph
from edge_agent.models.spec import ModelSpec
from tests.backends.test_tensorrt_rtx import ENGINES, ENVIRONMENT, trt  # noqa: F401 - a fixture
from tests.conftest import ROOT

RECIPES = ROOT / "calibration"
SERVED = {  # the file that the default settings serve on a GPU, of each shipped recipe's model
    "minilm-l6-v2": "model.onnx",
    "ppocrv4-mobile-det": "model.onnx",
    "ppocrv4-mobile-rec": "model.latin.onnx",
    "ppocrv6-small-det": "model.onnx",
    "ppocrv6-small-rec": "model.latin.onnx",
}


def test_each_shipped_recipe_is_built_here() -> None:
    assert {path.parent.name for path in RECIPES.glob("*/recipe.yaml")} == set(SERVED)


def int8_of(model: onnx.ModelProto, groups: Sequence[Group], recipe: Recipe) -> onnx.ModelProto:
    """All of these groups in INT8, evened out as the recipe says."""
    nodes = [node for group in groups for node in group.nodes]
    if recipe.smoothing is not None:
        graph = Graph(model)
        model = smoothed(model, nodes, {name: made_up(graph, name) for name in products_by_input(graph, nodes)})
    ranges = dict.fromkeys(tensors_to_measure(model, nodes, "tensorrt"), (-4.0, 4.0))
    made = quantise(model, ranges, nodes, "tensorrt")
    assert faults(made) == []
    return made


def made_up(graph: Graph, tensor: str) -> npt.NDArray[np.float32]:
    """A divisor for each channel of a tensor, as many as the stored matrix behind it takes."""
    weights = (graph.constants[node.input[1]] for node in graph.readers[tensor] if node.op_type == "MatMul")
    return np.full(next(weights).shape[0], 0.5, np.float32)


@pytest.mark.parametrize("placement", ["as the recipe says", "all"])
@pytest.mark.parametrize("name", sorted(SERVED))
def test_model_of_a_recipe_builds(trt: Any, name: str, placement: str, tmp_path: Path) -> None:  # noqa: F811
    source = ENGINES / name / SERVED[name]
    if not source.is_file():
        pytest.skip(f"{source} is absent: `edge-agent models fetch`")
    spec = ModelSpec.load(ENGINES, name)
    model, recipe = onnx.load(source), load_recipe(name, [RECIPES])
    groups = groups_of(model, spec.task, recipe)
    of_recipe = tuple(group for group in groups if not group.default_float)
    if placement == "all" and of_recipe == groups:
        pytest.skip("its recipe quantises all of it, which is built beside this")
    chosen = groups if placement == "all" else of_recipe
    path = tmp_path / "model.int8.onnx"
    onnx.save(int8_of(model, chosen, recipe), path)
    profiles = tuple(Profile(p.min, p.opt, p.max) for p in spec.profiles)
    options = BuildOptions("int8", optimisation_level=0)
    request = BuildRequest(path, tmp_path, PlanKey(name, file_sha256(path), profiles, options, ENVIRONMENT))
    assert len(trt.build.build(request, lambda event: None)) > 100_000
