"""Each arrangement for the CPU on a graph made for it: the values stay."""

from __future__ import annotations

from collections import Counter

import cv2
import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import NodeProto

from edge_agent.models.arrange import arrange
from tests.conftest import ROOT
from tests.models.made_graphs import GELU, PICTURE, Array, changed, floats, gelu, made, node, operators, shapes


def arranged(model: onnx.ModelProto) -> Counter[str]:
    """The operators of the arranged model, once its values are the same as before."""
    return operators(changed(arrange, model, floats(*PICTURE, seed=7)))


def test_few_channels_of_a_picture_are_filled_up_to_a_block() -> None:
    nodes = [
        node("Conv", ["x", "v", "c"], ["m"], pads=[1, 1, 1, 1]),
        *gelu("m", "g"),
        node("Conv", ["g", "w"], ["y"], pads=[1, 1, 0, 0]),
        node("Conv", ["g", "u"], ["z"]),
    ]
    weights = {"v": floats(12, 4, 3, 3), "c": floats(12), "w": floats(24, 12, 2, 2), "u": floats(9, 12, 1, 1)}
    model = made(nodes, {**GELU, **weights}, outputs=("y", "z"))
    arranged(model)
    shapes = {tuple(tensor.dims) for tensor in arrange(model).graph.initializer}
    assert {(16, 4, 3, 3), (16,), (24, 16, 2, 2), (9, 16, 1, 1)} <= shapes


def test_few_channels_of_a_gate_stay_few() -> None:
    nodes = [
        node("GlobalAveragePool", ["x"], ["p"]),
        node("Conv", ["p", "v"], ["m"]),
        node("Relu", ["m"], ["r"]),
        node("Conv", ["r", "w"], ["y"]),
    ]
    model = made(nodes, {"v": floats(3, 4, 1, 1), "w": floats(24, 3, 1, 1)})
    arranged(model)
    assert (3, 4, 1, 1) in {tuple(tensor.dims) for tensor in arrange(model).graph.initializer}


def concatenated(left: int, right: int) -> onnx.ModelProto:
    nodes = [
        node("Conv", ["x", "u"], ["l"], pads=[1, 1, 1, 1]),
        node("Conv", ["x", "v"], ["r"]),
        node("Concat", ["l", "r"], ["m"], axis=1),
        node("Conv", ["m", "w", "b"], ["o"], strides=[2, 2], pads=[1, 1, 1, 1]),
        node("Relu", ["o"], ["y"]),
    ]
    weights = {"u": floats(left, 4, 3, 3), "v": floats(right, 4, 1, 1), "w": floats(6, left + right, 3, 3)}
    return made(nodes, {**weights, "b": floats(6)})


def test_convolution_of_parts_that_are_no_blocks_becomes_a_sum() -> None:
    assert arranged(concatenated(24, 20)) == {"Conv": 4, "Add": 1, "Relu": 1}


def test_convolution_of_parts_that_are_blocks_stays_whole() -> None:
    assert arranged(concatenated(16, 32)) == {"Conv": 3, "Concat": 1, "Relu": 1}


