"""History: what the device said of itself, on its own disk: one JSON object a line, bounded in age and bytes.

    telemetry/00000042.jsonl           reports of the last day
    telemetry/events/00000007.jsonl    events of the last year

Segments `00000042.jsonl` are only ever appended to, each line by one write: whatever kills the process costs at most
the line that was being written, at the end of a segment, for each start begins a new one. Nothing is synced: a power
cut may cost the last half minute, and the flash is spared.
"""

from __future__ import annotations

import json
import logging
import os
import re
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Any

from edge_agent.config import Config
from edge_agent.files import find_state_dir
from edge_agent.records import Message

log = logging.getLogger(__name__)

SEGMENT = re.compile(r"([0-9]{8,})\.jsonl")
SEGMENTS = 24  # about so many together make up the bounds
MOST_SEGMENTS = 500  # however often the program is started anew
EVENTS_FOLDER = "events"
KEEP_EVENTS_S = 31_536_000.0  # so few are said that their bytes hardly ever bound them


def find_history_dir(config: Config, environ: Mapping[str, str] = os.environ) -> Path | None:
    """The folder of the reports, with that of the events in it: telemetry.directory, else `telemetry` beside the
    outbox's file; None where that is in memory."""
    if config.telemetry.directory is not None or config.outbox.kind == "memory":
        return config.telemetry.directory
    beside = find_state_dir(Path(), environ) if config.outbox.path is None else config.outbox.path.parent
    return beside / "telemetry"


@contextmanager
def keeping_events(config: Config) -> Iterator[Callable[[Message], None]]:
    """Keeps events on disk, inside, where anything is kept there; gives what takes each, in any thread."""
    directory = find_history_dir(config)
    if directory is None:
        yield lambda _message: None
        return
    with History(directory / EVENTS_FOLDER, KEEP_EVENTS_S, config.telemetry.keep_event_bytes) as events:
        yield events.append


class History:
    """Appends messages; any thread. Keeps those of the last `keep_s` seconds, at most `keep_bytes` of them.

    A disk that cannot be written costs the messages and one warning until it can again. A context manager.
    """

    def __init__(self, directory: Path, keep_s: float, keep_bytes: int, clock: Callable[[], float] = time.time) -> None:
        self._directory = directory
        self._keep_s = keep_s
        self._keep_bytes = keep_bytes
        self._clock = clock
        self._lock = threading.Lock()
        self._descriptor: int | None = None
        self._began_at = 0.0
        self._bytes = 0
        self._failed = False

    def __enter__(self) -> History:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._lock:
            self._close()

    def append(self, message: Message) -> None:
        """Keeps one message."""
        with self._lock:
            try:
                self._append(message.payload + b"\n")
            except OSError as exc:
                self._close()
                if not self._failed:
                    log.warning("nothing can be kept in %s: %s", self._directory, exc.strerror or exc)
                self._failed = True
            else:
                self._failed = False

    def _append(self, line: bytes) -> None:
        if self._descriptor is None or self._is_full(len(line)):
            self._close()
            self._begin(len(line))
        assert self._descriptor is not None
        if os.write(self._descriptor, line) < len(line):  # the disk is full: what came through is no line
            self._close()
            raise OSError("the disk is full")
        self._bytes += len(line)

    def _is_full(self, more_bytes: int) -> bool:
        age_s = self._clock() - self._began_at
        most_bytes = self._keep_bytes // SEGMENTS
        return self._bytes + more_bytes > most_bytes or not 0 <= age_s < self._keep_s / SEGMENTS

    def _begin(self, more_bytes: int) -> None:
        """A segment of its own, after those that have had their time are gone."""
        self._directory.mkdir(parents=True, exist_ok=True)
        segments = find_segments(self._directory)
        for path in self._surplus(segments, more_bytes):
            path.unlink(missing_ok=True)
        number = _number(segments[-1]) + 1 if segments else 1
        while os.path.lexists(path := self._directory / f"{number:08d}.jsonl"):  # by what is no segment
            number += 1
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        self._descriptor = os.open(path, flags, 0o640)
        self._began_at = self._clock()
        self._bytes = 0

    def _surplus(self, segments: list[Path], more_bytes: int) -> Iterator[Path]:
        """Of all segments, oldest first, those that are too old, or too much beside the one that begins."""
        room = self._keep_bytes - max(self._keep_bytes // SEGMENTS, more_bytes)
        for count, path in enumerate(reversed(segments), start=1):
            status = path.stat()
            room -= status.st_size
            # one from the future was written before the clock was set right: its age is not known
            if room < 0 or count >= MOST_SEGMENTS or self._clock() - status.st_mtime > self._keep_s:
                yield path

    def _close(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


def find_segments(directory: Path) -> list[Path]:
    """The segments of a folder, oldest first; a folder, a pipe or a broken link is none, whatever its name."""
    return sorted(
        (path for path in directory.iterdir() if SEGMENT.fullmatch(path.name) and path.is_file()), key=_number
    )


def history_lines(directory: Path, since_at: float = 0.0) -> Iterator[bytes]:
    """The lines of segments that were written to since then (unix s), oldest first; the last of one may be half. A
    segment that makes room for newer ones meanwhile is passed over."""
    for path in find_segments(directory) if directory.is_dir() else []:
        with suppress(FileNotFoundError):
            if path.stat().st_mtime >= since_at:
                with path.open("rb") as file:
                    yield from file


def read_history(directory: Path, since_at: float = 0.0) -> Iterator[dict[str, Any]]:
    """The messages among `history_lines`; half lines are left out."""
    for line in history_lines(directory, since_at):
        with suppress(ValueError):
            yield dict(json.loads(line))


def _number(path: Path) -> int:
    return int(path.stem)
