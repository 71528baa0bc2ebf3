"""Small real models in the form that the big ones are shipped in: opset 11, float input, metadata, inside a wheel."""

from __future__ import annotations

import hashlib
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
import onnxruntime
import yaml
from onnx import TensorProto, helper, numpy_helper

Array = npt.NDArray[Any]
CHARACTERS = ("A", "B", "7", "\u2028", "\x85", "中", "€", "ß", "ſ")  # two that str.splitlines would break at


def detector(seed: int = 0) -> onnx.ModelProto:
    """x float32 (N, 3, H, W) -> p float32 (N, 1, H, W): Conv, Relu, Conv, Sigmoid."""
    nodes = [
        helper.make_node("Conv", ["x", "w0", "b0"], ["c0"], pads=[1, 1, 1, 1], kernel_shape=[3, 3]),
        helper.make_node("Relu", ["c0"], ["r0"]),
        helper.make_node("Conv", ["r0", "w1"], ["c1"], kernel_shape=[1, 1]),
        helper.make_node("Sigmoid", ["c1"], ["p"]),
    ]
    tensors = stored(seed, w0=(8, 3, 3, 3), b0=(8,), w1=(1, 8, 1, 1))
    return model(nodes, ["N", 3, "H", "W"], "p", ["N", 1, "H", "W"], tensors)


def recogniser(characters: Sequence[str] = CHARACTERS, *, seed: int = 0, metadata: bool = True) -> onnx.ModelProto:
    """x float32 (N, 3, 48, W) -> p float32 (N, W / 8, C); C = blank, characters, space."""
    classes = len(characters) + 2
    nodes = [
        helper.make_node("Conv", ["x", "w0", "b0"], ["c0"], kernel_shape=[48, 8], strides=[48, 8]),
        helper.make_node("Squeeze", ["c0"], ["s0"], axes=[2]),
        helper.make_node("Transpose", ["s0"], ["t0"], perm=[0, 2, 1]),
        helper.make_node("MatMul", ["t0", "w1"], ["m0"]),
        helper.make_node("Add", ["m0", "b1"], ["a0"]),
        helper.make_node("Softmax", ["a0"], ["p"], axis=2),
    ]
    tensors = stored(seed, w0=(16, 3, 48, 8), b0=(16,), w1=(16, classes), b1=(classes,))
    made = model(nodes, ["N", 3, 48, "W"], "p", ["N", "T", classes], tensors)
    if metadata:
        helper.set_model_props(made, {"character": "".join(f"{character}\n" for character in characters)})
    return made


def encoder(*, hidden: int = 8, types: bool = True) -> onnx.ModelProto:
    """As optimum exports: int64 inputs, token types, last_hidden_state (N, S, D), opset 11."""
    names = ["input_ids", "attention_mask", *(["token_type_ids"] if types else [])]
    nodes = [helper.make_node("Gather", ["words", "input_ids"], ["word"])]
    last = "word"
    if types:
        nodes.append(helper.make_node("Gather", ["types", "token_type_ids"], ["type"]))
        nodes.append(helper.make_node("Add", ["word", "type"], ["sentence_embedding"]))  # a name that must give way
        last = "sentence_embedding"
    nodes.append(helper.make_node("Tanh", [last], ["last_hidden_state"]))
    inputs = [helper.make_tensor_value_info(name, TensorProto.INT64, ["b", "s"]) for name in names]
    output = helper.make_tensor_value_info("last_hidden_state", TensorProto.FLOAT, ["b", "s", hidden])
    tensors = stored(0, words=(30, hidden), types=(2, hidden))
    graph = helper.make_graph(nodes, "g", inputs, [output], tensors if types else tensors[:1])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 11)], ir_version=6)


def tagger(*, labels: int) -> onnx.ModelProto:
    """Token classification as optimum exports it: int64 inputs, logits (N, S, labels) that each token's id decides."""
    nodes = [
        helper.make_node("Gather", ["scores", "input_ids"], ["looked_up"]),
        helper.make_node("Cast", ["attention_mask"], ["mask"], to=TensorProto.FLOAT),
        helper.make_node("Unsqueeze", ["mask", "last"], ["mask_of_labels"]),
        helper.make_node("Mul", ["looked_up", "mask_of_labels"], ["logits"]),
    ]
    inputs = [
        helper.make_tensor_value_info(name, TensorProto.INT64, ["b", "s"]) for name in ("input_ids", "attention_mask")
    ]
    output = helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["b", "s", labels])
    tensors = [*stored(0, scores=(30, labels)), numpy_helper.from_array(np.array([2], np.int64), "last")]
    graph = helper.make_graph(nodes, "g", inputs, [output], tensors)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def model(
    nodes: list[onnx.NodeProto], shape_in: list[Any], output: str, shape_out: list[Any], tensors: list[onnx.TensorProto]
) -> onnx.ModelProto:
    """A float32 graph with input x at opset 11."""
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape_in)],
        [helper.make_tensor_value_info(output, TensorProto.FLOAT, shape_out)],
        tensors,
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 11)], ir_version=6)


