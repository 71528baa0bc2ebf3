"""Child process: what a process that works for another owes it: to end with it, and to keep its words apart.

Children read one JSON request from standard input and write JSON lines, their events, to standard output.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
from pathlib import Path
from typing import TextIO

PR_SET_PDEATHSIG = 1
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
