"""Pipeline: one frame in, one reading out, in a straight line: detect -> recognise -> order -> extract.

`load_pipeline(config, models_dir)` puts one together. The thread that loads a pipeline also reads and closes it.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any

import cv2

from edge_agent.artefacts import Artefacts, Binding, find_calibration_dir
from edge_agent.backends.base import Backend, Condition, Engine, Planned, Profile
from edge_agent.backends.build_job import Report
from edge_agent.backends.choose import choose_backend, look, open_backend
from edge_agent.backends.plan import BuildOptions
from edge_agent.backends.plan_store import find_plans_dir
from edge_agent.backends.trt_settings import TrtSettings
from edge_agent.config import Config
from edge_agent.errors import ConfigError, FrameError, ModelError
from edge_agent.models import charset as charsets
from edge_agent.models.spec import ModelSpec, Task, Variant, expected_files, require_files
from edge_agent.records import Frame, Reading
from edge_agent.served_model import ServedModel
from edge_agent.settings.backend import BackendConfig, TensorRtConfig
from edge_agent.settings.pipeline import PipelineConfig
from edge_agent.settings.roi import RoiConfig
from edge_agent.stages.catalogue_in_use import CatalogueInUse
from edge_agent.stages.field_extractor import Clock, FieldExtractor, no_masks
from edge_agent.stages.kept_prototypes import KeptPrototypes
from edge_agent.stages.language import LabelLanguage
from edge_agent.stages.text_detector import DetectorSettings, TextDetector
from edge_agent.stages.text_encoder import TextEncoder
from edge_agent.stages.text_recogniser import RecogniserSettings, TextRecogniser
from edge_agent.stages.text_search import search
from edge_agent.stages.token_classifier import TokenClassifier
from edge_agent.stages.views import View, views_of
from edge_agent.verify.expectation import Expectation
from edge_agent.verify.judge import day_of, fit_of, judge_reading
from edge_agent.view_codes import ViewCodes
from edge_agent.view_text import Tries, ViewText, other_way_up, read_view

log = logging.getLogger(__name__)

NO_TEXT = "no_text"
PROTOTYPES_FILE = "prototypes.npz"  # beside the plans
USUAL_FRAME_PX = (1280, 720)
LOOK_S = 1.0  # how often it is looked for a change of what is promoted

Wrap = Callable[[str, Engine], Engine]  # by the stage's name, the engine that the stage is to have in place of its own

# languages whose labels the head cut to Latin characters can read (ISO 639)
LATIN_LANGUAGES = frozenset(
    (
        "af bs ca cs cy da de en es et eu fi fil fr ga gl hr hu id is it la lb lt lv "
        "ms mt nl no oc pl pt ro sk sl sq sv sw tl tr"
    ).split()
)


class Pipeline:
    """Reads frames. A context manager: leaving it closes the engines.

    `engines` and `models` by stage; a pipeline of engines that are no model's has no `models`. `expected`, to be set,
    says what a camera's readings must say: its patterns are read by, and where both ways up can be read, it decides.
    """

    def __init__(
        self,
        detector: TextDetector,
        recogniser: TextRecogniser,
        extractor: FieldExtractor,
        engines: Mapping[str, Engine],
        backend: Backend,
        models: Mapping[str, ServedModel] | None = None,
        monotonic: Callable[[], float] = time.monotonic,
        catalogue: CatalogueInUse | None = None,
    ) -> None:
        self.detector = detector
        self.recogniser = recogniser
        self.extractor = extractor
        self.engines = engines
        self.backend = backend
        self.models = models or {}
        self.catalogue = catalogue or CatalogueInUse()
        self._seen: tuple[Frame, tuple[View, ...]] | None = None
        self._codes = ViewCodes()
        self._language = LabelLanguage(())
        self._tries = Tries()
        self.expected: Callable[[str], Expectation | None] = lambda camera: None
        self.rois: Mapping[str, Mapping[str, RoiConfig]] = {}  # by camera, its regions by name
        self.fingerprints = self._fingerprints()
        self._monotonic = monotonic
        self._looked_mono = monotonic()

    def read(self, frame: Frame, upcoming: Callable[[], Frame | None] = lambda: None) -> Reading:
        """The reading of one frame; no lines and reason `no_text` where there is no text.

        Where engines compute beside the CPU, `upcoming` is asked for the next frame as soon as this one's text is
        found, and the search in it goes on during the rest of the work here; it should be the next one to be read.
        Raises FrameError when this frame cannot be processed, EngineError when an engine failed.
        """
        timings_ms: dict[str, float] = {}
        texts: list[ViewText] = []
        with opencv_errors_of(frame), timed(timings_ms, "total"):
            views = self._views(frame)
            searches = [self._codes.begin(view) for view in views]
            for n, view in enumerate(views):
                with timed(timings_ms, "detect"):
                    self.detector.begin(view.image)
                    self.fingerprints = self._fingerprints()  # now: of the engine that began, were it replaced since
                    probability = self.detector.probability(view.image)
                    if self.backend.overlaps:
                        self._begin(views[n + 1 :], upcoming)
                    found = search(view, probability, self.detector)
                with timed(timings_ms, "recognise"):
                    texts.append(read_view(self.recogniser, view, found))
            with timed(timings_ms, "decode"):  # what the text's finding and reading has not covered
                codes = [code for coming in searches for code in coming.result()]
            seen = Reading(
                camera=frame.camera,
                seq=frame.seq,
                captured_at=frame.captured_at,
                width_px=frame.width_px,
                height_px=frame.height_px,
                timings_ms=timings_ms,
                engines=self.fingerprints,
                backend=self.backend_in_use,
                captured_mono=frame.captured_mono,
                quality=tuple(dict.fromkeys(flag for text in texts for flag in text.quality)),
                codes=tuple(codes),
            )
            expectation = self.expected(frame.camera)
            with timed(timings_ms, "extract"):
                reading = self._understood(seen, texts, expectation)
            return reading if expectation is None else self._as_expected(reading, texts, expectation, timings_ms)

    def _understood(self, seen: Reading, texts: Sequence[ViewText], expectation: Expectation | None) -> Reading:
        """What was seen, with the lines of its views and what they mean."""
        lines = [line for text in texts for line in text.lines]
        masks = no_masks if expectation is None else expectation.masks
        return replace(
            seen,
            lines=tuple(lines),
            fields=self.extractor.extract(lines, seen.codes, masks, self.recogniser.settings.doubt_margin),
            language=self._language.of(line.text for line in lines),
            reason=None if lines else NO_TEXT,
        )

    def _as_expected(
        self, reading: Reading, texts: Sequence[ViewText], expectation: Expectation, timings_ms: dict[str, float]
    ) -> Reading:
        """The reading; where it does not pass, with the views that fit better the other way up, or fit as well and read
        plainly surer, read so."""
        today = day_of(reading.captured_at)
        standing = list(texts)
        for n, text in enumerate(texts):
            judgement = judge_reading(reading, expectation, today)
            if judgement is None or judgement.verdict == "PASS":
                break
            if not self._tries.is_due(reading.camera, text, expectation):
                continue
            with timed(timings_ms, "recognise"):
                over = other_way_up(self.recogniser, text)
            helps = False
            if over is not None:
                with timed(timings_ms, "extract"):
                    turned = self._understood(reading, [*standing[:n], over, *standing[n + 1 :]], expectation)
                gain = fit_of(turned, expectation, today) - fit_of(reading, expectation, today)
                helps = gain > 0 or (gain == 0 and over.is_surer_than(text))
                if helps:
                    reading, standing[n] = turned, over
            self._tries.tell(reading.camera, text, expectation, helped=helps)
        return reading

    def _views(self, frame: Frame) -> tuple[View, ...]:
        """What is to be read of a frame; made once, for what the engine began with is known by its image."""
        if self._seen is None or self._seen[0] is not frame:
            self._seen = frame, views_of(frame.image, self.rois.get(frame.camera, {}))
        return self._seen[1]

    def _begin(self, views: Sequence[View], upcoming: Callable[[], Frame | None]) -> None:
        """Begins the search in the first of the views, or of the next frame where there is none left."""
        if views:
            self.detector.begin(views[0].image)
            return
        following = upcoming()
        if following is None:
            return
        with suppress(FrameError), opencv_errors_of(following):  # raised again when that frame itself is read
            self.detector.begin(self._views(following)[0].image)

    def tune(self, config: Config) -> None:
        """From the next frame on, as the LIVE keys among these say; the others need a new pipeline."""
        self.catalogue.take(config.catalogue)
        settings = config.pipeline
        self.rois = {name: camera.rois for name, camera in config.cameras.items()}
        self._seen = None
        self.detector.settings = replace(
            self.detector.settings,
            max_windows=settings.detector_max_windows,
            pixel_threshold=settings.pixel_threshold,
            box_threshold=settings.box_threshold,
            unclip_ratio=settings.unclip_ratio,
            max_boxes=settings.max_boxes,
        )
        self.recogniser.settings = replace(
            self.recogniser.settings, min_confidence=settings.min_confidence, doubt_margin=settings.doubt_margin
        )
        self.extractor.tune(config.fields)
        self.extractor.catalogue = self.catalogue.now
        self._codes.formats = config.fields.codes
        self._language = LabelLanguage(config.pipeline.languages)

    def attend(self) -> Condition:
        """Puts engines to use that were built or promoted meanwhile, and says how the pipeline serves; for between two
        frames.

        Raises EngineError or ConfigError where nothing is left to read with.
        """
        condition = self.backend.attend()
        now_mono = self._monotonic()
        if now_mono - self._looked_mono >= LOOK_S:
            self._looked_mono = now_mono
            for model in self.models.values():
                model.attend()
        self.fingerprints = self._fingerprints()
        self.catalogue.attend()
        self.extractor.catalogue = self.catalogue.now
        return with_models(condition, self.models.values(), (self.extractor.fault, self.catalogue.fault))

    def discard_plans(self) -> list[str]:
        """Puts the plans of the models in use aside, so that the next start builds them; the models' names.

        ConfigError where the backend runs the model files as they are.
        """
        if not isinstance(self.backend, Planned):
            raise ConfigError(f"{self.backend.name} runs model files as they are: there is no plan to build anew")
        for model in self.models.values():
            self.backend.discard(model.file, model.profiles)
        return [model.binding.model for model in self.models.values()]

    @property
    def artefacts(self) -> dict[str, str | None]:
        """By stage, the id of the artefact in use, None where it is the float model."""
        return {stage: model.artefact for stage, model in self.models.items()}

    @property
    def backend_in_use(self) -> str:
        """What computes: the backend's name, or several with `+` between while something else serves in its place."""
        names = {fingerprint.partition(":")[0].partition("-")[0] for fingerprint in self.fingerprints.values()}
        return "+".join(sorted(names)) or self.backend.name

    def _fingerprints(self) -> Mapping[str, str]:
        return {stage: engine.fingerprint for stage, engine in self.engines.items()}

    def warm_up(self) -> None:
        """Meets the usual shapes once, so that the first frame is as fast as the next."""
        self.detector.warm_up(*USUAL_FRAME_PX)
        self.recogniser.warm_up()

    def close(self) -> None:
        """Frees the engines; calling it again does nothing."""
        self._codes.close()
        for engine in self.engines.values():
            engine.close()
        self.backend.close()

    def __enter__(self) -> Pipeline:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            self.backend.give_up_builds()
        self.close()


