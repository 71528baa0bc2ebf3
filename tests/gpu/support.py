"""What the GPU tests and benchmarks/gpu.py build and feed: settings, models with narrow profiles, frames."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import numpy.typing as npt

from edge_agent.backends.base import Profile
from edge_agent.backends.plan import BuildOptions
from edge_agent.backends.trt_settings import TrtSettings
from tests.conftest import ROOT, SHARED_DATA

Image = npt.NDArray[np.uint8]

ENGINES = Path(os.environ.get("EDGE_AGENT_GPU_MODELS", ROOT / "engines"))
# Narrow on purpose: with wide profiles a build takes many minutes
DETECTOR_PROFILE = Profile({"image": (1, 736, 736, 3)}, {"image": (1, 736, 1312, 3)}, {"image": (1, 736, 1312, 3)})
RECOGNISER_PROFILE = Profile({"image": (1, 48, 224, 3)}, {"image": (4, 48, 416, 3)}, {"image": (8, 48, 960, 3)})
RECOGNISER_WIDTHS_PX = (224, 288, 352, 416, 512, 640, 800, 960)
IMAGE_PROFILES = (
    Profile({"image": (1, 32, 32, 3)}, {"image": (2, 64, 64, 3)}, {"image": (4, 96, 96, 3)}),
    Profile({"image": (1, 32, 96, 3)}, {"image": (1, 64, 128, 3)}, {"image": (2, 96, 256, 3)}),
)


def tokens_profile(batch: int, length: int) -> Profile:
    """1 x 8 to batch x length tokens."""
    low, high = (1, 8), (batch, length)
    mid = (max(1, batch // 2), max(8, length // 2))
    names = ("input_ids", "attention_mask")
    return Profile(dict.fromkeys(names, low), dict.fromkeys(names, mid), dict.fromkeys(names, high))


@dataclass(frozen=True)
class Model:
    """One plan that the tests and the benchmark share."""

    name: str
    onnx_path: Path
    profiles: tuple[Profile, ...]
    precision: str = "fp16"
    level: int = 0
    explicit_half: bool = False


def ocr_models() -> list[Model]:
    """Detectors and Latin recognisers of both generations, as far as their files are there."""
    found = []
    for name in ("ppocrv6-small-det", "ppocrv4-mobile-det"):
        found.append(Model(name, ENGINES / name / "model.onnx", (DETECTOR_PROFILE,)))
    for name in ("ppocrv6-small-rec", "ppocrv4-mobile-rec"):
        found.append(Model(f"{name}.latin", ENGINES / name / "model.latin.onnx", (RECOGNISER_PROFILE,)))
    return [model for model in found if model.onnx_path.is_file()]


MINILM = {"hidden_size": 384, "num_hidden_layers": 6, "num_attention_heads": 12, "intermediate_size": 1536}
BERT_BASE = {"hidden_size": 768, "num_hidden_layers": 12, "num_attention_heads": 12, "intermediate_size": 3072}
BERT_LARGE = {"hidden_size": 1024, "num_hidden_layers": 24, "num_attention_heads": 16, "intermediate_size": 4096}
VOCABULARY = 30522
# At level 0 TensorRT 8.6.0 leaves an encoder's matrix products in float32.
ENCODER_LEVELS = {"fp16": int(os.environ.get("EDGE_AGENT_GPU_ENCODER_LEVEL", "1")), "fp32": 1}


def encoder_models(plans_dir: Path) -> list[Model]:
    """MiniLM as TensorRT chooses its precisions and converted to float16; its file, or a random one, is made here."""
    shipped = ENGINES / "minilm-l6-v2" / "model.onnx"
    path = shipped if shipped.is_file() else random_bert(plans_dir / "minilm-random" / "model.onnx", MINILM)
    profile = (tokens_profile(16, 64),)
    half = linked(path, plans_dir / "minilm-half")
    return [
        Model("minilm", path, profile, level=ENCODER_LEVELS["fp16"]),
        Model("minilm-half", half, profile, level=ENCODER_LEVELS["fp16"], explicit_half=True),
    ]


def random_bert(path: Path, dims: dict[str, int]) -> Path:
    """A BERT encoder with random weights of these dimensions, built once by the product's own builder."""
    if not path.exists():
        import onnx

        from edge_agent.models.bert import build_bert

        path.parent.mkdir(parents=True, exist_ok=True)
        onnx.save(build_bert(random_weights(dims), dims), path)
    return path


