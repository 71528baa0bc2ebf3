"""Calibration: frames are collected, inputs recorded, and each model is given its chance. Read `calibrate` first."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Protocol

from edge_agent import config as configuration
from edge_agent.artefacts import Artefacts, find_calibration_dir
from edge_agent.backends.gpu import gpu_bus_id
from edge_agent.calibrate import archive, collection
from edge_agent.calibrate.collect import FrameWish, collect
from edge_agent.calibrate.collection import Collection
from edge_agent.calibrate.earning import Earned, earn, with_each_alone
from edge_agent.calibrate.feed_store import FeedStore
from edge_agent.calibrate.feeds import record_feeds
from edge_agent.calibrate.findings import Findings
from edge_agent.calibrate.footprint import Scale
from edge_agent.calibrate.frames import CameraSource, FolderSource, FrameSource, RecordedSource
from edge_agent.calibrate.judge import ReadingJudge, frames_of
from edge_agent.calibrate.judgement import Judgement
from edge_agent.calibrate.narration import Narrator
from edge_agent.calibrate.outcome import Outcome
from edge_agent.calibrate.progress import PROGRESS_FILE, ProgressFile
from edge_agent.calibrate.recipe import Recipe, load_recipe, shipped_directories
from edge_agent.calibrate.report import write_report
from edge_agent.calibrate.report_words import headline
from edge_agent.calibrate.subject import Subject
from edge_agent.calibrate.wish import Wish
from edge_agent.calibrate.workbench import TASKS, Workbench
from edge_agent.config import Config
from edge_agent.errors import CalibrationRefused, ConfigError
from edge_agent.models.spec import ModelSpec, find_models_dir
from edge_agent.pipeline import Pipeline, load_pipeline
from edge_agent.telemetry.energy import measured_energy

COLLECTION_FOLDER = "collection"
RECORDED_FOLDER = "recorded"
LOCK_FILE = "calibrate.lock"
MOST_SKIPPED_TOLD = 20
# shares of one model's part of the whole
STEPS = {
    "ranges": (0.0, 0.2),
    "searching": (0.2, 0.45),
    "judging": (0.45, 0.65),
    "reading": (0.65, 0.7),
    "measuring each group": (0.7, 1.0),
}
LESS_URGENT = 10  # nice(2): where the agent reads meanwhile, it comes first
COLLECTING, RECORDING = 0.05, 0.2  # shares of the whole that are done then; the models have the rest in equal parts


class Events(Protocol):
    """Who is told how it goes."""

    def progress(self, step: str, share: float, model: str | None = None) -> None: ...

    def note(self, message: str) -> None: ...

    def outcome(self, outcome: dict[str, object]) -> None: ...


def calibrate(wish: Wish, events: Events) -> None:
    """Everything that `wish` asks for; one outcome for each model.

    Raises CalibrationRefused where frames do not do or another calibration runs, ConfigError for settings or a recipe
    that cannot work. What was finished before an interruption is used again, as long as nothing differs.
    """
    settings, models_dir = settings_of(wish)
    settings = with_models(settings, wish.models, models_dir)
    directory = calibration_directory(settings, models_dir)
    with one_at_a_time(directory), ProgressFile(directory / PROGRESS_FILE) as file:
        os.nice(LESS_URGENT)
        run = Run(wish, settings, models_dir, directory, events, file)
        frames = run.collect()
        stores = run.record(frames)
        for number, stage in enumerate(stores):
            run.calibrate_model(stage, frames, stores[stage], number / len(stores), (number + 1) / len(stores))


@dataclass
class Run:
    """One calibration under way. `accepted`: INT8 files of models that were promoted in it, by stage."""

    wish: Wish
    settings: Config
    models_dir: Path
    directory: Path
    events: Events
    file: ProgressFile
    accepted: dict[str, Path] = field(default_factory=dict)
    told: float = 0.0

    def say(self, step: str, share: float, model: str | None = None) -> None:
        """How far the whole is, to whoever started this and to the agent; what is done stays done."""
        share = self.told = max(self.told, share)
        self.events.progress(step, share, model)
        self.file.say(step, share, model)

    def collect(self) -> Collection:
        """The frames to go by."""
        self.say("collecting frames", 0.0)
        frames = frames_wished(
            self.wish, self.settings, self.directory, lambda share: self.say("collecting frames", share * COLLECTING)
        )
        counts = frames.counts()
        self.events.note(
            f"{counts['used']} frames of {counts['offered']} from {counts['source']}: {counts['calibration']} to "
            f"calibrate on, {counts['search']} to search with, {counts['held_out']} held out; {frames.tally}"
        )
        for skipped in frames.skipped[:MOST_SKIPPED_TOLD]:
            self.events.note(f"skipped {skipped.name}: {skipped.reason}")
        if len(frames.skipped) > MOST_SKIPPED_TOLD:
            self.events.note(f"skipped {len(frames.skipped) - MOST_SKIPPED_TOLD} more")
        return frames

    def record(self, frames: Collection) -> dict[str, FeedStore]:
        """What the engines of the wanted models are given when the float pipeline reads the frames, by stage."""
        wanted = models_by_stage(self.settings, self.wish.models)
        recipes = {model: self.recipe(model) for model in wanted.values()}
        stores = record_feeds(
            frames,
            "calibration",
            self.settings,
            self.models_dir,
            self.directory,
            {model: recipe.most_feeds for model, recipe in recipes.items()},
            set(wanted.values()),
            lambda share: self.say("recording inputs", COLLECTING + share * (RECORDING - COLLECTING)),
        )
        return {stage: stores[model] for stage, model in wanted.items()}

    def recipe(self, model: str) -> Recipe:
        """The model's recipe, the operator's own before the shipped one."""
        return load_recipe(model, [self.directory, *shipped_directories()])

    def calibrate_model(self, stage: str, frames: Collection, store: FeedStore, begin: float, end: float) -> None:
        """Gives one model its chance, writes its report and says its outcome.

        Then, where INT8 has earned its place, the report is given what each group does alone: no use waited for it.
        """
        began = time.time()
        model = models_by_stage(self.settings, ())[stage]

        def report(step: str, share: float) -> None:
            low, high = STEPS[step]
            within = begin + (end - begin) * (low + share * (high - low))
            self.say(step, RECORDING + (1 - RECORDING) * within, model)

        with self.workbench(stage, frames) as bench:
            subject = self.subject(bench, store)
            earned = earn(subject, bench, report)
            narrator = Narrator(subject, bench)
            readings = None
            if earned.judgement is not None and earned.judgement.passed:
                report("reading", 0.0)
                readings = ReadingJudge(frames_of(frames, "held_out"), bench.pipeline, subject.recipe.gates)
        together = None if readings is None else self.judged_together(stage, subject, earned, readings)
        earned = self.weighed(subject, earned)
        findings = self.decide(subject, earned, together, narrator, began)
        self.conclude(stage, findings)
        if findings.verdict != "refused":
            with self.workbench(stage, frames) as bench:
                told = with_each_alone(earned, subject, bench, report)
            write_report(narrator.with_search(findings, told), self.directory / model)
        subject.candidate_path.unlink(missing_ok=True)

    def subject(self, bench: Workbench, store: FeedStore) -> Subject:
        """The model of the bench's stage, to be calibrated."""
        served = bench.pipeline.models[bench.stage]
        model = served.binding.model
        recipe = self.recipe(model)
        if self.wish.method != "recipe":
            recipe = recipe.model_copy(update={"method": self.wish.method})
        return Subject.of(served, TASKS[bench.stage], recipe, self.directory / model, store)

    def judged_together(self, stage: str, subject: Subject, earned: Earned, readings: ReadingJudge) -> Judgement:
        """Whole readings with this candidate and every model that was accepted before it in this run."""
        assert earned.content is not None
        subject.write_candidate(earned.content)
        with self.pipeline() as pipeline:
            for each, path in {**self.accepted, stage: subject.candidate_path}.items():
                served = pipeline.models[each]
                served.engine.swap(partial(pipeline.backend.load, path, served.profiles))
            return readings.judge(pipeline, earned.found.most_damaging)

    def weighed(self, subject: Subject, earned: Earned) -> Earned:
        """The same with the memory that either engine takes, where there are two."""
        if earned.content is None:
            return earned
        subject.write_candidate(earned.content)
        scale = Scale.of(self.settings, self.models_dir, subject.profiles, subject.largest_feed())
        paths = (subject.onnx_path, subject.candidate_path)
        return replace(earned, memory_bytes=(scale.memory_bytes(paths[0]), scale.memory_bytes(paths[1])))

    def decide(
        self, subject: Subject, earned: Earned, together: Judgement | None, narrator: Narrator, began: float
    ) -> Findings:
        """Stores and promotes what has passed every gate, unless this is a dry run."""
        findings = narrator.findings(earned, together, began)
        if findings.verdict == "refused" or self.wish.dry_run:
            return findings
        assert earned.content is not None
        artefacts = Artefacts(self.directory, subject.model)
        artefact = artefacts.store(earned.content, narrator.manifest(earned, together))
        promotion = artefacts.promote(artefact.id)
        return narrator.promoted(findings, artefact.id, promotion.promoted_at)

    def conclude(self, stage: str, findings: Findings) -> None:
        """Writes the report and says the outcome."""
        folder = self.directory / findings.model
        _, page = write_report(findings, folder)
        if findings.artefact is not None:
            self.accepted[stage] = Artefacts(self.directory, findings.model).get(findings.artefact).onnx
        outcome = Outcome(
            findings.model,
            findings.verdict,
            headline(findings),
            (*findings.reasons, *findings.advice),
            None if findings.timing is None else findings.timing.speedup,
            findings.artefact,
            str(page),
        )
        self.events.outcome(outcome.to_json())

    @contextmanager
    def workbench(self, stage: str, frames: Collection) -> Iterator[Workbench]:
        """The stage's workbench with float engines, inside."""
        root, threads = self.settings.telemetry.system_root, self.settings.backend.threads
        with self.pipeline() as pipeline, measured_energy(root, gpu_bus_id(pipeline.backend)) as energy:
            yield Workbench(stage, pipeline, frames, self.models_dir, energy, threads)

    @contextmanager
    def pipeline(self) -> Iterator[Pipeline]:
        """The pipeline with float engines; builds of plans count as progress of nothing, but are said."""

        def report(progress: object) -> None:
            self.events.note(f"building {progress}")

        with load_pipeline(self.settings, self.models_dir, report, float_only=True) as pipeline:
            yield pipeline


