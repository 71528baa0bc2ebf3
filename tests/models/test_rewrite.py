"""Each rewrite on a graph made for it: the values stay, the steps become fewer."""

from __future__ import annotations

from collections import Counter

import numpy as np
import onnx
import pytest
from onnx import NodeProto, TensorProto, numpy_helper

from edge_agent.models.rewrite import NEGLIGIBLE, rewrite
from tests.models.made_graphs import GELU, PICTURE, Array, changed, floats, gelu, made, node, operators, scalar


def rewritten(model: onnx.ModelProto) -> Counter[str]:
    """The operators of the rewritten model, once its values are the same as before."""
    return operators(changed(rewrite, model, floats(*PICTURE, seed=7)))


CONV = node("Conv", ["x", "w", "b"], ["c"], pads=[1, 1, 1, 1])
CONV_CONSTANTS = {"w": floats(6, 4, 3, 3), "b": floats(6, seed=1)}


@pytest.mark.parametrize(
    "factor", [scalar(0.3), floats(1), floats(6, 1, 1), floats(1, 6, 1, 1)], ids=lambda factor: str(factor.shape)
)
def test_factor_behind_convolution_goes_into_its_weights(factor: Array) -> None:
    model = made([CONV, node("Mul", ["factor", "c"], ["y"])], {**CONV_CONSTANTS, "factor": factor})
    assert rewritten(model) == {"Conv": 1}


def test_divisor_behind_convolution_goes_into_its_weights() -> None:
    model = made([CONV, node("Div", ["c", "d"], ["y"])], {**CONV_CONSTANTS, "d": floats(6, 1, 1) + 3})
    assert rewritten(model) == {"Conv": 1}


@pytest.mark.parametrize("operator", ["Add", "Sub"])
def test_shift_behind_convolution_without_bias_becomes_its_bias(operator: str) -> None:
    conv = node("Conv", ["x", "w"], ["c"], group=2)
    model = made([conv, node(operator, ["c", "s"], ["y"])], {"w": floats(6, 2, 3, 3), "s": floats(6, 1, 1)})
    assert rewritten(model) == {"Conv": 1}


def test_shift_along_width_stays() -> None:
    model = made([CONV, node("Add", ["c", "s"], ["y"])], {**CONV_CONSTANTS, "s": floats(8)})
    assert rewritten(model) == {"Conv": 1, "Add": 1}


def test_scale_and_shift_behind_grouped_transposed_convolution_go_into_it() -> None:
    nodes = [
        node("ConvTranspose", ["x", "w"], ["c"], strides=[2, 2], group=2),
        node("Mul", ["c", "m"], ["d"]),
        node("Add", ["d", "a"], ["y"]),
    ]
    constants = {"w": floats(4, 3, 2, 2), "m": floats(6, 1, 1), "a": floats(1, 6, 1, 1, seed=3)}
    assert rewritten(made(nodes, constants)) == {"ConvTranspose": 1}


def test_batch_norm_behind_convolution_goes_into_it() -> None:
    norm = node("BatchNormalization", ["c", "g", "s", "m", "v"], ["y"], epsilon=1e-3)
    statistics = {"g": floats(6), "s": floats(6, seed=2), "m": floats(6, seed=3), "v": np.abs(floats(6, seed=4)) + 0.1}
    assert rewritten(made([CONV, norm], {**CONV_CONSTANTS, **statistics})) == {"Conv": 1}


def test_convolution_read_twice_keeps_its_weights() -> None:
    model = made(
        [CONV, node("Mul", ["c", "m"], ["y"]), node("Relu", ["c"], ["z"])],
        {**CONV_CONSTANTS, "m": scalar(2)},
        outputs=("y", "z"),
    )
    assert rewritten(model) == {"Conv": 1, "Mul": 1, "Relu": 1}


def test_convolutions_sharing_weights_are_folded_apart() -> None:
    nodes = [
        CONV,
        node("Mul", ["c", "m"], ["y"]),
        node("Conv", ["x", "w", "b"], ["d"], pads=[1, 1, 1, 1]),
        node("Add", ["d", "m"], ["z"]),
    ]
    model = made(nodes, {**CONV_CONSTANTS, "m": scalar(2)}, outputs=("y", "z"))
    assert rewritten(model) == {"Conv": 2}


def hard_swish(source: str, target: str, last: str) -> list[NodeProto]:
    return [
        node("Add", [source, "three"], [target + "1"]),
        node("Clip", [target + "1", "zero", "six"], [target + "2"]),
        node("Mul", [source, target + "2"], [target + "3"]),
        node(last, [target + "3", "six" if last == "Div" else "sixth"], [target]),
    ]


HARD_SWISH = {"zero": scalar(0), "three": np.array([3], np.float32), "six": scalar(6), "sixth": scalar(1 / 6)}


@pytest.mark.parametrize("last", ["Div", "Mul"])
def test_hard_swish_in_four_steps_becomes_two(last: str) -> None:
    assert rewritten(made(hard_swish("x", "y", last), HARD_SWISH)) == {"HardSigmoid": 1, "Mul": 1}


