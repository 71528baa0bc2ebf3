"""Search: which groups of a model's nodes may be INT8, found by trying.

1. Method: the full set of groups with the ranges of each method; the one that does least damage goes on.
2. Sensitivity: each group alone, what it damages and what time it gains.
3. The largest set: groups sorted by damage per gain, those that are slow or break a gate alone last; the longest
   prefix that passes by binary search; then each other group that passes alone is tried once more on top.
4. Speed: while the set is not fast enough, groups that gain least are taken out.

A set that a backend does not build is narrowed down by delta debugging (Zeller and Hildebrandt, "Simplifying and
Isolating Failure-Inducing Input", 2002) to the smallest set of groups that forbids it, which is never built again.
What is chosen at last is the best of everything that was tried, not of what a plan foresaw: damage need not add up.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from edge_agent.calibrate.recipe import Method
from edge_agent.calibrate.trial import (
    Attempt,
    BuildFailed,
    Conflict,
    Pace,
    SearchLimits,
    SearchResult,
    Sensitivity,
    Trial,
    trial_key,
)
from edge_agent.errors import in_one_line

Names = frozenset[str]
USUAL_LIMITS = SearchLimits()


class SearchedGroup(Protocol):
    """What the search wants to know of a group of nodes."""

    @property
    def name(self) -> str: ...

    @property
    def weight_bytes(self) -> int: ...

    @property
    def default_float(self) -> bool: ...


def reserve_of(groups: Iterable[SearchedGroup]) -> int:
    """Trials that are kept for whole sets while groups are measured alone."""
    return sum(not group.default_float for group in groups).bit_length() + 2


TrialOf = Callable[[Method, Names], Trial]
Store = Callable[[str, Trial], None]


def search(
    groups: Sequence[SearchedGroup],
    methods: Sequence[Method],
    trial: TrialOf,
    limits: SearchLimits = USUAL_LIMITS,
    pace: Pace | None = None,
    known: Mapping[str, Trial] | None = None,
    store: Store = lambda key, trial: None,
) -> SearchResult:
    """Finds the largest set of groups that passes, and with `pace` one that is fast enough.

    `trial(method, names)` quantises, builds and judges; it may raise BuildFailed, whatever else it raises ends the
    search. Each trial that ended is handed to `store`; those in `known` are not run again, and lead to the same
    result, so that an interrupted search goes on where it was. The result depends on the trials alone.
    """
    return _Search(groups, trial, limits, pace, known or {}, store).run(methods)


class _Spent(Exception):
    """The limit on trials or builds is reached."""


@dataclass
class _Search:
    """The state of one search; `current` is the set that the steps work on."""

    groups: Sequence[SearchedGroup]
    trial: TrialOf
    limits: SearchLimits
    pace: Pace | None
    known: Mapping[str, Trial]
    store: Store
    method: Method = "minmax"
    attempts: list[Attempt] = field(default_factory=list)
    seen: dict[str, Trial] = field(default_factory=dict)
    conflicts: list[Conflict] = field(default_factory=list)
    alone: dict[str, Trial] = field(default_factory=dict)
    notes: dict[str, str] = field(default_factory=dict)
    trials: int = 0

    def __post_init__(self) -> None:
        self.weights = {group.name: group.weight_bytes for group in self.groups}
        self.offered = frozenset(group.name for group in self.groups if not group.default_float)

    def run(self, methods: Sequence[Method]) -> SearchResult:
        """All steps, as far as the limits allow."""
        if not methods:
            raise ValueError("methods is empty; expected at least one")
        self.method = methods[0]
        stopped = ""
        try:
            full, trial = self.choose_method(methods)
            if self.limits.always_alone or not (trial and trial.passed and self.fast(trial)):
                self.measure_alone()
            if trial is None or not trial.passed:
                full, trial = self.grow()
            if trial is not None and not self.fast(trial):
                self.speed_up(full, trial)
        except _Spent as spent:
            stopped = str(spent)
        return self.result(stopped)

    # one trial

    def tried(self, names: Names, step: str) -> Trial:
        """The trial of exactly this set; its build may have failed."""
        key = trial_key(self.method, names)
        if key in self.seen:
            return self.seen[key]
        if self.trials >= self.limits.most_trials:
            raise _Spent(f"{self.limits.most_trials} trials were made, the limit")
        if len(self.attempts) >= self.limits.most_builds:
            raise _Spent(f"{self.limits.most_builds} builds were tried, the limit")
        trial = self.known.get(key)
        if trial is None:
            try:
                trial = self.trial(self.method, names)
            except BuildFailed as exc:
                trial = Trial({}, passed=False, build_error=in_one_line(exc, 600) or "no reason was given")
            self.store(key, trial)
        self.trials += not trial.build_error
        self.seen[key] = trial
        self.attempts.append(Attempt(self.method, tuple(sorted(names)), trial, step))
        return trial

    def built(self, names: Names, step: str) -> tuple[Names, Trial | None]:
        """The trial of the set without what cannot be built, and that set; (nothing, None) where nothing is left."""
        while names := self.allowed(names):
            trial = self.tried(names, step)
            if not trial.build_error:
                return names, trial
            self.narrow_down(names, trial.build_error)
        return names, None

    def allowed(self, names: Names) -> Names:
        """The set without one group of each conflict: the one that does most damage, else the one with least weight."""
        for conflict in self.conflicts:
            if names.issuperset(conflict.groups):
                names -= {min(conflict.groups, key=lambda name: (-self.damage_alone(name), self.weights[name], name))}
        return names

    def narrow_down(self, names: Names, words: str) -> None:
        """Finds the smallest conflict within a set that cannot be built, and keeps it."""
        suspects, parts = sorted(names), 2
        try:
            while len(suspects) > 1:
                chunks = [suspects[len(suspects) * n // parts : len(suspects) * (n + 1) // parts] for n in range(parts)]
                rests = [[name for name in suspects if name not in chunk] for chunk in chunks] if parts > 2 else []
                failing = next((part for part in [*chunks, *rests] if self.fails(part)), None)
                if failing is not None:
                    parts = 2 if failing in chunks else max(2, parts - 1)
                    suspects, words = failing, self.fails(failing)
                elif parts >= len(suspects):
                    break
                else:
                    parts = min(2 * parts, len(suspects))
        except _Spent:
            self.conflicts.append(Conflict(tuple(suspects), words, smallest=len(suspects) == 1))
            raise
        self.conflicts.append(Conflict(tuple(suspects), words))

    def fails(self, names: Sequence[str]) -> str:
        """The builder's words where this set cannot be built, else ""."""
        return self.tried(frozenset(names), "narrowing down what cannot be built").build_error

    # the steps

    def choose_method(self, methods: Sequence[Method]) -> tuple[Names, Trial | None]:
        """Tries the full set with each method and goes on with the best."""
        found: list[tuple[float, float, int, Names, Trial | None]] = []
        for order, method in enumerate(methods):
            self.method = method
            names, trial = self.built(self.offered, f"all groups, {method}")
            if trial is None:
                break  # nothing to quantise can be built, whatever the ranges are
            found.append((trial.worst, trial.total, order, names, trial))
        if not found:
            return frozenset(), None
        *_, order, names, trial = min(found, key=lambda one: one[:3])
        self.method = methods[order]
        return names, trial

    def measure_alone(self) -> None:
        """Tries each group alone, the heaviest first; leaves trials enough for what follows."""
        reserve = reserve_of(self.groups)
        for name in sorted(self.offered, key=lambda name: (-self.weights[name], name)):
            if trial_key(self.method, [name]) not in self.seen and self.left() <= reserve:
                self.notes[name] = "not measured: the rest of the trials was kept for whole sets"
                continue
            kept, trial = self.built(frozenset([name]), f"{name} alone")
            if kept and trial is not None:
                self.alone[name] = trial

    def grow(self) -> tuple[Names, Trial | None]:
        """The longest prefix of groups that passes, and then each other group on top that passes as well."""
        usable = self.in_order()
        low, best = 0, (frozenset[str](), None if self.pace is None else Trial({}, True, self.pace.float_ms))
        high = len(usable) + 1
        while high - low > 1:
            count = (low + high) // 2
            names, trial = self.built(frozenset(usable[:count]), f"the {count} least damaging groups per gain")
            if trial is not None and trial.passed:
                low, best = count, (names, trial)
            else:
                high = count
        for name in self.by_cost(n for n in self.offered if n not in self.alone or self.alone[n].passed):
            if name in best[0] or self.allowed(best[0] | {name}) != best[0] | {name}:
                continue
            names, trial = self.built(best[0] | {name}, f"{name} added")
            if trial is not None and trial.passed and names > best[0] and self.no_slower(trial, best[1]):
                best = names, trial
        return best if best[0] else (best[0], None)

    def speed_up(self, names: Names, trial: Trial) -> None:
        """Takes out what gains least, one group after the other, until the set is fast enough."""
        slowing = frozenset(name for name in names if self.slows(name))
        if len(slowing) > 1 and slowing != names:
            lean, lean_trial = self.built(names - slowing, "without what is slower alone")
            if lean_trial is not None and lean_trial.passed and self.faster(lean_trial, trial):
                names, trial = lean, lean_trial
        for name in sorted(names, key=lambda name: (self.gain_ms(name) or 0.0, name)):
            if self.fast(trial) or len(names) < 2:
                return
            lean, lean_trial = self.built(names - {name}, f"without {name}")
            if lean_trial is not None and lean_trial.passed and self.faster(lean_trial, trial):
                names, trial = lean, lean_trial

    # what the steps ask

    def left(self) -> int:
        """Trials that may still be made."""
        return min(self.limits.most_trials - self.trials, self.limits.most_builds - len(self.attempts))

    def in_order(self) -> list[str]:
        """All groups that can be built, cheapest first; then those that slow things down, unless all do; at last those
        that break a gate alone. What is slow between float nodes may be fast among its like, and what breaks a gate by
        a hair alone may not in company: the last ones are met only where all before them passed."""
        known = [name for name in self.offered if name in self.alone]
        passing = [name for name in known if self.alone[name].passed]
        swift = [name for name in passing if not self.slows(name)] or passing
        late = [name for name in passing if name not in swift]
        return [*self.by_cost(swift), *self.by_cost(late), *self.by_cost(n for n in known if n not in passing)]

    def by_cost(self, names: Iterable[str]) -> list[str]:
        """Sorted by damage per gain, then the heavier first."""
        return sorted(names, key=lambda name: (self.cost(name), -self.weights[name], name))

    def cost(self, name: str) -> float:
        """Damage alone per gain: of time, as a share of the float run, or of weights where trials are not timed."""
        gain_ms = self.gain_ms(name)
        if gain_ms is None or self.pace is None:
            gain = self.weights[name] / max(1, sum(self.weights.values()))
        else:
            gain = gain_ms / self.pace.float_ms
        return max(self.damage_alone(name), 0.0) / max(gain, self.limits.noise / 4)

    def damage_alone(self, name: str) -> float:
        """The worst damage of the group alone; infinite where it is not known."""
        return self.alone[name].worst if name in self.alone else math.inf

    def gain_ms(self, name: str) -> float | None:
        """What the group alone saves of the float engine's time; None where it was not timed."""
        trial = self.alone.get(name)
        return None if self.pace is None or trial is None or trial.ms is None else self.pace.float_ms - trial.ms

    def slows(self, name: str) -> bool:
        """Whether the group alone is slower than float by more than noise."""
        gain_ms = self.gain_ms(name)
        return gain_ms is not None and self.pace is not None and gain_ms < -self.limits.noise * self.pace.float_ms

    def fast(self, trial: Trial) -> bool:
        """Whether the trial is fast enough; True where nothing is timed."""
        return self.pace is None or trial.ms is None or self.pace.float_ms >= self.pace.min_speedup * trial.ms

    def faster(self, trial: Trial, than: Trial) -> bool:
        return trial.ms is not None and than.ms is not None and trial.ms < than.ms

    def no_slower(self, trial: Trial, than: Trial | None) -> bool:
        if than is None or trial.ms is None or than.ms is None:
            return True
        return trial.ms <= than.ms * (1 + self.limits.noise)

    # the end

    def result(self, stopped: str) -> SearchResult:
        """The best of all attempts, and the tables."""
        judged = [attempt for attempt in self.attempts if attempt.groups and not attempt.trial.build_error]
        best = self.best([attempt for attempt in judged if attempt.trial.passed])
        return SearchResult(
            method=best.method if best else self.method,
            chosen=best.groups if best else (),
            trial=best.trial if best else None,
            fast_enough=best is not None and self.fast(best.trial),
            closest=min(judged, key=lambda one: (one.trial.worst, one.trial.total, -len(one.groups)), default=None),
            attempts=tuple(self.attempts),
            sensitivity=tuple(self.sensitivity_of(group) for group in self.groups),
            conflicts=tuple(self.conflicts),
            stopped=stopped,
        )

    def best(self, passing: Sequence[Attempt]) -> Attempt | None:
        """Fast enough before slow; then the fastest, and among equally fast ones and untimed ones the heaviest set."""
        passing = [one for one in passing if self.fast(one.trial)] or passing
        times = [one.trial.ms for one in passing if one.trial.ms is not None]
        if times:
            bound = min(times) * (1 + self.limits.noise)
            passing = [one for one in passing if one.trial.ms is not None and one.trial.ms <= bound]
        return min(
            passing,
            key=lambda one: (-sum(self.weights[name] for name in one.groups), one.trial.worst, one.trial.total),
            default=None,
        )

    def sensitivity_of(self, group: SearchedGroup) -> Sensitivity:
        """The group's row of the table."""
        name = group.name
        trial = self.alone.get(name)
        if trial is None:
            words = next((conflict.words for conflict in self.conflicts if conflict.groups == (name,)), None)
            if words is not None:
                return Sensitivity(name, None, None, passed=False, note=f"cannot be built: {words}")
            note = "stays float by default" if group.default_float else self.notes.get(name, "not measured")
            return Sensitivity(name, None, None, passed=False, note=note)
        note = "; ".join(trial.faults)
        if not note:
            notes = {"breaks a gate alone": not trial.passed, "slower than float alone": self.slows(name)}
            note = "; ".join(words for words, so in notes.items() if so)
        damage = trial.worst if math.isfinite(trial.worst) else None
        return Sensitivity(name, damage, self.gain_ms(name), trial.passed, note)
