"""Earning: one model's way from ranges to an INT8 file that reads as well and runs faster here, or to a refusal."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from edge_agent.backends.base import Backend, Engine
from edge_agent.backends.ort import OrtBackend
from edge_agent.calibrate.bound_cache import BoundCache
from edge_agent.calibrate.judgement import Judgement, speed_gate
from edge_agent.calibrate.ranges import Ranges
from edge_agent.calibrate.recipe import Method
from edge_agent.calibrate.search import Names, reserve_of, search
from edge_agent.calibrate.subject import WORK_FOLDER, Subject
from edge_agent.calibrate.timing import Timing, TimingLimits, weighted
from edge_agent.calibrate.trial import Pace, SearchLimits, SearchResult, Trial
from edge_agent.calibrate.workbench import Judge, Workbench

QUICK = TimingLimits(warm_up_laps=1, most_laps=8, seconds=1.0)  # of one set of groups in the search
FEW_SHAPES = 3  # that a trial is timed with; the one that is judged is timed with up to 12
THOROUGH = TimingLimits(warm_up_laps=1, most_laps=40)  # of the one that is judged; how long, the recipe says
# On a CPU a trial takes seconds, and the recipe says how many are made. On TensorRT each is a build of minutes.
BUILDING_SEARCH = SearchLimits(most_trials=8, most_builds=12, always_alone=False)
TABLE_S = 100.0  # for trying each group alone where only the report or an advice wants to know
# The frames for searching are few: there one character more or less is a third of what a gate allows. What goes a
# little beyond is left to the judge, who has more of them.
SEARCH_ALLOWANCE = 1.5
Report = Callable[[str, float], None]  # the step, and its share done, 0..1


@dataclass(frozen=True, eq=False)
class Earned:
    """What became of one model. `content`: the INT8 file that was judged; None where no set of groups passed.
    `memory_bytes`: what the float engine and the INT8 one take, each None where it is not known."""

    found: SearchResult
    ranges: Ranges
    content: bytes | None = None
    judgement: Judgement | None = None
    timing: Timing | None = None
    memory_bytes: tuple[int | None, int | None] = (None, None)


def earn(subject: Subject, bench: Workbench, report: Report) -> Earned:
    """Measures ranges, searches the largest set of groups that holds the gates and is fast, and judges it on the
    frames that were held back. What was finished before an interruption is taken from disk."""
    ranges = subject.ranges(bench.threads, lambda share: report("ranges", share))
    searcher = Searcher(subject, bench, ranges, report)
    found = searcher.result()
    if not found.passed:
        return Earned(found, ranges)
    content = subject.quantised(ranges, found.method, found.chosen)
    report("judging", 0.0)
    judge = bench.judge("held_out", subject.recipe.gates)
    report("judging", 0.3)
    with subject.loaded(content, bench.pipeline.backend) as engine:
        judgement = judge.judge(engine, found.most_damaging)
        report("judging", 0.6)
        if not judgement.passed and not found.most_damaging:  # the advice is to name the groups at fault
            found = searcher.with_each_alone(found)
            judgement = judge.judge(engine, found.most_damaging)
        limits = replace(THOROUGH, seconds=subject.recipe.timing_s)
        timing = bench.timing(engine, searcher.feeds, limits, energy=True)
    slower = [row.group for row in found.sensitivity if row.gain_ms is not None and row.gain_ms < 0]
    gates = (*judgement.gates, speed_gate(timing, subject.recipe.gates, slower))
    report("judging", 1.0)
    return Earned(found, ranges, content, replace(judgement, gates=gates), timing)


def with_each_alone(earned: Earned, subject: Subject, bench: Workbench, report: Report) -> Earned:
    """The same with every group measured alone, for the report: what was promoted need not wait for it."""
    searcher = Searcher(subject, bench, earned.ranges, report, "measuring each group")
    return replace(earned, found=searcher.with_each_alone(earned.found))


class Searcher:
    """Searches the groups of one model on the frames for searching; `feeds` are what times are measured with, and
    `few_feeds` in trials. What was tried is kept on disk, and apart from it how long things take; both are bound to all
    that they depend on."""

    def __init__(
        self, subject: Subject, bench: Workbench, ranges: Ranges, report: Report, step: str = "searching"
    ) -> None:
        self.subject = subject
        self.bench = bench
        self.ranges = ranges
        self.feeds = weighted(subject.feeds.feeds(), subject.feeds.met())
        self.few_feeds = weighted((one.feed for one in self.feeds), subject.feeds.met(), FEW_SHAPES)
        self._limits = SearchLimits(most_trials=subject.recipe.most_trials, always_alone=False)
        self._report = report
        self._step = step
        self._trials = 0
        facts = {
            "ranges": subject.ranges_cache.key,
            "collection": bench.collection.digest,
            "gates": subject.recipe.gates.model_dump(),
            "threads": bench.threads,
        }
        work = subject.directory / WORK_FOLDER
        self._trials_cache = BoundCache(work / "trials.json", facts)
        self._tried: dict[str, dict[str, object]] = self._trials_cache.get() or {}
        self._pace_cache = BoundCache(work / "pace.json", facts)
        self._pace: dict[str, float] = self._pace_cache.get() or {}
        self._judge: Judge | None = None

    def result(self) -> SearchResult:
        """The search. On TensorRT, where a trial is a build of minutes, text is weighed on the CPU first, then the set
        that passes there is built, and narrowed down where it does not build or is too slow."""
        backend = self.bench.pipeline.backend
        float_ms = self._float_ms()
        pace = Pace(float_ms, self.subject.recipe.gates.min_speedup)
        groups, methods = self.subject.groups, self.subject.methods
        if backend.name != "tensorrt":
            return self._searched(groups, methods, backend, self._limits, pace)
        foreseen = self._searched(groups, methods, OrtBackend(self.bench.threads), self._limits, None)
        if not foreseen.passed:
            return foreseen
        chosen = [group for group in groups if group.name in foreseen.chosen]
        built = self._searched(chosen, (foreseen.method,), backend, BUILDING_SEARCH, pace)
        return merged(foreseen, built)

    def with_each_alone(self, found: SearchResult) -> SearchResult:
        """The same with the table of what each group does alone; trials that were made are not made again."""
        backend = self.bench.pipeline.backend
        on_cpu = backend.name == "tensorrt"
        table = self._searched(
            self.subject.groups,
            self.subject.methods,
            OrtBackend(self.bench.threads) if on_cpu else backend,
            replace(self._limits, always_alone=True, most_trials=self._table_trials(found)),
            None if on_cpu else Pace(self._float_ms(), self.subject.recipe.gates.min_speedup),
        )
        more = tuple(one for one in found.attempts if one not in table.attempts)
        return replace(found, sensitivity=table.sensitivity, attempts=(*table.attempts, *more))

    def _searched(
        self,
        groups: Sequence[object],
        methods: Sequence[Method],
        backend: Backend,
        limits: SearchLimits,
        pace: Pace | None,
    ) -> SearchResult:
        prefix = f"{backend.name}/"
        known = {
            key.removeprefix(prefix): Trial.from_json(value)
            for key, value in self._tried.items()
            if key.startswith(prefix)
        }

        def store(key: str, trial: Trial) -> None:
            self._tried[prefix + key] = trial.to_json()
            self._trials_cache.put(self._tried)
            self._trials += 1
            self._report(self._step, 1 - math.exp(-self._trials / 10))  # how many there will be is not known

        def trial(method: Method, names: Names) -> Trial:
            judge = self.judge  # made once, which is no part of a trial's time
            began = time.monotonic()
            tried = self.try_out(judge, method, names, backend, pace)
            self._keep_pace(trial_s=time.monotonic() - began)
            return tried

        return search(groups, methods, trial, limits, pace, known, store)  # type: ignore[arg-type]

    def try_out(self, judge: Judge, method: Method, names: Names, backend: Backend, pace: Pace | None) -> Trial:
        """One set of groups, judged on the frames for searching and, with `pace`, timed. BuildFailed from the
        backend."""
        content = self.subject.quantised(self.ranges, method, sorted(names))
        with self.subject.loaded(content, backend) as engine:
            judgement = judge.judge(engine)
            if judgement.faults:
                return Trial({}, passed=False, faults=judgement.faults)
            ms = None if pace is None else pace.float_ms / self._speedup(engine)
            passed = all(damage <= SEARCH_ALLOWANCE for damage in judgement.damage.values())
            return Trial(judgement.damage, passed and bool(judgement.damage), ms)

    def _table_trials(self, found: SearchResult) -> int:
        """How many trials TABLE_S lets the table have beside those that were made; at least one."""
        trial_s = self._pace.get("trial_s", TABLE_S)
        made = len({(one.method, one.groups) for one in found.attempts})
        return min(self._limits.most_trials, made + reserve_of(self.subject.groups) + max(1, int(TABLE_S / trial_s)))

    @property
    def judge(self) -> Judge:
        """The judge on the frames for searching, made when the first trial asks for it."""
        if self._judge is None:
            self._judge = self.bench.judge("search", self.subject.recipe.gates)
        return self._judge

    def _speedup(self, engine: Engine) -> float:
        return self.bench.timing(engine, self.few_feeds, QUICK).speedup

    def _float_ms(self) -> float:
        """The float engine's time of one run, ms; kept, because the trials' times refer to it."""
        if "float_ms" not in self._pace:
            timing = self.bench.timing(self.bench.float_engine, self.few_feeds, QUICK)
            self._keep_pace(float_ms=timing.float_.mean_ms)
        return self._pace["float_ms"]

    def _keep_pace(self, **figures: float) -> None:
        self._pace |= figures
        self._pace_cache.put(self._pace)


def merged(foreseen: SearchResult, built: SearchResult) -> SearchResult:
    """What the second search found, with the tables of the first, which looked at every group."""
    return replace(
        built,
        attempts=(*foreseen.attempts, *built.attempts),
        sensitivity=foreseen.sensitivity,
        stopped="; ".join(filter(None, (foreseen.stopped, built.stopped))),
    )
