"""Outbox contract, over every outbox: order, claims, latest-only states, lanes, age; and every drop is counted."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from edge_agent.clock import DeviceClock
from edge_agent.outbox.base import Outbox
from edge_agent.outbox.disk import DiskOutbox, Limits
from edge_agent.outbox.memory import MemoryOutbox
from edge_agent.records import Message
from tests.broker import DEADLINE_S
from tests.outbox.made_messages import Clock, payloads, reading, result, state


@pytest.fixture
def clock() -> Clock:
    return Clock()


def made(kind: str, clock: Clock, path: Path, *, live_first: bool = True) -> Outbox:
    if kind == "memory":
        return MemoryOutbox(1_000_000, 60, clock, live_first=live_first)
    limits = Limits(max_age_s=60, flush_s=0, live_first=live_first)
    return DiskOutbox(path, DeviceClock(monotonic=clock), lambda kind, text: None, limits)


@pytest.fixture(params=["memory", "disk"])
def outbox(request: pytest.FixtureRequest, clock: Clock, tmp_path: Path) -> Iterator[Outbox]:
    outbox = made(request.param, clock, tmp_path / "outbox.db")
    yield outbox
    outbox.close()


def test_messages_are_claimed_oldest_first_and_only_once(outbox: Outbox) -> None:
    for n in range(5):
        outbox.put(result(n))
    assert payloads(outbox.claim(3)) == [0, 1, 2]
    assert payloads(outbox.claim(3)) == [3, 4]
    assert outbox.claim(3) == []
    assert outbox.stats().depth == 5
    assert outbox.stats().claimed == 5


def test_requeued_message_takes_its_old_place(outbox: Outbox) -> None:
    for n in range(5):
        outbox.put(result(n))
    claimed = outbox.claim(3)
    outbox.put(result(5))
    outbox.requeue([claimed[0].id, claimed[2].id])
    outbox.requeue([claimed[1].id])
    assert payloads(outbox.claim(10)) == [0, 1, 2, 3, 4, 5]


def test_done_message_is_gone_for_good(outbox: Outbox) -> None:
    outbox.put(result(0))
    (entry,) = outbox.claim(1)
    outbox.done([entry.id])
    outbox.done([entry.id])
    outbox.requeue([entry.id])
    assert outbox.claim(1) == []
    stats = outbox.stats()
    assert (stats.depth, stats.claimed, stats.bytes, stats.oldest_age_s, stats.dropped) == (0, 0, 0, None, {})


def test_newer_state_replaces_the_waiting_one_and_states_go_first(outbox: Outbox) -> None:
    outbox.put(result(0))
    for n in range(1, 4):
        outbox.put(state(n))
        outbox.put(Message("telemetry", b"%d" % (n * 10), qos=0))
    assert outbox.stats().depth == 3
    assert payloads(outbox.claim(10)) == [3, 30, 0]
    assert outbox.stats().dropped == {}


def test_lost_state_does_not_come_back_over_a_newer_one(outbox: Outbox) -> None:
    outbox.put(state(1))
    (first,) = outbox.claim(1)
    outbox.put(state(2))
    (second,) = outbox.claim(1)
    outbox.done([second.id])
    outbox.requeue([first.id])
    assert outbox.claim(1) == []
    assert outbox.stats().depth == 0


def test_lost_state_without_a_newer_one_is_offered_again(outbox: Outbox) -> None:
    outbox.put(state(1))
    outbox.requeue([entry.id for entry in outbox.claim(1)])
    assert payloads(outbox.claim(1)) == [1]


def test_old_reading_is_dropped_and_counted_but_a_state_never_ages(clock: Clock, outbox: Outbox) -> None:
    outbox.put(state(7))
    outbox.put(result(0))
    clock.now += 50
    outbox.put(result(1))
    clock.now += 20
    assert payloads(outbox.claim(10)) == [7, 1]
    assert outbox.stats().dropped == {"too_old": 1}


def test_claimed_reading_that_aged_is_dropped_when_it_comes_back(clock: Clock, outbox: Outbox) -> None:
    outbox.put(result(0))
    (entry,) = outbox.claim(1)
    clock.now += 61
    assert outbox.stats().depth == 1  # it may be arriving right now
    outbox.requeue([entry.id])
    assert outbox.claim(1) == []
    assert outbox.stats().dropped == {"too_old": 1}


def test_given_up_message_is_counted_under_its_reason_once(outbox: Outbox) -> None:
    outbox.put(result(0))
    (entry,) = outbox.claim(1)
    outbox.drop([entry.id], "refused")
    outbox.drop([entry.id], "refused")
    assert outbox.stats().dropped == {"refused": 1}


def test_age_of_the_oldest_is_told(clock: Clock, outbox: Outbox) -> None:
    outbox.put(result(0))
    clock.now += 12.5
    outbox.put(result(1))
    assert outbox.stats().oldest_age_s == 12.5


def test_watcher_hears_of_every_put(outbox: Outbox) -> None:
    heard: list[int] = []
    outbox.watch(lambda: heard.append(outbox.stats().depth))  # may look at the outbox: no lock is held
    outbox.put(result(0))
    outbox.put(result(1))
    assert heard == [1, 2]


@pytest.mark.parametrize("kind", ["memory", "disk"])
def test_threads_lose_nothing_between_put_claim_and_requeue(kind: str, clock: Clock, tmp_path: Path) -> None:
    outbox = made(kind, clock, tmp_path / "outbox.db")
    taken: list[int] = []

    def produce(base: int) -> None:
        for n in range(60):
            outbox.put(result(base + n))

    def consume() -> None:
        while len(taken) < 240:
            entries = outbox.claim(7)
            outbox.requeue([entry.id for entry in entries[3:]])
            taken.extend(payloads(entries[:3]))
            outbox.done([entry.id for entry in entries[:3]])

    threads = [threading.Thread(target=produce, args=(k * 60,)) for k in range(4)] + [threading.Thread(target=consume)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(DEADLINE_S)
    assert sorted(taken) == list(range(240))
    assert outbox.stats().depth == 0
    outbox.close()


def test_live_readings_go_before_the_backlog_and_of_that_no_more_than_allowed(clock: Clock, outbox: Outbox) -> None:
    for n in range(4):
        outbox.put(result(n))
    clock.now += 11
    outbox.put(result(4))
    outbox.put(state(9))
    assert payloads(outbox.claim(10, replay=2)) == [9, 4, 0, 1]
    assert payloads(outbox.claim(10, replay=0)) == []
    assert payloads(outbox.claim(10)) == [2, 3]


def test_lost_reading_that_aged_meanwhile_goes_back_into_the_backlog(clock: Clock, outbox: Outbox) -> None:
    for n in range(3):
        outbox.put(result(n))
    claimed = outbox.claim(2)
    clock.now += 11
    outbox.put(result(3))
    outbox.requeue([entry.id for entry in claimed])
    assert payloads(outbox.claim(10)) == [3, 0, 1, 2]


@pytest.mark.parametrize("kind", ["memory", "disk"])
def test_without_live_first_everything_goes_in_the_order_of_arrival(kind: str, clock: Clock, tmp_path: Path) -> None:
    outbox = made(kind, clock, tmp_path / "outbox.db", live_first=False)
    for n in range(3):
        outbox.put(result(n))
    clock.now += 11
    outbox.put(result(3))
    assert payloads(outbox.claim(10, replay=2)) == [0, 1]
    assert payloads(outbox.claim(10, replay=2)) == [2, 3]
    outbox.close()


def test_ledger_balances_and_knows_the_next_frame_number(outbox: Outbox) -> None:
    for n in range(6):
        outbox.put(reading(n, "left"))
    outbox.put(reading(41, "right"))
    outbox.put(state(1))
    entries = [entry for entry in outbox.claim(10) if not entry.message.retain]
    outbox.done([entry.id for entry in entries[:2]])
    outbox.drop([entries[2].id], "refused", "too large")
    outbox.requeue([entry.id for entry in entries[3:]])
    assert outbox.ledger().totals() == {
        "left": {"produced": 6, "delivered": 2, "queued": 3, "dropped": {"refused": 1}},
        "right": {"produced": 1, "delivered": 0, "queued": 1, "dropped": {}},
    }
    assert (outbox.next_seq("left"), outbox.next_seq("right"), outbox.next_seq("new")) == (6, 42, 0)
    assert outbox.fault is None
