"""Register: takes a user's own model in: copies it, writes its model.yaml from what the graph says, builds, checks.

All of it happens in a folder of its own, which gets the model's name at the very end: a model that does not pass
leaves nothing behind.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import onnx

from edge_agent.errors import ModelError
from edge_agent.models import charset, check, surgery
from edge_agent.models.bert import MAX_ONNX_BYTES
from edge_agent.models.build import load_onnx
from edge_agent.models.fetch import fetch_one
from edge_agent.models.spec import NAME_PATTERN, SPEC_FILE, ModelSpec, Task, parse_spec
from edge_agent.models.wheels import Say, SourceFiles
from edge_agent.settings import strict_yaml

ImageShape = list[int | None]
IMAGE_INPUT = "image"
DEFAULT_HEIGHT_PX = 48
DEFAULT_STEP_PX = 8
WIDTH_BUCKETS_PX = [224, 320, 480, 640, 960, 1280, 1920]
# from this many classes on, leaving the foreign ones out makes the head noticeably cheaper
CUT_FROM_CLASSES = 1000


@dataclass(frozen=True)
class Wish:
    """What the user says of a model beside the file itself; `mean` and `std` on pixels divided by 255."""

    name: str
    task: Task
    licence: str = "unknown"
    mean: tuple[float, float, float] = (0.5, 0.5, 0.5)
    std: tuple[float, float, float] = (0.5, 0.5, 0.5)
    colour_order: str = "BGR"
    charset: Path | None = None
    tokenizer: Path | None = None
    prefix: str = ""
    labels: Path | None = None


def add(models_dir: Path, path: Path, wish: Wish, say: Say) -> ModelSpec:
    """Registers the ONNX file, or the folder with model.safetensors, config.json and tokenizer.json, at `path`.

    Raises ModelError, and leaves nothing behind, for a name that is taken or not a name, a file that is not ONNX, and
    a graph that cannot be given the tensors of its task.
    """
    if not NAME_PATTERN.fullmatch(wish.name):
        raise ModelError("not a model name; expected 1 to 64 letters, digits, dots, hyphens or underscores")
    final = models_dir / wish.name
    if final.exists() or final.is_symlink():
        raise ModelError(f"there is a model {wish.name!r} already; choose another --name or remove its folder")
    try:
        folder = Path(tempfile.mkdtemp(prefix=f".{wish.name}.", dir=models_dir))
    except OSError as exc:
        raise ModelError(f"{models_dir} cannot be written: {exc.strerror}; check its owner and free space") from exc
    try:
        spec = _describe(folder, path, wish, say)
        (folder / SPEC_FILE).write_text(spec_text(spec), encoding="utf-8")
        with SourceFiles(None, say) as sources:
            fetch_one(spec, folder, sources, say)
        folder.chmod(0o755)
        folder.rename(final)
    except OSError as exc:
        raise ModelError(f"{final} cannot be written: {exc.strerror}; check the folder's owner and free space") from exc
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return spec


def spec_text(spec: ModelSpec) -> str:
    """A model.yaml."""
    values = json.loads(spec.model_dump_json())
    return f"# written by edge-agent models add\n{strict_yaml.dump(_said(values))}"


def _said(values: Mapping[str, Any]) -> dict[str, Any]:
    """Without the keys that say nothing; a null inside a list is a dimension that varies."""
    return {
        key: _said(value) if isinstance(value, Mapping) else value
        for key, value in values.items()
        if value not in (None, [], "")
    }


def _describe(folder: Path, path: Path, wish: Wish, say: Say) -> ModelSpec:
    """Copies the sources into `folder` and says what they are."""
    values: dict[str, Any] = {"name": wish.name, "task": wish.task, "licence": wish.licence}
    if path.is_dir():
        if wish.task != "text_embedding":
            raise ModelError(f"{path} is a folder; a {wish.task} model is added as one ONNX file")
        return _encoder_folder(folder, path, wish, values)
    model = read_onnx(path)
    say_foreign_operators(model, wish.name, say)
    files = {"onnx": _keep(folder, "source.onnx", model.SerializeToString(deterministic=True))}
    describe = {
        "text_detection": _detector,
        "text_recognition": _recogniser,
        "text_embedding": _encoder,
        "token_classification": _tagger,
    }[wish.task]
    return parse_spec({**values, **describe(folder, model, wish, files), "source": {"files": files}}, path.name)


def read_onnx(path: Path) -> onnx.ModelProto:
    """An ONNX file with the weights that lie beside it, as one; ModelError says what is wrong with it."""
    model = load_onnx(_read(path, "an ONNX file"), path.name, external=True)
    try:
        onnx.load_external_data_for_model(model, str(path.resolve().parent))
    except (OSError, ValueError, onnx.checker.ValidationError) as exc:
        raise ModelError(f"{path.name}: its weights lie in another file that cannot be read: {exc}") from exc
    if model.ByteSize() > MAX_ONNX_BYTES:
        raise ModelError(
            f"{path.name} has {model.ByteSize() / 1e9:.1f} GB with its weights; at most 2 GB fit one ONNX file"
        )
    return model


def say_foreign_operators(model: onnx.ModelProto, name: str, say: Say) -> None:
    """Names operators outside ONNX's own set: those of ONNX Runtime are said, any others raise ModelError."""
    domains: dict[str, set[str]] = {}
    for node in model.graph.node:
        if node.domain not in ("", "ai.onnx"):
            domains.setdefault(node.domain, set()).add(node.op_type)
    listed = "; ".join(f"{domain}: {', '.join(sorted(kinds))}" for domain, kinds in sorted(domains.items()))
    if set(domains) - {"com.microsoft", "ai.onnx.ml"}:
        raise ModelError(
            f"{name}: operators that no backend here has ({listed}); export the model with ONNX's own only"
        )
    if domains:
        say(f"{name}: runs on ONNX Runtime only, TensorRT does not know {listed}")


