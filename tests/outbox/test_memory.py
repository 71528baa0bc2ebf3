"""Outbox in memory: order, claims, latest-only states, bounds; and that every drop is counted."""

from __future__ import annotations

import threading
import tracemalloc

import pytest

from edge_agent.outbox.base import ENTRY_OVERHEAD_BYTES, Entry
from edge_agent.outbox.memory import MemoryOutbox
from edge_agent.records import Message


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def result(n: int, camera: str = "cam", size: int = 0) -> Message:
    return Message(f"{camera}/result", b"%d" % n + b" " * size)


def state(n: int, topic: str = "health") -> Message:
    return Message(topic, b"%d" % n, retain=True)


def payloads(entries: list[Entry]) -> list[int]:
    return [int(entry.message.payload) for entry in entries]


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def outbox(clock: Clock) -> MemoryOutbox:
    return MemoryOutbox(max_bytes=1_000_000, max_age_s=60, clock=clock)


def test_messages_are_claimed_oldest_first_and_only_once(outbox: MemoryOutbox) -> None:
    for n in range(5):
        outbox.put(result(n))
    assert payloads(outbox.claim(3)) == [0, 1, 2]
    assert payloads(outbox.claim(3)) == [3, 4]
    assert outbox.claim(3) == []
    assert outbox.stats().depth == 5
    assert outbox.stats().claimed == 5


def test_requeued_message_takes_its_old_place(outbox: MemoryOutbox) -> None:
    for n in range(5):
        outbox.put(result(n))
    claimed = outbox.claim(3)
    outbox.put(result(5))
    outbox.requeue([claimed[0].id, claimed[2].id])
    outbox.requeue([claimed[1].id])
    assert payloads(outbox.claim(10)) == [0, 1, 2, 3, 4, 5]


def test_done_message_is_gone_for_good(outbox: MemoryOutbox) -> None:
    outbox.put(result(0))
    (entry,) = outbox.claim(1)
    outbox.done([entry.id])
    outbox.done([entry.id])
    outbox.requeue([entry.id])
    assert outbox.claim(1) == []
    stats = outbox.stats()
    assert (stats.depth, stats.claimed, stats.bytes, stats.oldest_age_s, stats.dropped) == (0, 0, 0, None, {})


def test_newer_state_replaces_the_waiting_one_and_states_go_first(outbox: MemoryOutbox) -> None:
    outbox.put(result(0))
    for n in range(1, 4):
        outbox.put(state(n))
        outbox.put(Message("telemetry", b"%d" % (n * 10), qos=0))
    assert outbox.stats().depth == 3
    assert payloads(outbox.claim(10)) == [3, 30, 0]
    assert outbox.stats().dropped == {}


def test_lost_state_does_not_come_back_over_a_newer_one(outbox: MemoryOutbox) -> None:
    outbox.put(state(1))
    (first,) = outbox.claim(1)
    outbox.put(state(2))
    (second,) = outbox.claim(1)
    outbox.done([second.id])
    outbox.requeue([first.id])
    assert outbox.claim(1) == []
    assert outbox.stats().depth == 0


def test_lost_state_without_a_newer_one_is_offered_again(outbox: MemoryOutbox) -> None:
    outbox.put(state(1))
    outbox.requeue([entry.id for entry in outbox.claim(1)])
    assert payloads(outbox.claim(1)) == [1]


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


def test_old_reading_is_dropped_and_counted_but_a_state_never_ages(clock: Clock, outbox: MemoryOutbox) -> None:
    outbox.put(state(7))
    outbox.put(result(0))
    clock.now += 50
    outbox.put(result(1))
    clock.now += 20
    assert payloads(outbox.claim(10)) == [7, 1]
    assert outbox.stats().dropped == {"too_old": 1}


def test_claimed_reading_that_aged_is_dropped_when_it_comes_back(clock: Clock, outbox: MemoryOutbox) -> None:
    outbox.put(result(0))
    (entry,) = outbox.claim(1)
    clock.now += 61
    assert outbox.stats().depth == 1  # it may be arriving right now
    outbox.requeue([entry.id])
    assert outbox.stats().dropped == {"too_old": 1}


def test_given_up_message_is_counted_under_its_reason_once(outbox: MemoryOutbox) -> None:
    outbox.put(result(0))
    (entry,) = outbox.claim(1)
    outbox.drop([entry.id], "refused")
    outbox.drop([entry.id], "refused")
    assert outbox.stats().dropped == {"refused": 1}


def test_age_of_the_oldest_is_told(clock: Clock, outbox: MemoryOutbox) -> None:
    outbox.put(result(0))
    clock.now += 12.5
    outbox.put(result(1))
    assert outbox.stats().oldest_age_s == 12.5


def test_watcher_hears_of_every_put(outbox: MemoryOutbox) -> None:
    heard: list[int] = []
    outbox.watch(lambda: heard.append(outbox.stats().depth))  # may look at the outbox: no lock is held
    outbox.put(result(0))
    outbox.put(result(1))
    assert heard == [1, 2]


def test_close_says_how_many_readings_are_lost_with_the_process(
    outbox: MemoryOutbox, caplog: pytest.LogCaptureFixture
) -> None:
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


def test_threads_lose_nothing_between_put_claim_and_requeue() -> None:
    outbox = MemoryOutbox(max_bytes=50_000_000, max_age_s=60)
    taken: list[int] = []

    def produce(base: int) -> None:
        for n in range(500):
            outbox.put(result(base + n))

    def consume() -> None:
        while len(taken) < 2000:
            entries = outbox.claim(7)
            outbox.requeue([entry.id for entry in entries[3:]])
            taken.extend(payloads(entries[:3]))
            outbox.done([entry.id for entry in entries[:3]])

    threads = [threading.Thread(target=produce, args=(k * 500,)) for k in range(4)] + [threading.Thread(target=consume)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert sorted(taken) == list(range(2000))
    assert outbox.stats().depth == 0


def test_live_readings_go_before_the_backlog_and_of_that_no_more_than_allowed(
    clock: Clock, outbox: MemoryOutbox
) -> None:
    for n in range(4):
        outbox.put(result(n))
    clock.now += 11
    outbox.put(result(4))
    outbox.put(state(9))
    assert payloads(outbox.claim(10, replay=2)) == [9, 4, 0, 1]
    assert payloads(outbox.claim(10, replay=0)) == []
    assert payloads(outbox.claim(10)) == [2, 3]


def test_without_live_first_everything_goes_in_the_order_of_arrival(clock: Clock) -> None:
    outbox = MemoryOutbox(1_000_000, 60, clock, live_first=False)
    for n in range(3):
        outbox.put(result(n))
    clock.now += 11
    outbox.put(result(3))
    assert payloads(outbox.claim(10, replay=2)) == [0, 1]
    assert payloads(outbox.claim(10, replay=2)) == [2, 3]


def test_lost_reading_that_aged_meanwhile_goes_back_into_the_backlog(clock: Clock, outbox: MemoryOutbox) -> None:
    for n in range(3):
        outbox.put(result(n))
    claimed = outbox.claim(2)
    clock.now += 11
    outbox.put(result(3))
    outbox.requeue([entry.id for entry in claimed])
    assert payloads(outbox.claim(10)) == [3, 0, 1, 2]


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
