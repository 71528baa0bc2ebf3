"""Surgery: makes of an OCR graph as shipped the graph that the stages feed: uint8 pictures in, small answers out.

Every function takes an onnx.ModelProto and returns a new one; the caller's stays as it was. Tensors of the
result, N pictures of H x W pixels, T steps along a line:

    text_detection     image uint8 (N, H, W, 3) BGR   ->  probability uint8 (N, H, W) = round(255 * p)
    text_recognition   image uint8 (N, H, W, 3) BGR   ->  index int32 (N, T), probability float32 (N, T) and, of C
                                                          chosen classes, code_margin float32 (N, T, C)

uint8 in is a quarter of the bytes to upload, and the normalisation is written down once, in the graph.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import onnx
from onnx import TensorProto, helper, numpy_helper, shape_inference, version_converter

from edge_agent.errors import ModelError, in_one_line

OPSET = 17  # LayerNormalization; Q/DQ per channel needs 13
IR_VERSION = 8  # the one that came with opset 17: what TensorRT 8.5's parser and old runtimes read
IMAGE = "image"
PROBABILITY = "probability"
INDEX = "index"
CODE_MARGIN = "code_margin"
CODE_CLASSES = "code.classes"  # the stored tensor that says which classes the margins are of
# attributes that became inputs at opset 13
AXES_TO_INPUT = {"Squeeze": "axes", "Unsqueeze": "axes", "ReduceSum": "axes", "Split": "split"}
SOFTMAX_FAMILY = ("Softmax", "LogSoftmax", "Hardmax")

FloatArray = npt.NDArray[np.float32]


def raise_opset(model: onnx.ModelProto, opset: int = OPSET) -> onnx.ModelProto:
    """The same graph at `opset` or newer, with the IR version that came with it.

    From opset 11 on by own code: onnx's converter wraps each Softmax whose rank it cannot infer in
    Flatten-Shape-Reshape, which costs time and gives TensorRT shape chains. Older graphs go through onnx's converter.
    Raises ModelError where the graph cannot be raised.
    """
    current = default_opset(model)
    if current < 11:
        try:
            raised: onnx.ModelProto = version_converter.convert_version(model, opset)
        except (RuntimeError, ValueError) as exc:
            raise ModelError(f"the graph is opset {current} and cannot be raised to {opset}: {exc}") from exc
        return _with_ir_version(raised)
    raised = clone(model)
    if current < 13:
        ranks = _ranks(raised)
        for node in raised.graph.node:
            _raise_node(raised.graph, node, ranks)
    if current < opset:
        for entry in raised.opset_import:
            if entry.domain in ("", "ai.onnx"):
                entry.version = opset
    return _with_ir_version(raised)


def _with_ir_version(model: onnx.ModelProto) -> onnx.ModelProto:
    """A newer IR version than the opset needs shuts old runtimes out for nothing."""
    model.ir_version = IR_VERSION if default_opset(model) == OPSET else max(model.ir_version, IR_VERSION)
    return model


def _raise_node(graph: onnx.GraphProto, node: onnx.NodeProto, ranks: dict[str, int]) -> None:
    attribute = AXES_TO_INPUT.get(node.op_type)
    if attribute is not None:
        found = next((a for a in node.attribute if a.name == attribute), None)
        if found is not None:
            name = f"{node.output[0]}.{attribute}"
            graph.initializer.append(numpy_helper.from_array(np.array(found.ints, np.int64), name))
            node.attribute.remove(found)
            node.input.append(name)
    elif node.op_type in SOFTMAX_FAMILY:
        _raise_softmax(node, ranks.get(node.input[0]))


def _raise_softmax(node: onnx.NodeProto, rank: int | None) -> None:
    """Until opset 12 a softmax ran over all axes from `axis` on, since 13 over that axis alone: equal for the last."""
    axis = int(get_attribute(node, "axis", 1))
    if rank is not None and axis not in (rank - 1, -1):
        raise ModelError(
            f"{node.op_type} {node.output[0]!r} runs over the axes from {axis} on of {rank}; "
            "expected the last axis only; export the model with opset 13 or newer"
        )
    set_attribute(node, "axis", axis if rank is None else -1)


def _ranks(model: onnx.ModelProto) -> dict[str, int]:
    inferred = shape_inference.infer_shapes(model, data_prop=True)
    graph = inferred.graph
    return {
        value.name: len(value.type.tensor_type.shape.dim)
        for value in [*graph.input, *graph.value_info, *graph.output]
        if value.type.tensor_type.HasField("shape")
    }


def uint8_head(
    model: onnx.ModelProto,
    *,
    scale: float,
    mean: Sequence[float],
    std: Sequence[float],
    colour_order: str = "BGR",
    height_px: int | None = None,
) -> onnx.ModelProto:
    """Replaces the float32 (N, 3, H, W) input by `image`, uint8 (N, H, W, 3) BGR; `height_px` fixes H.

    The network saw (pixel * scale - mean) / std per channel, in `colour_order`. The first node is a Cast, since
    TensorRT takes a uint8 input only then. Shift and factor are kept apart: (pixel - mean / scale) * (scale / std).
    The shift stays a node; the factor goes into the weights of the convolutions that read the input. That is exact
    at the border too, because a convolution's zero padding is zero before and after a pure factor.
    """
    model = clone(model)
    graph = model.graph
    old = _picture_input(graph)
    scale_by = np.asarray(std, np.float64) ** -1 * scale
    shift_by = -np.asarray(mean, np.float64) / scale
    nodes = [
        helper.make_node("Cast", [IMAGE], ["image.float"], to=TensorProto.FLOAT),
        helper.make_node("Transpose", ["image.float"], ["image.nchw"], perm=[0, 3, 1, 2]),
    ]
    last = "image.nchw"
    if colour_order == "RGB":
        graph.initializer.append(numpy_helper.from_array(np.array([2, 1, 0], np.int64), "image.rgb_order"))
        nodes.append(helper.make_node("Gather", [last, "image.rgb_order"], ["image.rgb"], axis=1))
        last = "image.rgb"
    if np.any(shift_by != 0):
        graph.initializer.append(numpy_helper.from_array(_per_channel(shift_by), "image.shift"))
        nodes.append(helper.make_node("Add", [last, "image.shift"], ["image.shifted"]))
        last = "image.shifted"
    if np.any(scale_by != 1) and not _fold_factor(graph, old.name, scale_by):
        graph.initializer.append(numpy_helper.from_array(_per_channel(scale_by), "image.factor"))
        nodes.append(helper.make_node("Mul", [last, "image.factor"], ["image.scaled"]))
        last = "image.scaled"
    rename_input(graph, old.name, last)
    graph.input.remove(old)
    graph.input.append(helper.make_tensor_value_info(IMAGE, TensorProto.UINT8, ["N", height_px or "H", "W", 3]))
    for position, node in enumerate(nodes):
        graph.node.insert(position, node)
    return model


def _picture_input(graph: onnx.GraphProto) -> onnx.ValueInfoProto:
    """The one float32 (N, 3, H, W) input; ModelError names what is there instead."""
    stored = stored_names(graph)
    inputs = [value for value in graph.input if value.name not in stored]
    if len(inputs) == 1:
        tensor = inputs[0].type.tensor_type
        dims = tensor.shape.dim
        if tensor.elem_type == TensorProto.FLOAT and len(dims) == 4 and dims[1].dim_value in (0, 3):
            return inputs[0]
    found = ", ".join(describe_value(value) for value in inputs) or "nothing"
    raise ModelError(f"the graph takes {found}; expected one picture, float32 (N, 3, H, W)")


def _fold_factor(graph: onnx.GraphProto, name: str, factor: npt.NDArray[np.float64]) -> bool:
    """Multiplies `factor` (3,) into every reader of `name`, if all are ungrouped convolutions with stored weights."""
    stored = {tensor.name: tensor for tensor in graph.initializer}
    readers = [node for node in graph.node if name in node.input]
    weights = {node.input[1] for node in readers if len(node.input) > 1}
    foldable = readers and all(
        node.op_type == "Conv" and list(node.input).count(name) == 1 and int(get_attribute(node, "group", 1)) == 1
        for node in readers
    )
    shared = any(set(node.input) & weights for node in graph.node if name not in node.input)
    if not foldable or shared or not weights <= set(stored):
        return False
    for weight in sorted(weights):
        values = numpy_helper.to_array(stored[weight])
        folded = (values.astype(np.float64) * factor[None, :, None, None]).astype(values.dtype)
        stored[weight].CopyFrom(numpy_helper.from_array(folded, weight))
    return True


def _per_channel(values: npt.NDArray[np.float64]) -> FloatArray:
    return values.astype(np.float32).reshape(1, 3, 1, 1)


def detector_tail(model: onnx.ModelProto) -> onnx.ModelProto:
    """Replaces the float32 (N, 1, H, W) output by `probability`, uint8 (N, H, W) = round(255 * p); last node Cast."""
    model = clone(model)
    graph = model.graph
    source = _free_output_name(graph, PROBABILITY, rank=4)
    graph.initializer.append(numpy_helper.from_array(np.array([1], np.int64), "probability.channel"))
    graph.initializer.append(numpy_helper.from_array(np.array(255, np.float32), "probability.levels"))
    graph.node.extend(
        [
            helper.make_node("Squeeze", [source, "probability.channel"], ["probability.map"]),
            helper.make_node("Mul", ["probability.map", "probability.levels"], ["probability.scaled"]),
            helper.make_node("Round", ["probability.scaled"], ["probability.rounded"]),
            helper.make_node("Cast", ["probability.rounded"], [PROBABILITY], to=TensorProto.UINT8),
        ]
    )
    graph.output.append(helper.make_tensor_value_info(PROBABILITY, TensorProto.UINT8, ["N", "H", "W"]))
    return model


def recogniser_tail(model: onnx.ModelProto, codes: Sequence[int] = ()) -> onnx.ModelProto:
    """Replaces the float32 (N, T, classes) softmax output by `index` int32 (N, T), `probability` float32 (N, T) and,
    where there are `codes`, `code_margin` float32 (N, T, C): the logits of those classes less the winner's.

    So log p = log(probability) + code_margin. The winner by TopK with k = 1: on a CPU with 18,710 classes that is half
    the time of ArgMax beside ReduceMax. Of the logits, for a softmax in float16 has ties where they have none.
    """
    model = clone(model)
    graph = model.graph
    source = _free_output_name(graph, PROBABILITY, rank=3)
    logits = _logits(graph, source)
    graph.initializer.append(numpy_helper.from_array(np.array([1], np.int64), "winner.count"))
    graph.initializer.append(numpy_helper.from_array(np.array([2], np.int64), "winner.axis"))
    graph.node.extend(
        [
            helper.make_node("TopK", [logits, "winner.count"], ["winner.logit", "winner.place"], axis=2),
            helper.make_node("GatherElements", [source, "winner.place"], ["winner.value"], axis=2),
            helper.make_node("Squeeze", ["winner.value", "winner.axis"], [PROBABILITY]),
            helper.make_node("Squeeze", ["winner.place", "winner.axis"], ["winner.index"]),
            helper.make_node("Cast", ["winner.index"], [INDEX], to=TensorProto.INT32),
        ]
    )
    graph.output.append(helper.make_tensor_value_info(INDEX, TensorProto.INT32, ["N", "T"]))
    graph.output.append(helper.make_tensor_value_info(PROBABILITY, TensorProto.FLOAT, ["N", "T"]))
    if codes:
        graph.initializer.append(numpy_helper.from_array(np.array(codes, np.int64), CODE_CLASSES))
        graph.node.append(helper.make_node("Gather", [logits, CODE_CLASSES], ["code.logit"], axis=2))
        graph.node.append(helper.make_node("Sub", ["code.logit", "winner.logit"], [CODE_MARGIN]))
        shape = ["N", "T", len(codes)]
        graph.output.append(helper.make_tensor_value_info(CODE_MARGIN, TensorProto.FLOAT, shape))
    return model


def _logits(graph: onnx.GraphProto, probabilities: str) -> str:
    """The tensor that the softmax which gives `probabilities` is taken of; ModelError where there is none."""
    makers = {output: node for node in graph.node for output in node.output}
    node = makers.get(probabilities)
    while node is not None and node.op_type in ("Identity", "Cast"):
        node = makers.get(node.input[0])
    if node is None or node.op_type != "Softmax" or get_attribute(node, "axis", -1) not in (2, -1):
        raise ModelError("the graph does not end in a softmax over its classes; export it with its Softmax, axis 2")
    return str(node.input[0])


def _free_output_name(graph: onnx.GraphProto, wanted: str, rank: int) -> str:
    """Takes the graph's one output away and returns its name, renamed inside where it is `wanted` itself."""
    if len(graph.output) != 1 or len(graph.output[0].type.tensor_type.shape.dim) not in (0, rank):
        found = ", ".join(describe_value(value) for value in graph.output)
        raise ModelError(f"the graph gives {found}; expected one float32 output of {rank} dimensions")
    name = str(graph.output[0].name)
    del graph.output[:]
    if name != wanted:
        return name
    inner = f"{wanted}.inner"
    for node in graph.node:
        for place, output in enumerate(node.output):
            if output == name:
                node.output[place] = inner
    rename_input(graph, name, inner)
    return inner


