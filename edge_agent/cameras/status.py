"""Camera status: what is known of one camera now, kept by its capture thread, read from any other."""

from __future__ import annotations

import threading
from collections import deque
from dataclasses import dataclass
from typing import Literal

from edge_agent.cameras.base import Clock
from edge_agent.errors import ConfigError
from edge_agent.settings.cameras import CameraConfig

State = Literal["starting", "online", "stalled", "offline", "disabled", "ended"]

NO_FRAME_YET = "no frame yet"
FPS_FRAMES = 60  # the measured rate is that of the last so many frames


@dataclass(frozen=True)
class CameraStatus:
    """A snapshot of one camera.

    `state`: starting (no frame yet), online, stalled (open, but no frame for stalled_after_s), offline (lost, being
    reopened, or given up: see `reason`), disabled (by config), ended (a file that was read to its end).
    `last_frame_at` in unix s, None before the first. `frames` good ones read, `bad_frames` damaged ones, `skipped`
    good ones not offered because of max_fps, `reconnects` attempts to open again, `resizes` changes of frame size,
    `abandoned` captures that never returned from native code.
    """

    camera: str
    state: State
    reason: str | None
    last_frame_at: float | None
    frames: int
    bad_frames: int
    skipped: int
    reconnects: int
    resizes: int
    abandoned: int
    width_px: int | None
    height_px: int | None
    fps: float


class CameraVitals:
    """The numbers behind CameraStatus. Every method may be called from any thread.

    A session is one reader thread; what a session says that is no longer the current one is ignored.
    """

    def __init__(self, camera: str, config: CameraConfig, clock: Clock) -> None:
        self._camera = camera
        self._config = config
        self._clock = clock
        self._lock = threading.Lock()
        self._session: object = None
        self._state: State = "starting" if config.enabled else "disabled"
        self._reason: str | None = NO_FRAME_YET if config.enabled else "enabled: false"
        self._alive_mono = clock.monotonic()
        self._last_frame_at: float | None = None
        self._delivered: deque[float] = deque(maxlen=FPS_FRAMES)
        self._size: tuple[int, int] | None = None
        self._last_bad: str | None = None
        self._frames = self._bad_frames = self._skipped = 0
        self._reconnects = self._resizes = self._abandoned = 0
        self._next_seq = 0
        self.config_error: ConfigError | None = None

    def number_from(self, seq: int) -> None:
        """The next frame gets this number."""
        with self._lock:
            self._next_seq = seq

    def take_seq(self) -> int:
        """The next frame's number: one after the other, each once, whichever session asks."""
        with self._lock:
            seq, self._next_seq = self._next_seq, self._next_seq + 1
            return seq

    def begin(self, session: object) -> None:
        """Makes `session` the current one."""
        with self._lock:
            self._session = session
            self._alive_mono = self._clock.monotonic()

    def abandon(self, reason: str) -> None:
        """No session is current from now on: the one that was did not return."""
        with self._lock:
            self._session = None
            self._abandoned += 1
            self._state, self._reason = "offline", reason

    def frame(self, session: object, width_px: int, height_px: int, captured_at: float, captured_mono: float) -> bool:
        """Counts a good frame; False when the session is not current, and the frame is to be thrown away."""
        with self._lock:
            if session is not self._session:
                return False
            self._frames += 1
            self._resizes += self._size is not None and self._size != (width_px, height_px)
            self._size = (width_px, height_px)
            self._delivered.append(captured_mono)
            self._last_frame_at, self._alive_mono = captured_at, captured_mono
            self._state, self._reason, self._last_bad = "online", None, None
            return True

    def skipped(self) -> None:
        """Counts a good frame that max_fps kept back."""
        with self._lock:
            self._skipped += 1

    def bad_frame(self, session: object, reason: str) -> None:
        """Counts a damaged frame."""
        with self._lock:
            if session is self._session:
                self._bad_frames += 1
                self._last_bad = reason

    def alive(self, session: object, idle_reason: str | None = None) -> None:
        """The source is in order although it gives no frame: just opened, nothing new, or the reader is full."""
        with self._lock:
            if session is self._session:
                self._alive_mono = self._clock.monotonic()
                if idle_reason is not None:
                    self._state, self._reason = "online", idle_reason

    def offline(self, session: object, reason: str) -> None:
        """The source is lost; it is being opened again."""
        with self._lock:
            if session is self._session:
                self._state, self._reason = "offline", reason
                self._reconnects += 1

    def given_up(self, reason: str, config_error: ConfigError | None = None) -> None:
        """The source is lost, and nothing is being tried."""
        with self._lock:
            self._state, self._reason = "offline", reason
            self.config_error = self.config_error or config_error

    def stopped(self) -> None:
        """Capturing was ended from outside; the end of a source and a wrong setting stay what they are."""
        with self._lock:
            self._session = None
            if self._state not in ("ended", "disabled") and self.config_error is None:
                self._state, self._reason = "offline", "stopped"

    def ended(self, session: object) -> None:
        """The source came to its end."""
        with self._lock:
            if session is self._session:
                self._state, self._reason = "ended", f"came to its end after {self._frames} frames"

    def status(self) -> CameraStatus:
        """A snapshot; `stalled` is worked out here, so that it shows even while a read never returns."""
        with self._lock:
            age_s = self._clock.monotonic() - self._alive_mono
            state, reason = self._state, self._reason
            if state == "online" and age_s > self._config.stalled_after_s:
                state, reason = "stalled", f"no frame for {age_s:.1f} s"
            elif state == "starting" and age_s > self._config.open_timeout_s + self._config.stalled_after_s:
                state, reason = "stalled", f"no first frame for {age_s:.1f} s"
            if state == "stalled" and self._last_bad is not None:
                reason = f"{reason}; the latest were damaged: {self._last_bad}"
            width_px, height_px = self._size or (None, None)
            return CameraStatus(
                self._camera,
                state,
                reason,
                self._last_frame_at,
                self._frames,
                self._bad_frames,
                self._skipped,
                self._reconnects,
                self._resizes,
                self._abandoned,
                width_px,
                height_px,
                self._fps(age_s) if state == "online" else 0.0,
            )

    def _fps(self, age_s: float) -> float:
        """Frames per second over the last FPS_FRAMES; sinks while the next frame is late."""
        if len(self._delivered) < 2:
            return 0.0
        interval_s = (self._delivered[-1] - self._delivered[0]) / (len(self._delivered) - 1)
        return 1.0 / max(interval_s, age_s / 2, 1e-3)
