"""Judges on real models: against themselves, against INT8 made by the product, and against known damage."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable, Iterator
from datetime import date
from pathlib import Path

import cv2
import numpy as np
import pytest

from edge_agent.backends.base import Engine
from edge_agent.backends.ort import OrtEngine
from edge_agent.calibrate import judge as judge_module
from edge_agent.calibrate.judge import (
    DetectorJudge,
    EncoderJudge,
    Exposures,
    Frames,
    JudgedFrame,
    ReadingJudge,
    RecogniserJudge,
)
from edge_agent.calibrate.recipe import Gates
from edge_agent.config import Config
from edge_agent.demo.labels import render_label, sample_labels
from edge_agent.errors import CalibrationRefused
from edge_agent.models import charset as charsets
from edge_agent.models.spec import find_models_dir
from edge_agent.pipeline import Pipeline, load_pipeline
from edge_agent.records import Frame
from edge_agent.stages.field_prototypes import PROTOTYPES
from edge_agent.stages.images import Image
from edge_agent.stages.text_detector import DetectorSettings, TextDetector
from edge_agent.stages.text_encoder import TextEncoder
from edge_agent.stages.text_recogniser import RecogniserSettings, TextRecogniser
from tests.calibrate.edited_models import THREADS, added, blind, clipped, engine_of, mapped, shaken
from tests.quantised import LIGHT, Int8

ONCE = Exposures(count=1)
NEVER = Exposures(count=0)
SMALL = DetectorSettings(min_side_px=480)
FRAMES = 3


def label_image(index: int) -> Image:
    """A printed label on grey, 640 x 480 px."""
    image = np.full((480, 640, 3), 90, np.uint8)
    label = render_label(sample_labels(date.today().year + 1)[index], 560).image[:460, :600]
    image[10 : 10 + label.shape[0], 20 : 20 + label.shape[1]] = label
    return image


def label_frames(labels: tuple[str, ...] = (), count: int = FRAMES) -> Frames:
    images = [label_image(n) for n in range(count)]
    return lambda: [JudgedFrame(f"{n}.png", image, labels) for n, image in enumerate(images)]


@pytest.fixture(scope="module")
def models_dir() -> Path:
    cv2.setNumThreads(1)
    return find_models_dir()


@pytest.fixture(scope="module")
def detector_path(models_dir: Path) -> Path:
    return models_dir / "ppocrv4-mobile-det" / "model.cpu.onnx"


@pytest.fixture(scope="module")
def recogniser_path(models_dir: Path) -> Path:
    return models_dir / "ppocrv4-mobile-rec" / "model.latin.onnx"


@pytest.fixture(scope="module")
def charset(models_dir: Path) -> tuple[str, ...]:
    return tuple(charsets.read(models_dir / "ppocrv4-mobile-rec" / "charset.latin.json"))


@pytest.fixture(scope="module")
def detecting(detector_path: Path) -> OrtEngine:
    return OrtEngine(detector_path, THREADS)


@pytest.fixture(scope="module")
def recognising(recogniser_path: Path) -> OrtEngine:
    return OrtEngine(recogniser_path, THREADS)


def make_detector(engine: Engine) -> TextDetector:
    return TextDetector(engine, SMALL)


@pytest.fixture(scope="module")
def make_recogniser(charset: tuple[str, ...]) -> Callable[[Engine], TextRecogniser]:
    settings = RecogniserSettings(width_step_px=8, batch_sizes=(1, 2, 3, 4))
    return lambda engine: TextRecogniser(engine, charset, settings)


@pytest.fixture(scope="module")
def detector_judge(
    detecting: OrtEngine, recognising: OrtEngine, make_recogniser: Callable[[Engine], TextRecogniser]
) -> DetectorJudge:
    return DetectorJudge(
        label_frames(), detecting, make_detector, make_recogniser(recognising), Gates(), exposures=ONCE
    )


@pytest.fixture(scope="module")
def recogniser_judge(
    detecting: OrtEngine, recognising: OrtEngine, make_recogniser: Callable[[Engine], TextRecogniser]
) -> RecogniserJudge:
    return RecogniserJudge(label_frames(), recognising, make_recogniser, make_detector(detecting), Gates(), NEVER)


def test_detector_that_is_the_float_one_passes_without_damage(
    detector_judge: DetectorJudge, detecting: OrtEngine
) -> None:
    judgement = detector_judge.judge(detecting)
    assert judgement.passed
    assert judgement.damage == {"box_recall": 0.0, "box_precision": 0.0, "cer_increase": 0.0}
    assert judgement.changed == ()
    figures = judgement.figures
    assert figures["float_boxes"] == figures["int8_boxes"] > 10
    assert (figures["mask_iou"], figures["cer_to_float"], figures["frames"]) == (1.0, 0.0, FRAMES)
    assert figures["chars"] > 150


def test_int8_detector_of_the_products_own_quantiser_is_judged_by_boxes_and_text(
    detector_judge: DetectorJudge, models_dir: Path, tmp_path: Path
) -> None:
    int8 = Int8("detect", [Frame("a", n, 0.0, 0.0, label_image(n)) for n in (3, 4)], models_dir)
    path = tmp_path / "int8.onnx"
    path.write_bytes(int8.content)
    first, second = (detector_judge.judge(OrtEngine(path, THREADS)) for _ in range(2))
    assert first == second
    assert 0.3 < first.figures["mask_iou"] < 1.0
    assert first.figures["box_recall"] > 0.5
    assert [gate.name for gate in first.gates] == ["box_recall", "box_precision", "cer_increase"]
    assert all(gate.passed or gate.advice for gate in first.gates)


@pytest.mark.parametrize("value", [0, 255])
def test_saturated_detector_fails_at_once_and_says_so(
    detector_judge: DetectorJudge, detector_path: Path, tmp_path: Path, value: int
) -> None:
    engine = engine_of(clipped(detector_path, "probability", value, value), tmp_path, "saturated")
    judgement = detector_judge.judge(engine)
    assert not judgement.passed
    assert [gate.name for gate in judgement.gates] == ["outputs"]
    assert judgement.faults[0].startswith(f"output `probability` is {value} everywhere on 3 of 3 runs")
    assert "float_groups" in judgement.faults[0]


def test_detector_that_sees_nothing_of_its_input_fails_at_once(
    detector_judge: DetectorJudge, detector_path: Path, tmp_path: Path
) -> None:
    judgement = detector_judge.judge(engine_of(blind(detector_path), tmp_path, "blind"))
    assert judgement.faults
    assert "output `probability` is" in judgement.faults[0]


def test_detector_that_has_grown_unsure_loses_all_boxes_and_text(
    detector_judge: DetectorJudge, detector_path: Path, tmp_path: Path
) -> None:
    engine = engine_of(clipped(detector_path, "probability", 0, 100), tmp_path, "unsure")
    judgement = detector_judge.judge(engine, worst=["neck", "pointwise.s16"])
    gates = {gate.name: gate for gate in judgement.gates}
    assert (gates["box_recall"].value, gates["cer_increase"].value) == (0.0, 1.0)
    assert judgement.figures["mask_iou"] == 1.0, "masks alone would not have told"
    assert "keep the groups neck, pointwise.s16 float" in gates["box_recall"].advice


def test_recogniser_that_is_the_float_one_passes_without_damage(
    recogniser_judge: RecogniserJudge, recognising: OrtEngine
) -> None:
    judgement = recogniser_judge.judge(recognising)
    assert judgement.passed
    assert judgement.damage == {"cer_increase": 0.0}
    assert judgement.figures["lines"] > 10
    assert len(recogniser_judge.texts) > 5


def misreading(path: Path, charset: tuple[str, ...], this: str, that: str, folder: Path) -> OrtEngine:
    """The recogniser that reads `that` for `this`."""
    table = np.arange(len(charset), dtype=np.int32)
    table[charset.index(this)] = charset.index(that)
    return engine_of(mapped(path, "index", table), folder, "misreading")


def test_each_misread_character_is_counted_and_shown(
    recogniser_judge: RecogniserJudge, recogniser_path: Path, charset: tuple[str, ...], tmp_path: Path
) -> None:
    judgement = recogniser_judge.judge(misreading(recogniser_path, charset, "0", "Q", tmp_path))
    texts = [line.text for read in recogniser_judge.read for line in read.lines if line is not None]
    zeros = sum(text.count("0") for text in texts)
    assert zeros > 5
    gate = judgement.gates[0]
    assert not gate.passed
    assert gate.value == pytest.approx(zeros / sum(len("".join(text.split())) for text in texts))
    assert len(judgement.changed) == judgement.figures["changed_lines"] == sum("0" in text for text in texts)
    line = judgement.changed[0]
    assert line.int8_text == line.float_text.replace("0", "Q")
    assert np.array(line.quad).shape == (4, 2)
    assert line.frame == "0.png"


def test_labels_tell_that_another_text_is_the_better_one(
    detecting: OrtEngine,
    recognising: OrtEngine,
    recogniser_path: Path,
    charset: tuple[str, ...],
    make_recogniser: Callable[[Engine], TextRecogniser],
    recogniser_judge: RecogniserJudge,
    tmp_path: Path,
) -> None:
    texts = [line.text for line in recogniser_judge.read[0].lines if line is not None]
    truth = tuple(text.replace("0", "Q") for text in texts)
    frames = label_frames(truth, count=1)
    judge = RecogniserJudge(frames, recognising, make_recogniser, make_detector(detecting), Gates(), NEVER)
    judgement = judge.judge(misreading(recogniser_path, charset, "0", "Q", tmp_path))
    assert judgement.passed
    assert judgement.changed
    assert judgement.figures["label_cer_int8"] == 0.0
    assert judgement.figures["label_cer_float"] > 0.0
    assert judgement.figures["cer_increase"] < 0.0
    assert judgement.figures["labels_not_found"] == 0
    assert {line.label for line in judgement.changed} <= set(truth)


def test_recogniser_with_nan_confidence_fails_on_the_first_frame(
    recogniser_judge: RecogniserJudge, recogniser_path: Path, tmp_path: Path
) -> None:
    judgement = recogniser_judge.judge(engine_of(added(recogniser_path, "probability", float("nan")), tmp_path, "nan"))
    assert judgement.gates[0].value == 1
    assert judgement.faults[0].startswith("output `probability` holds NaN or infinity")


def test_recogniser_that_finds_one_class_everywhere_fails_at_once(
    recogniser_judge: RecogniserJudge, recogniser_path: Path, tmp_path: Path
) -> None:
    judgement = recogniser_judge.judge(engine_of(clipped(recogniser_path, "index", 5, 5), tmp_path, "one"))
    assert judgement.faults[0].startswith("output `index` is 5 everywhere on")


def test_float_engine_that_gives_nan_is_no_measure(
    detecting: OrtEngine,
    recogniser_path: Path,
    make_recogniser: Callable[[Engine], TextRecogniser],
    tmp_path: Path,
) -> None:
    broken = engine_of(added(recogniser_path, "probability", float("nan")), tmp_path, "nan")
    with pytest.raises(CalibrationRefused, match="float engine .* holds NaN or infinity"):
        RecogniserJudge(label_frames(count=1), broken, make_recogniser, make_detector(detecting), Gates(), NEVER)


def test_frames_without_text_are_no_evidence(
    detecting: OrtEngine, recognising: OrtEngine, make_recogniser: Callable[[Engine], TextRecogniser]
) -> None:
    noise = np.random.default_rng(0).integers(80, 100, (2, 480, 640, 3), np.uint8)

    def frames() -> list[JudgedFrame]:
        return [JudgedFrame(str(n), image) for n, image in enumerate(noise)]

    recogniser = make_recogniser(recognising)
    for judgement in (
        DetectorJudge(frames, detecting, make_detector, recogniser, Gates(), NEVER).judge(detecting),
        RecogniserJudge(frames, recognising, make_recogniser, make_detector(detecting), Gates(), NEVER).judge(
            recognising
        ),
    ):
        assert not judgement.passed
        assert judgement.faults[0].startswith("there are 0 characters of text")


def test_pictures_are_let_go_frame_by_frame(
    detecting: OrtEngine, recognising: OrtEngine, make_recogniser: Callable[[Engine], TextRecogniser]
) -> None:
    alive: list[weakref.ref[Image]] = []
    most = 0

    def frames() -> Iterator[JudgedFrame]:
        nonlocal most
        for n in range(3):
            gc.collect()
            most = max(most, sum(ref() is not None for ref in alive))
            image = label_image(n % 2)
            alive.append(weakref.ref(image))
            yield JudgedFrame(str(n), image)
            del image

    DetectorJudge(frames, detecting, make_detector, make_recogniser(recognising), Gates(), ONCE).judge(detecting)
    assert most <= 2


def test_second_look_is_the_same_each_time_and_differs_by_noise_alone() -> None:
    image = label_image(0)
    first, second = list(Exposures(2, 1.0).of(image, 3)), list(Exposures(2, 1.0).of(image, 3))
    assert all((a == b).all() for a, b in zip(first, second, strict=True))
    assert (first[0] != first[1]).any()
    difference = first[0].astype(np.float32) - image
    assert difference.std() == pytest.approx(1.04, abs=0.06)
    assert abs(difference.mean()) < 0.05
    assert list(Exposures(0).of(image, 0)) == []


TEXTS = (
    "Best before 08/2027",
    "LOT A1234",
    "Ingredients: sugar, wheat flour, cocoa butter",
    "Keep out of reach of children",
    "Net weight 500 g",
    "Made in Italy by Alpine Foods",
    "www.example.com",
    "Dark Chocolate with Almonds",
    "Store in a cool dry place",
    "Serial number 99120",
    "Contains milk and nuts",
    "12 Harbour Street, Dublin",
)


@pytest.fixture(scope="module")
def few_phrases() -> Iterator[None]:
    """Each engine that is judged embeds all examples: of each field some are enough here."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(judge_module, "PROTOTYPES", {name: phrases[:8] for name, phrases in PROTOTYPES.items()})
        yield


