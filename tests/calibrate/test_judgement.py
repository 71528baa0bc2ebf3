from __future__ import annotations

import pytest

from edge_agent.calibrate.judgement import (
    Judgement,
    at_least,
    at_most,
    no_evidence,
    nonsense,
    remedies,
    speed_gate,
)
from edge_agent.calibrate.recipe import Gates
from edge_agent.calibrate.timing import RunTimes, Timing


def timing(speedup: float, low: float, high: float) -> Timing:
    return Timing(speedup, low, high, RunTimes(10, 10, 10, 4), RunTimes(8, 8, 8, 4), (), 2)


def test_damage_is_the_share_of_what_a_gate_allows() -> None:
    assert at_least("recall", 0.995, 0.99, "share", "mend it").damage == pytest.approx(0.5)
    assert at_most("cer", 0.01, 0.005, "share", "mend it").damage == pytest.approx(2.0)
    assert at_most("cer", -0.001, 0.005, "share", "mend it").damage == 0.0
    assert at_most("cer", 0.0, 0.0, "share", "mend it").damage == 0.0
    assert at_most("cer", 0.001, 0.0, "share", "mend it").damage > 100


@pytest.mark.parametrize(("value", "passed"), [(0.99, True), (1 - 0.01, True), (0.9899, False)])
def test_bound_itself_passes(value: float, passed: bool) -> None:
    gate = at_least("recall", value, 0.99, "share", "mend it")
    assert (gate.passed, gate.advice) == (passed, "" if passed else "mend it")


def test_judgement_passes_only_with_every_gate() -> None:
    good, bad = at_most("a", 0, 1, "share", "x"), at_most("b", 2, 1, "share", "do this")
    assert Judgement((good,)).passed
    assert not Judgement((good, bad)).passed
    assert not Judgement(()).passed
    assert Judgement((good, bad)).broken == (bad,)
    assert Judgement((good, bad)).damage == {"a": 0.0, "b": 2.0}
    assert Judgement((good, bad)).faults == ()


def test_nonsense_and_lack_of_evidence_are_faults_without_damage() -> None:
    judgement = Judgement((nonsense("output `probability` is 0 everywhere on 5 of 5 runs", 5),))
    assert judgement.damage == {}
    assert judgement.faults[0].startswith("output `probability` is 0 everywhere on 5 of 5 runs: the quantised network")
    assert Judgement((no_evidence(3, 50, "characters", "too little"),)).faults == ("too little",)


def test_speed_gate_tells_by_how_much_and_whether_it_is_sure() -> None:
    assert speed_gate(timing(1.2, 1.1, 1.3), Gates()).passed
    slow = speed_gate(timing(0.9, 0.85, 0.95), Gates(), ["neck"])
    assert not slow.passed
    assert "0.90 times as fast as float (0.85 to 0.95), 1.05 is wanted." in slow.advice
    assert "slower as INT8 than as float: neck" in slow.advice
    assert "a longer measurement may decide" in speed_gate(timing(1.04, 0.9, 1.2), Gates()).advice
    assert speed_gate(timing(1.2, 1.1, 1.3), Gates()).damage is None


def test_advice_names_the_most_damaging_groups() -> None:
    advice = remedies(["pointwise.s16", "neck", "head", "stem"], labels=True)
    assert "keep the groups pointwise.s16, neck, head float (float_groups in the recipe)" in advice
    assert "labels.jsonl" in advice
    assert "keep more groups float" in remedies([], labels=False)
