"""Mailbox: between the cameras' threads and the main loop, one slot per camera in which the newest frame wins.

A slow reader never reads old pictures: a frame that arrives while its camera's slot is full replaces the one
waiting there, and the older one is counted as a drop. Cameras are served in turn.
"""

from __future__ import annotations

import threading
import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Mapping

from edge_agent.records import Frame


class Mailbox:
    """Newest frame per camera, cameras in turn. Every method may be called from any thread.

    A camera that is twenty times faster than another gets every second turn, not twenty of twenty-one: its slot
    keeps its place in the queue when a newer frame replaces the waiting one, and goes to the back once taken.
    """

    def __init__(
        self, monotonic: Callable[[], float] = time.monotonic, on_drop: Callable[[str], None] = lambda camera: None
    ) -> None:
        """`on_drop` is told the camera of each frame dropped, in the putting thread; it may only count."""
        self._monotonic = monotonic
        self._on_drop = on_drop
        self._changed = threading.Condition()
        self._waiting: OrderedDict[str, Frame] = OrderedDict()  # at most one frame a camera, next turn first
        self._drops: Counter[str] = Counter()
        self._closed = False

    def put(self, frame: Frame) -> bool:
        """Leaves `frame` for the main loop, dropping an older one of the same camera that still waits.

        Never blocks. False when the mailbox is closed: the frame is then counted as dropped.
        """
        with self._changed:
            if self._closed or frame.camera in self._waiting:
                self._drops[frame.camera] += 1
                self._on_drop(frame.camera)
            if self._closed:
                return False
            self._waiting[frame.camera] = frame
            self._changed.notify_all()
            return True

    def put_waiting(self, frame: Frame, timeout_s: float) -> bool:
        """Leaves `frame` once its camera's slot is free; for sources of which every frame counts.

        False when the slot stayed full for `timeout_s` or the mailbox is closed: nothing was dropped, and the
        caller still has the frame.
        """
        with self._changed:
            free = self._changed.wait_for(lambda: self._closed or frame.camera not in self._waiting, timeout_s)
            if self._closed or not free:
                return False
            self._waiting[frame.camera] = frame
            self._changed.notify_all()
            return True

    def take(self, timeout_s: float) -> Frame | None:
        """The next camera's newest frame; None when none came within `timeout_s`, or closed and empty."""
        with self._changed:
            self._changed.wait_for(lambda: self._closed or self._waiting, timeout_s)
            if not self._waiting:
                return None
            _, frame = self._waiting.popitem(last=False)
            self._changed.notify_all()
            return frame

    def close(self) -> None:
        """Takes no more frames and wakes everyone who waits; frames already waiting can still be taken."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    @property
    def closed(self) -> bool:
        """Whether `close` was called."""
        return self._closed

    @property
    def drops(self) -> Mapping[str, int]:
        """Frames dropped so far, by camera; a camera that never lost one is absent."""
        with self._changed:
            return dict(self._drops)

    @property
    def ages(self) -> Mapping[str, float]:
        """Seconds since capture of the frame waiting now, by camera; a camera with an empty slot is absent."""
        with self._changed:
            now = self._monotonic()
            return {camera: now - frame.captured_mono for camera, frame in self._waiting.items()}
