"""Output: what a command owes the reader of its stdout."""

from __future__ import annotations

import io
import os
import sys
from typing import IO

STANDARD_STREAMS = 3


def tolerate_any_text(stream: IO[str]) -> None:
    """A terminal that knows ASCII only gets an escape in place of other characters, not an error."""
    if isinstance(stream, io.TextIOWrapper):
        stream.reconfigure(errors="backslashreplace")


def open_missing_streams() -> None:
    """Where this process was started without stdin, stdout or stderr, they lead nowhere from now on.

    Else the next file that is opened gets the free number, and what a native library prints lands in it.
    """
    for number in range(STANDARD_STREAMS):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # the lowest free number: this one
    sys.stdout = sys.stdout or open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115 - until the end
    sys.stderr = sys.stderr or open(2, "w", encoding="utf-8", closefd=False)  # noqa: SIM115


def leave_quietly() -> None:
    """The reader has gone (`| head`): what Python still holds back for it must not raise at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
