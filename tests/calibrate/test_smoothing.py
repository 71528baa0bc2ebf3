"""Smoothing: the same in float, and a wide channel no longer takes the others' steps away."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper

from edge_agent.backends.ort import session_options
from edge_agent.calibrate.groups import chosen_nodes, groups_of
from edge_agent.calibrate.quantise import SCHEMES, Scheme, quantise, tensors_to_measure
from edge_agent.calibrate.ranges import measure
from edge_agent.calibrate.recipe import Recipe, load_recipe
from edge_agent.calibrate.smoothing import divisors_of, products_by_input, smoothed
from edge_agent.errors import CalibrationRefused, EngineError
from edge_agent.models.graph import Graph
from tests.calibrate import small_nets
from tests.calibrate.test_groups import ENGINES
from tests.conftest import ROOT

PRODUCTS = ("q", "k", "deep")
FEEDS = [{"x": np.random.default_rng(seed).normal(0, 1, (5, 8)).astype(np.float32)} for seed in range(4)]


def attention_like() -> onnx.ModelProto:
    """A normalised tensor with one channel that stands out, read by two products and a skip, and one product behind."""
    net = small_nets.Net()
    gain = np.array([1, 1, 60, 1, 1, 0.5, 1, 2], np.float32)
    names = [net.store("gain", gain), net.store("shift", np.zeros(8, np.float32))]
    net.add("LayerNormalization", ["x", *names], "normal")
    for name in ("q", "k"):
        net.add(
            "MatMul", ["normal", net.store(f"{name}.w", net.random.normal(0, 0.3, (8, 8)).astype(np.float32))], name
        )
    net.add("Mul", ["q", "k"], "both")
    net.add("Add", ["both", "normal"], "sum")
    net.add("Tanh", ["sum"], "bent")
    net.add("MatMul", ["bent", net.store("deep.w", net.random.normal(0, 0.3, (8, 4)).astype(np.float32))], "deep")
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", 8])
    return net.model([x], [helper.make_tensor_value_info("deep", TensorProto.FLOAT, ["N", 4])])


@pytest.fixture
def net(tmp_path: Path) -> Path:
    onnx.save(attention_like(), tmp_path / "net.onnx")
    return tmp_path / "net.onnx"


def run(model: onnx.ModelProto, feed: dict[str, Any]) -> list[Any]:
    options = session_options(threads=1)
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return list(session.run(None, feed))


def evened(path: Path, nodes: Sequence[str] = PRODUCTS, strength: float = 0.5) -> onnx.ModelProto:
    return smoothed(onnx.load(path), nodes, divisors_of(path, nodes, FEEDS, strength, threads=1))


@pytest.mark.parametrize("strength", [0.0, 0.5, 0.8, 1.0])
def test_float_result_stays_the_same(net: Path, strength: float) -> None:
    model = evened(net, strength=strength)
    onnx.checker.check_model(model, full_check=True)
    for feed in FEEDS:
        assert run(model, feed)[0] == pytest.approx(run(onnx.load(net), feed)[0], abs=1e-5)


def test_layers_keep_their_names_and_who_else_reads_the_tensor_reads_it_as_it_was(net: Path) -> None:
    model = evened(net)
    made = {node.output[0]: node for node in model.graph.node}
    assert [made[name].input[0] for name in PRODUCTS] == ["normal.evened", "normal.evened", "bent.evened"]
    assert list(made["sum"].input) == ["both", "normal"]
    assert list(products_by_input(Graph(onnx.load(net)), PRODUCTS)) == ["normal", "bent"]


def test_channel_that_stands_out_does_so_less(net: Path) -> None:
    divisors = divisors_of(net, PRODUCTS, FEEDS, 0.5, threads=1)
    assert set(divisors) == {"normal", "bent"}
    assert int(np.argmax(divisors["normal"])) == 2
    assert np.log(divisors["normal"]).mean() == pytest.approx(0, abs=1e-6)
    spread = []
    for model in (onnx.load(net), evened(net)):
        tensor = next(node for node in model.graph.node if node.output[0] == "q").input[0]
        del model.graph.output[:]
        model.graph.output.append(helper.make_tensor_value_info(tensor, TensorProto.FLOAT, None))
        largest = np.max([np.abs(run(model, feed)[0]).max(axis=0) for feed in FEEDS], axis=0)
        spread.append(largest.max() / np.median(largest))
    assert spread[1] < spread[0] / 4


@pytest.mark.parametrize("scheme", SCHEMES)
def test_int8_is_nearer_to_float_with_it(net: Path, scheme: Scheme) -> None:
    errors = []
    for model in (onnx.load(net), evened(net)):
        tensors = tensors_to_measure(model, PRODUCTS, scheme)
        ranges = measure(net.parent / saved(model, net.parent), tensors, FEEDS, len(FEEDS), ("minmax",), threads=1)
        int8 = quantise(model, ranges.by_method["minmax"], PRODUCTS, scheme)
        differences = [run(int8, feed)[0] - run(onnx.load(net), feed)[0] for feed in FEEDS]
        errors.append(float(np.sqrt(np.mean(np.square(differences)))))
    assert errors[1] < errors[0] / 2


def saved(model: onnx.ModelProto, folder: Path) -> str:
    onnx.save(model, folder / "measured.onnx")
    return "measured.onnx"


def test_part_of_the_layers_is_evened_as_in_the_whole(net: Path) -> None:
    divisors = divisors_of(net, PRODUCTS, FEEDS, 0.5, threads=1)
    model = smoothed(onnx.load(net), ("deep",), divisors)
    made = {node.output[0]: node for node in model.graph.node}
    assert (made["q"].input[0], made["deep"].input[0]) == ("normal", "bent.evened")
    assert run(model, FEEDS[0])[0] == pytest.approx(run(onnx.load(net), FEEDS[0])[0], abs=1e-5)


def test_without_divisors_nothing_changes_and_the_model_given_stays(net: Path) -> None:
    model = onnx.load(net)
    before = model.SerializeToString(deterministic=True)
    assert smoothed(model, PRODUCTS, {}).SerializeToString(deterministic=True) == before
    smoothed(model, PRODUCTS, divisors_of(net, PRODUCTS, FEEDS, 0.5, threads=1))
    assert model.SerializeToString(deterministic=True) == before


def test_convolutions_are_none_of_its_business(tmp_path: Path) -> None:
    onnx.save(small_nets.detector(), tmp_path / "net.onnx")
    feeds = [small_nets.picture(0)]
    assert divisors_of(tmp_path / "net.onnx", ("wide", "down"), feeds, 0.5, threads=1) == {}


def test_without_a_feed_and_with_a_broken_one_it_ends(net: Path) -> None:
    with pytest.raises(CalibrationRefused, match="no feed came"):
        divisors_of(net, PRODUCTS, [], 0.5, threads=1)
    with pytest.raises(EngineError, match="while its channels were measured"):
        divisors_of(net, PRODUCTS, [{"x": np.zeros((1, 9), np.float32)}], 0.5, threads=1)
    with pytest.raises(CalibrationRefused, match="held NaN or infinity"):
        divisors_of(net, PRODUCTS, [{"x": np.full((1, 8), np.nan, np.float32)}], 0.5, threads=1)


def test_shipped_encoder_stays_the_same_in_float() -> None:
    path = ENGINES / "minilm-l6-v2" / "model.onnx"
    if not path.is_file():
        pytest.skip(f"{path} is absent: `edge-agent models fetch`")
    recipe = load_recipe("minilm-l6-v2", [ROOT / "calibration"])
    assert recipe.smoothing is not None
    model = onnx.load(path)
    nodes = chosen_nodes(groups_of(model, "text_embedding", recipe))
    feeds = [tokens(seed) for seed in range(2)]
    after = smoothed(model, nodes, divisors_of(path, nodes, feeds, recipe.smoothing, threads=1))
    assert len(nodes) == 30
    assert sum(node.output[0].endswith(".evened") for node in after.graph.node) == 18
    assert run(after, tokens(7))[0] == pytest.approx(run(model, tokens(7))[0], abs=1e-5)
    assert groups_of(after, "text_embedding", Recipe()), "and is still understood"


def tokens(seed: int) -> dict[str, Any]:
    """Two lines, one of them padded."""
    ids = np.random.default_rng(seed).integers(1000, 20_000, (2, 12), np.int32)
    mask = np.ones((2, 12), np.int32)
    mask[1, 7:] = 0
    return {"input_ids": ids, "attention_mask": mask}
