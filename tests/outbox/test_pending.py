"""Pending: every change reaches the file once, also when a write failed and things went on meanwhile."""

from __future__ import annotations

from edge_agent.outbox.base import Entry
from edge_agent.outbox.ledger import Ledger
from edge_agent.outbox.pending import DEAD_IN_MEMORY, Pending
from edge_agent.outbox.store import DeadLetter
from tests.outbox.made_messages import reading


def entry(id_: int) -> Entry:
    return Entry(id_, reading(id_), 1.0)


def ids(entries: object) -> list[int]:
    return [each.id for each in entries]  # type: ignore[attr-defined]


def test_reading_that_leaves_before_it_was_written_is_neither_written_nor_deleted() -> None:
    pending = Pending()
    pending.add(entry(1))
    assert not pending.delete(1)
    assert not pending.batch(Ledger())


def test_what_was_written_is_in_no_later_batch() -> None:
    pending = Pending()
    pending.add(entry(1))
    assert pending.delete(7)
    assert not pending.delete(8)  # the writer knows already
    batch = pending.batch(Ledger())
    assert (ids(batch.arrived), batch.left) == ([1], [7, 8])
    assert pending.holds(1)
    assert pending.is_leaving(7)
    assert pending.written()
    assert not (pending.holds(1) or pending.is_leaving(7) or len(pending))
    assert not pending.batch(Ledger())


def test_failed_write_comes_again_in_order_with_what_came_and_left_meanwhile() -> None:
    pending, ledger = Pending(), Ledger()
    ledger.produced("cam", 3, 1)
    pending.add(entry(1))
    pending.add(entry(2))
    pending.delete(7)
    pending.forget_row = 4
    batch = pending.batch(ledger)
    pending.add(entry(3))
    pending.delete(1)  # delivered from memory while it was being written
    pending.take_back(batch, ledger)
    again = pending.batch(ledger)
    assert (ids(again.arrived), again.left, again.revived) == ([2, 3], [7], 4)
    assert [row.source for row in again.ledger] == ["cam"]


def test_messages_given_up_are_bounded_while_the_disk_fails() -> None:
    pending, ledger = Pending(), Ledger()
    for n in range(3 * DEAD_IN_MEMORY):
        pending.dead.append(DeadLetter(float(n), "refused", "", reading(n)))
        pending.take_back(pending.batch(ledger), ledger)
    assert [letter.died_at for letter in pending.dead] == [
        float(n) for n in range(2 * DEAD_IN_MEMORY, 3 * DEAD_IN_MEMORY)
    ]


def test_new_file_gets_all_that_is_in_memory_in_order_and_nothing_to_delete() -> None:
    pending = Pending()
    pending.delete(7)
    pending.begin_anew([entry(5), entry(4)])
    batch = pending.batch(Ledger())
    assert (ids(batch.arrived), batch.left) == ([4, 5], [])
