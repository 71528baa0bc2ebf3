"""Nvpmodel: the tool that sets a Jetson's power mode, and a board that gets its own mode back whatever happens."""

from __future__ import annotations

import logging
import re
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import NoReturn

from edge_agent.errors import ConfigError, SensorError, in_one_line
from edge_agent.telemetry.power_mode import PowerMode

log = logging.getLogger(__name__)

TIMEOUT_S = 60.0
ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)  # the last: the terminal far away has gone
DECLINE = "no\n"  # some modes ask whether to reboot now


class Nvpmodel:
    """The tool by its name or path; ConfigError where there is none."""

    def __init__(self, tool: str) -> None:
        found = shutil.which(tool)
        if found is None:
            raise ConfigError(
                f"--power-modes needs the tool {tool}, which sets the power mode of a Jetson; there is none on this "
                "machine (name it with --nvpmodel): leave out --power-modes to measure as it is"
            )
        self._tool = found

    def current(self) -> PowerMode:
        """The mode in force, as `nvpmodel -q` says; SensorError where it does not."""
        said = self._call("-q")
        match = re.search(r"NV Power Mode:\s*(\S+)\s+([0-9]{1,4})\b", said)
        if match is None:
            raise SensorError(f"{self._tool} -q says {in_one_line(said)!r}; expected NV Power Mode: NAME and a number")
        return PowerMode(int(match[2]), match[1])

    def switch(self, mode_id: int) -> None:
        """Sets a mode and looks whether it is in force; SensorError where it is not: without root, or before a reboot,
        which is declined."""
        said = self._call("-m", str(mode_id))
        mode = self.current()
        if mode.id != mode_id:
            raise SensorError(
                f"mode {mode_id} was not taken, {mode} is in force: {in_one_line(said) or 'no reason given'}"
            )

    def _call(self, *options: str) -> str:
        """What it prints. In a session of its own: Ctrl-C is for us, not for a board between two modes."""
        try:
            done = subprocess.run(
                [self._tool, *options],
                input=DECLINE,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                errors="replace",
                timeout=TIMEOUT_S,
                start_new_session=True,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired) as exc:
            raise SensorError(f"{self._tool} {' '.join(options)}: {exc}") from exc
        return done.stdout


@contextmanager
def mode_kept(nvpmodel: Nvpmodel) -> Iterator[PowerMode]:
    """Gives the mode in force, inside; at the end it is in force again, also after Ctrl-C, SIGTERM or a lost terminal.

    Main thread only. SensorError where it cannot be told at first; where it cannot be set again, that is logged.
    """
    before = {number: signal.getsignal(number) for number in ENDING}

    def leave(number: int, _frame: FrameType | None) -> NoReturn:
        if number == signal.SIGINT:
            raise KeyboardInterrupt
        raise SystemExit(128 + number)

    mode = nvpmodel.current()
    try:
        for number in ENDING:
            signal.signal(number, leave)
        yield mode
    finally:
        for number in ENDING:
            signal.signal(number, lambda number, frame: None)  # not now
        try:
            _restore(nvpmodel, mode)
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


def _restore(nvpmodel: Nvpmodel, mode: PowerMode) -> None:
    try:
        if nvpmodel.current().id != mode.id:
            nvpmodel.switch(mode.id)
    except SensorError as exc:
        log.error("the power mode %s (%d) could not be set again: %s", mode, mode.id, exc)  # noqa: TRY400 - one line