def class_count(model: onnx.ModelProto) -> int:
    """How many classes the recogniser's classifier tells apart, blank included."""
    weights = _classifier(model.graph)[0]
    return int(numpy_helper.to_array(weights).shape[-1])


def cut_charset(model: onnx.ModelProto, keep: Sequence[int]) -> onnx.ModelProto:
    """Leaves of the classifier the classes `keep` alone: class i of the result is class keep[i] of `model`.

    `keep` is ascending and starts with the blank, 0. Probabilities become those among the kept classes.
    """
    model = clone(model)
    weights, bias = _classifier(model.graph)
    classes = int(weights.dims[-1])
    if list(keep[:1]) != [0] or any(b <= a for a, b in pairwise(keep)) or keep[-1] >= classes:
        raise ModelError(f"classes to keep must start with the blank 0, ascend and stay below {classes}")
    for tensor in (weights, bias):
        if tensor is not None:
            cut = np.ascontiguousarray(numpy_helper.to_array(tensor)[..., list(keep)])
            tensor.CopyFrom(numpy_helper.from_array(cut, tensor.name))
    output = model.graph.output[0].type.tensor_type.shape.dim
    if len(output) == 3:
        output[2].Clear()
        output[2].dim_value = len(keep)
    del model.graph.value_info[:]
    return model


