"""Counts: readings are in the ledger, states are not, and every drop is counted."""

from __future__ import annotations

from edge_agent.outbox.base import Entry
from edge_agent.outbox.counts import Counts
from edge_agent.records import Message
from tests.outbox.made_messages import reading, state


def entry(id_: int, message: Message) -> Entry:
    return Entry(id_, message, 1.0)


def test_reading_is_accounted_for_from_its_coming_to_its_end() -> None:
    counts = Counts()
    for n in range(3):
        counts.came(entry(n, reading(n)))
    counts.delivered(entry(0, reading(0)))
    counts.given_up(entry(1, reading(1)), "too_old")
    (row,) = counts.ledger.rows()
    assert (row.produced, row.delivered, row.queued, row.dropped) == (3, 1, 1, {"too_old": 1})
    assert counts.dropped == {"too_old": 1}


def test_state_is_not_in_the_ledger_and_its_drop_is_counted() -> None:
    counts = Counts()
    said = entry(1, state(1))
    counts.came(said)
    counts.delivered(said)
    counts.given_up(said, "outbox_full")
    assert list(counts.ledger.rows()) == []
    assert counts.dropped == {"outbox_full": 1}
