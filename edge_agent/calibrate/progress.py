"""Progress: how far a calibration is, from the process that calibrates to whoever looks, by a small file.

Nothing else connects the two: the agent need not have started the calibration to show it.
"""

from __future__ import annotations

import json
import logging
import os
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from types import TracebackType

from edge_agent.files import write_atomically

PROGRESS_FILE = "progress.json"
WRITE_S = 1.0  # how often it is written at most while a step goes on
LOOK_S = 1.0  # how often it is read at most
FRESH_S = 900.0  # building one plan takes minutes in which nothing is said

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Progress:
    """`percent` of the whole is done; `step` is under way, for `model` (None: for all). Times are unix s.

    `process_started` tells this process from another one that got its number, as the kernel counts; None where it does
    not tell.
    """

    pid: int
    step: str
    percent: int
    started_at: float
    updated_at: float
    model: str | None = None
    process_started: int | None = None

    def __str__(self) -> str:
        of_model = f"{self.model}: " if self.model else ""
        return f"{of_model}{self.step}, {self.percent} %"

    @staticmethod
    def from_json(content: bytes) -> Progress | None:
        """What `ProgressFile` wrote; None for anything else."""
        try:
            value = json.loads(content)
            model, started = value["model"], value["process_started"]
            return Progress(
                pid=int(value["pid"]),
                step=str(value["step"])[:200],
                percent=max(0, min(100, int(value["percent"]))),
                started_at=float(value["started_at"]),
                updated_at=float(value["updated_at"]),
                model=None if model is None else str(model)[:64],
                process_started=None if started is None else int(started),
            )
        except (ValueError, KeyError, TypeError, OverflowError):
            return None


class ProgressFile:
    """Says how far this process is. A context manager: leaving it removes the file.

    A file that cannot be written is warned of once and keeps no calibration from going on.
    """

    def __init__(self, path: Path, clock: Callable[[], float] = time.time) -> None:
        self._path = path
        self._clock = clock
        self._started_at = clock()
        self._said: Progress | None = None
        self._failed = False

    def say(self, step: str, share: float, model: str | None = None) -> None:
        """`share` 0..1 of the whole is done; written where the step changes, else at most every WRITE_S."""
        now = self._clock()
        said = self._said
        same = said is not None and (said.step, said.model) == (step, model)
        if same and said is not None and 0 <= now - said.updated_at < WRITE_S:
            return
        pid = os.getpid()
        self._said = Progress(pid, step, int(share * 100), self._started_at, now, model, process_started(pid))
        try:
            write_atomically(self._path, json.dumps(asdict(self._said)).encode(), durable=False)
        except OSError as exc:
            if not self._failed:
                log.warning("%s cannot be written: %s; nobody else sees how far this is", self._path, exc.strerror)
            self._failed = True

    def close(self) -> None:
        """Removes the file."""
        with suppress(OSError):
            self._path.unlink(missing_ok=True)

    def __enter__(self) -> ProgressFile:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class ProgressWatch:
    """Looks whether a calibration is under way."""

    def __init__(
        self,
        path: Path,
        clock: Callable[[], float] = time.time,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._path = path
        self._clock = clock
        self._monotonic = monotonic
        self._looked_mono = float("-inf")
        self._seen: Progress | None = None

    def look(self) -> Progress | None:
        """How far it is; None where none is under way. Reads the file at most every LOOK_S."""
        now_mono = self._monotonic()
        if now_mono - self._looked_mono >= LOOK_S:
            self._looked_mono = now_mono
            self._seen = self._read()
        return self._seen

    def _read(self) -> Progress | None:
        try:
            progress = Progress.from_json(self._path.read_bytes())
        except OSError:
            return None
        if progress is None or abs(self._clock() - progress.updated_at) > FRESH_S:
            return None
        return progress if is_alive(progress.pid, progress.process_started) else None


def is_alive(pid: int, started: int | None = None) -> bool:
    """Whether the process runs, and is the one that started then; one that ended and was not waited for does not."""
    if Path("/proc/self/stat").exists():
        stat = _stat(pid)
        return stat is not None and stat[0] != "Z" and started in {None, int(stat[19])}
    try:
        os.kill(pid, 0)
    except PermissionError:
        return True
    except OSError:
        return False
    return True


def process_started(pid: int) -> int | None:
    """When it started, in the kernel's ticks since boot; None where that is not known."""
    stat = _stat(pid)
    return None if stat is None else int(stat[19])


def _stat(pid: int) -> list[str] | None:
    """/proc/<pid>/stat from the state on: proc(5); the name before it may hold anything."""
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(") ")[2].split()
    except OSError:
        return None