def test_clip_that_is_no_hard_swish_stays() -> None:
    nodes = hard_swish("x", "y", "Div")
    model = made(nodes, {**HARD_SWISH, "three": scalar(2.5)})
    assert rewritten(model)["Clip"] == 1


def test_scale_and_shift_in_front_of_unpadded_convolutions_go_into_them() -> None:
    nodes = [
        node("Relu", ["x"], ["r"]),
        node("Mul", ["r", "m"], ["s"]),
        node("Add", ["s", "a"], ["t"]),
        node("Conv", ["t", "w"], ["y"], group=2),
        node("Conv", ["t", "v"], ["z"], strides=[2, 2]),
    ]
    constants = {"m": floats(4, 1, 1), "a": floats(1), "w": floats(6, 2, 3, 3), "v": floats(5, 4, 1, 1)}
    assert rewritten(made(nodes, constants, outputs=("y", "z"))) == {"Relu": 1, "Conv": 2}


def test_shift_in_front_of_padded_convolution_keeps_the_border_exact() -> None:
    nodes = [
        node("Relu", ["x"], ["r"]),
        node("Mul", ["m", "r"], ["s"]),
        node("Add", ["s", "a"], ["t"]),
        node("Conv", ["t", "w"], ["y"], pads=[1, 1, 1, 1], group=4),
    ]
    constants = {"m": floats(1), "a": floats(1, seed=1), "w": floats(4, 1, 3, 3)}
    assert rewritten(made(nodes, constants)) == {"Relu": 1, "BatchNormalization": 1, "Conv": 1}


def test_scale_in_front_of_padded_convolution_goes_into_it() -> None:
    nodes = [
        node("Relu", ["x"], ["r"]),
        node("Div", ["r", "d"], ["s"]),
        node("ConvTranspose", ["s", "w"], ["y"], strides=[2, 2]),
    ]
    assert rewritten(made(nodes, {"d": floats(4, 1, 1) + 4, "w": floats(4, 3, 2, 2)})) == {
        "Relu": 1,
        "ConvTranspose": 1,
    }


def test_gated_residual_walks_over_the_large_tensor_once() -> None:
    nodes = [
        node("GlobalAveragePool", ["x"], ["p"]),
        node("HardSigmoid", ["p"], ["g"]),
        node("Mul", ["x", "g"], ["m"]),
        node("Add", ["x", "m"], ["y"]),
    ]
    after = rewritten(made(nodes, {}))
    assert after == {"GlobalAveragePool": 1, "HardSigmoid": 1, "Add": 1, "Mul": 1}


def test_layer_norm_in_nine_steps_becomes_one() -> None:
    nodes = [
        node("ReduceMean", ["x"], ["mean"], axes=[-1]),
        node("Sub", ["x", "mean"], ["d"]),
        node("Pow", ["d", "two"], ["sq"]),
        node("ReduceMean", ["sq"], ["var"], axes=[-1]),
        node("Add", ["var", "eps"], ["ve"]),
        node("Sqrt", ["ve"], ["sd"]),
        node("Div", ["d", "sd"], ["n"]),
        node("Mul", ["n", "scale"], ["ns"]),
        node("Add", ["ns", "bias"], ["y"]),
    ]
    constants = {"two": scalar(2), "eps": scalar(1e-5), "scale": floats(8), "bias": floats(8, seed=2)}
    assert rewritten(made(nodes, constants)) == {"LayerNormalization": 1}


def test_norm_over_another_axis_stays() -> None:
    nodes = [
        node("ReduceMean", ["x"], ["mean"], axes=[1]),
        node("Sub", ["x", "mean"], ["d"]),
        node("Mul", ["d", "d"], ["sq"]),
        node("ReduceMean", ["sq"], ["var"], axes=[1]),
        node("Add", ["var", "eps"], ["ve"]),
        node("Sqrt", ["ve"], ["sd"]),
        node("Div", ["d", "sd"], ["n"]),
        node("Mul", ["n", "scale"], ["ns"]),
        node("Add", ["ns", "bias"], ["y"]),
    ]
    constants = {"eps": scalar(1e-5), "scale": floats(8), "bias": floats(8, seed=2)}
    assert rewritten(made(nodes, constants))["ReduceMean"] == 2


def test_gelu_stays_whole_for_the_backends_that_know_it() -> None:
    nodes = [*gelu("x", "g"), node("Conv", ["g", "w"], ["y"])]
    model = made(nodes, {**GELU, "w": floats(5, 4, 1, 1)})
    assert rewritten(model) == {"Div": 1, "Erf": 1, "Add": 1, "Mul": 2, "Conv": 1}


@pytest.mark.parametrize(("middle", "left"), [(2, 2), (8, 1)], ids=["bottleneck stays", "wide middle goes"])
def test_two_pointwise_convolutions_become_one_where_that_is_less_work(middle: int, left: int) -> None:
    nodes = [node("Conv", ["x", "v", "c"], ["m"]), node("Conv", ["m", "w", "b"], ["y"])]
    constants = {"v": floats(middle, 4, 1, 1), "c": floats(middle), "w": floats(9, middle, 1, 1), "b": floats(9)}
    assert rewritten(made(nodes, constants)) == {"Conv": left}


