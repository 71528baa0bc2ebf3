"""Agent: what is read is what the camera sees now, however slow the reading (field case CAM-7)."""

from __future__ import annotations

import threading
from collections import Counter

from edge_agent.backends.base import Array, Feed
from edge_agent.cameras.capture import CaptureThread
from edge_agent.mailbox import Mailbox
from edge_agent.outbox.memory import MemoryOutbox
from edge_agent.records import Frame
from edge_agent.settings.cameras import CameraConfig
from tests.broker import wait_until
from tests.test_agent import SILENT, EndlessCamera, made_agent, made_pipeline, no_text

CAMERA = CameraConfig(kind="folder", source="made")
READINGS = 30
PASSING = 10  # frames that come while one is read


class WatchedMailbox(Mailbox):
    """Notes the numbers of the frames that were put, and beside each that is taken the newest one put before that."""

    def __init__(self) -> None:
        self.dropped: Counter[str] = Counter()
        self.newest = -1
        self.takes: list[tuple[int, int]] = []
        super().__init__(on_drop=lambda camera: self.dropped.update([camera]))

    def put(self, frame: Frame) -> bool:
        there = super().put(frame)
        self.newest = frame.seq
        return there

    def take(self, timeout_s: float) -> Frame | None:
        newest = self.newest
        frame = super().take(timeout_s)
        if frame is not None:
            self.takes.append((frame.seq, newest))
        return frame


def test_slow_reading_takes_the_newest_frame_and_counts_those_that_passed() -> None:
    """A queue would be three hundred frames behind at the end."""
    stop = threading.Event()
    mailbox = WatchedMailbox()

    def slow(feed: Feed) -> dict[str, Array]:
        there = mailbox.newest
        wait_until(lambda: mailbox.newest >= there + PASSING, "frames that pass meanwhile")
        if len(mailbox.takes) >= READINGS:
            stop.set()
        return no_text(feed)

    agent = made_agent(made_pipeline(slow), {}, MemoryOutbox(10_000_000, 3600))
    agent.mailbox = mailbox
    agent.cameras = [CaptureThread("line1", CAMERA, mailbox.put, make=lambda _n, _c: EndlessCamera(0.002))]
    agent.cameras[0].start()
    agent.main_loop(stop, SILENT)
    agent.cameras[0].stop(5)
    assert len(mailbox.takes) == READINGS
    assert all(taken >= newest for taken, newest in mailbox.takes)
    seqs = [taken for taken, _ in mailbox.takes]
    skipped = seqs[-1] + 1 - len(seqs)
    assert skipped >= (READINGS - 1) * (PASSING - 1)
    assert mailbox.dropped["line1"] >= skipped, "each one that passed is counted"