def random_weights(dims: dict[str, int], seed: int = 0) -> dict[str, npt.NDArray[Any]]:
    """A checkpoint as a BERT of these dimensions has it, weights drawn as BERT draws them (standard deviation 0.02)."""
    random = np.random.default_rng(seed)
    size, inner = dims["hidden_size"], dims["intermediate_size"]

    def normal(*shape: int) -> npt.NDArray[Any]:
        return (random.standard_normal(shape, np.float32) * 0.02).astype(np.float32)

    weights = {
        "embeddings.word_embeddings.weight": normal(VOCABULARY, size),
        "embeddings.position_embeddings.weight": normal(512, size),
        "embeddings.token_type_embeddings.weight": normal(2, size),
    }
    norms = ["embeddings.LayerNorm"]
    for layer in range(dims["num_hidden_layers"]):
        at = f"encoder.layer.{layer}"
        widths = {f"attention.self.{part}": (size, size) for part in ("query", "key", "value")}
        widths |= {"attention.output.dense": (size, size)}
        widths |= {"intermediate.dense": (inner, size), "output.dense": (size, inner)}
        for name, shape in widths.items():
            weights[f"{at}.{name}.weight"] = normal(*shape)
            weights[f"{at}.{name}.bias"] = np.zeros(shape[0], np.float32)
        norms += [f"{at}.attention.output.LayerNorm", f"{at}.output.LayerNorm"]
    for name in norms:
        weights[f"{name}.weight"] = np.ones(size, np.float32)
        weights[f"{name}.bias"] = np.zeros(size, np.float32)
    return weights


def tokens(batch: int, length: int, seed: int = 0) -> dict[str, npt.NDArray[np.int32]]:
    """A feed of random tokens; the last row is half padding."""
    random = np.random.default_rng(seed)
    mask = np.ones((batch, length), np.int32)
    mask[-1, max(1, length // 2) :] = 0
    return {"input_ids": random.integers(1000, 30000, (batch, length)).astype(np.int32), "attention_mask": mask}


def build_options(precision: str = "fp16", level: int = 0, explicit_half: bool = False) -> BuildOptions:
    """The level, 0 for models that would build long, and the tactic sources of the environment."""
    sources = tuple(name for name in os.environ.get("EDGE_AGENT_GPU_TACTICS", "").split(",") if name)
    assert precision in ("fp16", "fp32", "int8")
    return BuildOptions(
        precision,  # type: ignore[arg-type]
        optimisation_level=level,
        tactic_sources=sources or None,
        explicit_half=explicit_half,
    )


def settings(
    plans_dir: Path, precision: str = "fp16", level: int = 0, explicit_half: bool = False, **changes: Any
) -> TrtSettings:
    """Settings for plans in this folder, quick to build."""
    return TrtSettings(plans_dir, build_options(precision, level, explicit_half), **changes)


def linked(original: Path, folder: Path) -> Path:
    """The same model file under another model's name, so that plans of both are kept."""
    path = folder / original.name
    if original.is_file() and not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        path.symlink_to(original.resolve())
    return path


def frames(limit: int = 50) -> list[Image]:
    """Frames with text, BGR 1280x720: from EDGE_AGENT_GPU_FRAMES, the shared data, or drawn."""
    folders = [Path(os.environ["EDGE_AGENT_GPU_FRAMES"])] if "EDGE_AGENT_GPU_FRAMES" in os.environ else []
    folders += [SHARED_DATA / "synth", SHARED_DATA / "real"]
    paths = [path for folder in folders if folder.is_dir() for path in sorted(folder.rglob("*.jpg"))]
    images = [image for path in paths[:limit] if (image := cv2.imread(str(path))) is not None]
    fitting = [image for image in images if image.shape == (720, 1280, 3)]
    return fitting or [drawn(seed) for seed in range(min(limit, 20))]


def drawn(seed: int) -> Image:
    """A frame with some printed lines."""
    random = np.random.default_rng(seed)
    image = np.full((720, 1280, 3), random.integers(180, 250), np.uint8)
    for row in range(random.integers(3, 14)):
        text = "".join(random.choice(list("ABCDEFGHKLMNPRSTUVXYZ0123456789 ./-"), random.integers(5, 28)))
        at = (int(random.integers(20, 500)), 60 + 45 * row)
        cv2.putText(image, text, at, cv2.FONT_HERSHEY_SIMPLEX, float(random.uniform(0.7, 1.3)), (20, 20, 20), 2)
    return image
