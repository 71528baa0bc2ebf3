"""Capture thread: keeps one camera going, whatever happens to it, and hands its frames on.

Two threads a camera: the reader, which opens, reads and opens again, and may hang in native code; and the watch,
which never touches the camera, and replaces a reader that hangs.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from types import TracebackType

from edge_agent.cameras.base import Camera, Clock, make_camera
from edge_agent.cameras.reader import Put, Reader, ReaderSite
from edge_agent.cameras.repeat_log import RepeatLog
from edge_agent.cameras.status import CameraStatus, CameraVitals
from edge_agent.errors import ConfigError
from edge_agent.settings.cameras import CameraConfig

log = logging.getLogger(__name__)

WATCH_EVERY_S = 0.25
MAX_ABANDONED = 3  # each holds a thread, a stream and its buffers until the process ends


class CaptureThread:
    """One camera, kept going. `with CaptureThread(...) as capture:` starts it and stops it.

    `put` is called from the camera's own thread with each frame; it is Mailbox.put for a live source, and
    Mailbox.put_waiting with a short time-out for one of which every frame counts. `seq` grows by one per frame
    offered, over reconnects too.
    """

    def __init__(
        self,
        name: str,
        config: CameraConfig,
        put: Put,
        *,
        make: Callable[[str, CameraConfig], Camera] = make_camera,
        clock: Clock | None = None,
        max_abandoned: int = MAX_ABANDONED,
    ) -> None:
        """Makes the camera, without opening it: ConfigError for settings that cannot work is raised here."""
        self.name = name
        self.config = config
        self._held_fps: float | None = None
        self._make = make
        self._clock = clock or Clock()
        self._max_abandoned = max_abandoned
        self._vitals = CameraVitals(name, config, self._clock)
        self._journal = RepeatLog(log, self._clock)
        self._stop = threading.Event()
        self._site = ReaderSite(name, put, self._vitals, self._journal, self._clock, self._stop)
        self._first: Camera | None = make(name, config) if config.enabled else None
        self._reader: Reader | None = None
        self._abandoned: list[Reader] = []
        self._watch = threading.Thread(target=self._keep_watch, name=f"watch-{name}", daemon=True)

    def start(self) -> None:
        """Starts capturing; once. A disabled camera stays as it is."""
        if self._first is not None:
            self._begin(self._first)
            self._watch.start()

    def number_from(self, seq: int) -> None:
        """The first frame gets this number; before `start`."""
        self._vitals.number_from(seq)

    def limit(self, max_fps: float | None) -> None:
        """From now on at most so many frames a second, of the reader at work and those after it; any thread."""
        if max_fps == self.config.max_fps:
            return
        self.config = self.config.model_copy(update={"max_fps": max_fps})
        self._limit_reader()

    def hold(self, fps: float | None) -> None:
        """Beside max_fps, at most so many frames a second for now; None: no more than that. Any thread."""
        if fps != self._held_fps:
            self._held_fps = fps
            self._limit_reader()

    def ask_to_stop(self) -> None:
        """Says that capturing is to end, and waits for nothing; `stop` waits."""
        self._stop.set()

    def stop(self, timeout_s: float = 5.0) -> bool:
        """Ends capturing and closes the camera; False when it has not ended within `timeout_s` (a read hangs)."""
        self.ask_to_stop()
        deadline = self._clock.monotonic() + timeout_s
        for thread in self._threads():
            thread.join(max(0.0, deadline - self._clock.monotonic()))
        self._vitals.stopped()
        return not any(thread.is_alive() for thread in self._threads())

    def status(self) -> CameraStatus:
        """What is known now; any thread, never blocks on the camera."""
        return self._vitals.status()

    @property
    def config_error(self) -> ConfigError | None:
        """Set once the camera was given up because of a setting that no retry can mend."""
        return self._vitals.config_error

    def __enter__(self) -> CaptureThread:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _threads(self) -> Iterator[threading.Thread]:
        """Those that were started; the watch first, because it may begin another reader until it has ended."""
        if self._watch.ident is not None:
            yield self._watch
        if self._reader is not None:
            yield self._reader
        yield from self._abandoned

    def _limit_fps(self) -> float | None:
        limits = [fps for fps in (self.config.max_fps, self._held_fps) if fps is not None]
        return min(limits, default=None)

    def _limit_reader(self) -> None:
        reader = self._reader
        if reader is not None:
            reader.limit(self._limit_fps())

    def _begin(self, camera: Camera) -> None:
        config = self.config.model_copy(update={"max_fps": self._limit_fps()})
        reader = Reader(self._site, config, camera)
        self._vitals.begin(reader)
        self._reader = reader
        reader.start()

    def _keep_watch(self) -> None:
        """Until stopped or done: says stalls, replaces a reader that hangs or that a bug ended. Waits in real time."""
        was_stalled = False
        while not self._stop.wait(WATCH_EVERY_S):
            was_stalled = self._note_stall(was_stalled)
            reader = self._reader
            if reader is None:
                if not self._replace_reader():
                    return
            elif reader.done:
                return
            elif reader.hangs():
                self._abandon(reader)
            elif not reader.is_alive():
                self._vitals.offline(reader, "its capture thread was ended by a bug: see the traceback in the log")
                self._reader = None
                if self._stop.wait(self.config.reconnect_max_s):
                    return

    def _note_stall(self, was_stalled: bool) -> bool:
        status = self.status()
        if status.state == "stalled" and not was_stalled:
            self._journal.write(logging.WARNING, "stalled", f"camera {self.name} is stalled: {status.reason}")
        elif status.state == "online" and was_stalled:
            self._journal.write(logging.INFO, "again", f"camera {self.name} gives frames again")
        return status.state == "stalled"

    def _abandon(self, reader: Reader) -> None:
        """Leaves the reader to itself: it ends if it ever returns. Nothing can be done to a thread in native code."""
        reader.abandoned.set()
        self._vitals.abandon(f"did not return from {reader.doing}; beginning afresh")
        self._abandoned.append(reader)
        self._reader = None
        text = f"camera {self.name} did not return from {reader.doing}; its capture is abandoned and begun afresh"
        self._journal.write(logging.ERROR, "abandoned", text)

    def _replace_reader(self) -> bool:
        """Begins a fresh capture, unless too many hang: then one of them must return first. False to end the watch."""
        self._abandoned = [reader for reader in self._abandoned if reader.is_alive()]
        if len(self._abandoned) >= self._max_abandoned:
            reason = f"{len(self._abandoned)} captures have not returned from native code; restart edge-agent"
            self._journal.write(logging.ERROR, "given up", f"camera {self.name} is given up: {reason}")
            self._vitals.given_up(reason)
            return True
        try:
            self._begin(self._make(self.name, self.config))
        except ConfigError as exc:
            self._vitals.given_up(str(exc), exc)
            return False
        return True
