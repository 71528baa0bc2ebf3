"""The search is given made-up trials whose truth is known, and must find what that truth allows."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

import pytest

from edge_agent.calibrate.recipe import METHODS, Method
from edge_agent.calibrate.search import search
from edge_agent.calibrate.trial import BuildFailed, Pace, SearchLimits, SearchResult, Trial, trial_key
from edge_agent.errors import CalibrationRefused, EngineError


@dataclass(frozen=True)
class Named:
    name: str
    weight_bytes: int = 100
    default_float: bool = False


@dataclass
class World:
    """How groups behave: damage and ms saved by each, what combinations add, what cannot be built; 100 ms float."""

    damage: Mapping[str, float]
    saves_ms: Mapping[str, float] | None = None
    together: Callable[[frozenset[str]], float] = lambda names: 0.0
    forbidden: Sequence[frozenset[str]] = ()
    method_factor: Mapping[str, float] = field(default_factory=dict)
    calls: list[tuple[str, frozenset[str]]] = field(default_factory=list)

    def __call__(self, method: Method, names: frozenset[str]) -> Trial:
        self.calls.append((method, names))
        if any(pair <= names for pair in self.forbidden):
            raise BuildFailed(f"no implementation for {'+'.join(sorted(names))}")
        return self.truth(method, names)

    def truth(self, method: Method, names: Iterable[str]) -> Trial:
        names = frozenset(names)
        damage = sum(self.damage[n] for n in sorted(names)) + self.together(names)
        damage *= self.method_factor.get(method, 1.0)
        ms = None if self.saves_ms is None else 100.0 - sum(self.saves_ms[n] for n in sorted(names))
        return Trial({"cer_increase": damage, "box_recall": damage / 2}, damage <= 1, ms)


def named(world: World) -> list[Named]:
    return [Named(name) for name in world.damage]


def random_world(rng: random.Random, *, timed: bool) -> World:
    names = [f"g{n:02}" for n in range(rng.randrange(2, 12))]
    damage = {name: round(rng.choice([0.0, rng.uniform(0, 0.4), rng.uniform(0, 2)]), 3) for name in names}
    saves = {name: round(rng.uniform(-3, 8), 2) for name in names} if timed else None
    bad = [frozenset(rng.sample(names, rng.choice([1, 2]))) for _ in range(rng.randrange(3))]
    return World(damage, saves, forbidden=bad)


ROOMY = SearchLimits(most_trials=500, most_builds=800)


def test_everything_is_chosen_where_everything_passes() -> None:
    world = World({"stem": 0.1, "body": 0.3, "neck": 0.2})
    result = search(named(world), METHODS, world)
    assert result.chosen == ("body", "neck", "stem")
    assert (result.passed, result.fast_enough, result.stopped, result.conflicts) == (True, True, "", ())
    assert [s.damage for s in result.sensitivity] == [0.1, 0.3, 0.2]


def test_groups_alone_are_not_measured_where_nobody_asks_and_all_pass() -> None:
    world = World({"stem": 0.1, "body": 0.3})
    result = search(named(world), ["minmax"], world, SearchLimits(always_alone=False))
    assert len(world.calls) == 1
    assert {s.note for s in result.sensitivity} == {"not measured"}


def test_nothing_is_chosen_where_nothing_passes_and_the_least_bad_is_told() -> None:
    world = World({"stem": 3.0, "body": 2.0, "neck": 5.0})
    result = search(named(world), METHODS, world)
    assert (result.chosen, result.trial, result.passed, result.fast_enough) == ((), None, False, False)
    assert result.closest is not None
    assert result.closest.groups == ("body",)
    assert result.most_damaging == ("neck", "stem", "body")
    assert {s.note for s in result.sensitivity} == {"breaks a gate alone"}


def test_method_that_does_least_damage_goes_on() -> None:
    world = World({"a": 0.6, "b": 0.6}, method_factor={"minmax": 2.0, "percentile": 0.5, "entropy": 0.9})
    result = search(named(world), METHODS, world)
    assert (result.method, result.chosen) == ("percentile", ("a", "b"))
    assert {method for method, names in world.calls if len(names) == 1} == {"percentile"}


def test_equally_good_methods_are_chosen_by_their_order() -> None:
    world = World({"a": 0.5})
    assert search(named(world), ["entropy", "minmax"], world).method == "entropy"


def test_the_one_damaging_group_is_left_out() -> None:
    world = World({**{f"g{n}": 0.05 for n in range(10)}, "bad": 4.0})
    result = search(named(world), ["minmax"], world)
    assert result.chosen == tuple(sorted(f"g{n}" for n in range(10)))
    assert next(s for s in result.sensitivity if s.group == "bad").note == "breaks a gate alone"


def test_groups_that_stay_float_by_default_are_never_tried() -> None:
    world = World({"body": 0.1, "head": 0.1})
    result = search([Named("body"), Named("head", default_float=True)], ["minmax"], world)
    assert result.chosen == ("body",)
    assert all("head" not in names for _, names in world.calls)
    assert result.sensitivity[1].note == "stays float by default"


def test_model_without_a_group_to_quantise_passes_nothing() -> None:
    world = World({"head": 0.1})
    result = search([Named("head", default_float=True)], METHODS, world)
    assert (result.passed, result.closest, world.calls) == (False, None, [])


@pytest.mark.parametrize("seed", range(60))
@pytest.mark.parametrize("timed", [False, True])
def test_chosen_set_passes_can_be_built_and_misses_nothing_that_would_fit(seed: int, timed: bool) -> None:
    world = random_world(random.Random(seed), timed=timed)
    result = search(named(world), METHODS, world, ROOMY, Pace(100.0, 1.05) if timed else None)
    chosen = frozenset(result.chosen)
    buildable = [n for n in world.damage if frozenset([n]) not in world.forbidden]
    assert result.passed == any(world.damage[n] <= 1 for n in buildable)
    if not result.passed:
        return
    assert result.trial == world.truth(result.method, chosen)
    assert result.trial.passed
    assert not any(pair <= chosen for pair in world.forbidden)
    for name in sorted(frozenset(world.damage) - chosen):
        more = chosen | {name}
        fits = not any(pair <= more for pair in world.forbidden) and world.truth("minmax", more).passed
        in_conflict = any(name in conflict.groups for conflict in result.conflicts)
        if fits and not in_conflict and not timed:
            pytest.fail(f"{name} would fit as well: {world.damage}, chosen {chosen}")
    if timed and world.saves_ms is not None:
        fastest_alone = max(world.saves_ms[n] for n in buildable if world.damage[n] <= 1)
        assert result.trial.ms is not None
        assert result.trial.ms <= (100 - fastest_alone) * 1.02 + 1e-9


@pytest.mark.parametrize("seed", range(30))
def test_conflicts_are_the_smallest_sets_that_cannot_be_built(seed: int) -> None:
    world = random_world(random.Random(100 + seed), timed=False)
    result = search(named(world), METHODS, world, ROOMY)
    for conflict in result.conflicts:
        groups = frozenset(conflict.groups)
        assert conflict.smallest
        assert groups in world.forbidden
        assert "no implementation" in conflict.words


def test_group_that_cannot_be_built_is_named_with_the_builders_words() -> None:
    world = World({f"g{n}": 0.01 for n in range(16)} | {"matmul": 0.0}, forbidden=[frozenset(["matmul"])])
    result = search(named(world), METHODS, world)
    assert len(result.chosen) == 16
    assert result.conflicts[0].groups == ("matmul",)
    row = next(s for s in result.sensitivity if s.group == "matmul")
    assert row.note.startswith("cannot be built: no implementation for")
    failed = [names for _, names in world.calls if "matmul" in names]
    assert len(failed) <= 1 + 5  # halved 17 -> 1
    assert max(map(len, failed[-1:])) == 1


def test_pair_that_cannot_be_built_together_loses_its_lighter_member() -> None:
    world = World({"a": 0.1, "b": 0.1, "c": 0.1}, forbidden=[frozenset("ab")])
    result = search([Named("a", 10), Named("b", 900), Named("c", 50)], ["minmax"], world)
    assert result.conflicts[0].groups == ("a", "b")
    assert result.chosen == ("b", "c")


def test_builds_that_fail_for_everything_end_in_no_choice() -> None:
    world = World({"a": 0.1, "b": 0.1}, forbidden=[frozenset("a"), frozenset("b")])
    result = search(named(world), METHODS, world)
    assert not result.passed
    assert {c.groups for c in result.conflicts} == {("a",), ("b",)}


def test_damage_that_does_not_add_up_is_seen() -> None:
    world = World({"a": 0.1, "b": 0.1, "c": 0.1, "d": 0.2}, together=lambda names: 5.0 if {"a", "c"} <= names else 0.0)
    result = search(named(world), ["minmax"], world)
    assert result.trial is not None
    assert result.trial.passed
    assert len(result.chosen) == 3
    assert not {"a", "c"} <= set(result.chosen)


def test_damage_that_mends_itself_in_company_is_seen() -> None:
    world = World({"a": 0.9, "b": 0.9}, together=lambda names: -1.0 if len(names) == 2 else 0.0)
    assert search(named(world), ["minmax"], world).chosen == ("a", "b")


def test_groups_that_break_a_gate_by_a_hair_alone_are_tried_in_company() -> None:
    world = World(
        dict.fromkeys("abcdefgh", 1.1), together=lambda names: 0.9 - 1.1 * len(names) if "h" not in names else 3
    )

    def trial(method: Method, names: frozenset[str]) -> Trial:
        return world(method, names) if len(names) != 1 else Trial({"cer_increase": 1.1}, False)

    result = search(named(world), ["minmax"], trial)
    assert result.chosen == tuple("abcdefg")


def test_groups_are_taken_out_until_the_set_is_fast_enough() -> None:
    world = World({"a": 0.1, "b": 0.1, "c": 0.1}, {"a": 9.0, "b": -6.0, "c": 0.5})
    result = search(named(world), ["minmax"], world, ROOMY, Pace(100.0, 1.05))
    assert result.fast_enough
    assert result.chosen == ("a", "c")
    slow = next(s for s in result.sensitivity if s.group == "b")
    assert (slow.gain_ms, slow.note) == (-6.0, "slower than float alone")


def test_several_slowing_groups_go_at_once() -> None:
    world = World(dict.fromkeys("abcdef", 0.1), {"a": 12.0, "b": 1.0, **dict.fromkeys("cdef", -4.0)})
    result = search(named(world), ["minmax"], world, ROOMY, Pace(100.0, 1.05))
    assert (result.fast_enough, result.chosen) == (True, ("a", "b"))
    assert "without what is slower alone" in [attempt.step for attempt in result.attempts]


def test_groups_that_are_fast_only_together_are_chosen_together() -> None:
    world = World(dict.fromkeys("abcd", 0.1), dict.fromkeys("abcd", -3.0))

    def joined(method: Method, names: frozenset[str]) -> Trial:
        trial = world(method, names)
        return Trial(trial.damage, trial.passed, 60.0 if len(names) == 4 else trial.ms)

    result = search(named(world), ["minmax"], joined, ROOMY, Pace(100.0, 1.05))
    assert (result.chosen, result.fast_enough) == (("a", "b", "c", "d"), True)


def test_accurate_set_that_is_never_fast_is_told_as_such() -> None:
    world = World({"a": 0.1, "b": 0.1}, {"a": 1.0, "b": 0.5})
    result = search(named(world), METHODS, world, ROOMY, Pace(100.0, 1.05))
    assert (result.passed, result.fast_enough, result.chosen) == (True, False, ("a", "b"))


def test_of_equally_fast_sets_the_one_with_most_weights_is_chosen() -> None:
    world = World({"a": 0.1, "b": 0.1}, {"a": 20.0, "b": -0.5})
    result = search([Named("a", 10), Named("b", 1000)], ["minmax"], world, ROOMY, Pace(100.0, 1.05))
    assert result.chosen == ("a", "b")


def test_nonsense_outputs_never_pass_and_are_noted() -> None:
    def trial(method: Method, names: frozenset[str]) -> Trial:
        if "bad" in names:
            return Trial({}, False, faults=("output `probability` is 0 everywhere on 5 of 5 runs",))
        return Trial({"cer_increase": 0.1}, True)

    result = search([Named("good"), Named("bad")], METHODS, trial)
    assert result.chosen == ("good",)
    row = result.sensitivity[1]
    assert (row.damage, row.note) == (None, "output `probability` is 0 everywhere on 5 of 5 runs")


@pytest.mark.parametrize("most", [1, 3, 5, 9, 17])
def test_limits_on_trials_and_builds_hold(most: int) -> None:
    for seed in range(20):
        world = random_world(random.Random(seed), timed=True)
        result = search(
            named(world), METHODS, world, SearchLimits(most_trials=most, most_builds=most + 3), Pace(100.0, 1.05)
        )
        built = [names for _, names in world.calls if not any(pair <= names for pair in world.forbidden)]
        assert len(built) <= most
        assert len(world.calls) <= most + 3
        if result.trial is not None:
            assert result.trial == world.truth(result.method, result.chosen)


def test_search_that_ends_at_a_limit_says_so_and_gives_the_best_so_far() -> None:
    world = World({f"g{n}": 0.5 for n in range(8)})
    result = search(named(world), METHODS, world, SearchLimits(most_trials=8))
    assert result.stopped in ("", "8 trials were made, the limit")
    assert result.passed
    assert any(s.note.startswith("not measured: the rest of the trials") for s in result.sensitivity)
    ended = search(named(world), METHODS, world, SearchLimits(most_builds=2))
    assert (ended.stopped, ended.passed) == ("2 builds were tried, the limit", False)
    assert ended.closest is not None


class Interrupted(Exception):
    pass


@pytest.mark.parametrize("after", [0, 1, 4, 7, 12, 30])
def test_interrupted_search_goes_on_where_it_was(after: int) -> None:
    for seed in range(12):
        whole = random_world(random.Random(seed), timed=True)
        pace = Pace(100.0, 1.05)
        expected = search(named(whole), METHODS, whole, pace=pace)

        world = random_world(random.Random(seed), timed=True)
        stored: dict[str, str] = {}

        def trial(method: Method, names: frozenset[str], world: World = world) -> Trial:
            if len(world.calls) == after:
                raise Interrupted
            return world(method, names)

        def store(key: str, trial: Trial, stored: dict[str, str] = stored) -> None:
            assert key not in stored
            stored[key] = json.dumps(trial.to_json(), allow_nan=False)

        with suppress(Interrupted):
            search(named(world), METHODS, trial, pace=pace, store=store)
        known = {key: Trial.from_json(json.loads(text)) for key, text in stored.items()}
        assert set(known) == {trial_key(m, names) for m, names in world.calls}  # type: ignore[arg-type]
        before = len(world.calls)
        resumed = search(named(world), METHODS, world, pace=pace, known=known, store=store)
        assert resumed == expected
        assert world.calls == whole.calls
        assert len(world.calls) - before == len(whole.calls) - len(known)


def test_result_does_not_depend_on_the_order_of_groups() -> None:
    for seed in range(20):
        world = random_world(random.Random(seed), timed=True)
        groups = named(world)
        shuffled = groups[:]
        random.Random(seed).shuffle(shuffled)
        first, second = (search(g, METHODS, world, ROOMY, Pace(100.0, 1.05)) for g in (groups, shuffled))
        assert (first.chosen, first.attempts) == (second.chosen, second.attempts)


def test_set_is_never_tried_twice() -> None:
    for seed in range(20):
        world = random_world(random.Random(seed), timed=True)
        search(named(world), METHODS, world, ROOMY, Pace(100.0, 1.05))
        assert len(set(world.calls)) == len(world.calls)


def test_other_errors_of_a_trial_pass_through() -> None:
    def trial(method: Method, names: frozenset[str]) -> Trial:
        raise EngineError("inference failed")

    with pytest.raises(EngineError, match="inference failed"):
        search([Named("a")], METHODS, trial)


def test_damaged_stored_trial_is_refused_with_advice() -> None:
    assert Trial.from_json(Trial({"cer": 0.5}, True, 1.5, ("x",), "y").to_json()) == Trial(
        {"cer": 0.5}, True, 1.5, ("x",), "y"
    )
    for values in ({}, {"damage": 3}, {**Trial({}, True).to_json(), "ms": "soon"}):
        with pytest.raises(CalibrationRefused, match="delete the model's `work` folder"):
            Trial.from_json(values)


def test_trial_of_nonsense_is_infinitely_bad() -> None:
    assert math.isinf(Trial({}, False).worst)
    assert math.isinf(Trial({"a": 0.1}, False, build_error="no").worst)
    assert Trial({"a": 0.1, "b": 0.7}, True).worst == 0.7


def test_search_without_methods_is_a_fault_of_the_caller() -> None:
    with pytest.raises(ValueError, match="methods is empty"):
        result: SearchResult = search([Named("a")], [], World({"a": 0.0}))
        assert result is None
