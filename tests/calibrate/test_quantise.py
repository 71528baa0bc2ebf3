from __future__ import annotations

import hashlib
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

from edge_agent.backends.ort import session_options
from edge_agent.calibrate.groups import chosen_nodes, groups_of
from edge_agent.calibrate.placement import faults
from edge_agent.calibrate.quantise import SCHEMES, Scheme, quantise, tensors_to_measure
from edge_agent.calibrate.ranges import measure
from edge_agent.calibrate.recipe import Recipe
from edge_agent.errors import CalibrationRefused
from tests.calibrate import small_nets

FEEDS = [small_nets.picture(seed) for seed in range(6)]
ALL = ("stem", "deep", "gate.a", "gate.b", "wide", "down", "lateral", "side", "smooth", "head.a", "head.b")


@pytest.fixture(scope="module")
def ranges(tmp_path_factory: pytest.TempPathFactory) -> Any:
    path = tmp_path_factory.mktemp("net") / "net.onnx"
    model = small_nets.detector()
    onnx.save(model, path)
    tensors = {name for scheme in SCHEMES for name in tensors_to_measure(model, ALL, scheme)}
    return measure(path, sorted(tensors), FEEDS, len(FEEDS), threads=1).by_method["minmax"]


def run(model: onnx.ModelProto, feed: dict[str, Any]) -> Any:
    options = session_options(threads=1)
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return session.run(None, feed)[0]


def readers(model: onnx.ModelProto) -> set[tuple[str, int]]:
    """(node, input) of every input that reads a dequantised activation."""
    made = {node.output[0]: node for node in model.graph.node}
    stored = {constant.name for constant in model.graph.initializer}
    return {
        (node.output[0], position)
        for node in model.graph.node
        for position, name in enumerate(node.input)
        if name in made and made[name].op_type == "DequantizeLinear" and made[name].input[0] not in stored
    }


def value(model: onnx.ModelProto, name: str) -> Any:
    return numpy_helper.to_array(next(c for c in model.graph.initializer if c.name == name))


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("nodes", [("wide",), ("down", "lateral"), ALL], ids=len)
def test_quantised_network_computes_nearly_the_same(ranges: Any, scheme: Scheme, nodes: tuple[str, ...]) -> None:
    model = small_nets.detector()
    made = quantise(model, ranges, nodes, scheme)
    onnx.checker.check_model(made, full_check=True)
    expected, got = run(model, FEEDS[0]), run(made, FEEDS[0])
    assert 0 < np.abs(expected - got).max() < 0.05


def test_tensorrt_scheme_quantises_inputs_of_chosen_layers_and_the_residual_alone(ranges: Any) -> None:
    made = quantise(small_nets.detector(), ranges, ("wide", "down", "lateral"), "tensorrt")
    # `wide` is added to `gated`: that other input too; `lateral` is enlarged first
    assert readers(made) == {("wide", 0), ("skipped", 0), ("down", 0), ("lateral", 0)}


def test_residual_of_a_float_convolution_stays_float(ranges: Any) -> None:
    assert readers(quantise(small_nets.detector(), ranges, ("down",), "tensorrt")) == {("down", 0)}


def test_one_pair_serves_all_who_read_a_tensor_so(ranges: Any) -> None:
    made = quantise(small_nets.detector(), ranges, ("wide", "down", "side"), "tensorrt")
    assert [n.input[0] for n in made.graph.node if n.op_type == "QuantizeLinear"] == ["gated", "skipped", "large"]


def test_tensorrt_scheme_is_symmetric_with_float_bias(ranges: Any) -> None:
    made = quantise(small_nets.detector(), ranges, ALL, "tensorrt")
    zeros = [value(made, n.input[2]) for n in made.graph.node if n.op_type in ("QuantizeLinear", "DequantizeLinear")]
    assert all(zero.dtype == np.int8 and not zero.any() for zero in zeros)
    assert value(made, "gated.scale") == pytest.approx(max(np.abs(ranges["gated"])) / 127)
    assert value(made, "wide.b").dtype == np.float32


def test_weights_are_stored_in_one_byte_with_a_step_for_each_channel(ranges: Any) -> None:
    model = small_nets.detector()
    made = quantise(model, ranges, ("down",), "tensorrt")
    steps, scales, weight = value(made, "down.w.axis0.int8"), value(made, "down.w.axis0.scale"), value(model, "down.w")
    assert steps.dtype == np.int8 and scales.shape == (16,)
    assert np.abs(steps * scales.reshape(-1, 1, 1, 1) - weight).max() <= scales.max() / 2
    assert "down.w" not in {c.name for c in made.graph.initializer}


