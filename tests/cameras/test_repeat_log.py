"""Repeat log: the first of a kind is shown, a flood becomes a few lines with a count."""

from __future__ import annotations

import logging

import pytest

from edge_agent.cameras.base import Clock
from edge_agent.cameras.repeat_log import RepeatLog

log = logging.getLogger("test.repeat_log")


class Hand:
    """A clock moved by hand."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.clock = Clock(monotonic=lambda: self.now)


def lines(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records]


def test_flood_becomes_few_lines_that_say_how_many(caplog: pytest.LogCaptureFixture) -> None:
    hand = Hand()
    journal = RepeatLog(log, hand.clock)
    for _ in range(12_000):
        journal.write(logging.WARNING, "open", "camera a is offline")
        hand.now += 0.005
    assert 2 <= len(lines(caplog)) <= 4
    assert lines(caplog)[0] == "camera a is offline"
    assert "more like it" in lines(caplog)[1]
    written = sum(1 for _ in lines(caplog))
    hidden = sum(int(line.split("(and ")[1].split()[0]) for line in lines(caplog) if "(and " in line)
    hand.now += 1000
    journal.write(logging.WARNING, "open", "last")
    hidden += int(lines(caplog)[-1].split("(and ")[1].split()[0])
    assert written + hidden == 12_000, "a hidden message was not counted"


def test_first_of_each_kind_is_always_shown(caplog: pytest.LogCaptureFixture) -> None:
    journal = RepeatLog(log, Hand().clock)
    for kind in ("open", "read", "bad"):
        journal.write(logging.WARNING, kind, kind)
        journal.write(logging.WARNING, kind, kind)
    assert lines(caplog) == ["open", "read", "bad"]


def test_kind_that_was_quiet_long_enough_starts_afresh(caplog: pytest.LogCaptureFixture) -> None:
    hand = Hand()
    journal = RepeatLog(log, hand.clock)
    for wait_s in (0, 60, 60, 60):
        hand.now += wait_s
        journal.write(logging.WARNING, "open", "offline")
    assert lines(caplog) == ["offline"] * 4


def test_percent_signs_in_a_message_are_text(caplog: pytest.LogCaptureFixture) -> None:
    RepeatLog(log, Hand().clock).write(logging.WARNING, "open", "100%s broken %d")
    assert lines(caplog) == ["100%s broken %d"]