def with_models(
    condition: Condition, models: Iterable[ServedModel], faults_beside: Iterable[str | None] = ()
) -> Condition:
    """How backend and models serve together: a build is said first, then what is wrong with them and beside them, then
    what else is to know."""
    if condition.state == "building":
        return condition
    served = list(models)
    faults = [fault for fault in (*(model.fault for model in served), *faults_beside) if fault is not None]
    if condition.state == "degraded" and condition.reason is not None:
        faults.insert(0, condition.reason)
    if faults:
        return Condition("degraded", "; ".join(faults))
    notes = [model.note for model in served if model.note is not None]
    return replace(condition, reason="; ".join(notes)) if notes else condition


@contextmanager
def opencv_errors_of(frame: Frame) -> Iterator[None]:
    """What OpenCV cannot do with a frame (its versions have different limits) is that frame's failure: FrameError."""
    try:
        yield
    except cv2.error as exc:
        size = f"{frame.width_px}x{frame.height_px}"
        raise FrameError(f"OpenCV {cv2.__version__} cannot process this frame of {size} pixels: {exc.err}") from exc


@contextmanager
def timed(timings_ms: dict[str, float], stage: str, clock: Callable[[], float] = time.perf_counter) -> Iterator[None]:
    """Adds the wall time spent inside to `timings_ms`, in ms."""
    began = clock()
    yield
    timings_ms[stage] = timings_ms.get(stage, 0.0) + (clock() - began) * 1e3


