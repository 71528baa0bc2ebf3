"""Build: from a model's source files to the files that the stages load; the recipe, step by step.

load -> raise opset -> (cut the charset) -> rewrite for speed -> uint8 head and small tail -> infer shapes -> check;
of a detector also a variant arranged for the CPU
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

import onnx
import onnx.inliner
from google.protobuf.message import DecodeError

from edge_agent.errors import ModelError
from edge_agent.models import bert, charset, surgery
from edge_agent.models.arrange import arrange
from edge_agent.models.encoder import agreed_encoder
from edge_agent.models.rewrite import rewrite
from edge_agent.models.spec import ModelSpec, Role, Variant


@dataclass(frozen=True)
class Built:
    """What was made for one variant: the graph, and for a recogniser its charset and the classes it kept."""

    model: onnx.ModelProto
    charset: tuple[str, ...] = ()
    kept: tuple[int, ...] = ()


def build(spec: ModelSpec, sources: Mapping[Role, bytes]) -> dict[Variant, Built]:
    """Every variant of a model from the bytes of its source files. ModelError says what is wrong with them."""
    if spec.task == "text_detection":
        detector = build_detector(spec, load_onnx(sources["onnx"], spec.name))
        return {"full": Built(detector), "cpu": Built(finish(arrange(detector), spec))}
    if spec.task == "text_recognition":
        original = load_onnx(sources["onnx"], spec.name)
        characters = source_charset(spec, original, sources)
        return {variant: build_recogniser(spec, original, characters, variant) for variant in spec.heads}
    if spec.task == "token_classification":
        return {"full": Built(build_tagger(spec, load_onnx(sources["onnx"], spec.name)))}
    return {"full": Built(build_encoder(spec, sources))}


def build_detector(spec: ModelSpec, original: onnx.ModelProto) -> onnx.ModelProto:
    """uint8 pictures in, uint8 text probability out."""
    if has_agreed_tensors(spec, original):
        return original
    return finish(surgery.detector_tail(_uint8_head(spec, prepare(original))), spec)


def build_recogniser(
    spec: ModelSpec, original: onnx.ModelProto, characters: tuple[str, ...], variant: Variant
) -> Built:
    """uint8 lines in, winning class and its probability out, and the margins of the code characters where model.yaml
    declares them; the `latin` variant with the cut head."""
    everything = tuple(range(len(characters)))
    kept = tuple(charset.latin(characters)) if variant == "latin" else everything
    if has_agreed_tensors(spec, original):
        if variant != "full":
            raise ModelError(f"{spec.name}: a graph that ends in index and probability cannot be cut; use variant full")
        return Built(original, characters, everything)
    model = surgery.constants_to_initializers(surgery.raise_opset(original))
    if surgery.class_count(model) != len(characters):
        raise ModelError(
            f"{spec.name}: the classifier has {surgery.class_count(model)} classes, the charset {len(characters)} "
            "(blank and space included); they must agree"
        )
    if variant == "latin":
        model = surgery.cut_charset(model, kept)
    written = tuple(characters[i] for i in kept)
    has_margins = surgery.CODE_MARGIN in {tensor.name for tensor in spec.outputs}
    codes = charset.codes(written) if has_margins else ()
    model = finish(surgery.recogniser_tail(_uint8_head(spec, rewrite(model)), codes), spec)
    return Built(model, written, kept)


def build_encoder(spec: ModelSpec, sources: Mapping[Role, bytes]) -> onnx.ModelProto:
    """A sentence encoder: built from safetensors, or a user's ONNX as it is."""
    if "onnx" in sources:
        original = load_onnx(sources["onnx"], spec.name)
        if has_agreed_tensors(spec, original):
            return original
        return finish(agreed_encoder(surgery.raise_opset(original)), spec)
    try:
        config = json.loads(sources["config"])
    except ValueError as exc:
        raise ModelError(f"{spec.name}: config.json is not JSON: {exc}") from exc
    if not isinstance(config, dict):
        raise ModelError(f"{spec.name}: config.json holds {type(config).__name__}; expected a mapping")
    weights = bert.read_safetensors(sources["safetensors"], spec.source.files["safetensors"].path)
    return finish(bert.build_bert(weights, config), spec)


