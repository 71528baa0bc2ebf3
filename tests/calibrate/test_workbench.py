"""Workbench: one stage's model at work in a real float pipeline: its judge, its clock, what counts its joules."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from edge_agent.calibrate import collection
from edge_agent.calibrate.feed_store import FeedStore
from edge_agent.calibrate.judge import DetectorJudge, EncoderJudge, RecogniserJudge
from edge_agent.calibrate.progress import ProgressFile
from edge_agent.calibrate.recipe import Gates
from edge_agent.calibrate.run import Run
from edge_agent.calibrate.timing import TimingLimits, weighted
from edge_agent.calibrate.workbench import Workbench
from edge_agent.models.spec import find_models_dir
from edge_agent.telemetry.energy import EnergyCounter, EnergySources
from tests.calibrate.calibration_site import PIPELINE, Heard, Site
from tests.telemetry import boards

Promoted = tuple[Site, Heard]
ONE_LAP = TimingLimits(warm_up_laps=0, most_laps=2, seconds=0.0, block_s=0.0)


@contextmanager
def bench_of(site: Site, stage: str) -> Iterator[tuple[Workbench, Run]]:
    frames = collection.load(site.calibration / "collection")
    assert frames is not None
    progress = ProgressFile(site.calibration / "progress.json")
    run = Run(site.wish(), site.settings, find_models_dir(), site.calibration, Heard(), progress)
    with run.workbench(stage, frames) as bench:
        yield bench, run


def store_of(bench: Workbench, run: Run) -> FeedStore:
    return run.record(bench.collection)[bench.stage]


@pytest.mark.parametrize(
    ("stage", "kind", "gates"),
    [
        ("detect", DetectorJudge, {"box_recall", "box_precision", "cer_increase"}),
        ("recognise", RecogniserJudge, {"cer_increase"}),
    ],
)
def test_judge_of_a_stage_finds_nothing_against_the_float_engine_itself(
    stage: str, kind: type, gates: set[str], promoted: Promoted
) -> None:
    with bench_of(promoted[0], stage) as (bench, _):
        judge = bench.judge("search", Gates())
        assert isinstance(judge, kind)
        judgement = judge.judge(bench.float_engine)
        assert {gate.name for gate in judgement.gates} == gates
        assert judgement.passed
        assert judgement.changed == ()


def test_encoder_is_judged_by_the_lines_that_the_float_engines_read_and_is_the_pipelines_own(
    promoted: Promoted, tmp_path: Path
) -> None:
    site = promoted[0].copied(tmp_path)
    site.write_settings(pipeline={**PIPELINE, "encoder": "minilm-l6-v2"})
    with bench_of(site, "encode") as (bench, _):
        judge = bench.judge("search", Gates())
        assert isinstance(judge, EncoderJudge)
        assert any("LOT" in text.upper() for text in judge.texts)
        vectors = bench.encoder(bench.float_engine).encode(judge.texts)
        np.testing.assert_allclose(vectors, judge.vectors, atol=1e-6)


def test_joules_are_counted_where_they_are_asked_for_alone(promoted: Promoted, tmp_path: Path) -> None:
    with bench_of(promoted[0].copied(tmp_path), "recognise") as (bench, run):
        spent_j = iter(range(1000))
        counting = EnergySources((EnergyCounter("board", lambda: float(next(spent_j))),), ())
        counted = Workbench(**{**vars(bench), "energy": counting})
        feeds = weighted(store_of(bench, run).feeds())[:1]  # the smallest
        assert counted.timing(bench.float_engine, feeds, ONE_LAP).float_.energy_j is None
        timing = counted.timing(bench.float_engine, feeds, ONE_LAP, energy=True)
        assert timing.float_.energy_j == timing.int8.energy_j == pytest.approx(1 / 24)


def test_joules_are_those_of_the_boards_rails_where_it_has_some(promoted: Promoted, tmp_path: Path) -> None:
    site = promoted[0].copied(tmp_path / "site")
    site.write_settings(telemetry={"system_root": str(boards.orin_nano(tmp_path / "board"))})
    with bench_of(site, "recognise") as (bench, _):
        (counter,) = bench.energy.counters
        assert (counter.name, bench.energy.absent) == ("board", ())
        assert counter.since(counter.read()) >= 0