def _detector(folder: Path, model: onnx.ModelProto, wish: Wish, files: dict[str, Any]) -> dict[str, Any]:
    _must_be_open(model, "NHW")
    low, mid, high = ([1, 32, 32, 3], [1, 736, 1280, 3], [1, 2016, 2016, 3])
    return {
        "inputs": [{"name": IMAGE_INPUT, "dtype": "uint8", "shape": [None, None, None, 3]}],
        "outputs": [{"name": "probability", "dtype": "uint8", "shape": [None, None, None]}],
        "normalisation": _normalisation(wish),
        "profiles": [_profile(low, mid, high)],
        "detector": {"side_multiple_px": 32, "pad_value": _pad_value(wish)},
    }


def _recogniser(folder: Path, model: onnx.ModelProto, wish: Wish, files: dict[str, Any]) -> dict[str, Any]:
    _must_be_open(model, "NW")
    height = _picture_sides(model).get("H") or DEFAULT_HEIGHT_PX
    characters = None
    if wish.charset is not None:
        content = _read(wish.charset, "characters, one a line")
        files["charset"] = _keep(folder, "source.charset.txt", content)
        characters = content.decode("utf-8", errors="replace")
    else:
        characters = next((entry.value for entry in model.metadata_props if entry.key == "character"), None)
    if characters is None:
        raise ModelError(
            "the ONNX file has no metadata `character`; give its characters, one a line, with --charset FILE"
        )
    count = len(charset.from_metadata(characters, space_appended=False))
    classes = _class_count(model, count)
    if classes not in (count, count + 1):
        raise ModelError(
            f"the classifier has {classes} classes, the charset {count} with the blank; expected as many, or one more "
            "for the space"
        )
    low, high = [1, height, WIDTH_BUCKETS_PX[0], 3], [16, height, WIDTH_BUCKETS_PX[-1], 3]
    return {
        "inputs": [{"name": IMAGE_INPUT, "dtype": "uint8", "shape": [None, height, None, 3]}],
        "outputs": _recogniser_outputs(model),
        "normalisation": _normalisation(wish),
        "profiles": [_profile(low, [8, height, 320, 3], high)],
        "recogniser": {
            "height_px": height,
            "width_buckets_px": WIDTH_BUCKETS_PX,
            "step_px": _step_px(model, height),
            "pad_value": _pad_value(wish),
            "charset": "file" if wish.charset is not None else "onnx_metadata",
            "space_appended": classes == count + 1,
            "variants": ["full", "latin"] if classes >= CUT_FROM_CLASSES else ["full"],
        },
    }


def _recogniser_outputs(model: onnx.ModelProto) -> list[dict[str, Any]]:
    """What the made graph gives; one that ends in index and probability already stays as it is."""
    outputs: list[dict[str, Any]] = [
        {"name": surgery.INDEX, "dtype": "int32", "shape": [None, None]},
        {"name": surgery.PROBABILITY, "dtype": "float32", "shape": [None, None]},
        {"name": surgery.CODE_MARGIN, "dtype": "float32", "shape": [None, None, None]},
    ]
    names = {value.name for value in model.graph.output}
    return [output for output in outputs if output["name"] in names] if surgery.INDEX in names else outputs