def test_channels_that_nobody_weighs_are_not_computed() -> None:
    behind = floats(5, 64, 1, 1)
    behind[:, 10:50] = 1e-39  # what weight decay leaves: denormal
    nodes = [node("Conv", ["x", "v", "c"], ["m"]), *gelu("m", "g"), node("Conv", ["g", "w"], ["y"])]
    model = made(nodes, {**GELU, "v": floats(64, 4, 1, 1), "c": floats(64), "w": behind})
    rewritten(model)
    shapes = {tuple(tensor.dims) for tensor in rewrite(model).graph.initializer}
    assert {(32, 4, 1, 1), (32,), (5, 32, 1, 1)} <= shapes
    assert (64, 4, 1, 1) not in shapes


def test_channels_that_something_else_reads_are_kept() -> None:
    behind = floats(5, 64, 1, 1)
    behind[:, 10:50] = 0
    nodes = [
        node("Conv", ["x", "v"], ["m"]),
        node("Relu", ["m"], ["r"]),
        node("Conv", ["r", "w"], ["y"]),
        node("GlobalAveragePool", ["r"], ["z"]),
    ]
    model = made(nodes, {"v": floats(64, 4, 1, 1), "w": behind}, outputs=("y", "z"))
    rewritten(model)
    assert (64, 4, 1, 1) in {tuple(tensor.dims) for tensor in rewrite(model).graph.initializer}


def test_no_weight_is_denormal() -> None:
    weight = floats(6, 4, 3, 3)
    weight[0] = 1e-40
    weight[1] = NEGLIGIBLE / 2
    after = rewrite(made([node("Conv", ["x", "w"], ["y"])], {"w": weight}))
    stored = numpy_helper.to_array(after.graph.initializer[0])
    assert (stored[:2] == 0).all()
    assert (stored[2:] == weight[2:]).all()


def test_identities_neutral_arithmetic_and_constant_chains_go() -> None:
    nodes = [
        node("Identity", ["x"], ["a"]),
        node("Cast", ["a"], ["b"], to=TensorProto.FLOAT),
        node("Mul", ["b", "one"], ["c"]),
        node("Constant", [], ["dims"], value=numpy_helper.from_array(np.array([8], np.int64))),
        node("Concat", ["lead", "dims"], ["shape"], axis=0),
        node("Reshape", ["c", "shape"], ["d"]),
        node("Add", ["d", "nil"], ["e"]),
        node("Relu", ["e"], ["f"]),
        node("Identity", ["f"], ["y"]),
    ]
    constants = {"one": scalar(1), "nil": scalar(0), "lead": np.array([-1], np.int64)}
    assert rewritten(made(nodes, constants)) == {"Reshape": 1, "Relu": 1}


def test_input_given_out_unchanged_keeps_its_identity() -> None:
    assert rewritten(made([node("Identity", ["x"], ["y"])], {})) == {"Identity": 1}


def test_tensor_given_out_twice_keeps_both_names() -> None:
    nodes = [node("Relu", ["x"], ["y"]), node("Identity", ["y"], ["z"])]
    assert rewritten(made(nodes, {}, outputs=("y", "z"))) == {"Relu": 1, "Identity": 1}


@pytest.mark.parametrize(("inner", "outer"), [(2, 2), (2, 3), (3, 2)])
def test_head_of_two_transposed_convolutions_becomes_pointwise_and_one_depth_to_space(inner: int, outer: int) -> None:
    nodes = [
        node("ConvTranspose", ["x", "v", "c"], ["m"], strides=[inner, inner]),
        node("Relu", ["m"], ["r"]),
        node("ConvTranspose", ["r", "w", "b"], ["o"], strides=[outer, outer], pads=[0, 0, 0, 0]),
        node("Sigmoid", ["o"], ["y"]),
    ]
    weights = {"v": floats(4, 5, inner, inner), "c": floats(5), "w": floats(5, 1, outer, outer), "b": floats(1)}
    after = rewritten(made(nodes, weights))
    assert after == {"Conv": 2, "Relu": 1, "DepthToSpace": 1, "Sigmoid": 1}


@pytest.mark.parametrize(
    "settings",
    [{}, {"strides": [1, 1]}, {"strides": [2, 2], "pads": [1, 1, 1, 1]}, {"strides": [2, 2], "output_padding": [1, 1]}],
    ids=str,
)
def test_transposed_convolutions_whose_windows_overlap_or_are_cut_stay(settings: dict[str, list[int]]) -> None:
    nodes = [
        node("ConvTranspose", ["x", "v"], ["m"], strides=[2, 2]),
        node("ConvTranspose", ["m", "w"], ["y"], **settings),
    ]
    assert rewritten(made(nodes, {"v": floats(4, 5, 2, 2), "w": floats(5, 1, 2, 2)})) == {"ConvTranspose": 2}