def settings_of(wish: Wish) -> tuple[Config, Path]:
    """The settings that are in force, and the folder of the models."""
    settings = configuration.without_file()
    if wish.settings is not None:
        settings = configuration.rebuilt(Config(), wish.settings, "the settings that are in force")
    return settings, find_models_dir(wish.models_dir or settings.models_dir)


def calibration_directory(settings: Config, models_dir: Path) -> Path:
    """Where calibrations lie."""
    return find_calibration_dir(settings.calibration.directory, models_dir)


def with_models(settings: Config, models: tuple[str, ...], models_dir: Path) -> Config:
    """The settings with these models in the pipeline, each in the place of the one for the same task.

    ConfigError for two of the same task: only one of them can read the frames.
    """
    keys = {"text_detection": "detector", "text_recognition": "recogniser", "text_embedding": "encoder"}
    chosen: dict[str, str] = {}
    for model in models:
        task = ModelSpec.load(models_dir, model).task
        if task not in keys:
            raise ConfigError(f"{model} is for {task}, which is not calibrated: it runs as it was made")
        key = keys[task]
        if chosen.get(key, model) != model:
            raise ConfigError(f"{chosen[key]} and {model} are both a {key}; calibrate one after the other")
        chosen[key] = model
    return settings.model_copy(update={"pipeline": settings.pipeline.model_copy(update=chosen)})


