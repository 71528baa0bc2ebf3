"""Bert: a BERT-like encoder from its weights and config.json to ONNX, by onnx.helper alone, without torch.

The graph, N texts of S tokens, hidden size D (Devlin et al. 2019, arXiv:1810.04805; mean pooling as in Reimers and
Gurevych 2019, arXiv:1908.10084):

    input_ids int32 (N, S), attention_mask int32 (N, S)  ->  sentence_embedding float32 (N, D), each of length 1

Chosen for FP16 and for TensorRT: the LayerNormalization operator; Gelu by Erf; an additive mask of -1e4, which FP16
can hold; Reshape with 0 for a dimension to copy, so that there are no shape chains; the count of tokens held at 1
or more and the norm at 1e-6 or more, since 1e-12 vanishes in FP16.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
from onnx import TensorProto, helper, numpy_helper

from edge_agent.errors import ModelError
from edge_agent.models.surgery import IR_VERSION, OPSET

MASKED = -1e4
MIN_NORM = 1e-6
MAX_ONNX_BYTES = 2_000_000_000  # a protobuf message ends at 2 GiB
ACTIVATIONS = ("gelu", "gelu_new", "gelu_pytorch_tanh", "relu")
# model_type -> the prefix that its checkpoints put before the names used here
MODEL_TYPES = ("bert", "roberta", "xlm-roberta", "camembert")
KNOWN_IN_LAYER = (
    "attention.self.query",
    "attention.self.key",
    "attention.self.value",
    "attention.output.dense",
    "attention.output.LayerNorm",
    "intermediate.dense",
    "output.dense",
    "output.LayerNorm",
)
# names of a layer norm's weights in checkpoints that came from TensorFlow
OLD_NAMES = {"LayerNorm.gamma": "LayerNorm.weight", "LayerNorm.beta": "LayerNorm.bias"}
PREFIXES = ("", "bert.", "roberta.", "model.", "encoder.bert.")
SAFETENSORS_DTYPES = {"F32": "<f4", "F16": "<f2", "F64": "<f8"}

Array = npt.NDArray[Any]
FloatArray = npt.NDArray[np.float32]


def read_safetensors(content: bytes, where: str) -> dict[str, FloatArray]:
    """The floating-point tensors of a safetensors file as float32; whole-number ones (position ids) are left out."""
    from safetensors import SafetensorError, deserialize

    parse: Callable[[bytes], list[tuple[str, dict[str, Any]]]] = deserialize
    try:
        entries = parse(content)
    except SafetensorError as exc:
        raise ModelError(f"{where} is not a safetensors file or is damaged: {exc}") from exc
    weights: dict[str, FloatArray] = {}
    for name, entry in entries:
        kind, shape, raw = str(entry["dtype"]), entry["shape"], entry["data"]
        if kind == "BF16":  # the upper half of a float32
            weights[name] = (np.frombuffer(raw, "<u2").astype(np.uint32) << 16).view(np.float32).reshape(shape)
        elif kind in SAFETENSORS_DTYPES:
            weights[name] = np.frombuffer(raw, SAFETENSORS_DTYPES[kind]).astype(np.float32, copy=False).reshape(shape)
        elif not kind.startswith(("I", "U", "BOOL")):
            raise ModelError(f"{where}: tensor {name} is {kind}; expected F32, F16, BF16 or F64")
    return weights


def read_config(path: Path) -> dict[str, Any]:
    """A config.json as it lies beside the weights."""
    try:
        value = json.loads(path.read_bytes())
    except (OSError, ValueError) as exc:
        raise ModelError(f"{path.name} cannot be read as JSON: {exc}") from exc
    if not isinstance(value, dict):
        raise ModelError(f"{path.name} holds {type(value).__name__}; expected a mapping")
    return value


def build_bert(weights: Mapping[str, Array], config: Mapping[str, Any]) -> onnx.ModelProto:
    """The encoder as ONNX opset 17; ModelError names what of `config` or `weights` is unknown, missing or misshapen.

    `weights` maps the names of a BERT checkpoint (with or without `bert.` before them) to arrays as PyTorch stores
    them, Linear weights (out, in). `config` is config.json's content.
    """
    shape = _Shape(config)
    if sum(array.size for array in weights.values()) * 4 > MAX_ONNX_BYTES:
        raise ModelError(
            "the weights have more than 2 GB as float32, which an ONNX file cannot hold; use a smaller model"
        )
    graph = _Graph(weights, shape)
    hidden = graph.embeddings()
    mask = graph.mask()
    for layer in range(shape.layers):
        hidden = graph.layer(hidden, mask, layer)
    graph.pool(hidden)
    inputs = [
        helper.make_tensor_value_info(name, TensorProto.INT32, ["N", "S"]) for name in ("input_ids", "attention_mask")
    ]
    output = helper.make_tensor_value_info("sentence_embedding", TensorProto.FLOAT, ["N", shape.hidden])
    proto = helper.make_graph(graph.nodes, "encoder", inputs, [output], graph.tensors)
    return helper.make_model(
        proto, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=IR_VERSION, producer_name="edge_agent"
    )


class _Shape:
    """The numbers of config.json that the graph needs, checked."""

    def __init__(self, config: Mapping[str, Any]) -> None:
        self._config = config
        kind = config.get("model_type", "bert")
        if kind not in MODEL_TYPES:
            raise ModelError(f"model_type is {kind!r}; this builder knows {', '.join(MODEL_TYPES)}")
        positions = config.get("position_embedding_type", "absolute")
        if positions != "absolute":
            raise ModelError(f"position_embedding_type is {positions!r}; this builder knows absolute only")
        for key in ("is_decoder", "add_cross_attention"):
            if config.get(key):
                raise ModelError(f"{key} is set; this builder makes encoders only")
        if config.get("embedding_size", config.get("hidden_size")) != config.get("hidden_size"):
            raise ModelError("embedding_size differs from hidden_size (factorised embeddings), which is not known here")
        self.activation = str(config.get("hidden_act", "gelu"))
        if self.activation not in ACTIVATIONS:
            raise ModelError(f"hidden_act is {self.activation!r}; this builder knows {', '.join(ACTIVATIONS)}")
        self.hidden = self._count("hidden_size")
        self.layers = self._count("num_hidden_layers")
        self.heads = self._count("num_attention_heads")
        self.inner = self._count("intermediate_size")
        self.epsilon = float(config.get("layer_norm_eps", 1e-12))
        # RoBERTa numbers positions from pad_token_id + 1
        self.first_position = 0 if kind == "bert" else int(config.get("pad_token_id", 1)) + 1
        if self.hidden % self.heads:
            raise ModelError(f"hidden_size {self.hidden} is no multiple of num_attention_heads {self.heads}")

    def _count(self, key: str) -> int:
        value = self._config.get(key)
        if not isinstance(value, int) or isinstance(value, bool) or value < 1:
            raise ModelError(f"config.json: {key} is {value!r}; expected a whole number of 1 or more")
        return value


class _Graph:
    """Nodes and stored tensors while the encoder is put together; each method returns the name of its result."""

    def __init__(self, weights: Mapping[str, Array], shape: _Shape) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.tensors: list[onnx.TensorProto] = []
        self._weights = {_modern(name): array for name, array in weights.items()}
        self._shape = shape
        probe = "embeddings.word_embeddings.weight"
        prefix = next((p for p in PREFIXES if p + probe in self._weights), None)
        if prefix is None:
            raise ModelError(f"the weights have no {probe} (nor with {', '.join(PREFIXES[1:])} before it)")
        self._prefix = prefix
        self._refuse_unknown()

    def embeddings(self) -> str:
        """Words + positions + token type 0, normalised: (N, S, D)."""
        shape = self._shape
        table = self._weight("embeddings.word_embeddings.weight", (None, shape.hidden))
        positions = self._weight("embeddings.position_embeddings.weight", (None, shape.hidden))
        positions = positions[shape.first_position :]
        types = "embeddings.token_type_embeddings.weight"
        if self._prefix + types in self._weights:  # every token is of type 0, a constant that positions can carry
            positions = positions + self._weight(types, (None, shape.hidden))[0]
        words = self.node("Gather", [self.tensor("embeddings.words", table), "input_ids"], "embeddings.word")
        # the first S rows; S read off the input, as the exporters do, in the form that every TensorRT parses
        sizes = self.node("Shape", ["input_ids"], "embeddings.shape")
        length = self.node("Gather", [sizes, self.tensor("axes.1", np.array([1], np.int64))], "embeddings.length")
        first = self.tensor("axes.0", np.array([0], np.int64))
        table_name = self.tensor("embeddings.positions", positions)
        placed = self.node("Slice", [table_name, first, length, first], "embeddings.position")
        total = self.node("Add", [words, placed], "embeddings.sum")
        return self.layer_norm(total, "embeddings.LayerNorm")

    def mask(self) -> str:
        """0 for a token, -1e4 for padding, added to the attention's scores: (N, 1, 1, S)."""
        self.tensor("axes.1_2", np.array([1, 2], np.int64))
        floats = self.node("Cast", ["attention_mask"], "mask.float", to=TensorProto.FLOAT)
        wide = self.node("Unsqueeze", [floats, "axes.1_2"], "mask.wide")
        absent = self.node("Sub", [self.tensor("one", np.array(1, np.float32)), wide], "mask.absent")
        return self.node("Mul", [absent, self.tensor("mask.masked", np.array(MASKED, np.float32))], "mask.additive")

    def layer(self, hidden: str, mask: str, number: int) -> str:
        """One Transformer block, post-norm."""
        at = f"encoder.layer.{number}"
        mixed = self.attention(hidden, mask, f"{at}.attention.self")
        size, inner = self._shape.hidden, self._shape.inner
        projected = self.linear(mixed, f"{at}.attention.output.dense", size, size)
        hidden = self.layer_norm(
            self.node("Add", [projected, hidden], f"{at}.attention.sum"), f"{at}.attention.output.LayerNorm"
        )
        widened = self.activate(self.linear(hidden, f"{at}.intermediate.dense", size, inner), f"{at}.intermediate")
        narrowed = self.linear(widened, f"{at}.output.dense", inner, size)
        return self.layer_norm(self.node("Add", [narrowed, hidden], f"{at}.sum"), f"{at}.output.LayerNorm")

    def attention(self, hidden: str, mask: str, at: str) -> str:
        """Scaled dot-product attention over all heads: (N, S, D)."""
        shape = self._shape
        size = shape.hidden // shape.heads
        split = self.tensor("shape.split", np.array([0, 0, shape.heads, size], np.int64))
        joined = self.tensor("shape.join", np.array([0, 0, shape.hidden], np.int64))
        heads = {}
        for name, order in (("query", [0, 2, 1, 3]), ("key", [0, 2, 3, 1]), ("value", [0, 2, 1, 3])):
            flat = self.linear(hidden, f"{at}.{name}", shape.hidden, shape.hidden)
            parted = self.node("Reshape", [flat, split], f"{at}.{name}.split")
            heads[name] = self.node("Transpose", [parted], f"{at}.{name}.heads", perm=order)
        scores = self.node("MatMul", [heads["query"], heads["key"]], f"{at}.products")
        scale = self.tensor("attention.scale", np.array(size**-0.5, np.float32))
        scores = self.node("Mul", [scores, scale], f"{at}.scaled")
        scores = self.node("Add", [scores, mask], f"{at}.masked")
        shares = self.node("Softmax", [scores], f"{at}.shares", axis=-1)
        mixed = self.node("MatMul", [shares, heads["value"]], f"{at}.mixed")
        mixed = self.node("Transpose", [mixed], f"{at}.mixed.order", perm=[0, 2, 1, 3])
        return self.node("Reshape", [mixed, joined], f"{at}.mixed.join")

    def pool(self, hidden: str) -> None:
        """Mean over the tokens that are there, then length 1: sentence_embedding (N, D)."""
        self.tensor("axes.2", np.array([2], np.int64))
        weights = self.node("Unsqueeze", ["mask.float", "axes.2"], "pool.weights")
        summed = self.node(
            "ReduceSum", [self.node("Mul", [hidden, weights], "pool.kept"), "axes.1"], "pool.sum", keepdims=0
        )
        count = self.node("ReduceSum", ["mask.float", "axes.1"], "pool.count", keepdims=1)
        count = self.node("Max", [count, "one"], "pool.count.clamped")
        mean = self.node("Div", [summed, count], "pool.mean")
        squares = self.node(
            "ReduceSum", [self.node("Mul", [mean, mean], "pool.squares"), "axes.1"], "pool.power", keepdims=1
        )
        length = self.node("Sqrt", [squares], "pool.length")
        least = self.tensor("pool.least", np.array(MIN_NORM, np.float32))
        length = self.node("Max", [length, least], "pool.length.clamped")
        self.node("Div", [mean, length], "sentence_embedding")

    def linear(self, source: str, at: str, size_in: int, size_out: int) -> str:
        """x @ W.T + b with PyTorch's (out, in) weight."""
        weight = self._weight(f"{at}.weight", (size_out, size_in))
        stored = self.tensor(f"{at}.weight", np.ascontiguousarray(weight.T))
        product = self.node("MatMul", [source, stored], f"{at}.product")
        bias = self.tensor(f"{at}.bias", self._weight(f"{at}.bias", (size_out,)))
        return self.node("Add", [product, bias], f"{at}.result")

    def layer_norm(self, source: str, at: str) -> str:
        """LayerNormalization over the last axis."""
        size = self._shape.hidden
        gain = self.tensor(f"{at}.weight", self._weight(f"{at}.weight", (size,)))
        shift = self.tensor(f"{at}.bias", self._weight(f"{at}.bias", (size,)))
        return self.node(
            "LayerNormalization", [source, gain, shift], f"{at}.result", axis=-1, epsilon=self._shape.epsilon
        )

    def activate(self, source: str, at: str) -> str:
        """relu, gelu (exact, by Erf) or its tanh form (Hendrycks and Gimpel 2016, arXiv:1606.08415)."""
        kind = self._shape.activation
        if kind == "relu":
            return self.node("Relu", [source], f"{at}.relu")
        half = self.tensor("half", np.array(0.5, np.float32))
        one = self.tensor("one", np.array(1, np.float32))
        if kind == "gelu":
            root = self.tensor("gelu.root", np.array(2**0.5, np.float32))
            curve = self.node("Erf", [self.node("Div", [source, root], f"{at}.gelu.div")], f"{at}.gelu.erf")
        else:
            cubic = self.tensor("gelu.cubic", np.array(0.044715, np.float32))
            root = self.tensor("gelu.root", np.array((2 / np.pi) ** 0.5, np.float32))
            square = self.node("Mul", [source, source], f"{at}.gelu.square")
            grown = self.node("Add", [self.node("Mul", [square, cubic], f"{at}.gelu.cubic"), one], f"{at}.gelu.grown")
            inside = self.node(
                "Mul", [self.node("Mul", [source, root], f"{at}.gelu.scaled"), grown], f"{at}.gelu.inside"
            )
            curve = self.node("Tanh", [inside], f"{at}.gelu.tanh")
        lifted = self.node("Mul", [source, self.node("Add", [curve, one], f"{at}.gelu.lift")], f"{at}.gelu.product")
        return self.node("Mul", [lifted, half], f"{at}.gelu")

    def node(self, kind: str, inputs: list[str], output: str, **attributes: Any) -> str:
        """Adds a node named like its output."""
        self.nodes.append(helper.make_node(kind, inputs, [output], name=output, **attributes))
        return output

    def tensor(self, name: str, value: Array) -> str:
        """Stores a tensor once."""
        if all(tensor.name != name for tensor in self.tensors):
            self.tensors.append(numpy_helper.from_array(np.ascontiguousarray(value), name))
        return name

    def _weight(self, name: str, shape: tuple[int | None, ...]) -> FloatArray:
        array = self._weights.get(self._prefix + name)
        if array is None:
            raise ModelError(f"the weights have no {self._prefix + name}")
        if len(array.shape) != len(shape) or any(w not in (None, g) for w, g in zip(shape, array.shape, strict=True)):
            wanted = ", ".join("any" if d is None else str(d) for d in shape)
            raise ModelError(f"{self._prefix + name} has shape {tuple(array.shape)}; config.json asks for ({wanted})")
        return np.asarray(array, np.float32)

    def _refuse_unknown(self) -> None:
        """Weights inside a layer that this graph has no place for would change the result: refused by name."""
        start = f"{self._prefix}encoder."
        for name in sorted(self._weights):
            if not name.startswith(start):
                continue
            parts = name[len(start) :].split(".")
            inside = ".".join(parts[2:-1])
            layer = int(parts[1]) if parts[0] == "layer" and parts[1].isdigit() else self._shape.layers
            if inside not in KNOWN_IN_LAYER or layer >= self._shape.layers:
                raise ModelError(
                    f"the weights hold {name}, which this builder has no place for (relative positions, rotary?)"
                )


def _modern(name: str) -> str:
    for old, new in OLD_NAMES.items():
        if name.endswith(old):
            return name.removesuffix(old) + new
    return name
