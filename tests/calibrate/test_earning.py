"""Earning where a trial is a build: text is weighed on the CPU first, and a group that cannot be built is named.

The builder is a fake at the Backend seam, its engines are real ones on the CPU.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import onnx

from edge_agent.backends.base import Engine, Profile
from edge_agent.backends.ort import OrtBackend
from edge_agent.calibrate import collection
from edge_agent.calibrate.collection import Part
from edge_agent.calibrate.earning import earn, with_each_alone
from edge_agent.calibrate.narration import Narrator
from edge_agent.calibrate.progress import ProgressFile
from edge_agent.calibrate.recipe import Gates
from edge_agent.calibrate.run import Run
from edge_agent.calibrate.subject import Subject
from edge_agent.calibrate.workbench import Judge, Workbench
from edge_agent.errors import ModelError
from edge_agent.models.spec import find_models_dir
from edge_agent.pipeline import Pipeline
from edge_agent.telemetry.energy import EnergySources
from tests.calibrate.calibration_site import Heard, Site

GROUPS = {"pointwise.s16", "pointwise.s8"}


class Builder(OrtBackend):
    """Calls itself tensorrt; refuses files in which all of `forbidden` are INT8; keeps what it was asked to build."""

    name = "tensorrt"

    def __init__(self, *forbidden: str) -> None:
        super().__init__(threads=1)
        self.forbidden = set(forbidden)
        self.built: list[set[str]] = []

    def load(self, onnx_path: Path, profiles: tuple[Profile, ...] = (), meanwhile: Path | None = None) -> Any:
        model = onnx.load(onnx_path)
        groups = {p.key: p.value for p in model.metadata_props}["edge_agent.groups"].split(",")
        self.built.append(set(groups))
        if self.forbidden and self.forbidden <= set(groups):
            raise ModelError("Could not find any implementation for node Conv_17")
        engine: Engine = super().load(onnx_path, profiles)
        return engine


class Bench:
    """What `earn` needs, with a builder in the backend's place."""

    def __init__(self, site: Site, builder: Builder, pipeline: Pipeline, run: Run) -> None:
        frames = collection.load(site.calibration / "collection")
        assert frames is not None
        stores = run.record(frames)
        pipeline.backend = builder
        self.bench = Workbench("recognise", pipeline, frames, find_models_dir(), EnergySources((), ()), threads=1)
        subject = run.subject(self.bench, stores["recognise"])
        binding = replace(subject.binding, scheme="tensorrt")
        self.subject: Subject = replace(subject, binding=binding)
        self.steps: set[str] = set()

    def report(self, step: str, share: float) -> None:
        self.steps.add(step)
        assert 0 <= share <= 1


@contextmanager
def bench_of(promoted: tuple[Site, Heard], folder: Path, builder: Builder) -> Iterator[Bench]:
    site = promoted[0].copied(folder)
    progress = ProgressFile(site.calibration / "progress.json")
    run = Run(site.wish(), site.settings, find_models_dir(), site.calibration, Heard(), progress)
    with run.pipeline() as pipeline:
        real = pipeline.backend
        try:
            yield Bench(site, builder, pipeline, run)
        finally:
            pipeline.backend = real


def test_only_what_reads_well_on_the_cpu_is_built(promoted: tuple[Site, Heard], tmp_path: Path) -> None:
    builder = Builder()
    with bench_of(promoted, tmp_path, builder) as it:
        earned = earn(it.subject, it.bench, it.report)
        assert builder.built == [GROUPS, GROUPS], "one trial and the result"
        assert set(earned.found.chosen) == GROUPS
        assert [attempt.trial.ms is None for attempt in earned.found.attempts] == [True, False]
        assert earned.judgement is not None
        assert earned.judgement.passed
        told = with_each_alone(earned, it.subject, it.bench, it.report)
        assert len(builder.built) == 2, "the table is made on the CPU"
        alone = {row.group: row.damage for row in told.found.sensitivity if row.damage is not None}
        assert set(alone) == GROUPS
        assert told.found.chosen == earned.found.chosen


class StrictAtTheEnd(Workbench):
    """Lets pass in the search what no engine can fulfil on the frames that were held out."""

    def judge(self, part: Part, gates: Gates) -> Judge:
        return super().judge(part, gates if part == "search" else gates.model_copy(update={"max_cer_increase": -1.0}))


def test_what_fails_on_the_held_out_frames_is_told_with_the_groups_at_fault(
    promoted: tuple[Site, Heard], tmp_path: Path
) -> None:
    with bench_of(promoted, tmp_path, Builder()) as it:
        strict = StrictAtTheEnd(**vars(it.bench))
        earned = earn(it.subject, strict, it.report)
        assert earned.found.passed
        assert earned.judgement is not None
        (failed,) = earned.judgement.broken
        assert failed.name == "cer_increase"
        assert "keep the groups pointwise.s" in failed.advice
        assert set(earned.found.most_damaging) == GROUPS
        findings = Narrator(it.subject, strict).findings(earned, None, 0.0)
        assert (findings.verdict, findings.advice) == ("refused", (failed.advice,))


def test_group_that_cannot_be_built_is_left_float_and_named(promoted: tuple[Site, Heard], tmp_path: Path) -> None:
    with bench_of(promoted, tmp_path, Builder("pointwise.s16")) as it:
        earned = earn(it.subject, it.bench, it.report)
        assert earned.found.chosen == ("pointwise.s8",)
        (conflict,) = earned.found.conflicts
        assert conflict.groups == ("pointwise.s16",)
        assert "Could not find any implementation for node Conv_17" in conflict.words


def test_model_of_which_nothing_can_be_built_is_refused_in_the_builders_words(
    promoted: tuple[Site, Heard], tmp_path: Path
) -> None:
    with bench_of(promoted, tmp_path, Builder("pointwise.s16")) as it:
        only = tuple(g if g.name == "pointwise.s16" else replace(g, default_float=True) for g in it.subject.groups)
        subject = replace(it.subject, groups=only)
        earned = earn(subject, it.bench, it.report)
        assert (earned.content, earned.judgement) == (None, None)
        findings = Narrator(subject, it.bench).findings(earned, None, 0.0)
        assert findings.verdict == "refused"
        assert "Could not find any implementation for node Conv_17" in " ".join(findings.reasons)
