"""The calibrating process: `python -m edge_agent.calibrate.child`, started by CalibrationJob.

Reads one JSON wish from standard input, writes JSON lines to standard output:

    {"event": "progress", "step": ..., "share": 0..1, "model": ...}     {"event": "note", "message": ...}
    {"event": "outcome", "outcome": {...}}    {"event": "done"}         {"event": "failed", "kind": ..., "message": ...}
"""

from __future__ import annotations

import faulthandler
import json
import logging
import os
import signal
import sys
from types import FrameType
from typing import Any, TextIO

from edge_agent.calibrate.wish import Wish
from edge_agent.child_process import be_the_first_to_go, own_standard_output
from edge_agent.errors import EdgeAgentError

EXIT_INTERRUPTED = 130
EXIT_FAILED = 1


class Events:
    """Says events, a JSON line each."""

    def __init__(self, out: TextIO) -> None:
        self._out = out

    def progress(self, step: str, share: float, model: str | None = None) -> None:
        """How far it is, 0..1 of the whole."""
        self._say({"event": "progress", "step": step, "share": round(share, 4), "model": model})

    def note(self, message: str) -> None:
        """Something that a person should read."""
        self._say({"event": "note", "message": message})

    def outcome(self, outcome: dict[str, Any]) -> None:
        """How one model's calibration ended."""
        self._say({"event": "outcome", "outcome": outcome})

    def failed(self, error: Exception) -> None:
        """Why there will be nothing more."""
        kind = type(error).__name__
        message = str(error) if isinstance(error, EdgeAgentError) else f"{kind}: {error}"
        self._say({"event": "failed", "kind": kind, "message": message})

    def done(self) -> None:
        """All that was asked for has an outcome."""
        self._say({"event": "done"})

    def _say(self, event: dict[str, Any]) -> None:
        self._out.write(json.dumps(event) + "\n")
        self._out.flush()


def main() -> int:
    """0 when every model has its outcome, 1 when not (an event says why), 130 when interrupted."""
    be_the_first_to_go(signal.SIGTERM)
    faulthandler.enable(all_threads=False)
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # as the command line has it
    signal.signal(signal.SIGTERM, interrupted)
    logging.basicConfig(level=logging.WARNING, stream=sys.stderr, format="%(message)s")
    request = json.load(sys.stdin)
    with own_standard_output() as out:
        events = Events(out)
        try:
            wish = Wish.from_json(request)
            from edge_agent.calibrate.run import calibrate

            calibrate(wish, events)
        except (EdgeAgentError, OSError, MemoryError) as exc:
            events.failed(exc)
            return EXIT_FAILED
        except (KeyboardInterrupt, BrokenPipeError):  # asked to end, or nobody listens: the same
            return EXIT_INTERRUPTED
        events.done()
    return 0


def interrupted(number: int, frame: FrameType | None) -> None:
    """A signal that asks to end; what is finished lies on disk, whole."""
    raise KeyboardInterrupt


if __name__ == "__main__":
    sys.exit(main())
