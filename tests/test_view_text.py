"""ViewText: what is turned in vain is not turned at every reading."""

from __future__ import annotations

import numpy as np

from edge_agent.records import TextLine
from edge_agent.settings.expected import Rule
from edge_agent.stages.text_search import Found
from edge_agent.stages.views import View
from edge_agent.verify.expectation import Expectation
from edge_agent.view_text import PASSED_OVER, Tries, ViewText
from tests.stages.labels import line

JOB = Expectation("job-7", (Rule(text="4711"),))
IMAGE = np.zeros((200, 400, 3), np.uint8)


def text(*texts: str, region: str | None = None, upright: bool = False, confidence: float = 0.9) -> ViewText:
    lines = tuple(line(each, y=40 * n, confidence=confidence) for n, each in enumerate(texts))
    read: list[TextLine | None] = [*lines]
    found = Found(IMAGE, tuple(each.box for each in lines))
    return ViewText(View(IMAGE, region, upright=upright), found, read, lines, ())


def test_text_that_was_turned_in_vain_is_passed_over_for_some_readings() -> None:
    tries = Tries()
    seen = text("9906", "KEEP DRY")
    assert tries.is_due("a", seen, JOB)
    tries.tell("a", seen, JOB, helped=False)
    due = [tries.is_due("a", seen, JOB) for _ in range(PASSED_OVER + 1)]
    assert due == [False] * PASSED_OVER + [True]


def test_other_text_another_place_and_another_job_are_turned_at_once() -> None:
    tries = Tries()
    tries.tell("a", text("9906", "KEEP DRY"), JOB, helped=False)
    assert not tries.is_due("a", text("9906", "KEEP DBY"), JOB), "one line of it is still there"
    assert tries.is_due("a", text("8088"), JOB)
    assert tries.is_due("a", text("9906", region="cap"), JOB)
    assert tries.is_due("b", text("9906"), JOB)
    assert tries.is_due("a", text("9906"), Expectation("job-8", (Rule(text="9066"),)))


def test_what_helped_is_done_again_for_the_next_reading() -> None:
    tries = Tries()
    seen = text("9906")
    tries.tell("a", seen, JOB, helped=False)
    tries.tell("a", seen, JOB, helped=True)
    assert tries.is_due("a", seen, JOB)


def test_view_known_to_be_upright_or_without_text_is_never_turned() -> None:
    assert not Tries().is_due("a", text("9906", upright=True), JOB)
    assert not Tries().is_due("a", text(), JOB)


def test_surer_is_what_reads_with_plainly_more_confidence_in_all() -> None:
    sure, less_sure, unsure = (text("9066", confidence=confidence) for confidence in (0.99, 0.92, 0.6))
    assert sure.is_surer_than(unsure) and not unsure.is_surer_than(sure)
    assert not sure.is_surer_than(less_sure)