def load_pipeline(
    config: Config,
    models_dir: Path,
    report: Report | None = None,
    *,
    serve_while_building: bool = False,
    float_only: bool = False,
    wrap: Wrap | None = None,
    clock: Clock = time.time,
) -> Pipeline:
    """The pipeline that `config` describes, its engines loaded; `report` is told how far a build of plans is.

    It waits for builds and a long catalogue, unless `serve_while_building`: then something else reads meanwhile, where
    there is something, and whoever reads calls `attend` between frames. A calibrated artefact that is promoted serves
    in place of its float model, unless `float_only`. Stages get what `wrap` makes of their engine. `clock` gives unix
    seconds that dates are judged by, None while they cannot be believed.
    Raises ConfigError or ModelError naming what is wrong or missing; nothing stays open then.
    """
    cv2.setNumThreads(1)  # its pool would spin against the engines' own: 1.3x slower on 2 cores
    settings = config.pipeline
    catalogue = CatalogueInUse()
    catalogue.begin(config.catalogue)  # first: it is made ready while engines are loaded
    backend = load_backend(config.backend, models_dir, report, serve_while_building=serve_while_building)
    with ExitStack() as opened:
        opened.callback(backend.close)
        calibration_dir = find_calibration_dir(config.calibration.directory, models_dir)
        loader = Loader(backend, models_dir, opened, None if float_only else calibration_dir, wrap)
        detector = loader.detector(settings)
        recogniser = loader.recogniser(settings)
        encoder = loader.encoder(settings)
        extractor = FieldExtractor(
            config.fields,
            encoder,
            clock,
            tagger=loader.tagger(settings),
            kept=None if encoder is None else KeptPrototypes(find_plans_dir(models_dir) / PROTOTYPES_FILE),
        )
        if not serve_while_building:
            catalogue.attend(wait=True)
        opened.pop_all()
    pipeline = Pipeline(detector, recogniser, extractor, loader.engines, backend, loader.models, catalogue=catalogue)
    pipeline.tune(config)
    return pipeline


