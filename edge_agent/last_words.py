"""Last words: how this run goes, in a small file, so that the next one can say why it ended.

    state/last-words.json     written once a stage and at a tidy end; by `edge-agent note-exit` also after an untidy one

A run that ended without a word was killed, crashed, or lost its power: the boot's id tells the last from the others,
the service manager's verdict (systemd.exec(5): SERVICE_RESULT, EXIT_CODE, EXIT_STATUS) and the kernel's count of
processes killed for memory tell the rest.
"""

from __future__ import annotations

import json
import logging
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Literal

from edge_agent.errors import EXIT_CONFIG, EXIT_OK, EdgeAgentError, in_one_line
from edge_agent.files import find_state_dir, write_atomically
from edge_agent.records import rfc3339

log = logging.getLogger(__name__)

FILE = "last-words.json"
MAX_BYTES = 65_536
EndingKind = Literal[
    "run_stopped", "run_restarted", "run_failed", "run_hung", "run_killed", "run_out_of_memory", "run_power_lost"
]
TIDY = ("run_stopped", "run_restarted")


@dataclass(frozen=True)
class Ending:
    """Why a run ended: a kind of event, and the same in words."""

    kind: EndingKind
    text: str


def find_last_words(config_file: Path, environ: Mapping[str, str] = os.environ) -> Path:
    """The file: in the service's state directory, else in `state` beside the file of settings."""
    return find_state_dir(config_file.absolute().parent, environ) / FILE


class LastWords:
    """What this run writes; a context manager around all of it. Main thread only.

    `before` says how the run before ended, None where there was none. A disk that cannot be written costs the words,
    not the run: it is said once.
    """

    def __init__(
        self, path: Path, boot_id: str, *, clock: Callable[[], float] = time.time, root: Path = Path("/")
    ) -> None:
        self._path = path
        self._clock = clock
        self._root = root
        self._broken = False
        self.before = why_ended(read_words(path), boot_id)
        self._words: dict[str, Any] = {"v": 1, "boot_id": boot_id, "pid": os.getpid(), "started_at": clock()}
        self.stage("starting")

    def stage(self, stage: str) -> None:
        """What is done from now on; written where it differs from before."""
        if self._words.get("stage") != stage:
            self._write(stage=stage)

    def restarting(self, why: str) -> None:
        """The process becomes a fresh one under the same id."""
        self._write(ended="restart", exit_code=EXIT_OK, reason=why)

    def __enter__(self) -> LastWords:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if isinstance(error, EdgeAgentError):
            self._write(ended="error", exit_code=error.exit_code, reason=in_one_line(error))
        elif error is None or isinstance(error, BrokenPipeError | KeyboardInterrupt):
            self._write(ended="stop", exit_code=EXIT_OK, reason=None)
        else:  # its text may quote anything
            self._write(ended="error", exit_code=1, reason=f"{type(error).__name__}; see the log")

    def _write(self, **words: Any) -> None:
        self._words |= {**words, "at": self._clock(), "oom_kills": oom_kills(self._root)}
        try:
            write_atomically(self._path, json.dumps(self._words).encode(), 0o640)
        except OSError as exc:
            if not self._broken:
                log.warning("%s cannot be written (%s): the next start cannot say why this run ended", self._path, exc)
            self._broken = True


def note_exit(path: Path, environ: Mapping[str, str] = os.environ, root: Path = Path("/")) -> bool:
    """Adds the service manager's verdict to the words of the run that has ended; False where there is none to add.

    Called in the service's own control group (ExecStopPost), whose counts go with it. Raises OSError.
    """
    words = read_words(path)
    if words is None or "SERVICE_RESULT" not in environ:
        return False
    verdict = {name.lower(): environ.get(name) for name in ("SERVICE_RESULT", "EXIT_CODE", "EXIT_STATUS")}
    write_atomically(path, json.dumps({**words, "manager": {**verdict, "oom_kills": oom_kills(root)}}).encode(), 0o640)
    return True


def read_words(path: Path) -> dict[str, Any] | None:
    """What the last run wrote; None where nothing is, or nothing that can be read."""
    try:
        with path.open("rb") as file:
            words = json.loads(file.read(MAX_BYTES))
    except (OSError, ValueError, RecursionError):
        return None
    known: dict[str, Any] = {"boot_id": str, "started_at": int | float, "at": int | float, "stage": str}
    if not isinstance(words, dict) or not all(isinstance(words.get(name), kind) for name, kind in known.items()):
        return None
    return words


def oom_kills(root: Path = Path("/")) -> int | None:
    """How many processes of this one's control group the kernel has killed for memory; None where it does not say.

    Source: memory.events of control groups version 2 (Documentation/admin-guide/cgroup-v2.rst of Linux).
    """
    try:
        groups = (root / "proc/self/cgroup").read_text(encoding="utf-8").splitlines()
        (own,) = [line[3:] for line in groups if line.startswith("0::")]
        events = root / "sys/fs/cgroup" / own.lstrip("/") / "memory.events"
        counts = dict(line.split() for line in events.read_text(encoding="ascii").splitlines())
        return int(counts["oom_kill"])
    except (OSError, ValueError, KeyError):
        return None


def why_ended(words: Mapping[str, Any] | None, boot_id: str) -> Ending | None:
    """What became of the run that wrote these words, seen from boot `boot_id`; None where there was none."""
    if words is None:
        return None
    manager = words.get("manager")
    kind, what = (
        _by_manager(words, manager) if isinstance(manager, Mapping) else _by_itself(words, words["boot_id"] == boot_id)
    )
    began, last = (rfc3339(float(words[name])) for name in ("started_at", "at"))
    return Ending(kind, f"the last run, begun {began}, {what} (stage: {words['stage']}, since {last})")


def _by_itself(words: Mapping[str, Any], same_boot: bool) -> tuple[EndingKind, str]:
    ended, reason = words.get("ended"), words.get("reason")
    if ended == "stop":
        return "run_stopped", "was stopped"
    if ended == "restart":
        return "run_restarted", f"started afresh: {reason}"
    if ended is not None:
        return "run_failed", f"ended with exit code {words.get('exit_code')}: {reason}"
    if same_boot:
        return "run_killed", "ended without a word: it was killed, or crashed"
    return "run_power_lost", "ended without a word, and the machine started anew: power was lost, or it was reset"


def _by_manager(words: Mapping[str, Any], manager: Mapping[str, Any]) -> tuple[EndingKind, str]:
    result, status = manager.get("service_result"), str(manager.get("exit_status"))
    if result == "watchdog":
        return "run_hung", "did not come round in time (watchdog); the log has each thread's place"
    if manager.get("exit_code") == "exited":
        if status == str(EXIT_OK):
            return "run_stopped", "was stopped"
        cause = words.get("reason") if words.get("ended") == "error" else None
        wrong = "; the settings are wrong" if status == str(EXIT_CONFIG) else ""
        return "run_failed", f"ended with exit code {status}{wrong}: {cause or 'see the log'}"
    if result == "oom-kill" or (status == "KILL" and _killed_for_memory(words, manager)):
        return "run_out_of_memory", "was killed by the kernel, because memory ran out"
    if result == "timeout":
        return "run_killed", "did not start or stop in time, and was killed"
    if status in ("TERM", "INT"):
        return "run_stopped", "was stopped before it was under way"
    return "run_killed", f"was ended by signal {status}"


def _killed_for_memory(words: Mapping[str, Any], manager: Mapping[str, Any]) -> bool:
    before, after = words.get("oom_kills"), manager.get("oom_kills")
    return isinstance(after, int) and after > (before if isinstance(before, int) else 0)