def stored(seed: int, **shapes: tuple[int, ...]) -> list[onnx.TensorProto]:
    """Random float32 tensors, small enough that nothing saturates."""
    random = np.random.default_rng(seed)
    scale = {name: 1 / np.sqrt(max(1, np.prod(shape[1:]))) for name, shape in shapes.items()}
    return [
        numpy_helper.from_array((random.normal(0, 1, shape) * scale[name]).astype(np.float32), name)
        for name, shape in shapes.items()
    ]


def run(made: onnx.ModelProto, **feed: Array) -> dict[str, Array]:
    """All outputs by name, computed by ONNX Runtime."""
    session = onnxruntime.InferenceSession(made.SerializeToString(), providers=["CPUExecutionProvider"])
    names = [value.name for value in session.get_outputs()]
    return dict(zip(names, session.run(names, feed), strict=True))


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def write_wheel(folder: Path, name: str, version: str, members: Mapping[str, bytes]) -> Path:
    """A wheel that pip accepts."""
    folder.mkdir(parents=True, exist_ok=True)
    module = name.replace("-", "_")
    info = f"{module}-{version}.dist-info"
    path = folder / f"{module}-{version}-py3-none-any.whl"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for member, content in members.items():
            archive.writestr(member, content)
        archive.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
        archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{info}/RECORD", "")
    return path


def spec_values(name: str, task: str, source: Mapping[str, Any]) -> dict[str, Any]:
    """The values of a model.yaml for the small models."""
    values: dict[str, Any] = {"name": name, "task": task, "licence": "Apache-2.0", "source": dict(source)}
    values["normalisation"] = {"scale": 1 / 255, "mean": [0.5, 0.4, 0.3], "std": [0.5, 0.25, 0.2]}
    if task == "text_detection":
        values["inputs"] = [{"name": "image", "dtype": "uint8", "shape": [None, None, None, 3]}]
        values["outputs"] = [{"name": "probability", "dtype": "uint8", "shape": [None, None, None]}]
        values["detector"] = {"side_multiple_px": 32, "pad_value": 127}
    else:
        values["inputs"] = [{"name": "image", "dtype": "uint8", "shape": [None, 48, None, 3]}]
        values["outputs"] = [
            {"name": "index", "dtype": "int32", "shape": [None, None]},
            {"name": "probability", "dtype": "float32", "shape": [None, None]},
            {"name": "code_margin", "dtype": "float32", "shape": [None, None, None]},
        ]
        values["recogniser"] = {
            "height_px": 48,
            "width_buckets_px": [96, 320],
            "step_px": 8,
            "pad_value": 127,
            "variants": ["full", "latin"],
        }
    return values


def write_spec(models_dir: Path, values: Mapping[str, Any]) -> Path:
    """models_dir/<name>/model.yaml."""
    path = models_dir / str(values["name"]) / "model.yaml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(yaml.safe_dump(dict(values), allow_unicode=True), encoding="utf-8")
    return path


def world(folder: Path) -> tuple[Path, Path]:
    """A folder of models `det` and `rec`, and a folder with the one wheel that holds both: (models_dir, wheels)."""
    models_dir, wheels = folder / "engines", folder / "wheels"
    members = {
        "small_ocr/models/det.onnx": detector().SerializeToString(),
        "small_ocr/models/rec.onnx": recogniser().SerializeToString(),
    }
    wheel = write_wheel(wheels, "small-ocr", "1.0", members)
    for name, task in (("det", "text_detection"), ("rec", "text_recognition")):
        member = f"small_ocr/models/{name}.onnx"
        source = {
            "wheel": "small-ocr==1.0",
            "wheel_sha256": sha256(wheel.read_bytes()),
            "files": {"onnx": {"path": member, "sha256": sha256(members[member])}},
        }
        write_spec(models_dir, spec_values(name, task, source))
    return models_dir, wheels
