"""Outbox in memory: its bounds, and what it says of readings that end with it."""

from __future__ import annotations

import tracemalloc

import pytest

from edge_agent.outbox.base import ENTRY_OVERHEAD_BYTES
from edge_agent.outbox.memory import MemoryOutbox
from tests.outbox.made_messages import Clock, payloads, result, state


@pytest.fixture
def clock() -> Clock:
    return Clock()


def test_full_outbox_drops_the_oldest_unclaimed_reading_and_counts_it(clock: Clock) -> None:
    one = ENTRY_OVERHEAD_BYTES + len("cam/result") + 101
    outbox = MemoryOutbox(max_bytes=4 * one, max_age_s=60, clock=clock)
    outbox.put(result(0, size=100))
    (claimed,) = outbox.claim(1)
    outbox.put(state(9))
    for n in range(1, 5):
        outbox.put(result(n, size=100))
    assert payloads(outbox.claim(10)) == [9, 3, 4]  # the state stays, the claimed one too
    assert outbox.stats().dropped == {"outbox_full": 2}
    outbox.requeue([claimed.id])
    assert payloads(outbox.claim(1)) == [0]
    assert outbox.stats().bytes <= 4 * one


def test_message_larger_than_the_outbox_pushes_nothing_out(clock: Clock) -> None:
    outbox = MemoryOutbox(max_bytes=70_000, max_age_s=60, clock=clock)
    outbox.put(result(0))
    outbox.put(result(1, size=70_000))
    assert payloads(outbox.claim(10)) == [0]
    assert outbox.stats().dropped == {"too_large": 1}


def test_close_says_how_many_readings_are_lost_with_the_process(clock: Clock, caplog: pytest.LogCaptureFixture) -> None:
    outbox = MemoryOutbox(1_000_000, 60, clock)
    for n in range(3):
        outbox.put(result(n))
    outbox.put(state(3))
    outbox.done([outbox.claim(2)[1].id])
    outbox.close()
    assert caplog.messages == ["2 readings were not delivered and are lost with this process"]
    assert outbox.stats().depth == 0
    outbox.close()
    assert len(caplog.messages) == 1


def test_memory_stays_within_the_bound() -> None:
    outbox = MemoryOutbox(max_bytes=2_000_000, max_age_s=60)
    tracemalloc.start()
    try:
        for n in range(20_000):
            outbox.put(result(n, camera=f"camera-{n % 7}", size=50))
        used_bytes, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    stats = outbox.stats()
    assert stats.bytes <= 2_000_000
    assert stats.depth + stats.dropped["outbox_full"] == 20_000
    assert used_bytes < 2_200_000


def test_ledger_balances_over_every_way_out(clock: Clock) -> None:
    outbox = MemoryOutbox(20_000, 60, clock, unix=lambda: 86_400.0 * 7)
    outbox.put(result(0))
    outbox.put(state(1))
    clock.now += 61
    for n in range(40):
        outbox.put(result(n, camera="left"))
    outbox.put(result(99, size=30_000))
    entries = [entry for entry in outbox.claim(4) if not entry.message.retain]
    outbox.done([entries[0].id])
    outbox.drop([entries[1].id], "refused")
    outbox.requeue([entries[2].id])
    counts = outbox.ledger().of_day(7)
    assert counts["cam"] == {"produced": 2, "delivered": 0, "queued": 0, "dropped": {"too_old": 1, "too_large": 1}}
    left = counts["left"]
    assert left["produced"] == 40 == left["delivered"] + left["queued"] + sum(left["dropped"].values())
    assert left["queued"] == outbox.stats().depth - 1  # the state
    assert outbox.next_seq("left") == 0  # these messages tell of no capture
