"""ServedModel: real models on onnxruntime, promoted and rolled back while they serve."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from edge_agent.artefacts import Artefacts, Binding
from edge_agent.backends.base import Condition, Engine, Profile
from edge_agent.backends.ort import OrtBackend
from edge_agent.config import Config
from edge_agent.errors import EngineError, ModelError
from edge_agent.models.spec import find_models_dir
from edge_agent.pipeline import Pipeline, load_pipeline, with_models
from edge_agent.served_model import ServedModel
from edge_agent.settings.calibration import CalibrationConfig
from tests import artefact_site
from tests.backends import fake_trt
from tests.backends.small_models import mean_colour
from tests.backends.test_interim import PROFILE, Bench, alive, attend_until, check, quantised
from tests.quantised import LIGHT, Int8, int8_of, label_frame

MODEL = LIGHT.detector


class Site:
    """A detector served on onnxruntime, with a folder of calibrations."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.int8 = int8_of("detect")
        self.artefacts = Artefacts(folder, MODEL)
        self.onnx_path = find_models_dir() / MODEL / "model.cpu.onnx"
        self.backend = OrtBackend()

    def served(self, binding: Binding | None = None, backend: OrtBackend | None = None) -> ServedModel:
        return ServedModel(
            backend or self.backend, binding or self.int8.binding, self.onnx_path, (), Artefacts(self.folder, MODEL)
        )


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path)


def precision(model: ServedModel) -> str:
    return model.engine.fingerprint.split(":")[2]


def found(engine: Engine) -> np.ndarray:
    """Where the detector sees text on a piece of a label."""
    image = np.ascontiguousarray(label_frame().image[None, 100:292, 250:570])
    return engine.infer({"image": image})["probability"]


def damage(artefacts: Artefacts) -> None:
    (artefacts.directory / "artefacts" / artefacts.stored()[-1] / "model.int8.onnx").write_bytes(b"QuantizeLinear")


def store_broken(site: Site) -> str:
    """Promotes an artefact whose file is as it was stored, and no model: onnxruntime refuses it."""
    broken = Int8.__new__(Int8)
    broken.binding, broken.batches = site.int8.binding, 1
    broken.content = b"no model" + site.int8.content[-2000:] + site.int8.content
    return broken.promote(site.folder, made_at=1_900_000_000.0)


# ---- at the start


def test_promoted_artefact_serves_from_the_start(site: Site) -> None:
    promoted = site.int8.promote(site.folder)
    model = site.served()
    assert (model.artefact, precision(model)) == (promoted, "int8")
    assert (model.note, model.fault) == (None, None)
    assert found(model.engine).shape == (1, 192, 320)


def test_float_model_serves_where_nothing_is_promoted(site: Site) -> None:
    site.int8.store(site.folder)
    model = site.served()
    assert (model.artefact, precision(model), model.note, model.fault) == (None, "fp32", None, None)


def test_artefact_that_does_not_fit_is_said_once_and_float_serves(site: Site, caplog: pytest.LogCaptureFixture) -> None:
    site.int8.promote(site.folder)
    binding = replace(site.int8.binding, versions={"onnxruntime": "9.9.9"})
    model = site.served(binding)
    for _ in range(5):
        model.attend()
    assert (model.artefact, precision(model), model.fault) == (None, "fp32", None)
    (said,) = [record.getMessage() for record in caplog.records]
    made = site.int8.binding.versions["onnxruntime"]
    assert f"versions onnxruntime: made with {made}, running with 9.9.9" in said
    assert f"run: edge-agent calibrate {MODEL}" in said
    assert said == model.note


@pytest.mark.parametrize("spoil", [lambda site: damage(site.artefacts), store_broken], ids=["damaged", "refused"])
def test_artefact_that_cannot_be_loaded_is_a_fault_and_float_serves(site: Site, spoil: Callable[[Site], None]) -> None:
    site.int8.promote(site.folder)
    spoil(site)
    model = site.served()
    assert (model.artefact, precision(model)) == (None, "fp32")
    assert f"run: edge-agent rollback {MODEL}" in str(model.fault)
    site.artefacts.rollback(to_float=True)
    model.attend()
    assert model.fault is None


def test_float_model_that_cannot_be_loaded_ends_the_start(site: Site) -> None:
    site.onnx_path = site.folder / "absent.onnx"
    with pytest.raises(ModelError, match="absent.onnx"):
        site.served()


# ---- while it serves


def test_promotion_and_rollback_are_put_to_use(site: Site) -> None:
    model = site.served()
    engine = model.engine
    in_float = found(engine)
    promoted = site.int8.promote(site.folder)
    assert precision(model) == "fp32", "not before it is looked for"
    model.attend()
    assert (model.artefact, precision(model)) == (promoted, "int8")
    assert not np.array_equal(found(engine), in_float)
    second = site.int8.promote(site.folder, made_at=1_800_000_060.0)
    model.attend()
    assert model.artefact == second != promoted
    assert site.artefacts.rollback().active == promoted
    model.attend()
    assert model.artefact == promoted
    site.artefacts.rollback()
    model.attend()
    assert (model.artefact, precision(model)) == (None, "fp32")
    assert np.array_equal(found(engine), in_float)


