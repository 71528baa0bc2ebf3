"""CalibrationJob: a child that ends well, refuses, crashes or is killed is told apart, in words for the operator."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from pathlib import Path

import pytest

from edge_agent.calibrate.job import CalibrationJob, CalibrationProgress
from edge_agent.calibrate.wish import Wish
from edge_agent.errors import CalibrationRefused, ConfigError, EdgeAgentError
from tests.broker import DEADLINE_S

HEAD = """
import json, os, signal, sys, time
wish = json.load(sys.stdin)
def say(**event):
    print(json.dumps(event), flush=True)
say(event="progress", step="ranges", share=0.42, model="some-det")
"""


def child(tmp_path: Path, body: str) -> tuple[str, ...]:
    """A real child process with this body."""
    script = tmp_path / "child.py"
    script.write_text(HEAD + body, encoding="utf-8")
    return (sys.executable, str(script))


def ended(job: CalibrationJob) -> list[CalibrationProgress]:
    """Polls until the end; what was reported. Raises what `poll` raises."""
    heard: list[CalibrationProgress] = []
    deadline = time.monotonic() + 20
    while not job.poll(heard.append, 0.1):
        assert time.monotonic() < deadline, "the child does not end"
    return heard


def test_progress_notes_and_outcomes_of_a_child_that_ends_well(tmp_path: Path) -> None:
    command = child(
        tmp_path,
        'say(event="note", message="7 frames")\n'
        'print("what a library prints")\n'
        'say(event="outcome", outcome={"model": wish["models"][0], "verdict": "promoted"})\n'
        'say(event="done")\n',
    )
    with CalibrationJob(Wish(models=("some-det",)), command) as job:
        heard = ended(job)
    assert [str(progress) for progress in heard] == ["some-det: ranges, 42%"]
    assert job.said.notes == ["7 frames"]
    assert job.said.outcomes == [{"model": "some-det", "verdict": "promoted"}]


@pytest.mark.parametrize(
    ("kind", "error"),
    [("CalibrationRefused", CalibrationRefused), ("ConfigError", ConfigError), ("KeyError", EdgeAgentError)],
)
def test_failure_keeps_its_type_and_words(tmp_path: Path, kind: str, error: type[Exception]) -> None:
    body = f'say(event="failed", kind="{kind}", message="2 of 6 frames are usable")\nsys.exit(1)\n'
    with CalibrationJob(Wish(), child(tmp_path, body)) as job, pytest.raises(error, match="2 of 6 frames"):
        ended(job)


def test_killed_child_is_told_as_memory_with_the_step_it_was_at(tmp_path: Path) -> None:
    body = "os.kill(os.getpid(), signal.SIGKILL)\n"
    with (
        CalibrationJob(Wish(), child(tmp_path, body)) as job,
        pytest.raises(EdgeAgentError, match=r"killed .* some-det: ranges, 42%.*memory"),
    ):
        ended(job)


def test_crash_is_told_with_its_last_words(tmp_path: Path) -> None:
    body = 'sys.stderr.write("the sky fell\\n"); sys.exit(3)\n'
    with (
        CalibrationJob(Wish(), child(tmp_path, body)) as job,
        pytest.raises(EdgeAgentError, match="exit code 3.*sky fell"),
    ):
        ended(job)


def test_child_that_stops_without_a_word_has_not_ended_well(tmp_path: Path) -> None:
    with CalibrationJob(Wish(), child(tmp_path, "")) as job, pytest.raises(EdgeAgentError, match="said nothing"):
        ended(job)


def test_leaving_ends_a_child_that_does_not_listen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("edge_agent.calibrate.job.ASK_TO_END_S", 0.2)
    body = 'signal.signal(signal.SIGTERM, signal.SIG_IGN)\nsay(event="note", message="deaf")\ntime.sleep(60)\n'
    with CalibrationJob(Wish(), child(tmp_path, body)) as job:
        deadline = time.monotonic() + 20
        while not job.said.notes:
            job.poll(block_s=0.1)
            assert time.monotonic() < deadline
        pid = job.pid
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_child_that_cannot_be_started_is_named() -> None:
    with pytest.raises(EdgeAgentError, match="/nowhere/python cannot be started"):
        CalibrationJob(Wish(), ("/nowhere/python",))


def test_real_child_refuses_what_is_no_wish(tmp_path: Path) -> None:
    import subprocess

    done = subprocess.run(
        [sys.executable, "-m", "edge_agent.calibrate.child"], input="{}", capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    event = json.loads(done.stdout)
    assert event["event"] == "failed"
    assert event["kind"] == "ConfigError"


def test_real_child_ends_by_sigterm_while_it_waits_for_its_wish() -> None:
    import subprocess

    process = subprocess.Popen([sys.executable, "-m", "edge_agent.calibrate.child"], stdin=subprocess.PIPE)
    assert process.stdin is not None
    process.send_signal(signal.SIGTERM)
    process.stdin.close()
    assert process.wait(DEADLINE_S) != 0


@pytest.mark.parametrize(
    "wish",
    [
        Wish(),
        Wish(("a", "b"), "camera", "line1", 12, "entropy", True, {"site": "hall 3", "cameras": {}}, Path("/models")),
    ],
)
def test_wish_survives_the_way_to_the_child(wish: Wish) -> None:
    assert Wish.from_json(json.loads(json.dumps(wish.to_json()))) == wish


@pytest.mark.parametrize("changes", [{"source": "nowhere"}, {"method": "best"}, {"count": None}, {"models": None}])
def test_wrong_wish_is_refused(changes: dict[str, object]) -> None:
    with pytest.raises(ConfigError, match="not a calibration's wish"):
        Wish.from_json({**Wish().to_json(), **changes})