def load_backend(
    config: BackendConfig, models_dir: Path, report: Report | None = None, *, serve_while_building: bool = False
) -> Backend:
    """The backend that `config` asks for; ConfigError where it cannot run here and nothing else is allowed."""
    choice = choose_backend(config.kind, config.allow_cpu_fallback, look())
    log.log(logging.WARNING if choice.fallback else logging.INFO, "%s", choice)
    settings = replace(
        tensorrt_settings(config.tensorrt, models_dir),
        serve_while_building=serve_while_building,
        cpu_threads=config.threads,
    )
    return open_backend(choice, config.threads, settings, report)


def tensorrt_settings(config: TensorRtConfig, models_dir: Path) -> TrtSettings:
    """The configuration in the backend's own terms."""
    return TrtSettings(
        plans_dir=config.plans_dir or find_plans_dir(models_dir),
        options=BuildOptions(
            precision=config.precision,
            optimisation_level=config.optimisation_level,
            dla_core=config.dla_core,
            tactic_sources=config.tactic_sources,
        ),
        workspace_bytes=config.workspace_mb << 20,
        graphs=config.cuda_graphs,
        half_encoders=config.half_encoders,
        gpu_memory_bytes=None if config.gpu_memory_mb is None else config.gpu_memory_mb << 20,
    )


