"""Mailbox: the newest frame wins, cameras take turns, every drop is counted."""

from __future__ import annotations

import threading
from collections import Counter

import numpy as np

from edge_agent.mailbox import Mailbox
from edge_agent.records import Frame
from tests.broker import DEADLINE_S, wait_until


def frame(camera: str = "a", seq: int = 0, captured_mono: float = 0.0) -> Frame:
    return Frame(camera, seq, 1_700_000_000.0, captured_mono, np.zeros((4, 4, 3), np.uint8))


def taken(mailbox: Mailbox) -> tuple[str, int] | None:
    got = mailbox.take(0)
    return None if got is None else (got.camera, got.seq)


def test_full_mailbox_drops_older_frame() -> None:
    mailbox = Mailbox()
    for seq in range(3):
        assert mailbox.put(frame(seq=seq))
    assert taken(mailbox) == ("a", 2)
    assert taken(mailbox) is None
    assert mailbox.drops == {"a": 2}


def test_empty_mailbox_gives_none_after_the_timeout() -> None:
    assert Mailbox().take(0.01) is None


def test_cameras_take_turns_in_order_of_arrival() -> None:
    mailbox = Mailbox()
    mailbox.put(frame("a", 0))
    mailbox.put(frame("b", 0))
    mailbox.put(frame("c", 0))
    mailbox.put(frame("a", 1))  # newer, but keeps a's place
    assert [taken(mailbox) for _ in range(4)] == [("a", 1), ("b", 0), ("c", 0), None]
    assert mailbox.drops == {"a": 1}


def test_camera_just_served_goes_behind_the_one_that_waits() -> None:
    mailbox = Mailbox()
    mailbox.put(frame("fast", 0))
    mailbox.put(frame("slow", 0))
    assert taken(mailbox) == ("fast", 0)
    mailbox.put(frame("fast", 1))
    assert taken(mailbox) == ("slow", 0)
    assert taken(mailbox) == ("fast", 1)


def test_camera_twenty_times_faster_does_not_starve_the_other() -> None:
    mailbox = Mailbox()
    stop = threading.Event()
    sent: Counter[str] = Counter()

    def send(camera: str, every_s: float) -> None:
        while not stop.wait(every_s):
            mailbox.put(frame(camera, sent[camera]))
            sent[camera] += 1

    senders = [threading.Thread(target=send, args=args) for args in (("fast", 0.001), ("slow", 0.02))]
    for sender in senders:
        sender.start()
    served: Counter[str] = Counter()
    newest = {"fast": -1, "slow": -1}
    for _ in range(40):
        wait_until(
            lambda: len(mailbox.ages) == 2, "a frame of either camera"
        )  # as where the reader is slower than both
        got = mailbox.take(0)
        assert got is not None
        assert got.seq > newest[got.camera], "an older frame came after a newer one"
        newest[got.camera] = got.seq
        served[got.camera] += 1
    stop.set()
    for sender in senders:
        sender.join(DEADLINE_S)
    assert served == {"fast": 20, "slow": 20}
    assert mailbox.drops["fast"] > mailbox.drops.get("slow", 0)


def test_every_frame_is_either_taken_or_counted_as_dropped() -> None:
    mailbox = Mailbox()
    done = threading.Event()

    def send() -> None:
        for seq in range(500):
            mailbox.put(frame(seq=seq))
        done.set()

    sender = threading.Thread(target=send)
    sender.start()
    count = 0
    while not (done.is_set() and not mailbox.ages):
        count += mailbox.take(0.05) is not None
    sender.join(DEADLINE_S)
    assert count + mailbox.drops.get("a", 0) == 500


def test_put_waiting_keeps_every_frame_in_order() -> None:
    mailbox = Mailbox()

    def send() -> None:
        for seq in range(50):
            assert mailbox.put_waiting(frame(seq=seq), 10)

    sender = threading.Thread(target=send)
    sender.start()
    got = [mailbox.take(10) for _ in range(50)]
    sender.join(DEADLINE_S)
    assert [f.seq for f in got if f is not None] == list(range(50))
    assert mailbox.drops == {}


def test_put_waiting_gives_up_on_a_full_slot_and_drops_nothing() -> None:
    mailbox = Mailbox()
    mailbox.put(frame(seq=0))
    assert not mailbox.put_waiting(frame(seq=1), 0.01)
    assert mailbox.put_waiting(frame("b", 0), 0.01), "another camera's slot is free"
    assert taken(mailbox) == ("a", 0)
    assert mailbox.drops == {}


def test_close_wakes_whoever_takes_and_whoever_waits_to_put() -> None:
    mailbox = Mailbox()
    mailbox.put(frame("b", 0))
    results: list[object] = []
    waiting_to_put = threading.Thread(target=lambda: results.append(mailbox.put_waiting(frame("b", 1), 60)))
    waiting_to_put.start()
    mailbox.close()
    waiting_to_put.join(DEADLINE_S)
    assert results == [False]
    empty = Mailbox()
    waiting_to_take = threading.Thread(target=lambda: results.append(empty.take(60)))
    waiting_to_take.start()
    empty.close()
    waiting_to_take.join(DEADLINE_S)
    assert results == [False, None]


def test_closed_mailbox_hands_out_what_waits_and_counts_what_comes_late() -> None:
    mailbox = Mailbox()
    mailbox.put(frame(seq=0))
    mailbox.close()
    assert mailbox.closed
    assert not mailbox.put(frame(seq=1))
    assert taken(mailbox) == ("a", 0)
    assert mailbox.take(60) is None
    assert mailbox.drops == {"a": 1}


def test_ages_tell_how_old_the_waiting_frame_is() -> None:
    now = [100.0]
    mailbox = Mailbox(monotonic=lambda: now[0])
    mailbox.put(frame("a", captured_mono=99.5))
    now[0] = 102.0
    assert mailbox.ages == {"a": 2.5}
    mailbox.take(0)
    assert mailbox.ages == {}
