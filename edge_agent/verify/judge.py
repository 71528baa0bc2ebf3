"""Judge: from what was read and what is expected to a verdict with its reasons."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime

from edge_agent.records import INFORMING_FLAGS, Item, Reading, Reason, Verdict
from edge_agent.verify.expectation import Expectation
from edge_agent.verify.label import Label
from edge_agent.verify.rules import Today, judge_rule


@dataclass(frozen=True)
class Judgement:
    """`reasons` stand for the rules, one each, those of a region behind the camera's."""

    verdict: Verdict
    reasons: tuple[Reason, ...]


def judge(label: Label, expectation: Expectation, today: date, clock_trusted: bool) -> Judgement | None:
    """FAIL where a rule is broken, else NO_READ where one cannot be judged, else PASS; None where nothing is expected.

    `today` is the day that dates are compared with, where the item is; without `clock_trusted` no rule that counts from
    it passes.
    """
    if not expectation:
        return None
    when = Today(today, clock_trusted)
    reasons = [judge_rule(rule, label, when) for rule in expectation.rules]
    for region, rules in expectation.rois.items():
        part = label.within(region)
        reasons += [judge_rule(rule, part, when) for rule in rules]
    return Judgement(worst(reasons), tuple(reasons))


def judge_reading(
    reading: Reading, expectation: Expectation, today: date, clock_trusted: bool = True
) -> Judgement | None:
    """What becomes of an item that only this reading shows."""
    return judge(Label.of_reading(reading), expectation, today, clock_trusted)


def fit_of(reading: Reading, expectation: Expectation, today: date) -> int:
    """How well a reading is what is expected: how many rules would hold if all that it says were certain."""
    lines = tuple(replace(line, flags=(), doubtful=()) for line in reading.lines)
    fields = tuple(
        replace(field, flags=tuple(INFORMING_FLAGS.intersection(field.flags)), corrections=())
        for field in reading.fields
    )
    judgement = judge_reading(replace(reading, lines=lines, fields=fields), expectation, today)
    return 0 if judgement is None else sum(reason.verdict == "PASS" for reason in judgement.reasons)


def judge_item(
    item: Item, expectation: Expectation, today: date, clock_trusted: bool = True, min_reads: int = 1
) -> Judgement | None:
    """What becomes of an item; with fewer than `min_reads` readings it does not pass."""
    judgement = judge(Label.of_item(item), expectation, today, clock_trusted)
    if judgement is None or judgement.verdict != "PASS" or item.n_reads >= min_reads:
        return judgement
    few = Reason("min_reads", f"{min_reads} readings", str(item.n_reads), "NO_READ", "few_reads")
    return Judgement("NO_READ", (*judgement.reasons, few))


def worst(reasons: Sequence[Reason]) -> Verdict:
    """The verdict that several reasons come to."""
    verdicts = {reason.verdict for reason in reasons}
    return "FAIL" if "FAIL" in verdicts else "NO_READ" if "NO_READ" in verdicts else "PASS"


def day_of(unix_s: float) -> date:
    """The day of a time where the device is: labels are printed by the clock on the wall."""
    return datetime.fromtimestamp(unix_s).astimezone().date()
