"""Progress between real processes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from edge_agent.calibrate.progress import FRESH_S, Progress, ProgressFile, ProgressWatch, is_alive, process_started
from tests.broker import wait_until
from tests.conftest import ROOT

SAYING = """
import sys
from pathlib import Path
from edge_agent.calibrate.progress import ProgressFile
said = ProgressFile(Path(sys.argv[1]))
said.say("ranges", 0.423, "ppocrv6-small-det")
sys.stdin.read()
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "calibration" / "progress.json"


@pytest.fixture
def calibrating(path: Path) -> Iterator[subprocess.Popen[bytes]]:
    command = [sys.executable, "-c", SAYING, str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, cwd=ROOT) as process:
        wait_until(path.exists, "progress")
        yield process
        process.kill()


def look(path: Path, **clocks: float) -> Progress | None:
    if "now" in clocks:
        return ProgressWatch(path, lambda: clocks["now"]).look()
    return ProgressWatch(path).look()


def test_another_process_is_seen_as_long_as_it_lives(path: Path, calibrating: subprocess.Popen[bytes]) -> None:
    seen = look(path)
    assert seen is not None
    assert (str(seen), seen.pid) == ("ppocrv6-small-det: ranges, 42 %", calibrating.pid)
    calibrating.kill()
    wait_until(lambda: not is_alive(calibrating.pid), "its end, though nobody has waited for it")
    assert look(path) is None
    calibrating.wait()
    assert look(path) is None


def test_number_that_went_to_another_process_is_not_taken_for_it(path: Path) -> None:
    with ProgressFile(path) as said:
        said.say("ranges", 0.5)
        seen = look(path)
        assert seen is not None
        assert seen.process_started == process_started(os.getpid())
        path.write_text(json.dumps(asdict(replace(seen, process_started=1))))
        assert look(path) is None


def test_what_was_said_long_ago_is_not_shown(path: Path) -> None:
    now = 1_800_000_000.0
    with ProgressFile(path, lambda: now) as said:
        said.say("building", 0.6, "det")
        assert look(path, now=now + FRESH_S - 1) is not None
        assert look(path, now=now + FRESH_S + 1) is None
        assert look(path, now=now - FRESH_S - 1) is None, "nor what a clock that was set since calls the future"


def test_file_goes_with_the_calibration(path: Path) -> None:
    with ProgressFile(path) as said:
        said.say("ranges", 0.1)
        assert path.exists()
    assert not path.exists()
    assert list(path.parent.iterdir()) == []


def test_it_is_written_once_a_second_and_when_the_step_changes(path: Path) -> None:
    now = 1_800_000_000.0
    said = ProgressFile(path, lambda: now)
    said.say("ranges", 0.1)
    said.say("ranges", 0.2)
    assert json.loads(path.read_bytes())["percent"] == 10
    now += 1.0
    said.say("ranges", 0.3)
    assert json.loads(path.read_bytes())["percent"] == 30
    said.say("judging", 0.31)
    said.say("judging", 0.32, "det")
    assert (json.loads(path.read_bytes())["step"], json.loads(path.read_bytes())["model"]) == ("judging", "det")


def test_watch_reads_once_a_second(path: Path) -> None:
    now_mono = 0.0
    watch = ProgressWatch(path, monotonic=lambda: now_mono)
    assert watch.look() is None
    with ProgressFile(path) as said:
        said.say("ranges", 0.5)
        now_mono = 0.9
        assert watch.look() is None
        now_mono = 1.0
        assert str(watch.look()) == "ranges, 50 %"
    assert watch.look() is not None
    now_mono = 2.0
    assert watch.look() is None


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"[]",
        b"{}",
        b'{"pid": null, "step": 1, "percent": 1, "started_at": 1, "updated_at": 1, "model": 1, "process_started": 1}',
        b'{"pid": 1, "step": "", "percent": 1e999, "started_at": 1, "updated_at": 1, "model": 1, "process_started": 1}',
        b"\xff",
    ],
)
def test_file_that_is_none_of_ours_is_no_calibration(path: Path, content: bytes) -> None:
    path.parent.mkdir()
    path.write_bytes(content)
    assert look(path) is None


def test_file_that_cannot_be_written_is_said_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "taken").write_text("")
    with ProgressFile(tmp_path / "taken" / "progress.json") as said:
        for step in "abc":
            said.say(step, 0.5)
    assert len(caplog.records) == 1
    assert "cannot be written" in caplog.text