@pytest.fixture(scope="module")
def make_encoder(models_dir: Path, few_phrases: None) -> Callable[[Engine], TextEncoder]:
    return lambda engine: TextEncoder(engine, models_dir / "minilm-l6-v2" / "tokenizer.json")


@pytest.fixture(scope="module")
def encoding(models_dir: Path) -> OrtEngine:
    return OrtEngine(models_dir / "minilm-l6-v2" / "model.onnx", THREADS)


@pytest.fixture(scope="module")
def encoder_judge(encoding: OrtEngine, make_encoder: Callable[[Engine], TextEncoder]) -> EncoderJudge:
    return EncoderJudge([*TEXTS, *TEXTS], encoding, make_encoder, Gates())


def test_encoder_that_is_the_float_one_passes(encoder_judge: EncoderJudge, encoding: OrtEngine) -> None:
    same = encoder_judge.judge(encoding)
    assert same.passed
    assert same.figures["texts"] == len(TEXTS)
    assert same.figures["worst_cosine"] == pytest.approx(1.0, abs=1e-5)


def test_encoder_is_judged_by_cosine_and_class(
    encoder_judge: EncoderJudge, models_dir: Path, make_encoder: Callable[[Engine], TextEncoder], tmp_path: Path
) -> None:
    shaken_engine = engine_of(shaken(models_dir / "minilm-l6-v2" / "model.onnx", 0.5), tmp_path, "shaken")
    judgement = encoder_judge.judge(shaken_engine)
    vectors = make_encoder(shaken_engine).encode(TEXTS)
    cosines = (encoder_judge.vectors * vectors).sum(axis=1)
    assert judgement.figures["cosine"] == pytest.approx(float(cosines.mean()), abs=1e-4)
    assert judgement.figures["worst_cosine"] == pytest.approx(float(cosines.min()), abs=1e-4)
    assert not judgement.passed
    gates = {gate.name: gate for gate in judgement.gates}
    assert not gates["cosine"].passed
    assert "mean cosine" in gates["cosine"].advice
    assert judgement.figures["changed_classes"] == len(judgement.changed)
    for line in judgement.changed:
        assert (line.float_text, line.quad) == (encoder_judge.nearest[line.frame], [])
        assert line.int8_text != line.float_text
    if judgement.changed:
        assert "(one line is" in gates["class_agreement"].advice