def build_tagger(spec: ModelSpec, original: onnx.ModelProto) -> onnx.ModelProto:
    """A user's token classification graph, as it is: its inputs are bound by name and type when it is loaded."""
    if not has_agreed_tensors(spec, original):
        raise ModelError(f"{spec.name}: the graph has other inputs and outputs than model.yaml declares; add it anew")
    return original


def source_charset(spec: ModelSpec, original: onnx.ModelProto, sources: Mapping[Role, bytes]) -> tuple[str, ...]:
    """The characters that the classes stand for, from the ONNX file's metadata or from a dictionary file."""
    assert spec.recogniser is not None
    if spec.recogniser.charset == "file":
        if "charset" not in sources:
            raise ModelError(f"{spec.name}: model.yaml says charset: file, but names no charset among the source files")
        text = sources["charset"].decode("utf-8", errors="strict")
    else:
        found = [entry.value for entry in original.metadata_props if entry.key == "character"]
        if not found:
            raise ModelError(f"{spec.name}: the ONNX file has no metadata `character`; give a charset file")
        text = found[0]
    return charset.from_metadata(text, space_appended=spec.recogniser.space_appended)


def load_onnx(content: bytes, name: str, *, external: bool = False) -> onnx.ModelProto:
    """An ONNX model from bytes, its local functions inlined.

    ModelError for other bytes, and for weights in another file unless `external` says that the caller sees to them.
    """
    model = onnx.ModelProto()
    try:
        model.ParseFromString(content)
    except DecodeError as exc:
        raise ModelError(f"{name}: the file is not ONNX ({exc})") from exc
    if not model.graph.node or not model.graph.output:
        raise ModelError(f"{name}: the file is not ONNX, or its graph is empty")
    outside = {entry.value for t in model.graph.initializer for entry in t.external_data if entry.key == "location"}
    if outside and not external:
        raise ModelError(
            f"{name}: weights lie in another file ({', '.join(sorted(outside))}); save the model as one file"
        )
    return onnx.inliner.inline_local_functions(model) if model.functions else model


def prepare(original: onnx.ModelProto) -> onnx.ModelProto:
    """Opset 17, weights as stored tensors, rewritten for speed."""
    return rewrite(surgery.constants_to_initializers(surgery.raise_opset(original)))


def free_tokenizer(content: bytes, name: str) -> bytes:
    """A tokenizer.json without its own padding and truncation: all-MiniLM's pads every line to 128 tokens."""
    try:
        value = json.loads(content)
        value["padding"] = value["truncation"] = None
    except (ValueError, TypeError) as exc:
        raise ModelError(f"{name}: tokenizer.json is not a tokenizer: {exc}") from exc
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8")


def finish(model: onnx.ModelProto, spec: ModelSpec) -> onnx.ModelProto:
    """Shapes inferred, named, checked; without what the trainer's tools left in the metadata."""
    model = surgery.infer_shapes(model)
    surgery.check(model)
    model.producer_name = "edge_agent"
    model.producer_version = ""
    model.doc_string = ""
    del model.metadata_props[:]
    model.graph.name = spec.name
    return model


def _uint8_head(spec: ModelSpec, model: onnx.ModelProto) -> onnx.ModelProto:
    norm = spec.normalisation
    if norm is None:
        raise ModelError(f"{spec.name}: model.yaml has no block normalisation; expected scale, mean and std")
    height = spec.recogniser.height_px if spec.recogniser is not None else None
    return surgery.uint8_head(
        model, scale=norm.scale, mean=norm.mean, std=norm.std, colour_order=norm.colour_order, height_px=height
    )


def has_agreed_tensors(spec: ModelSpec, model: onnx.ModelProto) -> bool:
    """Whether a graph already takes and gives the tensors that model.yaml declares, by name and dtype."""
    stored = surgery.stored_names(model.graph)
    declared = {(tensor.name, tensor.dtype) for tensor in (*spec.inputs, *spec.outputs)}
    found = {
        (value.name, surgery.dtype_name(value.type.tensor_type.elem_type))
        for value in (*model.graph.input, *model.graph.output)
        if value.name not in stored
    }
    return declared == found
