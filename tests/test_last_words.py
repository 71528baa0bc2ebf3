"""Last words: what a run leaves behind, and what the next one makes of it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from edge_agent.config import load
from edge_agent.errors import ConfigError, EngineError
from edge_agent.last_words import FILE, Ending, LastWords, find_last_words, note_exit, oom_kills, why_ended
from edge_agent.telemetry.history import EVENTS_FOLDER, find_history_dir, read_history
from tests.broker import DEADLINE_S, Broker, Observer, wait_until
from tests.test_agent import agent_process, config_file, label_folder, last

BOOT, NEXT_BOOT = "b" * 32, "c" * 32
AT = 1_796_040_000.0


def begin(path: Path, boot_id: str = BOOT, root: Path = Path("/nowhere")) -> LastWords:
    return LastWords(path, boot_id, clock=lambda: AT, root=root)


def before(path: Path, boot_id: str = BOOT) -> Ending:
    found = begin(path, boot_id).before
    assert found is not None
    return found


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "state" / FILE


def control_group(root: Path, killed: int) -> Path:
    """A system whose kernel has killed so many processes of this group."""
    (root / "proc/self").mkdir(parents=True, exist_ok=True)
    (root / "proc/self/cgroup").write_text("0::/system.slice/edge-agent.service\n")
    group = root / "sys/fs/cgroup/system.slice/edge-agent.service"
    group.mkdir(parents=True, exist_ok=True)
    (group / "memory.events").write_text(f"low 0\nhigh 0\nmax 0\noom 1\noom_kill {killed}\noom_group_kill 0\n")
    return root


def verdict(result: str, code: str, status: str) -> dict[str, str]:
    return {"SERVICE_RESULT": result, "EXIT_CODE": code, "EXIT_STATUS": status}


def test_first_run_has_none_before_it(path: Path) -> None:
    assert begin(path).before is None


def test_tidy_end_is_told_with_its_times(path: Path) -> None:
    with begin(path) as words:
        words.stage("reading")
    told = before(path)
    assert told.kind == "run_stopped"
    assert told.text == (
        "the last run, begun 2026-11-30T12:00:00.000Z, was stopped (stage: reading, since 2026-11-30T12:00:00.000Z)"
    )


@pytest.mark.parametrize(
    ("error", "code", "reason"),
    [
        (ConfigError("x.yaml:3: mqtt.prot: unknown key"), 78, "unknown key"),
        (EngineError("CUDA is lost"), 70, "CUDA is lost"),
        (ZeroDivisionError("with a secret"), 1, "ZeroDivisionError; see the log"),
    ],
)
def test_error_is_told_with_its_exit_code(path: Path, error: Exception, code: int, reason: str) -> None:
    with pytest.raises(type(error)), begin(path):
        raise error
    told = before(path)
    assert told.kind == "run_failed"
    assert f"ended with exit code {code}: " in told.text
    assert reason in told.text
    assert "secret" not in told.text


def test_start_afresh_is_told_with_its_reason(path: Path) -> None:
    begin(path).restarting("settings from afar need it")
    assert before(path).kind == "run_restarted"


def test_silence_is_a_kill_in_the_same_boot_and_lost_power_in_another(path: Path) -> None:
    begin(path).stage("reading")
    same, other = before(path), before(path, NEXT_BOOT)
    assert same.kind == "run_killed"
    begin(path).stage("building plans")
    other = before(path, NEXT_BOOT)
    assert other.kind == "run_power_lost"
    assert "stage: building plans" in other.text


@pytest.mark.parametrize(
    ("environ", "kind", "says"),
    [
        (verdict("success", "exited", "0"), "run_stopped", "was stopped"),
        (verdict("exit-code", "exited", "78"), "run_failed", "exit code 78; the settings are wrong"),
        (verdict("exit-code", "exited", "1"), "run_failed", "exit code 1: see the log"),
        (verdict("watchdog", "killed", "ABRT"), "run_hung", "watchdog"),
        (verdict("watchdog", "dumped", "ABRT"), "run_hung", "watchdog"),
        (verdict("signal", "killed", "KILL"), "run_killed", "signal KILL"),
        (verdict("core-dump", "dumped", "SEGV"), "run_killed", "signal SEGV"),
        (verdict("oom-kill", "killed", "KILL"), "run_out_of_memory", "memory ran out"),
        (verdict("timeout", "killed", "KILL"), "run_killed", "in time"),
        (verdict("success", "killed", "TERM"), "run_stopped", "before it was under way"),
    ],
)
def test_verdict_of_the_service_manager_counts(path: Path, environ: dict[str, str], kind: str, says: str) -> None:
    begin(path).stage("reading")
    assert note_exit(path, environ, Path("/nowhere"))
    told = before(path, NEXT_BOOT)  # the machine may have been switched off since
    assert told.kind == kind
    assert says in told.text


def test_kill_for_memory_is_told_from_any_other_by_what_the_kernel_counts(path: Path, tmp_path: Path) -> None:
    killed = verdict("signal", "killed", "KILL")  # with OOMPolicy=continue systemd does not say more
    begin(path, root=control_group(tmp_path, 1)).stage("reading")  # a builder was killed before
    note_exit(path, killed, control_group(tmp_path, 1))
    assert before(path).kind == "run_killed"
    begin(path, root=control_group(tmp_path, 1)).stage("reading")
    note_exit(path, killed, control_group(tmp_path, 2))
    assert before(path).kind == "run_out_of_memory"


def test_kernel_without_counts_is_no_trouble(tmp_path: Path) -> None:
    assert oom_kills(tmp_path) is None
    assert oom_kills(control_group(tmp_path, 3)) == 3
    (tmp_path / "proc/self/cgroup").write_text("12:memory:/x\n0::/\n")
    assert oom_kills(tmp_path) is None


def test_verdict_on_an_earlier_run_does_not_outlive_the_next(path: Path) -> None:
    begin(path)
    note_exit(path, verdict("watchdog", "killed", "ABRT"), Path("/nowhere"))
    with begin(path):
        pass
    assert before(path).kind == "run_stopped"


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"boot_id": 3}', b"\xff\xfe", b"[" * 60_000])
def test_damaged_words_are_none(path: Path, content: bytes) -> None:
    path.parent.mkdir()
    path.write_bytes(content)
    assert begin(path).before is None
    assert json.loads(path.read_text())["stage"] == "starting"


def test_disk_that_cannot_be_written_costs_the_words_not_the_run(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "state").write_text("a file in the folder's place")
    with begin(tmp_path / "state" / FILE) as words:
        words.stage("reading")
    assert len([line for line in caplog.messages if "cannot be written" in line]) == 1


def test_a_stage_is_written_once(path: Path) -> None:
    words = begin(path)
    words.stage("reading")
    path.unlink()
    words.stage("reading")
    assert not path.exists()


def test_nobody_to_ask_is_nothing_to_note(path: Path) -> None:
    assert not note_exit(path, verdict("success", "exited", "0"))
    begin(path)
    assert not note_exit(path, {})


def test_future_words_are_judged_as_far_as_they_are_known() -> None:
    words: dict[str, Any] = {"v": 9, "boot_id": BOOT, "started_at": AT, "at": AT, "stage": "new", "ended": "evaporated"}
    told = why_ended(words, BOOT)
    assert told is not None
    assert told.kind == "run_failed"


def test_words_lie_where_the_service_keeps_its_state(tmp_path: Path) -> None:
    assert find_last_words(tmp_path / "c.yaml", {}) == tmp_path / "state" / FILE
    assert find_last_words(tmp_path / "c.yaml", {"STATE_DIRECTORY": "/var/lib/a:/b"}) == Path("/var/lib/a") / FILE


def test_killed_agent_is_told_of_by_the_next_one(broker: Broker, tmp_path: Path) -> None:
    """The whole way: a real agent killed, systemd's ExecStopPost, and the event of the next start."""
    source = label_folder(tmp_path / "left", 1)
    config = config_file(tmp_path, broker.port, {"left": {"kind": "folder", "source": str(source)}})
    with Observer(broker.port, "edge/#") as observer:
        with agent_process(config) as process:
            wait_until(lambda: bool(observer.payloads("edge/press7/left/result")), "a reading", 60)
            process.send_signal(signal.SIGABRT)
            assert process.wait(DEADLINE_S) == -signal.SIGABRT
        environ = {**os.environ, **verdict("watchdog", "killed", "ABRT")}
        command = [sys.executable, "-m", "edge_agent", "note-exit", "--config", str(config)]
        assert subprocess.run(command, env=environ, check=True, capture_output=True, timeout=60).stdout == b""
        with agent_process(config) as process:
            wait_until(lambda: last(observer, "event").get("kind") == "run_hung", "the event", 60)
            assert "(stage: reading, since " in last(observer, "event")["text"]
            wait_until(lambda: last(observer, "health")["pipeline"] == "running", "readings", 60)
            process.send_signal(signal.SIGTERM)
            assert process.wait(DEADLINE_S) == 0
            assert process.stderr is not None
            assert "WARNING the last run" in process.stderr.read()
    told = why_ended(json.loads((tmp_path / "state" / FILE).read_text()), BOOT)
    assert told is not None
    assert (told.kind, "stage: stopping" in told.text) == ("run_stopped", True)
    kept = find_history_dir(load(config))
    assert kept is not None
    assert [event["kind"] for event in read_history(kept / EVENTS_FOLDER)] == ["run_hung"]