def _classifier(graph: onnx.GraphProto) -> tuple[onnx.TensorProto, onnx.TensorProto | None]:
    """Stored weights (in, C) and bias (C,) of the MatMul (+ Add) before the graph's last Softmax."""
    makers = {output: node for node in graph.node for output in node.output}
    stored = {tensor.name: tensor for tensor in graph.initializer}
    name = graph.output[0].name
    bias: onnx.TensorProto | None = None
    while (node := makers.get(name)) is not None:
        held = [stored[i] for i in node.input if i in stored]
        if node.op_type in ("Softmax", "Identity", "Cast"):
            name = node.input[0]
        elif node.op_type == "Add" and bias is None and len(held) == 1 and len(held[0].dims) == 1:
            bias = held[0]
            name = next(i for i in node.input if i not in stored)
        elif node.op_type == "MatMul" and len(held) == 1 and len(held[0].dims) == 2 and node.input[1] in stored:
            return held[0], bias
        else:
            break
    raise ModelError("the classifier was not found: expected MatMul, Add and Softmax with stored weights at the end")


def constants_to_initializers(model: onnx.ModelProto) -> onnx.ModelProto:
    """Turns Constant nodes with a tensor value into stored tensors, as most tools expect weights."""
    model = clone(model)
    graph = model.graph
    kept = []
    for node in graph.node:
        value = next((a for a in node.attribute if a.name == "value"), None) if node.op_type == "Constant" else None
        if value is None:
            kept.append(node)
            continue
        tensor = onnx.TensorProto()
        tensor.CopyFrom(value.t)
        tensor.name = node.output[0]
        graph.initializer.append(tensor)
    del graph.node[:]
    graph.node.extend(kept)
    return model


