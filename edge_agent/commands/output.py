"""Output: what a command owes the reader of its stdout."""

from __future__ import annotations

import io
import os
import sys
from typing import IO


def tolerate_any_text(stream: IO[str]) -> None:
    """A terminal that knows ASCII only gets an escape in place of other characters, not an error."""
    if isinstance(stream, io.TextIOWrapper):
        stream.reconfigure(errors="backslashreplace")


def leave_quietly() -> None:
    """The reader has gone (`| head`): what Python still holds back for it must not raise at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
