"""Board: the states the device shows (retained topics): each said once per change, and all again at a birth."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from edge_agent import messages
from edge_agent.messages import CameraState, PipelineState
from edge_agent.outbox.base import Outbox
from edge_agent.records import Message

# The reason of a camera's trouble may change with every attempt: only a change of state is said at once.
REASON_EVERY_S = 10.0


@dataclass(frozen=True)
class _CameraSaid:
    state: CameraState
    reason: str | None
    said_mono: float


class Board:
    """Keeps the newest message of each state topic. Every method may be called from any thread.

    `clock` gives unix seconds, `monotonic` the seconds that intervals are measured in.
    """

    def __init__(
        self,
        outbox: Outbox,
        clock: Callable[[], float] = time.time,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._outbox = outbox
        self._clock = clock
        self._monotonic = monotonic
        self._started_at = clock()
        self.leaving: Literal["shutdown", "restarting"] = "shutdown"  # what a farewell says
        self._lock = threading.Lock()
        self._states: dict[str, Message] = {}
        self._cameras: dict[str, _CameraSaid] = {}
        self._health: tuple[PipelineState, str | None, str | None, str | None] | None = None

    def will(self) -> Message:
        """What the broker is to say when the connection dies."""
        return messages.status("offline", reason="lost", at=None, started_at=self._started_at)

    def farewell(self, reason: Literal["fault"] | None = None) -> Message:
        """The last word of a process that ends tidily: because it was told to, cannot go on, or starts afresh."""
        return messages.status("stopped", reason=reason or self.leaving, at=self._clock(), started_at=self._started_at)

    def birth(self) -> list[Message]:
        """Every state as it is now, the device's own first: said anew after each connect."""
        online = messages.status("online", reason=None, at=self._clock(), started_at=self._started_at)
        with self._lock:
            return [online, *self._states.values()]

    def say_health(
        self,
        pipeline: PipelineState,
        *,
        reason: str | None = None,
        backend: str | None = None,
        precision: str | None = None,
    ) -> None:
        """How the reading goes; said where it differs from before."""
        with self._lock:
            if self._health == (pipeline, reason, backend, precision):
                return
            self._health = (pipeline, reason, backend, precision)
        self.say(messages.health(pipeline, reason=reason, backend=backend, precision=precision, at=self._clock()))

    def say_fault(self, reason: str) -> None:
        """Nothing is read any more; the first fault said is the one that stays."""
        with self._lock:
            if self._health is not None and self._health[0] == "fault":
                return
        self.say_health("fault", reason=reason)

    def say_camera(self, camera: str, state: CameraState, reason: str | None, last_frame_at: float | None) -> None:
        """How a camera is; a changed state is said at once, a changed reason at most every REASON_EVERY_S."""
        now_mono = self._monotonic()
        with self._lock:
            said = self._cameras.get(camera)
            if said is not None and said.state == state and not self._reason_is_due(said, reason, now_mono):
                return
            self._cameras[camera] = _CameraSaid(state, reason, now_mono)
        self.say(messages.camera_status(camera, state, reason=reason, last_frame_at=last_frame_at, at=self._clock()))

    @staticmethod
    def _reason_is_due(said: _CameraSaid, reason: str | None, now_mono: float) -> bool:
        return said.reason != reason and now_mono - said.said_mono >= REASON_EVERY_S

    def say(self, message: Message) -> None:
        """Any other retained state; the newest of its topic is said at each birth."""
        with self._lock:
            self._states[message.topic] = message
        self._outbox.put(message)
