"""Reader: the thread that opens a camera, reads it, hands its frames on, and opens it again when it is lost."""

from __future__ import annotations

import logging
import random
import threading
from collections.abc import Callable
from dataclasses import dataclass

from edge_agent.cameras.base import Camera, Clock, Image, NoFrameYet
from edge_agent.cameras.pace import Paced
from edge_agent.cameras.repeat_log import RepeatLog
from edge_agent.cameras.status import CameraVitals
from edge_agent.errors import CameraError, ConfigError, FrameError
from edge_agent.records import Frame
from edge_agent.settings.cameras import CameraConfig

# Takes a frame; False when it cannot now, and wants to be offered the same frame again.
Put = Callable[[Frame], bool]

BAD_IN_A_ROW = 3  # after so many damaged frames on end, the reader takes a breath before each next one
BAD_PAUSE_S = 0.02
OFFER_PAUSE_S = 0.02
EARLY_SHARE = 0.1  # a frame that comes so much of an interval early still counts as due: cameras are not clocks


class Backoff:
    """Delays that double from reconnect_min_s to reconnect_max_s, each shortened at random by up to half.

    So ten cameras behind one switch do not all come back in the same instant.
    """

    def __init__(self, config: CameraConfig) -> None:
        self._min_s = config.reconnect_min_s
        self._max_s = max(config.reconnect_min_s, config.reconnect_max_s)
        self._base_s = self._min_s
        self.last_s = 0.0

    def next_s(self) -> float:
        """The next delay, at most reconnect_max_s."""
        self.last_s = self._base_s * (0.5 + random.random() / 2)
        self._base_s = min(self._base_s * 2, self._max_s)
        return self.last_s

    def reset(self) -> None:
        """Begins again at reconnect_min_s."""
        self._base_s = self._min_s


class Rate:
    """Whether a frame is due under `max_fps`; keeps to a grid, so that the mean rate is right as well."""

    def __init__(self, max_fps: float | None) -> None:
        self._interval_s = 0.0 if max_fps is None else 1.0 / max_fps
        self._due: float | None = None

    def early_s(self, now: float) -> float:
        """Seconds until the next frame is due; 0 when it is."""
        if self._due is None or now >= self._due - EARLY_SHARE * self._interval_s:
            return 0.0
        return self._due - now

    def taken(self, now: float) -> None:
        """Says that a frame was let through."""
        due = (now if self._due is None else self._due) + self._interval_s
        self._due = due if due > now else now + self._interval_s


@dataclass(frozen=True)
class ReaderSite:
    """What the readers of one camera work with, one after the other; `stop` asks the one at work to end."""

    name: str
    put: Put
    vitals: CameraVitals
    journal: RepeatLog
    clock: Clock
    stop: threading.Event