def _step_px(model: onnx.ModelProto, height_px: int) -> int:
    """Pixels that one step of the output covers, found by running the graph once; 8 where there is no runtime."""
    if check.runtime_missing() is not None:
        return DEFAULT_STEP_PX
    width = WIDTH_BUCKETS_PX[1]
    return max(1, width // check.steps_of(model.SerializeToString(), height_px, width))


def _class_count(model: onnx.ModelProto, otherwise: int) -> int:
    """Classes of the classifier; `otherwise` for a graph that ends in index and probability already."""
    if {value.name for value in model.graph.output} >= {surgery.INDEX, surgery.PROBABILITY}:
        return otherwise
    return surgery.class_count(surgery.constants_to_initializers(model))


def _picture_sides(model: onnx.ModelProto) -> dict[str, int]:
    """Side (N, C, H, W) -> its length as the graph fixes it, 0 where it is open; empty where no picture goes in."""
    stored = surgery.stored_names(model.graph)
    for value in model.graph.input:
        dims = value.type.tensor_type.shape.dim
        if value.name not in stored and len(dims) == 4:
            order = "NHWC" if value.name == IMAGE_INPUT else "NCHW"
            return {side: int(dim.dim_value) for side, dim in zip(order, dims, strict=True)}
    return {}


def _must_be_open(model: onnx.ModelProto, sides: str) -> None:
    """Raises ModelError where the graph fixes one of these sides of its picture: pictures come in many sizes."""
    fixed = {side: length for side, length in _picture_sides(model).items() if side in sides and length}
    if fixed:
        listed = ", ".join(f"{side} = {length}" for side, length in fixed.items())
        raise ModelError(
            f"the graph takes pictures of {listed} only; export it again with {', '.join(sides)} left open (dynamic)"
        )


def _keep_tokenizer(folder: Path, wish: Wish, files: dict[str, Any]) -> None:
    if wish.tokenizer is None:
        raise ModelError(f"a {wish.task} model needs its tokenizer: give --tokenizer tokenizer.json")
    files["tokenizer"] = _keep(folder, "source.tokenizer.json", _read(wish.tokenizer, "a tokenizer.json"))


def _tagger(folder: Path, model: onnx.ModelProto, wish: Wish, files: dict[str, Any]) -> dict[str, Any]:
    _keep_tokenizer(folder, wish, files)
    if wish.labels is None:
        raise ModelError("a token_classification model needs its labels: give --labels config.json (with id2label)")
    inputs, outputs = _tensors(model, model.graph.input), _tensors(model, model.graph.output)
    both = {tensor["name"]: [1, 8] for tensor in inputs}
    largest = {tensor["name"]: [16, 64] for tensor in inputs}
    return {
        "inputs": inputs,
        "outputs": outputs,
        "profiles": [{"min": both, "opt": {name: [8, 32] for name in both}, "max": largest}],
        "tagger": {"labels": read_labels(wish.labels), "max_tokens": 64, "threshold": 0.5},
    }


def _tensors(model: onnx.ModelProto, values: Iterable[onnx.ValueInfoProto]) -> list[dict[str, Any]]:
    """Inputs or outputs as model.yaml has them, dimensions by place: their names differ from exporter to exporter."""
    stored = {tensor.name for tensor in model.graph.initializer}
    return [
        {
            "name": value.name,
            "dtype": surgery.dtype_name(value.type.tensor_type.elem_type),
            "shape": [dim.dim_value or None for dim in value.type.tensor_type.shape.dim],
        }
        for value in values
        if value.name not in stored
    ]


def read_labels(path: Path) -> list[str]:
    """Labels in the order of a model's outputs: a config.json with id2label, or text with one a line."""
    text = _read(path, "a config.json or a list of labels").decode("utf-8", errors="replace")
    if path.suffix != ".json":
        return [line.strip() for line in text.splitlines() if line.strip()]
    try:
        named = {int(number): str(label) for number, label in json.loads(text)["id2label"].items()}
    except (ValueError, KeyError, TypeError, AttributeError) as exc:
        raise ModelError(f'{path} has no id2label; expected one such as {{"0": "O", "1": "B-LOT"}}') from exc
    if sorted(named) != list(range(len(named))):
        raise ModelError(f"{path}: id2label numbers {sorted(named)}; expected 0, 1, 2 and so on without a gap")
    return [named[number] for number in range(len(named))]


def _encoder(folder: Path, model: onnx.ModelProto, wish: Wish, files: dict[str, Any]) -> dict[str, Any]:
    _keep_tokenizer(folder, wish, files)
    width = next(
        (
            int(v.type.tensor_type.shape.dim[-1].dim_value)
            for v in model.graph.output
            if len(v.type.tensor_type.shape.dim) > 1
        ),
        0,
    )
    return _encoder_values(width or None, wish)


def _encoder_folder(folder: Path, path: Path, wish: Wish, values: dict[str, Any]) -> ModelSpec:
    """A folder as sentence-transformers and transformers write it."""
    refuse_other_pooling(path)
    names = {"safetensors": "model.safetensors", "config": "config.json", "tokenizer": "tokenizer.json"}
    files = {
        role: _keep(folder, f"source.{name}", _read(path / name, f"a folder with {name}"))
        for role, name in names.items()
    }
    try:
        width = json.loads((folder / files["config"]["path"]).read_bytes())["hidden_size"]
    except (ValueError, KeyError, TypeError) as exc:
        raise ModelError(f"{path / 'config.json'} has no hidden_size; is it the model's own config.json?") from exc
    return parse_spec({**values, **_encoder_values(width, wish), "source": {"files": files}}, path.name)


def refuse_other_pooling(path: Path) -> None:
    """Raises ModelError where the folder asks for another pooling than the mean over tokens."""
    pooling = path / "1_Pooling" / "config.json"
    if not pooling.is_file():
        return
    try:
        modes = json.loads(pooling.read_bytes())
    except ValueError as exc:
        raise ModelError(f"{pooling} is not JSON: {exc}") from exc
    chosen = sorted(mode for mode, on in modes.items() if mode.startswith("pooling_mode_") and on is True)
    if chosen != ["pooling_mode_mean_tokens"]:
        raise ModelError(
            f"{pooling} asks for {', '.join(chosen) or 'no pooling'}; this builder knows the mean over tokens only"
        )


def _encoder_values(width: int | None, wish: Wish) -> dict[str, Any]:
    def both(shape: list[int]) -> dict[str, list[int]]:
        return {"input_ids": shape, "attention_mask": shape}

    return {
        "inputs": [{"name": name, "dtype": "int32", "shape": [None, None]} for name in ("input_ids", "attention_mask")],
        "outputs": [{"name": "sentence_embedding", "dtype": "float32", "shape": [None, width]}],
        "profiles": [{"min": both([1, 8]), "opt": both([8, 32]), "max": both([16, 64])}],
        "encoder": {"max_tokens": 64, "prefix": wish.prefix, "sequence_lengths": [8, 16, 24, 32, 48, 64]},
    }


def _normalisation(wish: Wish) -> dict[str, Any]:
    for name, values in (("mean", wish.mean), ("std", wish.std)):
        if not all(abs(value) <= 10 for value in values):  # not-a-number is refused as well
            raise ModelError(
                f"{name} is {', '.join(f'{v:g}' for v in values)}; expected that of pixels / 255, near 0 to 1"
            )
    return {"scale": 1 / 255, "mean": list(wish.mean), "std": list(wish.std), "colour_order": wish.colour_order}


def _pad_value(wish: Wish) -> int:
    """The grey that is nearest to zero after normalisation."""
    return max(0, min(255, int(sum(wish.mean) / 3 * 255)))


def _profile(low: list[int], mid: list[int], high: list[int]) -> Mapping[str, Any]:
    return {"min": {IMAGE_INPUT: low}, "opt": {IMAGE_INPUT: mid}, "max": {IMAGE_INPUT: high}}


def _keep(folder: Path, name: str, content: bytes) -> dict[str, str]:
    """Writes a source file and returns its entry in model.yaml."""
    (folder / name).write_bytes(content)
    return {"path": name, "sha256": hashlib.sha256(content).hexdigest()}


def _read(path: Path, expected: str) -> bytes:
    """The bytes of a regular file: a pipe would wait for a writer, a device may never end."""
    try:
        if path.exists() and not path.is_file():
            raise ModelError(f"{path} is not a regular file; expected {expected}")
        if path.stat().st_size > MAX_ONNX_BYTES:
            raise ModelError(f"{path} has {path.stat().st_size / 1e9:.1f} GB; expected {expected}, at most 2 GB")
        return path.read_bytes()
    except OSError as exc:
        raise ModelError(f"{path} cannot be read: {exc.strerror}; expected {expected}") from exc
