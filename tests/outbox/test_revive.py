"""Revive: what was given up and is kept whole can be sent after all, once."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from edge_agent.clock import DeviceClock
from edge_agent.outbox.accounts import read_dead_letters
from edge_agent.outbox.base import Entry
from edge_agent.outbox.disk import DiskOutbox, Limits
from edge_agent.outbox.memory import MemoryOutbox
from tests.broker import wait_until
from tests.outbox.made_messages import payloads, reading


@pytest.fixture(autouse=True)
def hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is written with the next readings, or a second later, is written at once: nothing here depends on it."""
    monkeypatch.setattr("edge_agent.outbox.disk.LAZY_S", 0.02)


def opened(path: Path) -> DiskOutbox:
    return DiskOutbox(path, DeviceClock(), lambda kind, text: None, Limits(flush_s=0))


def claimed(outbox: DiskOutbox, count: int) -> list[Entry]:
    entries: list[Entry] = []

    def all_there() -> bool:
        entries.extend(outbox.claim(100))
        return len(entries) >= count

    wait_until(all_there, f"{count} messages")
    return entries


def gone(path: Path, left: int = 0) -> Callable[[], bool]:
    return lambda: len(read_dead_letters(path)) == left


def test_what_was_given_up_waits_again_once_and_is_gone_from_the_dead(tmp_path: Path) -> None:
    path = tmp_path / "outbox.db"
    outbox = opened(path)
    for n in range(3):
        outbox.put(reading(n))
    outbox.drop([entry.id for entry in claimed(outbox, 3)], "refused", "too large")
    wait_until(gone(path, 3), "the dead letters on disk")
    assert outbox.revive() == 3
    assert outbox.revive() == 0
    assert payloads(claimed(outbox, 3)) == [0, 1, 2]
    wait_until(gone(path), "no dead letters")
    outbox.close()
    again = opened(path)
    assert again.revive() == 0
    assert payloads(claimed(again, 3)) == [0, 1, 2]
    again.close()


def test_what_is_given_up_later_can_be_revived_later(tmp_path: Path) -> None:
    path = tmp_path / "outbox.db"
    outbox = opened(path)
    for n in range(2):
        outbox.put(reading(n))
        outbox.drop([entry.id for entry in claimed(outbox, 1)], "poison", "")
        wait_until(gone(path, 1), "the dead letter on disk")
        assert outbox.revive() == 1
        (entry,) = claimed(outbox, 1)
        outbox.done([entry.id])
        wait_until(gone(path), "no dead letters")
    outbox.close()


def test_message_of_which_only_the_beginning_is_kept_stays_dead(tmp_path: Path) -> None:
    path = tmp_path / "outbox.db"
    outbox = opened(path)
    outbox.put(reading(1, size=20_000_000))
    outbox.put(reading(2))
    outbox.drop([entry.id for entry in claimed(outbox, 2)], "refused", "")
    wait_until(gone(path, 2), "the dead letters on disk")
    assert outbox.revive() == 1
    assert payloads(claimed(outbox, 1)) == [2]
    wait_until(gone(path, 1), "the long one alone")
    outbox.close()


def test_outbox_in_memory_keeps_nothing_that_was_given_up() -> None:
    outbox = MemoryOutbox(1_000_000, 60)
    outbox.put(reading(1))
    outbox.drop([entry.id for entry in outbox.claim(1)], "refused")
    assert outbox.revive() == 0
