"""Child process: what a process that works for another owes it: to end with it, and to keep its words apart.

Children read one JSON request from standard input and write JSON lines, their events, to standard output.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import signal
import subprocess
import tempfile
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any, TextIO

PR_SET_PDEATHSIG = 1
STDERR_KEPT_BYTES = 4000
CRASH_MARK = "Fatal Python error: "  # how faulthandler's report begins
OOM_SCORE = "800"  # when memory runs out the kernel is to kill the child, not the agent


def be_the_first_to_go(signal_number: int = signal.SIGKILL) -> None:
    """Ends with the parent, by this signal, and volunteers when the kernel looks for memory."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal_number)
    with contextlib.suppress(OSError):  # a container may forbid it; the work goes on without
        Path("/proc/self/oom_score_adj").write_text(OOM_SCORE, encoding="ascii")


def own_standard_output() -> TextIO:
    """Standard output for events alone: what native libraries print there goes to standard error from now on."""
    mine = os.dup(1)
    os.dup2(2, 1)
    return os.fdopen(mine, "w", encoding="utf-8")


class Child:
    """A child as its parent has it: started with its request, heard event by event, never waited for unasked."""

    def __init__(self, command: Sequence[str], request: Mapping[str, Any], name: str) -> None:
        """Starts it at once; `name` is its reader's thread's. Raises OSError where it cannot be started."""
        self._events: SimpleQueue[dict[str, Any]] = SimpleQueue()
        self._stderr = tempfile.TemporaryFile()  # noqa: SIM115 - lives as long as the child, `close` closes it
        try:
            self._process = subprocess.Popen(
                list(command), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._stderr
            )
        except OSError:
            self._stderr.close()
            raise
        self._reader = threading.Thread(target=self._read_events, name=name, daemon=True)
        self._reader.start()
        self._send(json.dumps(request).encode())

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    @property
    def code(self) -> int:
        """Its exit code, negative for a signal; for one that `ended`."""
        assert self._process.returncode is not None
        return self._process.returncode

    @property
    def ended(self) -> bool:
        """Whether it has ended and every event of it was taken."""
        return not self._reader.is_alive() and self._process.poll() is not None and self._events.empty()

    def events(self, block_s: float = 0.0) -> list[dict[str, Any]]:
        """What it said since the last call, in order; waits `block_s` for the first at most."""
        said: list[dict[str, Any]] = []
        with contextlib.suppress(Empty):
            said.append(self._events.get(timeout=block_s) if block_s else self._events.get_nowait())
            while True:
                said.append(self._events.get_nowait())
        return said

    def stderr_tail(self) -> str:
        """Its `last_words`."""
        size = self._stderr.seek(0, 2)
        self._stderr.seek(max(0, size - STDERR_KEPT_BYTES))
        return last_words(self._stderr.read().decode(errors="replace"))

    def close(self, asked_s: float = 0.0) -> None:
        """Ends it if it still runs, after it was asked to end and given `asked_s` for it; again it does nothing."""
        if self._process.poll() is None and asked_s:
            self._process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(asked_s)
        if self._process.poll() is None:
            self._process.kill()
        self._process.wait()
        self._reader.join(timeout=5)
        if self._process.stdout is not None:
            self._process.stdout.close()
        self._stderr.close()

    def _send(self, text: bytes) -> None:
        assert self._process.stdin is not None
        try:
            with self._process.stdin as pipe:
                pipe.write(text)
        except BrokenPipeError:
            pass  # it ended before it listened: its exit code tells why

    def _read_events(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            try:
                event = json.loads(line)
            except ValueError:
                continue  # a native library printed something
            if isinstance(event, dict):
                self._events.put(event)


def last_words(stderr: str) -> str:
    """The last lines that a child said; of a crash reported by faulthandler the fault and the innermost line."""
    said, mark, report = stderr.strip().rpartition(CRASH_MARK)
    if not mark:
        said, report = report, ""
    lines = [line.strip() for line in said.strip().splitlines()[-4:]]
    fault = [line.strip() for line in report.splitlines() if line]
    innermost = next((line for line in fault if line.startswith("File ")), "")
    return " | ".join(filter(None, [*lines, *fault[:1], innermost]))
