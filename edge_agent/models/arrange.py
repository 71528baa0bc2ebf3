"""Arrange: the same function laid out for onnxruntime's blocked convolutions and a CPU's caches.

`arrange(model)` takes a finished model, as `rewrite` and the surgery leave it, and returns one that computes the same
up to float rounding. onnxruntime keeps pictures in blocks of CHANNEL_MULTIPLE channels from convolution to
convolution; what interrupts that costs two copies of the picture, and Resize, Concat and Cast run on one thread. A GPU
gains nothing from these steps, some cost it time: they are for the CPU's variant of a model alone. Figures: the
detectors at 736 x 1312, 2 threads of a Xeon, PP-OCRv4 mobile / PP-OCRv6 small.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import onnx
from onnx import NodeProto, helper

from edge_agent.models.convolutions import (
    CHANNEL_MULTIPLE,
    POINTWISE_UNARY,
    Channels,
    groups_of,
    has_constant_weights,
    is_pointwise,
    set_weight,
    weight_of,
)
from edge_agent.models.graph import Array, Graph, Rule, attributes, bypass, run_rules


def arrange(model: onnx.ModelProto) -> onnx.ModelProto:
    """A model with the same inputs, outputs and values (up to rounding), faster on a CPU; `model` is not changed."""
    graph = Graph(model)
    run_rules(graph, RULES)
    return graph.to_model()


def read_rows(graph: Graph, node: NodeProto) -> bool:
    """A convolution of a picture (N, H, W, 3) turned to (N, 3, H, W) reads its rows as they lie, (N, 1, H, 3 W).

    A kernel of 3 x 3 pixels with 3 channels is one of 3 x 9 numbers that steps 3 numbers a pixel: no transposition.
    1.07x / 1.03x.
    """
    if node.op_type != "Transpose" or list(attributes(node).get("perm", ())) != [0, 3, 1, 2]:
        return False
    between, conv = shifts_behind(graph, node)
    if conv is None or conv.op_type != "Conv" or not has_constant_weights(graph, conv) or groups_of(conv) != 1:
        return False
    settings, weight = attributes(conv), weight_of(graph, conv)
    if settings.get("auto_pad", b"NOTSET") != b"NOTSET" or any(step != 1 for step in settings.get("dilations", ())):
        return False
    for step in between:
        position = next(n for n, name in enumerate(step.input) if name in graph.constants)
        value = graph.constants[step.input[position]].flat[0]
        graph.set_input(step, position, graph.add_constant(np.asarray(value), step.input[position]))
    channels = weight.shape[1]
    flat = np.ascontiguousarray(weight.transpose(0, 2, 3, 1)).reshape(weight.shape[0], 1, weight.shape[2], -1)
    set_weight(graph, conv, flat)
    high, wide = settings.get("strides", (1, 1))
    top, left, bottom, right = settings.get("pads", (0, 0, 0, 0))
    del conv.attribute[:]
    pads = [top, left * channels, bottom, right * channels]
    conv.attribute.extend(
        [helper.make_attribute("strides", [high, wide * channels]), helper.make_attribute("pads", pads)]
    )
    rows, picture = graph.new_name(conv.input[0]), graph.new_name(conv.input[0])
    shape = graph.add_constant(np.array([0, 0, -1], np.int64), "rows.shape")
    axis = graph.add_constant(np.array([1], np.int64), "rows.axis")
    graph.insert_before(
        conv,
        helper.make_node("Reshape", [conv.input[0], shape], [rows]),
        helper.make_node("Unsqueeze", [rows, axis], [picture]),
    )
    graph.set_input(conv, 0, picture)
    return bypass(graph, node, node.input[0])


def shifts_behind(graph: Graph, node: NodeProto) -> tuple[list[NodeProto], NodeProto | None]:
    """The additions and multiplications of one number that follow one another behind a node, and what comes then."""
    steps: list[NodeProto] = []
    reader = graph.only_reader(node.output[0])
    while reader is not None and reader.op_type in ("Add", "Div", "Mul", "Sub"):
        values = [graph.constants[name] for name in reader.input if name in graph.constants]
        if len(values) != 1 or (values[0] != values[0].flat[0]).any():
            return steps, None
        steps.append(reader)
        reader = graph.only_reader(reader.output[0])
    return steps, reader


def pad_few_channels(graph: Graph, node: NodeProto) -> bool:
    """Fewer channels of a picture than CHANNEL_MULTIPLE are filled up with zeros: a blocked convolution reads no fewer,
    onnxruntime would unblock them and take a slower kernel."""
    channels = Channels.made_by(graph, node)
    if channels is None or channels.count >= CHANNEL_MULTIPLE or graph.dims.get(node.output[0], (1, 1))[2:] == (1, 1):
        return False
    channels.fill_up(CHANNEL_MULTIPLE)
    return True


def split_concatenation(graph: Graph, node: NodeProto) -> bool:
    """A convolution of concatenated pictures becomes the sum of a convolution of each.

    Only where a part is no multiple of CHANNEL_MULTIPLE: such parts cannot be put together as blocks, so onnxruntime
    would unblock, copy and block them again; the sum costs nothing there, the second convolution adds into the first.
    """
    concat = graph.made_by(node.input[0], "Concat") if node.op_type == "Conv" and groups_of(node) == 1 else None
    if concat is None or attributes(concat)["axis"] != 1 or not graph.feeds_only(concat.output[0]):
        return False
    counts = [graph.dims.get(name, (None, None))[1] for name in concat.input]
    known = [count for count in counts if count is not None]
    if len(known) != len(counts) or len(counts) != 2 or not has_constant_weights(graph, node):
        return False
    if all(count % CHANNEL_MULTIPLE == 0 for count in known):
        return False
    weights = np.split(weight_of(graph, node), np.cumsum(known)[:-1], axis=1)
    first = NodeProto()
    first.CopyFrom(node)
    first.name = ""
    del first.input[2:]
    first.input[0], first.input[1] = concat.input[0], graph.add_constant(weights[0], node.input[1])
    first.output[0] = graph.new_name(node.output[0])
    graph.insert_before(node, first)
    graph.set_input(node, 0, concat.input[1])
    set_weight(graph, node, weights[1])
    total = helper.make_node("Add", [first.output[0], node.output[0]], [graph.new_name(node.output[0])])
    graph.insert_behind(node, total)
    return True


def compute_by_phase(graph: Graph, node: NodeProto) -> bool:
    """A 3x3 convolution over a concatenation of upsampled and plain pictures, then pointwise steps and a DepthToSpace,
    is computed at half the resolution, once for each of the four pixels (a, b) of a 2x2 window.

    The head of a feature pyramid. An upsampled picture has the same value twice in a row, so that three weights of a
    row fall on two pixels: 4 multiplications instead of 9. The plain picture takes a convolution of stride 2.
    """
    parts = pyramid(graph, node)
    chain = pointwise_tail(graph, node)
    if parts is None or not chain or chain[-1].op_type != "DepthToSpace":
        return False
    weight, place = weight_of(graph, node), chain[-1]
    chosen = np.repeat([part.factor > 1 for part in parts], [part.channels for part in parts])
    coarse = joined(graph, node, [halved(graph, node, part) for part in parts if part.factor > 1])
    fine = joined(graph, node, [part.source for part in parts if part.factor == 1])
    by_phase = []
    for a, b in np.ndindex(2, 2):
        pads = [1 - a, 1 - b, a, b]
        names = [graph.new_name(node.output[0]) for _ in range(3)]
        on_coarse = [coarse, graph.add_constant(twice(weight[:, chosen], a, b), node.input[1]), *node.input[2:]]
        on_fine = [fine, graph.add_constant(weight[:, ~chosen], node.input[1])]
        graph.insert_before(
            place,
            helper.make_node("Conv", on_coarse, names[:1], pads=pads),
            helper.make_node("Conv", on_fine, names[1:2], pads=pads, strides=[2, 2]),
            helper.make_node("Add", names[:2], names[2:]),
        )
        by_phase.append(repeated(graph, chain[:-1], names[2], place))
    together, half, name = (graph.new_name(place.output[0]) for _ in range(3))
    graph.insert_before(
        place,
        helper.make_node("Concat", by_phase, [together], axis=1),
        helper.make_node("DepthToSpace", [together], [half], blocksize=2, mode="DCR"),
        helper.make_node("DepthToSpace", [half], [name], blocksize=attributes(place)["blocksize"], mode="DCR"),
    )
    return bypass(graph, place, name)


@dataclass(frozen=True)
class Part:
    """One of several concatenated pictures: `source` with `channels`, each pixel `factor` x `factor` times."""

    source: str
    factor: int
    channels: int


def pyramid(graph: Graph, node: NodeProto) -> tuple[Part, ...] | None:
    """The parts that a plain 3x3 convolution reads, when some are plain and the others upsampled by an even factor."""
    concat = graph.made_by(node.input[0], "Concat") if node.op_type == "Conv" else None
    if concat is None or attributes(concat)["axis"] != 1 or not graph.feeds_only(concat.output[0]):
        return None
    if groups_of(node) != 1 or not has_constant_weights(graph, node) or weight_of(graph, node).shape[2:] != (3, 3):
        return None
    settings = attributes(node)
    if {*settings.get("strides", (1,)), *settings.get("dilations", (1,)), *settings.get("pads", (0,))} != {1}:
        return None
    parts = []
    for name in concat.input:
        factor, source = upsampling(graph, name)
        channels = graph.dims.get(name, (None, None))[1]
        if channels is None or (factor > 1 and factor % 2):
            return None
        parts.append(Part(source, factor, channels))
    return tuple(parts) if len({part.factor > 1 for part in parts}) == 2 else None


def upsampling(graph: Graph, name: str) -> tuple[int, str]:
    """(factor, source) of a picture whose pixels a Resize repeats; (1, name) of any other."""
    resize = graph.made_by(name, "Resize")
    scales = graph.constant(resize.input[2]) if resize is not None and len(resize.input) == 3 else None
    if resize is None or scales is None or scales.shape != (4,) or scales[2] != scales[3] or (scales[:2] != 1).any():
        return 1, name
    settings = attributes(resize)
    repeats = (settings.get("mode"), settings.get("coordinate_transformation_mode"), settings.get("nearest_mode"))
    if repeats != (b"nearest", b"asymmetric", b"floor") or scales[2] != int(scales[2]) or not graph.feeds_only(name):
        return 1, name
    return int(scales[2]), resize.input[0]


def halved(graph: Graph, node: NodeProto, part: Part) -> str:
    """The part upsampled by half its factor."""
    if part.factor == 2:
        return part.source
    scales = graph.add_constant(np.array([1, 1, part.factor // 2, part.factor // 2], np.float32), "scales")
    name = graph.new_name(part.source)
    settings = {"mode": "nearest", "coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
    graph.insert_before(node, helper.make_node("Resize", [part.source, "", scales], [name], **settings))
    return name


def joined(graph: Graph, node: NodeProto, names: list[str]) -> str:
    """The pictures concatenated."""
    if len(names) == 1:
        return names[0]
    name = graph.new_name(names[0])
    graph.insert_before(node, helper.make_node("Concat", names, [name], axis=1))
    return name


def twice(weight: Array, a: int, b: int) -> Array:
    """What a 3x3 kernel weighs the pixels of a picture shown twice as large, at pixel (a, b) of a 2x2 window."""
    rows = [weight[:, :, : a + 1].sum(2), weight[:, :, a + 1 :].sum(2)]
    both = np.stack(rows, 2)
    columns = [both[:, :, :, : b + 1].sum(3), both[:, :, :, b + 1 :].sum(3)]
    return np.stack(columns, 3)


def pointwise_tail(graph: Graph, node: NodeProto) -> list[NodeProto]:
    """The unary operators and 1x1 convolutions that follow one another behind a node, and what comes then."""
    tail: list[NodeProto] = []
    reader = graph.only_reader(node.output[0])
    while reader is not None:
        tail.append(reader)
        if reader.op_type not in POINTWISE_UNARY and not is_pointwise(graph, reader):
            break
        reader = graph.only_reader(reader.output[0])
    return tail


def repeated(graph: Graph, chain: list[NodeProto], source: str, place: NodeProto) -> str:
    """A copy of the chain in front of `place` that starts from `source`; its last tensor."""
    for original in chain:
        copy = NodeProto()
        copy.CopyFrom(original)
        copy.name = ""
        copy.input[0], copy.output[0] = source, graph.new_name(original.output[0])
        graph.insert_before(place, copy)
        source = copy.output[0]
    return source


RULES: tuple[Rule, ...] = (read_rows, compute_by_phase, pad_few_channels, split_concatenation)