def test_nothing_is_read_or_loaded_while_nothing_changes(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    site.int8.promote(site.folder)
    model = site.served()
    monkeypatch.setattr(Artefacts, "promotion", lambda _: pytest.fail("read for nothing"))
    for _ in range(3):
        model.attend()


@pytest.mark.parametrize("spoil", [lambda site: damage(site.artefacts), store_broken], ids=["damaged", "refused"])
def test_what_ran_goes_on_where_the_new_one_cannot_be_loaded(site: Site, spoil: Callable[[Site], None]) -> None:
    model = site.served()
    first = site.int8.promote(site.folder)
    model.attend()
    site.int8.promote(site.folder, made_at=1_800_000_060.0)
    spoil(site)
    model.attend()
    assert model.artefact == first
    assert f"run: edge-agent rollback {MODEL}" in str(model.fault)
    assert found(model.engine).shape == (1, 192, 320)


def test_mended_artefact_is_put_to_use_without_another_promotion(site: Site) -> None:
    promoted = site.int8.promote(site.folder)
    damage(site.artefacts)
    model = site.served()
    assert model.fault is not None
    (site.artefacts.directory / "artefacts" / promoted / "model.int8.onnx").write_bytes(site.int8.content)
    model.attend()
    assert (model.artefact, model.fault) == (promoted, None)


def test_artefact_with_other_tensors_is_not_put_to_use(site: Site) -> None:
    other = Int8.__new__(Int8)
    other.binding, other.batches = site.int8.binding, 1
    path = mean_colour(site.folder / "other.onnx")
    other.content = path.read_bytes() + _unknown_field(b"\x22\x0eQuantizeLinear\x22\x10DequantizeLinear")
    model = site.served()
    other.promote(site.folder)
    model.attend()
    assert precision(model) == "fp32"
    assert "differs from what runs" in str(model.fault)


def _unknown_field(content: bytes) -> bytes:
    """A field of a protobuf message that no reader knows, and all pass over."""
    return b"\xfa\x3f" + bytes([len(content)]) + content


class Cramped(OrtBackend):
    """Has no room for two engines at once, and none at all for the artefact's."""

    def __init__(self) -> None:
        super().__init__(1)
        self.open = 0

    def load(self, onnx_path: Path, profiles: tuple[Profile, ...] = (), meanwhile: Path | None = None) -> Engine:  # type: ignore[override]
        if self.open or meanwhile is not None:
            raise EngineError("out of memory")
        engine = super().load(onnx_path)
        self.open += 1
        close = engine.close

        def closed() -> None:
            self.open -= 1
            close()

        engine.close = closed  # type: ignore[method-assign]
        return engine


def test_float_comes_back_where_memory_suffices_for_nothing_else(site: Site) -> None:
    backend = Cramped()
    model = site.served(backend=backend)
    site.int8.promote(site.folder)
    model.attend()
    assert (backend.open, precision(model)) == (1, "fp32")
    assert "out of memory" in str(model.fault)
    assert found(model.engine).shape == (1, 192, 320)


# ---- on TensorRT, where an artefact needs a plan


@pytest.fixture
def ten(monkeypatch: pytest.MonkeyPatch) -> Any:
    return fake_trt.install(monkeypatch, "10.3.0")


@pytest.fixture
def mark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where a slow builder writes its process id."""
    monkeypatch.setenv("EDGE_AGENT_TEST_MARK", str(tmp_path / "builder"))
    return tmp_path / "builder"


class TrtSite:
    """A model with a plan, served over a fake TensorRT whose builds are real child processes."""

    def __init__(self, trt: Any, folder: Path, behaviour: str = "well") -> None:
        self.bench = Bench(trt, folder, behaviour)
        self.bench.save()
        self.backend = self.bench.backend
        self.artefacts = Artefacts(folder / "calibration", "tiny")
        binding = replace(
            artefact_site.BINDING,
            model="tiny",
            scheme="tensorrt",
            source_sha256=self.bench.key.model_sha256,
            device=self.backend.device,
            versions=self.backend.versions,
        )
        self.manifest = artefact_site.manifest(binding)
        self.content = quantised(self.bench.onnx_path)
        self.model = ServedModel(self.backend, binding, self.bench.onnx_path, (PROFILE,), self.artefacts)

    def promote(self) -> None:
        self.artefacts.promote(self.artefacts.store(self.content, self.manifest).id)
        self.model.attend()


def test_float_plan_reads_while_the_plan_of_the_promoted_artefact_is_built(ten: Any, tmp_path: Path) -> None:
    site = TrtSite(ten, tmp_path)
    assert precision(site.model) == "fp16"
    site.promote()
    assert (precision(site.model), site.backend.attend().state) == ("fp16", "building")
    assert site.bench.read_until_settled(site.model.engine)[0] == Condition("running")
    assert precision(site.model) == "int8"
    site.artefacts.rollback()
    site.model.attend()
    assert (precision(site.model), site.model.artefact) == ("fp16", None)
    site.promote()
    assert precision(site.model) == "int8", "its plan is there still"
    site.backend.close()


def test_rollback_gives_up_the_build_and_what_it_failed_of(ten: Any, tmp_path: Path, mark: Path) -> None:
    site = TrtSite(ten, tmp_path, "slow")
    site.promote()
    attend_until(site.backend.attend, lambda _: bool(mark.exists() and mark.read_text()))
    builder = int(mark.read_text())
    site.artefacts.rollback()
    site.model.attend()
    assert not alive(builder)
    assert (precision(site.model), site.backend.attend()) == ("fp16", Condition("running"))
    check(site.model.engine)
    site.backend.close()


def test_artefact_whose_plan_cannot_be_built_leaves_the_float_plan_reading(ten: Any, tmp_path: Path) -> None:
    site = TrtSite(ten, tmp_path, "killed")
    site.promote()
    condition, _ = site.bench.read_until_settled(site.model.engine)
    assert (condition.state, precision(site.model)) == ("degraded", "fp16")
    assert "building tiny.int8 was killed (SIGKILL)" in str(condition.reason)
    site.artefacts.rollback()
    site.model.attend()
    assert site.backend.attend() == Condition("running")
    site.backend.close()


# ---- in a pipeline


@pytest.fixture
def pipeline(site: Site) -> Iterator[Pipeline]:
    config = Config(pipeline=LIGHT, calibration=CalibrationConfig(directory=site.folder))
    with load_pipeline(config, find_models_dir()) as loaded:
        yield loaded


def test_pipeline_looks_once_a_second_and_says_what_reads(site: Site, pipeline: Pipeline) -> None:
    now_mono = pipeline._looked_mono
    pipeline._monotonic = lambda: now_mono
    before = pipeline.read(label_frame(0))
    promoted = site.int8.promote(site.folder)
    now_mono += 0.9
    pipeline.attend()
    assert pipeline.artefacts == {"detect": None, "recognise": None}
    now_mono += 0.2
    assert pipeline.attend() == Condition("running")
    assert pipeline.artefacts == {"detect": promoted, "recognise": None}
    after = pipeline.read(label_frame(1))
    assert before.engines["detect"].endswith(":fp32")
    assert after.engines["detect"].endswith(":int8")
    assert after.engines["recognise"] == before.engines["recognise"]
    lot = {field.name: field.value for field in before.fields}["lot"]
    assert {field.name: field.value for field in after.fields}["lot"] == lot


def test_frame_whose_text_was_looked_for_early_is_the_former_engines(site: Site, pipeline: Pipeline) -> None:
    pipeline._monotonic = lambda: pipeline._looked_mono + 2.0
    upcoming = label_frame(1)
    pipeline.detector.begin(upcoming.image)
    site.int8.promote(site.folder)
    pipeline.attend()
    first, second = pipeline.read(upcoming), pipeline.read(label_frame(2))
    assert first.engines["detect"].endswith(":fp32")
    assert second.engines["detect"].endswith(":int8")
    assert len(first.lines) == len(second.lines) > 3


def test_pipeline_for_measuring_is_float_whatever_is_promoted(site: Site) -> None:
    site.int8.promote(site.folder)
    config = Config(pipeline=LIGHT, calibration=CalibrationConfig(directory=site.folder))
    with load_pipeline(config, find_models_dir(), float_only=True) as pipeline:
        assert pipeline.fingerprints["detect"].endswith(":fp32")
        binding = pipeline.models["detect"].binding
    assert json.loads(json.dumps(binding.to_json())) == site.int8.binding.to_json()
    with load_pipeline(config, find_models_dir()) as pipeline:
        assert pipeline.fingerprints["detect"].endswith(":int8")


def test_what_is_said_first(site: Site) -> None:
    model = site.served()
    building, failed = Condition("building", "det: 3/7"), Condition("degraded", "det: no plan")
    assert with_models(Condition("running"), [model]) == Condition("running")
    model.note = "made elsewhere"
    assert with_models(Condition("running"), [model]) == Condition("running", "made elsewhere")
    assert with_models(failed, [model]) == failed
    model.note, model.fault = None, "damaged"
    assert with_models(building, [model]) == building
    assert with_models(Condition("running"), [model]) == Condition("degraded", "damaged")
    assert with_models(failed, [model]) == Condition("degraded", "det: no plan; damaged")
    assert with_models(failed, [model], [None, "no encoder"]).reason == "det: no plan; damaged; no encoder"
    assert with_models(Condition("running"), [], ["no encoder"]) == Condition("degraded", "no encoder")
