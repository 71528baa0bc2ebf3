"""Scorecard: an honest count of right, wrong, missing and stray fields."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from edge_agent.demo.scene import SceneText
from edge_agent.demo.scorecard import Scorecard
from edge_agent.demo.video import SampleVideo

TRUTH = (
    {"lot": "A1", "expiry": "2027-08-31", "serial": "S1"},
    {"lot": "B2", "expiry": "2028-01-30", "serial": "S2"},
)


def text(item: int, cut: bool = False) -> SceneText:
    return SceneText(item, "x", np.zeros((4, 2), np.float32), cut)


FRAMES = (
    (text(0), text(0)),  # label 0 in full view
    (text(0), text(0, cut=True), text(1)),  # neither: one is cut, of the other a text is still outside
    (text(1), text(1)),  # label 1 in full view
    (),  # an empty belt
)


def reading(seq: int, **values: str | list[str]) -> dict[str, Any]:
    """A reading with these fields; `~` behind a value flags it as cut."""
    fields = [
        {"name": name, "value": value.removesuffix("~"), "flags": ["cut"] if value.endswith("~") else []}
        for name, found in values.items()
        for value in (found if isinstance(found, list) else [found])
    ]
    return {"seq": seq, "fields": fields}


def card() -> Scorecard:
    return Scorecard(SampleVideo(Path("x.avi"), 20.0, TRUTH, FRAMES))


def counts(scorecard: Scorecard, name: str) -> tuple[int, int, int]:
    tally = scorecard.tallies[name]
    return tally.right, tally.drawn, tally.stray


def test_a_right_field_counts_and_an_absent_one_is_missed() -> None:
    scorecard = card()
    scorecard.add(reading(0, lot="A1", serial_number="S1"))
    assert counts(scorecard, "lot") == (1, 1, 0)
    assert counts(scorecard, "serial_number") == (1, 1, 0)
    assert counts(scorecard, "expiry_date") == (0, 1, 0)
    assert scorecard.mistakes == ["#0: expiry_date is 2027-08-31, read nothing"]


def test_a_wrong_value_is_missed_and_stray() -> None:
    scorecard = card()
    scorecard.add(reading(2, lot="8\x1b2"))
    assert counts(scorecard, "lot") == (0, 1, 1)
    assert scorecard.mistakes[0] == "#2: lot is B2, read 8 2"


def test_a_right_value_beside_a_wrong_one_is_right_and_the_other_stray() -> None:
    scorecard = card()
    scorecard.add(reading(0, lot=["A1", "Z9"]))
    assert counts(scorecard, "lot") == (1, 1, 1)


def test_labels_partly_in_view_are_not_counted_but_made_up_values_are() -> None:
    scorecard = card()
    scorecard.add(reading(1, lot=["A1", "B2", "B"]))
    assert counts(scorecard, "lot") == (0, 0, 1)


def test_a_value_flagged_as_cut_is_not_stray() -> None:
    scorecard = card()
    scorecard.add(reading(1, lot=["A", "B~"]))
    assert counts(scorecard, "lot") == (0, 0, 1)


def test_an_empty_belt_counts_nothing_but_made_up_values() -> None:
    scorecard = card()
    scorecard.add(reading(3, lot="A1"))
    assert counts(scorecard, "lot") == (0, 0, 1)


def test_the_video_loops_and_so_does_the_truth() -> None:
    scorecard = card()
    scorecard.add(reading(4 * 1000 + 2, lot="B2"))
    assert counts(scorecard, "lot") == (1, 1, 0)


def test_the_summary_says_it_in_words() -> None:
    scorecard = card()
    for seq in (0, 4, 8):
        scorecard.add(reading(seq, lot="A1", expiry_date="2027-08-31", serial_number="5I"))
    summary = scorecard.summary()
    assert summary[0] == "lot: 3 of 3 right"
    assert summary[2] == "serial_number: 0 of 3 right, and 3 that no label in view carries"
    assert summary[3] == "mistake #0: serial_number is S1, read 5I"