def test_onnxruntime_scheme_computes_in_integers(ranges: Any, tmp_path: Path) -> None:
    options = onnxruntime.SessionOptions()
    options.optimized_model_filepath = str(tmp_path / "optimised.onnx")
    options.log_severity_level = 3
    made = quantise(small_nets.detector(), ranges, ALL, "onnxruntime")
    onnxruntime.InferenceSession(made.SerializeToString(), options, providers=["CPUExecutionProvider"])
    kinds = Counter(node.op_type for node in onnx.load(tmp_path / "optimised.onnx").graph.node)
    assert kinds["QLinearConv"] == len(ALL)
    assert (kinds["QLinearAdd"], kinds["QLinearMul"], kinds["QLinearConcat"]) == (2, 1, 1)
    assert not {"Conv", "Add", "Relu"} & set(kinds)


def test_onnxruntime_scheme_leaves_what_was_not_chosen_float(ranges: Any) -> None:
    made = quantise(small_nets.detector(), ranges, ("smooth",), "onnxruntime")
    # what `smooth` reads is a sum of what `side` and the enlarged `lateral` make
    assert readers(made) == {("joined", 0), ("joined", 1), ("large", 0), ("smooth", 0), ("both", 0), ("both", 1)}


def test_enlarged_picture_keeps_its_scale(ranges: Any) -> None:
    made = quantise(small_nets.detector(), ranges, ALL, "onnxruntime")
    assert value(made, "large.scale") == value(made, "lateral.scale")
    assert value(made, "large.zero") == value(made, "lateral.zero")


def test_zero_is_exact_in_the_onnxruntime_scheme(ranges: Any) -> None:
    made = quantise(small_nets.detector(), ranges, ("down",), "onnxruntime")
    scale, zero = value(made, "skipped.scale"), value(made, "skipped.zero")
    assert zero.dtype == np.uint8
    assert (0 - float(zero)) * scale <= min(ranges["skipped"][0], 0) + scale
    assert (255 - float(zero)) * scale >= ranges["skipped"][1] - scale


@pytest.mark.parametrize("scheme", SCHEMES)
def test_matrix_that_stays_float_is_stored_in_16_bits(scheme: Scheme) -> None:
    net = small_nets.Net()
    weight = net.random.normal(0, 1, (6, 5)).astype(np.float32)
    net.add("MatMul", ["x", net.store("a.w", weight)], "a")
    net.add("MatMul", ["a", net.store("b.w", weight.T.copy())], "b")
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", 6])
    model = net.model([x], [helper.make_tensor_value_info("b", TensorProto.FLOAT, ["N", 6])])
    made = quantise(model, {"x": (-3.0, 3.0)}, ("a",), scheme)
    assert value(made, "b.w.half").dtype == np.float16
    assert value(made, "a.w.axis1.scale").shape == (5,)
    if scheme == "tensorrt":  # 8.6 builds a matrix product of float weights before a Q/DQ pair, and no other
        np.testing.assert_array_equal(value(made, "a.w"), weight)
        assert faults(made) == []
    else:
        assert value(made, "a.w.axis1.int8").shape == (6, 5)
    feed = {"x": net.random.uniform(-3, 3, (4, 6)).astype(np.float32)}
    assert run(made, feed) == pytest.approx(run(model, feed), abs=0.4)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_bytes_are_the_same_every_time_and_the_float_model_stays(ranges: Any, scheme: Scheme) -> None:
    model = small_nets.detector()
    before = model.SerializeToString(deterministic=True)
    first, second = (
        quantise(model, ranges, nodes, scheme).SerializeToString(deterministic=True) for nodes in (ALL, set(ALL))
    )
    assert first == second
    assert model.SerializeToString(deterministic=True) == before


def test_result_says_where_it_came_from(ranges: Any) -> None:
    model = small_nets.detector()
    made = quantise(model, ranges, ("down",), "tensorrt", {"method": "minmax", "groups": "full.s4"})
    assert {entry.key: entry.value for entry in made.metadata_props} == {
        "edge_agent.groups": "full.s4",
        "edge_agent.layers": "1",
        "edge_agent.method": "minmax",
        "edge_agent.scheme": "tensorrt",
        "edge_agent.source_sha256": hashlib.sha256(model.SerializeToString(deterministic=True)).hexdigest(),
    }