class Reader(threading.Thread):
    """One thread and its camera, which no other thread touches. It may hang in native code: `hangs` tells."""

    def __init__(self, site: ReaderSite, config: CameraConfig, camera: Camera) -> None:
        super().__init__(name=f"camera-{site.name}", daemon=True)
        self.abandoned = threading.Event()  # set by the watch: whatever this one still does counts no more
        self.doing = "starting"
        self.done = False  # ended on purpose: the source's end, a wrong setting, or stopped
        self._site = site
        self._clock, self._vitals = site.clock, site.vitals
        self._config = config
        self._camera = camera
        self._called_mono: float | None = None  # since when the camera has not returned
        self._limit_s = 0.0
        self._backoff = Backoff(config)
        # a folder keeps to max_fps itself: what was skipped here would be a file that nobody reads
        self._rate = Rate(None if isinstance(camera, Paced) else config.max_fps)
        self._size: tuple[int, int] | None = None  # of the frames since the last open
        self._bad_in_a_row = 0

    def limit(self, max_fps: float | None) -> None:
        """From now on at most so many frames a second; any thread."""
        if isinstance(self._camera, Paced):
            self._camera.limit(max_fps)
        else:
            self._rate = Rate(max_fps)

    def hangs(self) -> bool:
        """Whether the camera has not returned for its time-out plus stalled_after_s; called by the watch."""
        called_mono, limit_s = self._called_mono, self._limit_s
        return called_mono is not None and self._clock.monotonic() - called_mono > limit_s

    def run(self) -> None:
        """The thread."""
        try:
            self._keep_reading()
            self.done = True
        except ConfigError as exc:
            self.done = True
            if not self._over():
                self._vitals.given_up(str(exc), exc)
                self._say(logging.ERROR, "given up", f"is given up: {exc}")
        finally:
            self._close()

    def _over(self) -> bool:
        return self._site.stop.is_set() or self.abandoned.is_set()

    def _keep_reading(self) -> None:
        while not self._over():
            opened_mono: float | None = None
            try:
                self._enter("open", self._config.open_timeout_s)
                self._camera.open()
                self._leave()
                opened_mono = self._clock.monotonic()
                self._vitals.alive(self)
                self._read_to_end()
            except CameraError as exc:
                self._leave()
                self._recover(exc, opened_mono)
            else:
                return

    def _read_to_end(self) -> None:
        """Returns at the end of the source, or when over; raises CameraError when the source is lost."""
        while not self._over():
            self._enter("read", self._config.read_timeout_s)
            try:
                image = self._camera.read()
            except NoFrameYet as exc:
                self._leave()
                self._vitals.alive(self, str(exc))
                continue
            except FrameError as exc:
                self._leave()
                self._note_bad(exc)
                continue
            captured_mono, captured_at = self._clock.monotonic(), self._clock.unix()
            self._leave()
            if image is None:
                self._vitals.ended(self)
                self._say(logging.INFO, "ended", "came to the end of its source")
                return
            self._bad_in_a_row = 0
            height_px, width_px = image.shape[:2]
            if self._vitals.frame(self, width_px, height_px, captured_at, captured_mono):
                self._note_size(width_px, height_px)
                self._offer(image, captured_at, captured_mono)

    def _offer(self, image: Image, captured_at: float, captured_mono: float) -> None:
        """Hands the frame on if it is due; where every frame counts, waits for its time and for room."""
        early_s = self._rate.early_s(captured_mono)
        if early_s > 0 and self._config.pace == "live":
            self._vitals.skipped()
            return
        if early_s > 0 and self._clock.wait(self._site.stop, early_s):
            return
        self._rate.taken(captured_mono + early_s)
        frame = Frame(self._site.name, self._vitals.take_seq(), captured_at, captured_mono, image)
        while not self._site.put(frame) and not self._over():
            self._vitals.alive(self)
            self._clock.wait(self._site.stop, OFFER_PAUSE_S)
        self._vitals.alive(self)

    def _recover(self, error: CameraError, opened_mono: float | None) -> None:
        """Closes, says so, and waits before the next attempt: longer each time, until frames flow again."""
        if self._over():
            return
        flowed = opened_mono is not None and self._size is not None
        if flowed and opened_mono is not None and self._clock.monotonic() - opened_mono > self._backoff.last_s:
            self._backoff.reset()
        self._size = None
        self._close()
        delay_s = self._backoff.next_s()
        self._vitals.offline(self, str(error))
        kind = "open" if opened_mono is None else "read"
        self._say(logging.WARNING, kind, f"is offline: {error}; trying again in {delay_s:.1f} s")
        self._clock.wait(self._site.stop, delay_s)

    def _note_bad(self, error: FrameError) -> None:
        self._bad_in_a_row += 1
        self._vitals.bad_frame(self, str(error))
        self._say(logging.WARNING, "bad", f"dropped a damaged frame: {error}")
        if self._bad_in_a_row >= BAD_IN_A_ROW:
            self._clock.wait(self._site.stop, BAD_PAUSE_S)

    def _note_size(self, width_px: int, height_px: int) -> None:
        """Says the frames' real size, once per change; what was asked for is only a wish."""
        if (width_px, height_px) == self._size:
            return
        self._size = (width_px, height_px)
        asked = (self._config.width_px or width_px, self._config.height_px or height_px)
        level, wish = logging.INFO, ""
        if asked != self._size:
            level, wish = logging.WARNING, f", although {asked[0]}x{asked[1]} was asked for"
        self._say(level, "size", f"is online and gives frames of {width_px}x{height_px} pixels{wish}")

    def _say(self, level: int, kind: str, text: str) -> None:
        self._site.journal.write(level, kind, f"camera {self._site.name} {text}")

    def _enter(self, doing: str, timeout_s: float) -> None:
        self.doing = doing
        self._limit_s = timeout_s + self._config.stalled_after_s
        self._called_mono = self._clock.monotonic()

    def _leave(self) -> None:
        self._called_mono = None

    def _close(self) -> None:
        self._enter("close", self._config.read_timeout_s)
        try:
            self._camera.close()
        finally:
            self._leave()