def models_by_stage(settings: Config, models: tuple[str, ...]) -> dict[str, str]:
    """The models of the pipeline that are named, or all of them, by stage, in the order in which they run."""
    pipeline = settings.pipeline
    all_of_them = {"detect": pipeline.detector, "recognise": pipeline.recogniser, "encode": pipeline.encoder}
    return {stage: model for stage, model in all_of_them.items() if model and (not models or model in models)}


def frames_wished(wish: Wish, settings: Config, directory: Path, report: Callable[[float], None]) -> Collection:
    """The collection that is asked for. CalibrationRefused where there is none or it does not do."""
    folder = directory / COLLECTION_FOLDER
    if wish.source == "archive":
        return archive.import_(Path(wish.name or ""), folder, report=report)
    if wish.source == "collection":
        kept = collection.load(folder)
        if kept is None:
            raise CalibrationRefused(
                "there are no frames yet: give them with --frames DIR, --camera NAME or --recorded; see "
                "`edge-agent calibrate --help`"
            )
        return kept
    return collect(source_of(wish, settings, directory), folder, FrameWish(wish.count), report)


def source_of(wish: Wish, settings: Config, directory: Path) -> FrameSource:
    """Where frames come from."""
    if wish.source == "folder":
        return FolderSource(Path(wish.name or ""))
    if wish.source == "camera":
        return CameraSource(wish.name or "", settings)
    return RecordedSource(directory / RECORDED_FOLDER)


@contextmanager
def one_at_a_time(directory: Path) -> Iterator[None]:
    """Holds the folder's lock. CalibrationRefused while another calibration has it, or where it cannot be written."""
    try:
        directory.mkdir(parents=True, exist_ok=True)
        lock = os.open(directory / LOCK_FILE, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o644)
    except OSError as exc:
        raise CalibrationRefused(
            f"{directory} cannot be written: {exc.strerror}; set calibration.directory, or run as the agent's user"
        ) from exc
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    except BlockingIOError as exc:
        raise CalibrationRefused("another calibration is under way; wait for it, or end it") from exc
    finally:
        os.close(lock)