def pyramid(factors: list[int], channels: list[int], height: int = 16) -> onnx.ModelProto:
    """Levels of 1 / factor of the picture's size, upsampled, concatenated, read by a 3x3 convolution and a head."""
    nodes, names = [], []
    constants: dict[str, Array] = {"w": floats(24, sum(channels), 3, 3), "b": floats(24)}
    for n, (factor, count) in enumerate(zip(factors, channels, strict=True)):
        constants[f"v{n}"] = floats(count, 4, 1, 1, seed=n)
        nodes.append(node("Conv", ["x", f"v{n}"], [f"l{n}"], strides=[factor, factor]))
        names.append(f"l{n}")
        if factor > 1:
            constants[f"s{n}"] = np.array([1, 1, factor, factor], np.float32)
            settings = {"mode": "nearest", "coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
            nodes.append(node("Resize", [f"l{n}", "", f"s{n}"], [f"u{n}"], **settings))
            names[-1] = f"u{n}"
    constants |= {"w1": floats(32, 24, 1, 1), "b1": floats(32), "w2": floats(16, 32, 1, 1) / 8}
    nodes += [
        node("Concat", names, ["m"], axis=1),
        node("Conv", ["m", "w", "b"], ["c"], pads=[1, 1, 1, 1]),
        node("Relu", ["c"], ["r"]),
        node("Conv", ["r", "w1", "b1"], ["c1"]),
        node("Relu", ["c1"], ["r1"]),
        node("Conv", ["r1", "w2"], ["c2"]),
        node("DepthToSpace", ["c2"], ["d"], blocksize=4),
        node("Sigmoid", ["d"], ["y"]),
    ]
    return made(nodes, constants, shape=(2, 4, height, 24))


@pytest.mark.parametrize(
    ("factors", "channels"),
    [([8, 4, 2, 1], [24, 24, 24, 24]), ([2, 1], [20, 16]), ([1, 4], [16, 40])],
    ids=["four levels", "two levels", "fine first"],
)
def test_head_of_a_pyramid_is_computed_at_half_the_size_for_each_phase(factors: list[int], channels: list[int]) -> None:
    model = pyramid(factors, channels)
    after = changed(arrange, model, floats(2, 4, 16, 24, seed=7))
    assert operators(after)["DepthToSpace"] == 2
    assert (24, sum(channels[n] for n, factor in enumerate(factors) if factor > 1), 2, 2) in shapes(after)
    assert (24, sum(channels), 3, 3) not in shapes(after)


@pytest.mark.parametrize(("factors", "height"), [([3, 1], 15), ([1, 1], 16), ([2, 2], 16)], ids=str)
def test_head_without_phases_stays(factors: list[int], height: int) -> None:
    model = pyramid(factors, [16, 16], height)
    assert (24, 32, 3, 3) in shapes(changed(arrange, model, floats(2, 4, height, 24, seed=7)))


def picture_model(
    shift: Array, conv: NodeProto, weight: Array, perm: tuple[int, ...] = (0, 3, 1, 2)
) -> onnx.ModelProto:
    nodes = [
        node("Transpose", ["x"], ["t"], perm=perm),
        node("Add", ["t", "shift"], ["s"]),
        conv,
        node("Relu", ["c"], ["y"]),
    ]
    return made(nodes, {"shift": shift, "w": weight, "b": floats(weight.shape[0])}, shape=("N", "H", "W", 3))


SHIFT = np.full((1, 3, 1, 1), -0.5, np.float32)


@pytest.mark.parametrize("width", [11, 12])
@pytest.mark.parametrize(
    "settings",
    [
        {"strides": [2, 2], "pads": [1, 1, 1, 1]},
        {"strides": [1, 3], "pads": [0, 2, 1, 0]},
        {},
    ],
    ids=str,
)
def test_picture_is_read_by_its_rows_without_turning_it(settings: dict[str, list[int]], width: int) -> None:
    model = picture_model(SHIFT, node("Conv", ["s", "w", "b"], ["c"], **settings), floats(16, 3, 3, 3))
    after = changed(arrange, model, floats(2, 9, width, 3, seed=7))
    assert operators(after) == {"Add": 1, "Reshape": 1, "Unsqueeze": 1, "Conv": 1, "Relu": 1}
    assert (16, 1, 3, 9) in shapes(after)


@pytest.mark.parametrize(
    ("shift", "settings"),
    [(floats(1, 3, 1, 1), {}), (SHIFT, {"dilations": [1, 2]}), (SHIFT, {"auto_pad": "SAME_UPPER"})],
    ids=["shift per channel", "dilated", "padded by name"],
)
def test_picture_is_turned_where_its_rows_cannot_be_read(shift: Array, settings: dict[str, object]) -> None:
    model = picture_model(shift, node("Conv", ["s", "w", "b"], ["c"], **settings), floats(16, 3, 3, 3))
    assert operators(changed(arrange, model, floats(2, 9, 12, 3, seed=7)))["Transpose"] == 1


def test_other_transpositions_stay() -> None:
    model = picture_model(SHIFT, node("Conv", ["s", "w", "b"], ["c"]), floats(16, 3, 3, 3), perm=(0, 3, 2, 1))
    assert operators(changed(arrange, model, floats(2, 9, 12, 3, seed=7)))["Transpose"] == 1


@pytest.mark.parametrize("name", ["ppocrv6-small-det", "ppocrv4-mobile-det"])
def test_real_detector_gives_the_same_probability_arranged(name: str) -> None:
    folder = ROOT / "engines" / name
    if not (folder / "model.cpu.onnx").is_file():
        pytest.skip(f"{name} is not made; run: edge-agent models fetch {name}")
    picture = np.full((1, 96, 320, 3), 230, np.uint8)
    cv2.putText(picture[0], "LOT 4711", (20, 65), cv2.FONT_HERSHEY_SIMPLEX, 1.6, (20, 20, 20), 4)
    plain, arranged_too = (
        onnxruntime.InferenceSession(str(folder / file), providers=["CPUExecutionProvider"]).run(
            ["probability"], {"image": picture}
        )[0]
        for file in ("model.onnx", "model.cpu.onnx")
    )
    difference = np.abs(plain.astype(int) - arranged_too)  # one step where a value lies on the edge of rounding
    assert plain.max() > 100
    assert difference.max() <= 1
    assert (difference > 0).mean() < 0.001
