"""Rewrite: the same function in fewer and larger steps.

`rewrite(model)` returns a model that computes what the given one does, up to float rounding, with only standard
operators of opset 17 or older. Each rule looks at one node, and where its pattern is there changes the graph and says
so; the rules run until none finds anything. What they are for:

- converters leave batch norms, learnable scales and shifts as nodes of their own; folded into the convolution before
  or behind them they cost nothing, and onnxruntime's blocked (NCHWc) convolutions are not interrupted by them;
- hard swish, squeeze-and-excitation and layer norm arrive in pieces; as one or two operators they are fast everywhere;
- training with weight decay leaves dead channels with weights like 1e-39: denormal numbers, which an Intel CPU handles
  in microcode, a hundred times slower than others. They are set to zero, and channels with nothing else are cut out.

Left as they are on purpose: a decomposed GELU (both onnxruntime and TensorRT know it; the Gelu operator came with opset
20) and a ReduceMean over a picture (as fast as GlobalAveragePool, whose blocked form adds 60,000 float32 in a row).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import onnx
from onnx import NodeProto, helper
from onnx.reference import ReferenceEvaluator

from edge_agent.models.convolutions import (
    CHANNEL_MULTIPLE,
    Channels,
    foldable_convolution,
    groups_of,
    has_constant_weights,
    input_channels,
    is_pointwise,
    output_channels,
    pads_nothing,
    pointwise_chain,
    reading_convolutions,
    scale_inputs,
    scale_outputs,
    set_bias,
    set_weight,
    shift_outputs,
    weight_of,
)
from edge_agent.models.graph import Array, Graph, Rule, attributes, bypass, run_rules

# A weight this small times any activation below 1e10 vanishes beside a sum's rounding error (6e-8 of the sum).
NEGLIGIBLE = 1e-18
FOLDABLE = frozenset(
    {"Add", "Cast", "Concat", "Div", "Gather", "Mul", "Reshape", "Shape", "Slice", "Squeeze", "Sub", "Unsqueeze"}
)


def rewrite(model: onnx.ModelProto) -> onnx.ModelProto:
    """A model with the same inputs, outputs and values (up to rounding) in fewer steps; `model` is not changed."""
    graph = Graph(model)
    zero_negligible_weights(graph)
    run_rules(graph, TIDY)
    run_rules(graph, FUSE)
    return graph.to_model()


def zero_negligible_weights(graph: Graph) -> None:
    """Sets weights below NEGLIGIBLE to zero: no output changes, and no denormal number slows a CPU down."""
    for name, value in graph.constants.items():
        if value.dtype == np.float32 and value.size > 1:
            tiny = np.abs(value) < NEGLIGIBLE
            if (tiny & (value != 0)).any():
                graph.constants[name] = np.where(tiny, np.float32(0), value)


# ---------------------------------------------------------------------------------------------------- tidying up


def drop_identity(graph: Graph, node: NodeProto) -> bool:
    """Identity, Dropout and Cast to the type it has: gone."""
    same = node.op_type in ("Identity", "Dropout") or (
        node.op_type == "Cast" and graph.types.get(node.input[0]) == attributes(node)["to"]
    )
    if not same or any(graph.readers[name] or name in graph.outputs for name in node.output[1:]):
        return False
    return bypass(graph, node, node.input[0])


def drop_neutral(graph: Graph, node: NodeProto) -> bool:
    """x + 0, x - 0, x * 1 and x / 1, with a single number: gone."""
    neutral = {"Add": 0, "Sub": 0, "Mul": 1, "Div": 1}.get(node.op_type)
    split = with_constant(graph, node)
    if neutral is None or split is None or split[1].size != 1 or split[1].ndim > 1 or split[1].item() != neutral:
        return False
    return bypass(graph, node, split[0])


def fold_constant(graph: Graph, node: NodeProto) -> bool:
    """Computes now what depends on constants only."""
    if node.op_type not in FOLDABLE or len(node.output) != 1 or node.output[0] in graph.outputs:
        return False
    names = [name for name in node.input if name]
    if not all(name in graph.constants for name in names):
        return False
    value = ReferenceEvaluator(
        helper.make_graph([node], "one", [], [onnx.ValueInfoProto(name=node.output[0])]),
        opsets={entry.domain: entry.version for entry in graph.model.opset_import},
    ).run(None, {name: graph.constants[name] for name in names})[0]
    graph.constants[node.output[0]] = np.asarray(value)
    graph.remove(node)
    return True


# ------------------------------------------------------------------------------------------ one operator for many


def fuse_hard_swish(graph: Graph, node: NodeProto) -> bool:
    """x * clip(x + 3, 0, 6) / 6 becomes x * HardSigmoid(x)."""
    if node.op_type != "Clip" or clip_bounds(graph, node) != (0.0, 6.0):
        return False
    add, product = graph.made_by(node.input[0], "Add"), graph.only_reader(node.output[0])
    shifted = with_constant(graph, add) if add is not None else None
    if shifted is None or not is_number(shifted[1], 3.0) or product is None or product.op_type != "Mul":
        return False
    x, last = shifted[0], graph.only_reader(product.output[0])
    divided = with_constant(graph, last) if last is not None and last.op_type in ("Mul", "Div") else None
    if set(product.input) != {x, node.output[0]} or last is None or divided is None:
        return False
    if not is_number(divided[1], 6.0 if last.op_type == "Div" else 1 / 6):
        return False
    gate = helper.make_node("HardSigmoid", [x], [graph.new_name(node.output[0])], alpha=1 / 6, beta=0.5)
    graph.insert_before(node, gate)
    graph.replace(node.output[0], gate.output[0])
    return bypass(graph, last, product.output[0])


def clip_bounds(graph: Graph, node: NodeProto) -> tuple[float, float] | None:
    """(min, max) of a Clip with constant bounds."""
    if len(node.input) != 3:
        return None
    low, high = graph.constant(node.input[1]), graph.constant(node.input[2])
    return None if low is None or high is None else (float(low.item()), float(high.item()))


def fuse_gated_residual(graph: Graph, node: NodeProto) -> bool:
    """x + x * gate, gate one number per channel, becomes x * (1 + gate): the large tensor is walked over once."""
    if node.op_type != "Add":
        return False
    for x, product in (node.input, reversed(node.input)):
        mul = graph.made_by(product, "Mul")
        if mul is None or x not in mul.input or not graph.feeds_only(product):
            continue
        gate = mul.input[1] if mul.input[0] == x else mul.input[0]
        if graph.dims.get(gate, ())[2:] != (1, 1) or gate == x:
            continue
        one = graph.add_constant(np.ones(1, np.float32), "one")
        opened = helper.make_node("Add", [gate, one], [graph.new_name(gate)])
        graph.insert_before(mul, opened)
        graph.set_input(mul, list(mul.input).index(gate), opened.output[0])
        return bypass(graph, node, product)
    return False


def fuse_layer_norm(graph: Graph, node: NodeProto) -> bool:
    """(x - mean) / sqrt(mean((x - mean)^2) + eps) * scale + bias over the last axis becomes LayerNormalization."""
    centred = graph.made_by(node.input[0], "Sub") if node.op_type == "Div" else None
    root = graph.made_by(node.input[1], "Sqrt") if centred is not None else None
    if centred is None or root is None or not is_mean_of(graph, centred.input[1], centred.input[0]):
        return False
    padded = graph.made_by(root.input[0], "Add")
    variance = with_constant(graph, padded) if padded is not None else None
    mean = graph.made_by(variance[0], "ReduceMean") if variance is not None else None
    square = graph.made_by(mean.input[0], "Pow", "Mul") if mean is not None else None
    if variance is None or square is None or variance[1].size != 1 or not is_square(graph, square, centred.output[0]):
        return False
    if not is_mean_of(graph, variance[0], square.output[0]):
        return False
    scale = scaled_reader(graph, node.output[0], "Mul")
    shift = scaled_reader(graph, scale[0].output[0], "Add") if scale is not None else None
    if scale is None or shift is None or scale[1].shape != shift[1].shape:
        return False
    inputs = [centred.input[0], graph.add_constant(scale[1], "norm.scale"), graph.add_constant(shift[1], "norm.bias")]
    name = graph.new_name(shift[0].output[0])
    norm = helper.make_node("LayerNormalization", inputs, [name], axis=-1, epsilon=float(variance[1].item()))
    graph.insert_before(shift[0], norm)
    return bypass(graph, shift[0], name)


def is_mean_of(graph: Graph, name: str, source: str) -> bool:
    """Whether the tensor is the mean of `source` over its last axis, that axis kept."""
    node = graph.made_by(name, "ReduceMean")
    if node is None or node.input[0] != source:
        return False
    settings = attributes(node)
    axes = graph.constant(node.input[1]) if len(node.input) > 1 else settings.get("axes")
    rank = len(graph.dims.get(source, ()))
    return axes is not None and [int(axis) for axis in axes] in ([-1], [rank - 1]) and settings.get("keepdims", 1) == 1


def is_square(graph: Graph, node: NodeProto, source: str) -> bool:
    """Whether the node computes source ^ 2."""
    if node.op_type == "Mul":
        return list(node.input) == [source, source]
    exponent = graph.constant(node.input[1])
    return node.input[0] == source and exponent is not None and is_number(exponent, 2.0)


def scaled_reader(graph: Graph, name: str, op_type: str) -> tuple[NodeProto, Array] | None:
    """The only reader of the tensor, when it is `op_type` with a constant vector, and that vector."""
    node = graph.only_reader(name)
    split = with_constant(graph, node) if node is not None and node.op_type == op_type else None
    return (node, split[1]) if node is not None and split is not None and split[1].ndim == 1 else None


# --------------------------------------------------------------------------------------- into the convolution before


def fold_batch_norm(graph: Graph, node: NodeProto) -> bool:
    """A BatchNormalization behind a convolution goes into its weights."""
    if node.op_type != "BatchNormalization":
        return False
    conv = foldable_convolution(graph, node.input[0])
    statistics = [graph.constant(name) for name in node.input[1:5]]
    if conv is None or any(value is None for value in statistics):
        return False
    gamma, beta, mean, variance = (np.asarray(value, np.float64) for value in statistics)
    scale = gamma / np.sqrt(variance + attributes(node).get("epsilon", 1e-5))
    scale_outputs(graph, conv, scale)
    shift_outputs(graph, conv, beta - mean * scale)
    return bypass(graph, node, node.input[0])


def fold_scale(graph: Graph, node: NodeProto) -> bool:
    """A constant factor (per channel or one for all) behind a convolution goes into its weights."""
    split = with_constant(graph, node) if node.op_type in ("Mul", "Div") else None
    conv = foldable_convolution(graph, split[0]) if split is not None else None
    if split is None or conv is None:
        return False
    factor = per_channel(split[1], output_channels(graph, conv), weight_of(graph, conv).ndim)
    if factor is None or (node.op_type == "Div" and (factor == 0).any()):
        return False
    scale_outputs(graph, conv, factor if node.op_type == "Mul" else 1 / factor)
    return bypass(graph, node, split[0])


def fold_shift(graph: Graph, node: NodeProto) -> bool:
    """A constant added (per channel or one for all) behind a convolution goes into its bias."""
    split = with_constant(graph, node) if node.op_type in ("Add", "Sub") else None
    conv = foldable_convolution(graph, split[0]) if split is not None else None
    if split is None or conv is None:
        return False
    shift = per_channel(split[1], output_channels(graph, conv), weight_of(graph, conv).ndim)
    if shift is None:
        return False
    shift_outputs(graph, conv, shift if node.op_type == "Add" else -shift)
    return bypass(graph, node, split[0])


# ------------------------------------------------------------------------------------- into the convolutions behind


def push_scale(graph: Graph, node: NodeProto) -> bool:
    """A constant factor read by convolutions only goes into their weights."""
    split = with_constant(graph, node) if node.op_type in ("Mul", "Div") else None
    if split is None or is_gelu(graph, split[0]):
        return False
    convs = reading_convolutions(graph, node.output[0])
    if not convs:
        return False
    factor = per_channel(split[1], input_channels(graph, convs[0]), weight_of(graph, convs[0]).ndim)
    if factor is None or (node.op_type == "Div" and (factor == 0).any()):
        return False
    for conv in convs:
        scale_inputs(graph, conv, factor if node.op_type == "Mul" else 1 / factor)
    return bypass(graph, node, split[0])


def is_gelu(graph: Graph, name: str) -> bool:
    """Whether the tensor is the x * (1 + erf(x / sqrt 2)) of a GELU, which onnxruntime and TensorRT know as a whole
    together with the factor 1/2 behind it."""
    product = graph.made_by(name, "Mul")
    opened = [graph.made_by(source, "Add") for source in product.input] if product is not None else []
    return any(graph.made_by(source, "Erf") is not None for add in opened if add is not None for source in add.input)


def push_shift(graph: Graph, node: NodeProto) -> bool:
    """A constant added, read only by convolutions that pad nothing, goes into their biases.

    With padding it may not: the network saw zeros around the shifted picture.
    """
    split = with_constant(graph, node) if node.op_type in ("Add", "Sub") else None
    convs = reading_convolutions(graph, node.output[0]) if split is not None else None
    if split is None or not convs or not all(conv.op_type == "Conv" and pads_nothing(conv) for conv in convs):
        return False
    shift = per_channel(split[1], input_channels(graph, convs[0]), weight_of(graph, convs[0]).ndim)
    if shift is None:
        return False
    for conv in convs:
        weight = weight_of(graph, conv).astype(np.float64)
        by_group = weight.reshape(groups_of(conv), -1, weight.shape[1], int(np.prod(weight.shape[2:]))).sum(-1)
        through = np.einsum("goi,gi->go", by_group, shift.reshape(groups_of(conv), -1)).ravel()
        shift_outputs(graph, conv, through if node.op_type == "Add" else -through)
    return bypass(graph, node, split[0])


def fuse_affine(graph: Graph, node: NodeProto) -> bool:
    """x * a + b in front of a padded convolution becomes a BatchNormalization, which onnxruntime runs as a blocked
    depthwise convolution and TensorRT as a scale layer."""
    split = with_constant(graph, node) if node.op_type == "Add" else None
    mul = graph.made_by(split[0], "Mul") if split is not None else None
    scaled = with_constant(graph, mul) if mul is not None and graph.feeds_only(mul.output[0]) else None
    if split is None or scaled is None:
        return False
    channels = next(iter(graph.dims.get(scaled[0], ())[1:]), None)
    rank = len(graph.dims.get(scaled[0], ()))
    if channels is None or rank != 4:
        return False
    scale, shift = per_channel(scaled[1], channels, rank), per_channel(split[1], channels, rank)
    if scale is None or shift is None:
        return False
    values = (scale, shift, np.zeros(channels), np.ones(channels))
    names = [graph.add_constant(value.astype(np.float32), "affine") for value in values]
    name = graph.new_name(node.output[0])
    norm = helper.make_node("BatchNormalization", [scaled[0], *names], [name], epsilon=0.0)
    graph.insert_before(node, norm)
    return bypass(graph, node, name)


# --------------------------------------------------------------------------------------------- fewer multiplications


def merge_pointwise(graph: Graph, node: NodeProto) -> bool:
    """Two 1x1 convolutions in a row become one, where that takes no more multiplications."""
    if not is_pointwise(graph, node):
        return False
    first = foldable_convolution(graph, node.input[0])
    if first is None or first.op_type != "Conv" or not is_pointwise(graph, first):
        return False
    before, behind = (weight_of(graph, conv).astype(np.float64)[:, :, 0, 0] for conv in (first, node))
    merged = behind @ before
    if merged.size > before.size + behind.size:
        return False
    bias = graph.constants[first.input[2]] if len(first.input) > 2 else np.zeros(before.shape[0])
    shift_outputs(graph, node, behind @ bias.astype(np.float64))
    set_weight(graph, node, merged[:, :, None, None])
    graph.set_input(node, 0, first.input[0])
    return True


def cut_dead_channels(graph: Graph, node: NodeProto) -> bool:
    """Channels that every reader multiplies by zero are not computed; those left are a multiple of CHANNEL_MULTIPLE."""
    channels = Channels.made_by(graph, node)
    if channels is None:
        return False
    alive = np.zeros(channels.count, bool)
    for conv in channels.convolutions:
        weight = weight_of(graph, conv)
        alive |= np.abs(weight).max(axis=(0, *range(2, weight.ndim))) > 0
    keep = round_up(int(alive.sum()))
    if not 0 < keep < channels.count:
        return False
    channels.select(np.sort(np.argsort(~alive, kind="stable")[:keep]))
    return True


def round_up(count: int) -> int:
    return -(-count // CHANNEL_MULTIPLE) * CHANNEL_MULTIPLE


def unroll_transposed_pair(graph: Graph, node: NodeProto) -> bool:
    """Two transposed convolutions whose windows do not overlap, with pointwise operators between, become two 1x1
    convolutions and one DepthToSpace.

    The head of a differentiable binarization network (two of 2x2 with stride 2): each pixel grows into s x s pixels
    by itself, so the pixels are computed as channels and put in their places at the end.
    """
    outer_grown = growth(graph, node)
    if outer_grown is None:
        return False
    chain, inner = pointwise_chain(graph, node.input[0])
    inner_grown = growth(graph, inner) if inner is not None else None
    if inner is None or inner_grown is None or not all(graph.feeds_only(n.output[0]) for n in (inner, *chain)):
        return False
    if output_channels(graph, node) != 1:
        return False
    s, t = inner_grown, outer_grown
    first, second = (weight_of(graph, conv).astype(np.float64) for conv in (inner, node))
    channels = first.shape[1]
    # channel (a, b, c) of the first convolution is what the pixel (a, b) of the s x s window has in channel c
    grown = first.transpose(2, 3, 1, 0).reshape(s * s * channels, -1)
    # pixel (a * t + p, b * t + q) of the st x st window: channel of that number in row-major order (DepthToSpace)
    placed = np.zeros((s, t, s, t, s, s, channels))
    for a, b in np.ndindex(s, s):
        placed[a, :, b, :, a, b] = second[:, 0].transpose(1, 2, 0)
    side = s * t
    unrolled(graph, inner, grown, s * s)
    unrolled(graph, node, placed.reshape(side * side, -1), side * side)
    name = graph.new_name(node.output[0])
    graph.insert_behind(node, helper.make_node("DepthToSpace", [node.output[0]], [name], blocksize=side, mode="DCR"))
    return True


def growth(graph: Graph, node: NodeProto) -> int | None:
    """s of a plain transposed convolution whose kernel and stride are both s x s, without any padding."""
    if node.op_type != "ConvTranspose" or groups_of(node) != 1 or not has_constant_weights(graph, node):
        return None
    settings = attributes(node)
    sides = {*weight_of(graph, node).shape[2:], *settings.get("strides", (1,))}
    plain = not any(settings.get("output_padding", ())) and "output_shape" not in settings and pads_nothing(node)
    plain = plain and all(step == 1 for step in settings.get("dilations", ()))
    return int(sides.pop()) if plain and len(sides) == 1 and weight_of(graph, node).ndim == 4 else None


def unrolled(graph: Graph, conv: NodeProto, weight: npt.NDArray[np.float64], copies: int) -> None:
    """Makes of a transposed convolution a 1x1 convolution with this weight (C_out, C_in), its bias repeated."""
    set_weight(graph, conv, weight[:, :, None, None])
    if len(conv.input) > 2:
        set_bias(graph, conv, np.tile(graph.constants[conv.input[2]], copies))
    conv.op_type = "Conv"
    del conv.attribute[:]


# ------------------------------------------------------------------------------------------------- small questions


def with_constant(graph: Graph, node: NodeProto) -> tuple[str, Array] | None:
    """(the other input, the constant) of a node with two inputs, one constant; for Sub and Div the second one."""
    if len(node.input) != 2:
        return None
    left, right = node.input
    value = graph.constant(right)
    if value is not None and left not in graph.constants:
        return left, value
    value = graph.constant(left)
    if value is not None and right not in graph.constants and node.op_type not in ("Sub", "Div"):
        return right, value
    return None


def per_channel(value: Array, channels: int, rank: int) -> npt.NDArray[np.float64] | None:
    """The constant as one number per channel, (C,), where it broadcasts so over (N, C, ...) of `rank`, else None."""
    if value.ndim > rank or value.dtype != np.float32:
        return None
    shape = (1,) * (rank - value.ndim) + value.shape
    if any(size != 1 for axis, size in enumerate(shape) if axis != 1) or shape[1] not in (1, channels):
        return None
    return np.broadcast_to(value.astype(np.float64).reshape(-1), (channels,))


def is_number(value: Array, number: float) -> bool:
    return value.size == 1 and bool(np.isclose(value.item(), number, rtol=1e-6))


TIDY: tuple[Rule, ...] = (drop_identity, fold_constant, drop_neutral)
FUSE: tuple[Rule, ...] = (
    fuse_hard_swish,
    fuse_layer_norm,
    fold_batch_norm,
    fold_scale,
    fold_shift,
    push_shift,
    push_scale,
    fuse_gated_residual,
    fuse_affine,
    merge_pointwise,
    unroll_transposed_pair,
    cut_dead_channels,
)
