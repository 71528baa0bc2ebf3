"""`edge-agent calibrate` as a process: what it says, how it ends, and that a killed one goes on where it was."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from edge_agent.calibrate.job import CalibrationProgress, Said
from edge_agent.commands.calibrate import Screen
from edge_agent.errors import EXIT_SOFTWARE
from tests.calibrate.calibration_site import MODEL, Site
from tests.conftest import ROOT

DEADLINE_S = 120.0


def started(site: Site, *options: str) -> subprocess.Popen[str]:
    """In a process group of its own, as a terminal starts it."""
    command = [sys.executable, "-m", "edge_agent", "calibrate", *options, "--config", str(site.config_file)]
    environ = {name: value for name, value in os.environ.items() if not name.startswith("EDGE_AGENT_")}
    return subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        env=environ,
        start_new_session=True,
    )


def ended(process: subprocess.Popen[str]) -> tuple[int, str, str]:
    out, err = process.communicate(timeout=DEADLINE_S)
    return process.returncode, out, err


def wait_until(holds: Callable[[], bool], process: subprocess.Popen[str]) -> None:
    deadline = time.monotonic() + DEADLINE_S
    while not holds():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_process_that_is_killed_or_interrupted_goes_on_where_it_was(tmp_path: Path) -> None:
    site = Site.made(tmp_path, method="auto")
    trials = site.model / "work" / "trials.json"

    def kept() -> dict[str, Any]:
        return site.trials() if trials.exists() else {}

    killed = started(site, MODEL, "--frames", str(site.frames))
    wait_until(lambda: len(kept()) >= 1, killed)
    child = json.loads((site.calibration / "progress.json").read_text())["pid"]
    os.kill(child, signal.SIGKILL)
    code, out, err = ended(killed)
    first = kept()
    assert code == EXIT_SOFTWARE
    assert "8 frames of 8 from folder" in out
    assert "was killed (SIGKILL)" in err
    assert "it goes on from there" in err
    assert not (site.model / "promoted.json").exists()

    interrupted = started(site, MODEL)
    wait_until(lambda: len(kept()) > len(first), interrupted)
    os.killpg(interrupted.pid, signal.SIGINT)
    code, _, err = ended(interrupted)
    second = kept()
    assert code == 130
    assert "interrupted; what is finished is kept" in err
    assert "Traceback" not in err

    code, out, err = ended(started(site, MODEL))
    assert (code, err) == (0, "")
    assert f"{MODEL}: promoted: INT8 reads as well" in out
    assert {**kept(), **first} == kept(), "times would differ had these been measured again"
    assert {**kept(), **second} == kept()


def test_frames_that_do_not_do_end_it_with_counts(tmp_path: Path) -> None:
    site = Site.made(tmp_path, frames=(0, 1))
    code, _, err = ended(started(site, MODEL, "--frames", str(site.frames)))
    assert code == 1
    assert "2 usable frames, at least 6 different ones are needed: offered 2" in err
    assert "Traceback" not in err


@pytest.mark.parametrize(
    ("options", "code", "says"),
    [
        (["--frames", "/nowhere"], 78, "--frames /nowhere is not a folder"),
        (["--import", "/nowhere.zip"], 78, "--import /nowhere.zip is not a file"),
        (["--count", "0"], 78, "--count is 0"),
        (["--camera", "line9"], 78, "line9"),
        (["--recorded", "--frames", "."], 2, "not allowed with"),
        (["--precision", "int4"], 2, "invalid choice"),
        (["no-such-model"], 78, "no-such-model"),
        (["--export", "x.zip"], 78, "there is no collection yet"),
        ([], 1, "there are no frames yet"),
    ],
)
def test_what_cannot_be_is_said_in_a_line(options: list[str], code: int, says: str, tmp_path: Path) -> None:
    site = Site.made(tmp_path, frames=())
    found, _, err = ended(started(site, *options))
    assert says in err
    assert "Traceback" not in err
    assert found == code


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_notes_and_outcomes_come_as_they_are_said_and_the_bar_leaves_the_terminal_clean() -> None:
    said, terminal = Said(), Terminal()
    screen = Screen(said, terminal)
    screen.bar(CalibrationProgress("ranges", 0.5, MODEL))
    said.notes.append("9 frames of 9")
    screen.catch_up()
    screen.catch_up()
    screen.bar(CalibrationProgress("searching", 0.6, MODEL))
    screen.bar.end()
    text = terminal.getvalue()
    assert text.count("9 frames of 9\n") == 1
    assert text.index("ranges, 50%") < text.index("\r\x1b[K9 frames of 9\n") < text.index("searching, 60%")
    assert text.endswith("\r\x1b[K")