def test_encoder_with_constant_output_fails_at_once(
    encoder_judge: EncoderJudge, encoding: OrtEngine, models_dir: Path, tmp_path: Path
) -> None:
    output = encoding.outputs[0].name
    model = clipped(models_dir / "minilm-l6-v2" / "model.onnx", output, 0.5, 0.5)
    judgement = encoder_judge.judge(engine_of(model, tmp_path, "constant"))
    assert judgement.faults[0].startswith(f"output `{output}` is 0.5 everywhere on")


def test_few_lines_are_no_evidence_for_an_encoder(
    encoding: OrtEngine, make_encoder: Callable[[Engine], TextEncoder]
) -> None:
    judgement = EncoderJudge(TEXTS[:3], encoding, make_encoder, Gates()).judge(encoding)
    assert [gate.name for gate in judgement.gates] == ["evidence"]
    assert judgement.faults[0].startswith("there are 3 different lines")


@pytest.fixture(scope="module")
def pipeline(models_dir: Path) -> Iterator[Pipeline]:
    settings = LIGHT.model_copy(update={"detector_min_side_px": 480})
    with load_pipeline(Config(pipeline=settings), models_dir, float_only=True) as loaded:
        yield loaded


def test_whole_readings_tell_how_many_field_values_change(
    pipeline: Pipeline, recogniser_path: Path, charset: tuple[str, ...], tmp_path: Path
) -> None:
    judge = ReadingJudge(label_frames(), pipeline, Gates(), ONCE)
    same = judge.judge(pipeline)
    assert same.passed
    assert same.figures["changed_readings"] == 0
    assert same.figures["field_values"] > 5
    assert len(judge.texts) > 5

    wrong = TextRecogniser(
        misreading(recogniser_path, charset, "2", "7", tmp_path), charset, pipeline.recogniser.settings
    )
    other = Pipeline(pipeline.detector, wrong, pipeline.extractor, pipeline.engines, pipeline.backend)
    judgement = judge.judge(other)
    assert not judgement.passed
    assert judgement.figures["changed_readings"] == FRAMES
    assert judgement.figures["changed_field_values"] > 0
    assert judgement.gates[0].name == "changed_fields"
    assert "field values of whole readings come out otherwise" in judgement.gates[0].advice
