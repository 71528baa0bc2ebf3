"""Agent: what is read is what the camera sees now, however slow the reading (field case CAM-7)."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable

from edge_agent.backends.base import Array, Feed
from edge_agent.cameras.capture import CaptureThread
from edge_agent.mailbox import Mailbox
from edge_agent.outbox.memory import MemoryOutbox
from edge_agent.records import Frame, Reading
from edge_agent.settings.cameras import CameraConfig
from tests.test_agent import SILENT, EndlessCamera, made_agent, made_pipeline, no_text

CAMERA = CameraConfig(kind="folder", source="made")
READ_S = 0.1
READINGS = 30


def slow(feed: Feed) -> dict[str, Array]:
    time.sleep(READ_S)
    return no_text(feed)


def test_slow_reading_takes_the_newest_frame_and_counts_those_that_passed() -> None:
    """A queue would be two and a half seconds behind at the end."""
    pipeline = made_pipeline(slow)
    agent = made_agent(pipeline, {}, MemoryOutbox(10_000_000, 3600))
    stop = threading.Event()
    dropped: Counter[str] = Counter()
    agent.mailbox = Mailbox(on_drop=lambda camera: dropped.update([camera]))
    agent.cameras = [CaptureThread("line1", CAMERA, agent.mailbox.put, make=lambda _n, _c: EndlessCamera(0.01))]
    ages_s: list[float] = []
    seqs: list[int] = []
    read = pipeline.read

    def watched(frame: Frame, upcoming: Callable[[], Frame | None] = lambda: None) -> Reading:
        ages_s.append(time.monotonic() - frame.captured_mono)
        seqs.append(frame.seq)
        if len(ages_s) >= READINGS:
            stop.set()
        return read(frame, upcoming)

    pipeline.read = watched  # type: ignore[method-assign]
    agent.cameras[0].start()
    agent.main_loop(stop, SILENT)
    agent.cameras[0].stop(5)
    assert max(ages_s) < 1.0
    skipped = seqs[-1] + 1 - len(seqs)
    assert skipped > READINGS
    assert dropped["line1"] >= skipped, "each one that passed is counted"
