"""Pipeline: real models on pictures made here."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import date
from pathlib import Path

import cv2
import numpy as np
import numpy.typing as npt
import pytest
import zxingcpp

from edge_agent.backends.base import Profile
from edge_agent.backends.ort import OrtBackend, OrtEngine
from edge_agent.config import Config
from edge_agent.demo.labels import render_label, sample_labels
from edge_agent.errors import ConfigError, FrameError, ModelError
from edge_agent.models.spec import ModelSpec, find_models_dir
from edge_agent.pipeline import Pipeline, head_for, load_pipeline
from edge_agent.records import Frame, json_bytes
from edge_agent.settings.pipeline import PipelineConfig
from tests.stages.labels import line

LIGHT = PipelineConfig(detector="ppocrv4-mobile-det", recogniser="ppocrv4-mobile-rec", encoder=None)


@pytest.fixture(scope="module")
def models_dir() -> Path:
    return find_models_dir()


@pytest.fixture(scope="module")
def pipeline(models_dir: Path) -> Iterator[Pipeline]:
    with load_pipeline(Config(), models_dir) as loaded:
        yield loaded


def frame_of(image: npt.NDArray[np.uint8], seq: int = 0) -> Frame:
    return Frame("line1", seq, 1000.0, 10.0, image)


def label_frame(index: int) -> tuple[Frame, tuple[str, ...]]:
    label = sample_labels(date.today().year + 1)[index]
    image = np.full((720, 1280, 3), 90, np.uint8)
    rendered = render_label(label, 700)
    height, width = rendered.image.shape[:2]
    image[100 : 100 + height, 250 : 250 + width] = rendered.image[: 720 - 100]
    return frame_of(image), label.lines


@pytest.mark.parametrize("index", [0, 1])
def test_label_is_read_with_its_lot_expiry_and_serial(pipeline: Pipeline, index: int) -> None:
    frame, expected = label_frame(index)
    reading = pipeline.read(frame)
    texts = [line.text for line in reading.lines]
    missing = [line for line in expected if line.replace(" ", "") not in "".join(texts).replace(" ", "")]
    assert not missing, texts
    fields = {field.name: field.value for field in reading.fields}
    label = sample_labels(date.today().year + 1)[index]
    assert fields["lot"] == label.lot
    assert fields["expiry_date"] == label.expiry.isoformat()
    assert fields["serial_number"] == label.serial
    assert set(reading.timings_ms) == {"detect", "recognise", "decode", "extract", "total"}
    assert reading.backend == "onnxruntime"
    assert reading.reason is None
    assert set(reading.engines) == {"detect", "recognise", "encode"}
    json.loads(json_bytes(reading.to_json()))


@pytest.mark.parametrize(
    "image",
    [
        np.zeros((480, 640, 3), np.uint8),
        np.full((480, 640, 3), 255, np.uint8),
        np.random.default_rng(0).integers(0, 256, (480, 640, 3), dtype=np.uint8),
        np.zeros((1, 1, 3), np.uint8),
        np.full((1, 2000, 3), 128, np.uint8),
        np.full((2000, 1, 3), 128, np.uint8),
    ],
    ids=["black", "white", "noise", "one pixel", "a row", "a column"],
)
def test_frame_without_text_says_no_text(pipeline: Pipeline, image: npt.NDArray[np.uint8]) -> None:
    reading = pipeline.read(frame_of(image))
    assert reading.lines == ()
    assert reading.fields == ()
    assert reading.reason == "no_text"


def test_frame_never_repeats_the_text_of_the_one_before(pipeline: Pipeline) -> None:
    frame, _ = label_frame(0)
    assert pipeline.read(frame).lines
    assert pipeline.read(frame_of(np.zeros((720, 1280, 3), np.uint8), 1)).lines == ()


@pytest.mark.parametrize("stage", ["detector", "recogniser"])
def test_what_opencv_cannot_do_is_that_frames_failure(
    pipeline: Pipeline, stage: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    frame, _ = label_frame(0)
    expected = [line.text for line in pipeline.read(frame).lines]

    def fail(*_: object) -> None:
        cv2.warpAffine(np.zeros((2, 2)), np.zeros((9, 9)), (0, 0))  # raises cv2.error as the real thing

    with monkeypatch.context() as broken:
        broken.setattr(f"edge_agent.stages.text_{stage}.{'resized' if stage == 'detector' else 'warp_quad'}", fail)
        with pytest.raises(FrameError, match=f"OpenCV {cv2.__version__} cannot process this frame of 1280x720 pixels"):
            pipeline.read(frame)
    assert [line.text for line in pipeline.read(frame).lines] == expected, "the next frame is read as ever"


def test_same_frame_reads_the_same(pipeline: Pipeline) -> None:
    frame, _ = label_frame(2)
    first, second = pipeline.read(frame), pipeline.read(frame)
    assert [line.text for line in first.lines] == [line.text for line in second.lines]
    assert first.fields == second.fields


def test_turned_label_reads_in_the_same_order(pipeline: Pipeline) -> None:
    frame, _ = label_frame(0)
    turn = cv2.getRotationMatrix2D((640, 360), 8, 0.9)
    turned = cv2.warpAffine(frame.image, turn, (1280, 720), borderValue=(90, 90, 90))
    straight = [line.text for line in pipeline.read(frame).lines]
    leaning = [line.text for line in pipeline.read(frame_of(np.asarray(turned, np.uint8))).lines]
    shared = [text for text in straight if text in leaning]
    assert len(shared) >= 0.8 * len(straight)
    assert [text for text in leaning if text in shared] == shared


@pytest.mark.parametrize("turns", [1, 3])
def test_label_on_its_side_reads_in_the_same_order(pipeline: Pipeline, turns: int) -> None:
    frame, _ = label_frame(0)
    straight = [line.text for line in pipeline.read(frame).lines]
    sideways = pipeline.read(frame_of(np.ascontiguousarray(np.rot90(frame.image, turns))))
    texts = [line.text for line in sideways.lines]
    shared = [text for text in straight if text in texts]
    assert len(shared) >= 0.8 * len(straight)
    assert [text for text in texts if text in shared] == shared


def test_light_models_without_an_encoder_read_too(models_dir: Path) -> None:
    with load_pipeline(Config(pipeline=LIGHT), models_dir) as light:
        frame, _ = label_frame(1)
        fields = {field.name for field in light.read(frame).fields}
        assert {"lot", "expiry_date", "serial_number"} <= fields


def test_model_for_another_task_is_refused(models_dir: Path) -> None:
    wrong = PipelineConfig(detector="minilm-l6-v2")
    with pytest.raises(ModelError, match="minilm-l6-v2 is for text_embedding; expected one for text_detection"):
        load_pipeline(Config(pipeline=wrong), models_dir)


def test_unknown_model_names_those_there_are(models_dir: Path) -> None:
    with pytest.raises(ModelError, match="ppocrv6-small-det"):
        load_pipeline(Config(pipeline=PipelineConfig(detector="no-such")), models_dir)


def test_engines_already_loaded_are_closed_when_a_later_one_fails(
    models_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded: list[OrtEngine] = []
    load = OrtBackend.load

    def counted(self: OrtBackend, onnx_path: Path, profiles: tuple[object, ...] = ()) -> OrtEngine:
        loaded.append(load(self, onnx_path))
        return loaded[-1]

    monkeypatch.setattr(OrtBackend, "load", counted)
    wrong = PipelineConfig(detector="ppocrv4-mobile-det", recogniser="minilm-l6-v2")
    with pytest.raises(ModelError):
        load_pipeline(Config(pipeline=wrong), models_dir)
    assert len(loaded) == 1
    assert loaded[0]._session is None


def test_tensorrt_is_refused_by_name_where_it_is_not(models_dir: Path) -> None:
    with pytest.raises(ConfigError, match="tensorrt"):
        load_pipeline(Config.model_validate({"backend": {"kind": "tensorrt"}}), models_dir)


@pytest.mark.parametrize(
    ("languages", "characters", "head"),
    [
        (("en", "de"), "auto", "latin"),
        (("en", "zh"), "auto", "full"),
        (("en",), "full", "full"),
        (("ru",), "latin", "latin"),
        (("ru",), "auto", "full"),
    ],
)
def test_smallest_head_for_the_languages_is_chosen(
    models_dir: Path, languages: tuple[str, ...], characters: str, head: str
) -> None:
    settings = PipelineConfig(languages=languages, characters=characters)  # type: ignore[arg-type]
    assert head_for(settings, ModelSpec.load(models_dir, "ppocrv6-small-rec")) == head


class PlannedBackend(OrtBackend):
    """Notes the plans that it is to discard."""

    def __init__(self) -> None:
        super().__init__(1)
        self.discarded: list[str] = []

    def discard(self, onnx_path: Path, profiles: tuple[Profile, ...]) -> None:
        self.discarded.append(onnx_path.parent.name)


def test_plans_of_the_models_in_use_are_discarded_where_there_are_plans() -> None:
    config = Config(
        pipeline=PipelineConfig(detector="ppocrv4-mobile-det", recogniser="ppocrv4-mobile-rec", encoder=None)
    )
    with load_pipeline(config, find_models_dir()) as pipeline:
        with pytest.raises(ConfigError, match="onnxruntime runs model files as they are"):
            pipeline.discard_plans()
        backend = PlannedBackend()
        pipeline.backend = backend
        assert pipeline.discard_plans() == ["ppocrv4-mobile-det", "ppocrv4-mobile-rec"]
        assert backend.discarded == ["ppocrv4-mobile-det", "ppocrv4-mobile-rec"]


def test_dates_are_judged_by_the_clock_that_the_pipeline_is_given(models_dir: Path) -> None:
    config = Config(pipeline=PipelineConfig(encoder=None))
    with load_pipeline(config, models_dir, clock=lambda: None) as untrusting:
        (found,) = untrusting.extractor.extract([line("EXP 14.06.2093")])
    assert found.flags == ("clock_untrusted",)


def test_a_code_beside_the_print_is_read_with_it_and_the_language_is_told(pipeline: Pipeline) -> None:
    picture = np.full((480, 900, 3), 255, np.uint8)
    for row, text in enumerate(("LOT L4711A", "EXP 31.08.2027", "Keep refrigerated after opening, serve chilled")):
        cv2.putText(picture, text, (30, 60 + 70 * row), cv2.FONT_HERSHEY_SIMPLEX, 1, (0, 0, 0), 2, cv2.LINE_AA)
    gs1 = "(01)09506000134352(17)270831(10)L4711A"
    code = np.array(zxingcpp.create_barcode(gs1, zxingcpp.BarcodeFormat.DataMatrix, gs1=True).to_image(scale=5))
    picture[300 : 300 + code.shape[0], 600 : 600 + code.shape[1]] = code[..., None]
    reading = pipeline.read(Frame("line1", 1, 0.0, 0.0, picture))
    assert [one.symbology for one in reading.codes] == ["DataMatrix"]
    assert reading.language == "en"
    for name, value in (("lot", "L4711A"), ("expiry_date", "2027-08-31")):
        told = [(f.value, f.source, f.certain) for f in reading.fields if f.name == name]
        assert told == [(value, "barcode", True), (value, "rule", True)]