def test_tensor_without_a_range_is_refused(ranges: Any) -> None:
    some = {name: pair for name, pair in ranges.items() if name != "skipped"}
    with pytest.raises(CalibrationRefused, match="tensor skipped has no range"):
        quantise(small_nets.detector(), some, ("down",), "tensorrt")


@pytest.mark.parametrize("pair", [(0.0, 0.0), (float("nan"), 1.0), (0.0, float("inf")), (0.0, 1e-42)])
def test_scale_from_nothing_is_refused(ranges: Any, pair: tuple[float, float]) -> None:
    with pytest.raises(CalibrationRefused, match="tensor skipped has the range"):
        quantise(small_nets.detector(), {**ranges, "skipped": pair}, ("down",), "tensorrt")


def test_unknown_node_is_refused(ranges: Any) -> None:
    with pytest.raises(CalibrationRefused, match=r"down\.relu: no such Conv"):
        quantise(small_nets.detector(), ranges, ("down.relu",), "tensorrt")


def test_quantised_model_is_no_source(ranges: Any) -> None:
    made = quantise(small_nets.detector(), ranges, ("wide",), "tensorrt")
    with pytest.raises(CalibrationRefused, match="is quantised already"):
        quantise(made, ranges, ("down",), "tensorrt")


def two_that_meet() -> onnx.ModelProto:
    """`image` float (N, 3, H, W) -> `out`: two convolutions of it, added up."""
    net = small_nets.Net()
    net.conv("image", "first", (4, 3, 3, 3))
    net.conv("image", "second", (4, 3, 1, 1))
    net.add("Add", ["first", "second"], "out")
    image = helper.make_tensor_value_info("image", TensorProto.FLOAT, ["N", 3, "H", "W"])
    return net.model([image], [helper.make_tensor_value_info("out", TensorProto.FLOAT, ["N", 4, "H", "W"])])


@pytest.mark.parametrize(
    ("nodes", "residual"),
    [(("first",), 1), (("second",), 0), (("first", "second"), 0)],
    ids=["first", "second", "both"],
)
def test_of_two_convolutions_that_meet_one_result_waits_quantised(nodes: tuple[str, ...], residual: int) -> None:
    model = two_that_meet()
    measured = dict.fromkeys(tensors_to_measure(model, ("first", "second"), "tensorrt"), (-1.0, 1.0))
    made = quantise(model, measured, nodes, "tensorrt")
    assert {place for place in readers(made) if place[0] == "out"} == {("out", residual)}


@pytest.mark.parametrize("scheme", SCHEMES)
def test_fewer_layers_need_no_other_tensors(scheme: Scheme) -> None:
    model = small_nets.detector()
    everything = set(tensors_to_measure(model, ALL, scheme))
    for count in range(len(ALL)):
        for nodes in (ALL[:count], ALL[count:], ALL[count : count + 1]):
            assert everything.issuperset(tensors_to_measure(model, nodes, scheme)), nodes


def test_default_choice_measures_no_tensor_in_vain(ranges: Any) -> None:
    model = small_nets.detector()
    nodes = chosen_nodes(groups_of(model, "text_detection", Recipe()))
    assert tensors_to_measure(model, nodes, "tensorrt") == (
        "stem.relu",
        "gated",
        "skipped",
        "down.relu",
        "large",
        "joined",
    )


def test_quantised_convolution_says_how_large_its_kernel_is() -> None:
    from onnx import TensorProto, helper, numpy_helper

    weight = numpy_helper.from_array(np.ones((4, 3, 3, 3), np.float32), "w")
    conv = helper.make_node("Conv", ["x", "w"], ["y"], pads=[1, 1, 1, 1])
    shape = [1, 3, 8, 8]
    model = helper.make_model(
        helper.make_graph(
            [conv],
            "net",
            [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
            [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 4, 8, 8])],
            [weight],
        ),
        opset_imports=[helper.make_opsetid("", 17)],
    )
    quantised = quantise(model, {"x": (-1.0, 1.0), "y": (-27.0, 27.0)}, ["y"], "tensorrt")
    written = next(node for node in quantised.graph.node if node.op_type == "Conv")
    assert [list(a.ints) for a in written.attribute if a.name == "kernel_shape"] == [[3, 3]]
    assert not any(attribute.name == "kernel_shape" for attribute in model.graph.node[0].attribute)
