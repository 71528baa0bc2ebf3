"""CalibrationJob: a calibration in a child process, watched from here; the child is `edge_agent.calibrate.child`.

A builder or a runtime that takes all memory and is killed for it takes the child along, not the agent nor the
operator's terminal. Nothing here needs TensorRT, onnxruntime or a GPU.
"""

from __future__ import annotations

import json
import logging
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from queue import Empty, SimpleQueue
from types import TracebackType
from typing import Any

from edge_agent.backends.build_job import last_words
from edge_agent.calibrate.wish import Wish
from edge_agent.errors import CalibrationRefused, ConfigError, EdgeAgentError, ModelError

CHILD_COMMAND = (sys.executable, "-m", "edge_agent.calibrate.child")
STDERR_KEPT_BYTES = 4000
ASK_TO_END_S = 2.0  # with cameras and the broker silent as well, an agent that is told to stop ends within 10 s
# how the child names what ended it; another kind is a fault of this program
KINDS: Mapping[str, type[EdgeAgentError]] = {
    "CalibrationRefused": CalibrationRefused,
    "ConfigError": ConfigError,
    "ModelError": ModelError,
}

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class CalibrationProgress:
    """How far it is: `share` 0..1 of the whole, with what is being done for which model (none: for all)."""

    step: str
    share: float
    model: str | None = None

    def __str__(self) -> str:
        of_model = f"{self.model}: " if self.model else ""
        return f"{of_model}{self.step}, {self.share:.0%}"


Report = Callable[[CalibrationProgress], None]


@dataclass
class Said:
    """What the child has said so far. `outcomes`: by model, as `Outcome.to_json` has them."""

    progress: CalibrationProgress = CalibrationProgress("starting", 0.0)
    notes: list[str] = field(default_factory=list)
    outcomes: list[dict[str, Any]] = field(default_factory=list)
    failure: dict[str, Any] | None = None
    done: bool = False


class CalibrationJob:
    """A running child. A context manager: leaving it asks the child to end, what is finished is kept for the next."""

    def __init__(self, wish: Wish, command: Sequence[str] = CHILD_COMMAND) -> None:
        """Starts the child at once. EdgeAgentError where it cannot be started."""
        self.said = Said()
        self._events: SimpleQueue[dict[str, Any]] = SimpleQueue()
        self._stderr = tempfile.TemporaryFile()  # noqa: SIM115 - lives as long as the child, `close` closes it
        try:
            self._process = subprocess.Popen(
                list(command), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._stderr
            )
        except OSError as exc:
            self._stderr.close()
            raise EdgeAgentError(f"the calibration {command[0]} cannot be started: {exc.strerror}") from exc
        self._reader = threading.Thread(target=self._read_events, name="calibration", daemon=True)
        self._reader.start()
        self._send(json.dumps(wish.to_json()).encode())

    @property
    def pid(self) -> int:
        """The child's process id."""
        return self._process.pid

    def poll(self, report: Report | None = None, block_s: float = 0.0) -> bool:
        """Takes what the child said since the last call; True once it ended well.

        Waits `block_s` for a word at most. Raises what ended it otherwise: CalibrationRefused, ConfigError, ModelError,
        or EdgeAgentError for a crash, a lack of memory or a fault.
        """
        try:
            event = self._events.get(timeout=block_s) if block_s else self._events.get_nowait()
            while True:
                self._take(event, report)
                event = self._events.get_nowait()
        except Empty:
            pass
        if self._reader.is_alive() or self._process.poll() is None or not self._events.empty():
            return False
        if self._process.returncode == 0 and self.said.done:
            return True
        raise self._failed()

    def close(self) -> None:
        """Asks the child to end if it still runs, makes it after ASK_TO_END_S; calling it again does nothing."""
        if self._process.poll() is None:
            self._process.terminate()
            try:
                self._process.wait(ASK_TO_END_S)
            except subprocess.TimeoutExpired:
                self._process.kill()
        self._process.wait()
        self._reader.join(timeout=5)
        if self._process.stdout is not None:
            self._process.stdout.close()
        self._stderr.close()

    def __enter__(self) -> CalibrationJob:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _take(self, event: Mapping[str, Any], report: Report | None) -> None:
        kind = event.get("event")
        if kind == "progress":
            self.said.progress = CalibrationProgress(str(event["step"]), float(event["share"]), event.get("model"))
            if report is not None:
                report(self.said.progress)
        elif kind == "note":
            self.said.notes.append(str(event["message"]))
            logger.info("calibration: %s", event["message"])
        elif kind == "outcome":
            self.said.outcomes.append(dict(event["outcome"]))
        elif kind == "failed":
            self.said.failure = dict(event)
        elif kind == "done":
            self.said.done = True

    def _failed(self) -> EdgeAgentError:
        code = self._process.returncode
        if self.said.failure is not None:
            make = KINDS.get(str(self.said.failure.get("kind")), EdgeAgentError)
            return make(str(self.said.failure.get("message", "the calibration failed and gave no reason")))
        at = f"at {self.said.progress}"
        if code == -signal.SIGKILL:
            return EdgeAgentError(
                f"the calibration was killed (SIGKILL) {at}, as the kernel does when memory runs out: stop other "
                "programs or add swap, and say the same again: it goes on from there"
            )
        how = f"by signal {-code}" if code < 0 else f"with exit code {code}"
        return EdgeAgentError(f"the calibration ended {how} {at}: {self._stderr_tail() or 'it said nothing'}")

    def _stderr_tail(self) -> str:
        size = self._stderr.seek(0, 2)
        self._stderr.seek(max(0, size - STDERR_KEPT_BYTES))
        return last_words(self._stderr.read().decode(errors="replace"))

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