class Loader:
    """Makes the stages of a pipeline; each engine made is closed by `opened` and listed in `engines` by its stage, as
    its model is in `models`.

    Promoted artefacts are looked for in `calibration_dir`; None: every model runs in float.
    """

    def __init__(
        self,
        backend: Backend,
        models_dir: Path,
        opened: ExitStack,
        calibration_dir: Path | None,
        wrap: Wrap | None = None,
    ) -> None:
        self.backend = backend
        self.models_dir = models_dir
        self.opened = opened
        self.calibration_dir = calibration_dir
        self.wrap: Wrap = wrap or (lambda stage, engine: engine)
        self.engines: dict[str, Engine] = {}
        self.models: dict[str, ServedModel] = {}

    def detector(self, settings: PipelineConfig) -> TextDetector:
        spec = self.spec(settings.detector, "text_detection")
        assert spec.detector is not None
        detector_settings = DetectorSettings(
            min_side_px=settings.detector_min_side_px,
            max_side_px=settings.detector_max_side_px,
            side_multiple_px=spec.detector.side_multiple_px,
            pixel_threshold=settings.pixel_threshold,
            box_threshold=settings.box_threshold,
            unclip_ratio=settings.unclip_ratio,
            max_boxes=settings.max_boxes,
            max_windows=settings.detector_max_windows,
        )
        variant: Variant = "cpu" if self.backend.any_shape else "full"
        seen_as = values_of(detector_settings, "min_side_px", "max_side_px", "side_multiple_px")
        return TextDetector(self.engine("detect", spec, variant, seen_as), detector_settings)

    def recogniser(self, settings: PipelineConfig) -> TextRecogniser:
        spec = self.spec(settings.recogniser, "text_recognition")
        assert spec.recogniser is not None
        variant = head_for(settings, spec)
        charset = require_files(spec, self.models_dir, variant).charset
        assert charset is not None
        recogniser_settings = RecogniserSettings(
            height_px=spec.recogniser.height_px,
            widths_px=spec.recogniser.width_buckets_px,
            pad_value=spec.recogniser.pad_value,
            min_confidence=settings.min_confidence,
            doubt_margin=settings.doubt_margin,
        )
        if self.backend.any_shape:  # a call more costs little there, a column more its full share: 1.13x
            recogniser_settings = replace(
                recogniser_settings,
                width_step_px=spec.recogniser.step_px,
                batch_sizes=(1, 2, 3, 4),
                batch_cost_px=40,
            )
        seen_as = values_of(recogniser_settings, "height_px", "widths_px", "width_step_px", "pad_value")
        engine = self.engine("recognise", spec, variant, seen_as)
        characters = charsets.read(charset)
        return TextRecogniser(engine, characters, recogniser_settings, charsets.codes(characters))

    def encoder(self, settings: PipelineConfig) -> TextEncoder | None:
        if settings.encoder is None:
            return None
        spec = self.spec(settings.encoder, "text_embedding")
        assert spec.encoder is not None
        tokenizer = self.tokenizer(spec)
        engine = self.engine("encode", spec, "full", values_of(spec.encoder, "max_tokens", "prefix"))
        return TextEncoder(engine, tokenizer, spec.encoder.max_tokens, spec.encoder.prefix)

    def tagger(self, settings: PipelineConfig) -> TokenClassifier | None:
        if settings.tagger is None:
            return None
        spec = self.spec(settings.tagger, "token_classification")
        assert spec.tagger is not None
        tokenizer = self.tokenizer(spec)
        engine = self.engine("tag", spec, "full", values_of(spec.tagger, "max_tokens", "labels"))
        return TokenClassifier(engine, tokenizer, spec.tagger.labels, spec.tagger.max_tokens, spec.tagger.threshold)

    def tokenizer(self, spec: ModelSpec) -> Path:
        """The model's tokenizer file; ModelError where it has none."""
        tokenizer = require_files(spec, self.models_dir).tokenizer
        if tokenizer is None:
            raise ModelError(f"{spec.name} has no tokenizer; name one under source.files.tokenizer in its model.yaml")
        return tokenizer

    def spec(self, name: str, task: Task) -> ModelSpec:
        """The declared model, which must be for `task`."""
        spec = ModelSpec.load(self.models_dir, name)
        if spec.task != task:
            raise ModelError(f"model {name} is for {spec.task}; expected one for {task}: see `edge-agent models list`")
        return spec

    def engine(self, stage: str, spec: ModelSpec, variant: Variant, preprocessing: Mapping[str, Any]) -> Engine:
        """A loaded engine for the model's variant; `preprocessing`: what makes the inputs that the engine meets."""
        profiles = tuple(Profile(shapes.min, shapes.opt, shapes.max) for shapes in spec.profiles)
        onnx_path = require_files(spec, self.models_dir, variant).onnx
        binding = Binding(
            model=spec.name,
            variant=variant,
            scheme=self.backend.name,
            source_sha256=expected_files(onnx_path.parent)[onnx_path.name][0],
            preprocessing=preprocessing,
            device=self.backend.device,
            versions=self.backend.versions,
        )
        artefacts = None if self.calibration_dir is None else Artefacts(self.calibration_dir, spec.name)
        model = ServedModel(self.backend, binding, onnx_path, profiles, artefacts)
        self.opened.callback(model.engine.close)
        self.engines[stage], self.models[stage] = self.wrap(stage, model.engine), model
        return self.engines[stage]


def values_of(settings: object, *names: str) -> dict[str, Any]:
    """Some of the settings, by name."""
    return {name: getattr(settings, name) for name in names}


def head_for(settings: PipelineConfig, spec: ModelSpec) -> Variant:
    """The recogniser's head to load: the smallest that can write every configured language."""
    if settings.characters != "auto":
        return settings.characters
    latin_will_do = LATIN_LANGUAGES.issuperset(settings.languages) and "latin" in spec.variants
    return "latin" if latin_will_do else "full"
