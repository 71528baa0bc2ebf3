"""CalibrationJob: a calibration in a child process, watched from here; the child is `edge_agent.calibrate.child`.

A builder or a runtime that takes all memory and is killed for it takes the child along, not the agent nor the
operator's terminal. Nothing here needs TensorRT, onnxruntime or a GPU.
"""

from __future__ import annotations

import logging
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any

from edge_agent.calibrate.wish import Wish
from edge_agent.child_process import Child
from edge_agent.errors import CalibrationRefused, ConfigError, EdgeAgentError, ModelError

CHILD_COMMAND = (sys.executable, "-m", "edge_agent.calibrate.child")
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
        try:
            self._child = Child(command, wish.to_json(), "calibration")
        except OSError as exc:
            raise EdgeAgentError(f"the calibration {command[0]} cannot be started: {exc.strerror}") from exc

    @property
    def pid(self) -> int:
        """The child's process id."""
        return self._child.pid

    def poll(self, report: Report | None = None, block_s: float = 0.0) -> bool:
        """Takes what the child said since the last call; True once it ended well.

        Waits `block_s` for a word at most. Raises what ended it otherwise: CalibrationRefused, ConfigError, ModelError,
        or EdgeAgentError for a crash, a lack of memory or a fault.
        """
        for event in self._child.events(block_s):
            self._take(event, report)
        if not self._child.ended:
            return False
        if self._child.code == 0 and self.said.done:
            return True
        raise self._failed()

    def close(self) -> None:
        """Asks the child to end if it still runs, makes it after ASK_TO_END_S; calling it again does nothing."""
        self._child.close(ASK_TO_END_S)

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
        code = self._child.code
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
        return EdgeAgentError(f"the calibration ended {how} {at}: {self._child.stderr_tail() or 'it said nothing'}")
