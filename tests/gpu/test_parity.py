"""The shipped models on TensorRT say what they say on ONNX Runtime; frames come from where tests/gpu/__init__ says."""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from edge_agent.models import charset
from edge_agent.stages.text_detector import DetectorSettings, TextDetector, preprocess
from edge_agent.stages.text_recogniser import RecogniserSettings, TextRecogniser
from tests.gpu import support

pytestmark = pytest.mark.gpu

FRAMES = 12
PIXEL_THRESHOLD = 77  # 0.3 of 255
MODELS = {model.name: model for model in support.ocr_models()}
DETECTORS = [name for name in MODELS if name.endswith("-det")]
RECOGNISERS = [name for name in MODELS if name.endswith(".latin")]


@pytest.fixture(scope="module")
def frames() -> list[support.Image]:
    return support.frames(FRAMES)


@pytest.fixture(scope="module")
def ort() -> Any:
    from edge_agent.backends.ort import OrtBackend

    return OrtBackend()


@pytest.fixture
def pair(request: pytest.FixtureRequest, backend: Any, ort: Any) -> Iterator[tuple[Any, Any]]:
    """One model on both backends."""
    model = MODELS[request.param]
    engine, reference = backend.load(model.onnx_path, model.profiles), ort.load(model.onnx_path)
    yield engine, reference
    engine.close()
    reference.close()


def settings_of(name: str) -> tuple[tuple[str, ...], RecogniserSettings]:
    folder = support.ENGINES / name.removesuffix(".latin")
    characters = charset.read(folder / "charset.latin.json")
    return characters, RecogniserSettings(widths_px=support.RECOGNISER_WIDTHS_PX)


@pytest.mark.parametrize("pair", DETECTORS, indirect=True)
def test_detector_marks_the_same_pixels(pair: tuple[Any, Any], frames: list[support.Image]) -> None:
    engine, reference = pair
    both = either = 0
    for frame in frames:
        feed = {"image": preprocess(frame, DetectorSettings())}
        a = engine.infer(feed)["probability"] > PIXEL_THRESHOLD
        b = reference.infer(feed)["probability"] > PIXEL_THRESHOLD
        both += int((a & b).sum())
        either += int((a | b).sum())
    assert either > 10_000, "the frames hold too little text to say anything"
    assert both / either >= 0.98


@pytest.mark.parametrize("pair", RECOGNISERS, indirect=True)
def test_recogniser_reads_the_same_lines(
    pair: tuple[Any, Any], frames: list[support.Image], ort: Any, request: pytest.FixtureRequest
) -> None:
    characters, settings = settings_of(request.node.callspec.params["pair"])
    detector = TextDetector(ort.load(MODELS[DETECTORS[0]].onnx_path), DetectorSettings())
    on_gpu, on_cpu = (TextRecogniser(engine, characters, settings) for engine in pair)
    same, total, differing = 0, 0, []
    for frame in frames:
        quads = [box.quad for box in detector.detect(frame)]
        for a, b in zip(on_gpu.read_quads(frame, quads), on_cpu.read_quads(frame, quads), strict=True):
            total += 1
            same += a[0] == b[0]
            if a[0] != b[0]:
                differing.append((a[0], b[0], round(difflib.SequenceMatcher(None, a[0], b[0]).ratio(), 2)))
    assert total >= 40, "the frames hold too few lines to say anything"
    assert same / total >= 0.99, differing


def encoder_file(plans_dir: Path) -> Path:
    shipped = support.ENGINES / "minilm-l6-v2" / "model.onnx"
    return shipped if shipped.is_file() else support.random_bert(plans_dir / "minilm" / "model.onnx", support.MINILM)


def test_encoder_gives_the_same_vectors(backend: Any, ort: Any, plans_dir: Path) -> None:
    path = encoder_file(plans_dir)
    engine, reference = backend.load(path, (support.tokens_profile(16, 64),)), ort.load(path)
    worst = 1.0
    for n, (batch, length) in enumerate([(1, 8), (4, 16), (16, 64), (7, 32)]):
        feed = support.tokens(batch, length, seed=n)
        worst = min(worst, float(cosine(engine.infer(feed), reference.infer(feed)).min()))
    engine.close()
    assert worst >= 0.999


def cosine(a: dict[str, npt.NDArray[Any]], b: dict[str, npt.NDArray[Any]]) -> npt.NDArray[Any]:
    x, y = a["sentence_embedding"], b["sentence_embedding"]
    products: npt.NDArray[Any] = (x * y).sum(axis=1) / np.linalg.norm(x, axis=1) / np.linalg.norm(y, axis=1)
    return products