def infer_shapes(model: onnx.ModelProto) -> onnx.ModelProto:
    """The model with its inner shapes written down, as far as they follow from the inputs; old notes are dropped."""
    bare = clone(model)
    del bare.graph.value_info[:]
    inferred: onnx.ModelProto = shape_inference.infer_shapes(bare, data_prop=True)
    return inferred


def check(model: onnx.ModelProto) -> None:
    """Raises ModelError unless onnx's checker accepts the graph."""
    try:
        onnx.checker.check_model(model, full_check=True)
    except (onnx.checker.ValidationError, shape_inference.InferenceError) as exc:
        raise ModelError(f"the graph that was made is not valid ONNX: {in_one_line(exc)}") from exc


def stored_names(graph: onnx.GraphProto) -> set[str]:
    """Names of the stored tensors; old exporters list them among the inputs too."""
    return {tensor.name for tensor in graph.initializer}


def default_opset(model: onnx.ModelProto) -> int:
    """The version of ONNX's own operators that the graph asks for."""
    return max((entry.version for entry in model.opset_import if entry.domain in ("", "ai.onnx")), default=1)


def clone(model: onnx.ModelProto) -> onnx.ModelProto:
    """A copy that can be changed."""
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    return copy


def rename_input(graph: onnx.GraphProto, old: str, new: str) -> None:
    """Lets every reader of `old` read `new`."""
    for node in graph.node:
        for place, name in enumerate(node.input):
            if name == old:
                node.input[place] = new


def get_attribute(node: onnx.NodeProto, name: str, default: int) -> int:
    """An integer attribute of a node."""
    return next((int(a.i) for a in node.attribute if a.name == name), default)


def set_attribute(node: onnx.NodeProto, name: str, value: int) -> None:
    """Sets an integer attribute of a node."""
    kept = [a for a in node.attribute if a.name != name]
    del node.attribute[:]
    node.attribute.extend([*kept, helper.make_attribute(name, value)])


def describe_value(value: onnx.ValueInfoProto) -> str:
    """An input or output in words: `x: float32 (N, 3, 48, ?)`."""
    tensor = value.type.tensor_type
    dims = ", ".join(d.dim_param or (str(d.dim_value) if d.HasField("dim_value") else "?") for d in tensor.shape.dim)
    return f"{value.name}: {dtype_name(tensor.elem_type)} ({dims})"


def dtype_name(elem_type: int) -> str:
    """The numpy name of an ONNX element type."""
    try:
        return str(helper.tensor_dtype_to_np_dtype(elem_type).name)
    except KeyError:
        return f"type {elem_type}"
