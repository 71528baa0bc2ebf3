"""NoTextLimit: an empty belt is said, and is no flood."""

from __future__ import annotations

import numpy as np

from edge_agent.no_text import NoTextLimit
from edge_agent.records import Quad, Reading, TextBox, TextLine

LINE = TextLine("LOT 1", 0.9, TextBox(Quad(np.array([[0, 0], [9, 0], [9, 5], [0, 5]], np.float32)), 0.9))


def blank(at: float, camera: str = "a") -> Reading:
    return Reading(camera, int(at * 10), at, 640, 480, reason="no_text")


def text(at: float) -> Reading:
    return Reading("a", int(at * 10), at, 640, 480, (LINE,))


def test_first_blank_is_said_and_then_one_per_interval() -> None:
    limit = NoTextLimit(5.0)
    said = [at for at in range(12) if limit.admits(blank(float(at)))]
    assert said == [0, 5, 10]
    assert limit.withheld == {"a": 9}


def test_text_is_always_said_and_the_next_blank_too() -> None:
    limit = NoTextLimit(5.0)
    assert [limit.admits(r) for r in (blank(0), text(1), text(1.1), blank(2), blank(3))] == [
        True,
        True,
        True,
        True,
        False,
    ]


def test_cameras_do_not_silence_one_another() -> None:
    limit = NoTextLimit(5.0)
    assert limit.admits(blank(0, "a"))
    assert limit.admits(blank(0, "b"))


def test_clock_that_jumps_back_silences_nobody() -> None:
    limit = NoTextLimit(5.0)
    assert limit.admits(blank(1000))
    assert limit.admits(blank(10))
