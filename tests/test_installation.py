"""Installation: what is written, that a second time changes nothing, and that what is taken away is just that."""

from __future__ import annotations

import io
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from edge_agent.__main__ import main
from edge_agent.commands.install import asked, call
from edge_agent.config import load
from edge_agent.errors import ConfigError
from edge_agent.installation import Answers, Installation, config_text, shipped, with_program
from tests.conftest import ROOT

PROGRAM = Path("/opt/edge-agent/.venv/bin/edge-agent")
FULL = Answers("press7", "rtsp", "rtsp://viewer@192.0.2.10:554/live", "192.0.2.1", 8883, "press", "pa ss#1")
INSTALL = ["install", "--yes", "--program", str(PROGRAM)]


def files(root: Path) -> dict[str, bytes]:
    return {str(path.relative_to(root)): path.read_bytes() for path in sorted(root.rglob("*")) if path.is_file()}


class System:
    """A machine below `root`, with users and groups; takes down what it is told, and does what matters of it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.told: list[str] = []
        (root / "etc").mkdir(parents=True)
        (root / "run/systemd/system").mkdir(parents=True)
        (root / "etc/passwd").write_text("root:x:0:0::/root:/bin/bash\n")
        (root / "etc/group").write_text("root:x:0:\nvideo:x:44:\n")

    def run(self, words: Sequence[str]) -> None:
        self.told.append(" ".join(words))
        if words[0] == "useradd":
            (self.root / "etc/passwd").write_text(f"root:x:0:0::/root:/bin/bash\n{words[-1]}:x:999:999::/:/x\n")
        if words[0] == "groupadd":
            (self.root / "etc/group").write_text(f"root:x:0:\nvideo:x:44:\n{words[-1]}:x:105:\n")

    def called(self, program: str) -> list[str]:
        return [line for line in self.told if line.split()[0] == program]


@pytest.fixture
def system(tmp_path: Path) -> System:
    return System(tmp_path / "machine")


def installation(system: System) -> Installation:
    return Installation(system.root, system.run, lambda _line: None)


def test_settings_say_what_was_answered_and_keep_their_comments(tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    template = shipped("config.yaml").read_text("utf-8")
    path.write_text(config_text(template, FULL))
    config = load(path)
    assert config.device_id == "press7"
    assert (config.cameras["line1"].kind, config.cameras["line1"].source) == (FULL.camera_kind, FULL.camera_source)
    assert (config.mqtt.host, config.mqtt.port, config.mqtt.username) == ("192.0.2.1", 8883, "press")
    assert config.mqtt.password_file == Path("/etc/edge-agent/mqtt_password")
    assert path.read_text().count("#") >= template.count("#")
    assert config_text(template, Answers()) == template


@pytest.mark.parametrize("value", ["no", "0012", "22:00", 'a "b"', "x: y # z", "1e3"])
def test_answer_that_yaml_takes_for_something_else_stays_text(tmp_path: Path, value: str) -> None:
    path = tmp_path / "config.yaml"
    path.write_text(config_text(shipped("config.yaml").read_text("utf-8"), Answers(mqtt_username=value)))
    assert load(path).mqtt.username == value


def test_everything_is_in_place_and_owned(system: System) -> None:
    installation(system).install(PROGRAM, FULL)
    root = system.root
    assert (root / "etc/edge-agent/mqtt_password").read_text() == "pa ss#1\n"
    assert (root / "etc/edge-agent/mqtt_password").stat().st_mode & 0o777 == 0o600
    assert (root / "etc/edge-agent/config.yaml").stat().st_mode & 0o777 == 0o640
    assert (root / "etc/edge-agent").stat().st_mode & 0o777 == 0o750
    assert (root / "var/lib/edge-agent").is_dir()
    unit = (root / "etc/systemd/system/edge-agent.service").read_text()
    assert f"\nExecStart={PROGRAM} run --config /etc/edge-agent/config.yaml\n" in unit
    assert f"\nExecStopPost=-{PROGRAM} note-exit" in unit
    assert system.called("groupadd") == ["groupadd --system render"], "video is there"
    (useradd,) = system.called("useradd")
    assert useradd.endswith("--shell /usr/sbin/nologin edge-agent")
    assert f"chown edge-agent:edge-agent {root}/etc/edge-agent/mqtt_password" in system.told
    assert f"chown root:edge-agent {root}/etc/edge-agent/config.yaml" in system.told
    assert system.called("systemctl") == ["systemctl daemon-reload", "systemctl enable edge-agent.service"]
    assert system.told.index(useradd) < system.told.index(f"chown root:edge-agent {root}/etc/edge-agent")


def test_second_time_changes_nothing_and_keeps_the_operators_settings(system: System) -> None:
    installation(system).install(PROGRAM, FULL)
    config = system.root / "etc/edge-agent/config.yaml"
    config.write_text(config.read_text() + "# mine\n")
    before = files(system.root)
    system.told.clear()
    installation(system).install(PROGRAM, Answers("other", mqtt_password="other"))
    assert files(system.root) == before
    assert system.called("useradd") == system.called("groupadd") == []


def test_old_unit_is_brought_up_to_date(system: System) -> None:
    unit = system.root / "etc/systemd/system/edge-agent.service"
    installation(system).install(PROGRAM, FULL)
    unit.write_text("[Service]\nExecStart=/old\n")
    installation(system).install(PROGRAM, FULL)
    assert str(PROGRAM) in unit.read_text()


def test_uninstall_takes_units_away_and_keeps_what_is_the_operators(system: System) -> None:
    installation(system).install(PROGRAM, FULL)
    (system.root / "var/lib/edge-agent/outbox.db").write_bytes(b"readings")
    (system.root / "etc/systemd/system/other.service").write_text("not ours")
    installation(system).uninstall(purge=False)
    left = set(files(system.root))
    assert left == {
        "etc/passwd",
        "etc/group",
        "etc/systemd/system/other.service",
        "etc/edge-agent/config.yaml",
        "etc/edge-agent/mqtt_password",
        "etc/edge-agent/installed.json",
        "var/lib/edge-agent/outbox.db",
    }
    assert system.called("userdel") == []
    stopped = "systemctl disable --now edge-agent.service edge-agent-calibrate.service"
    assert system.told.index(stopped) < len(system.told) - 1
    assert system.told[-1] == "systemctl daemon-reload"


def test_unit_that_somebody_changed_stays(system: System) -> None:
    installation(system).install(PROGRAM, FULL)
    unit = system.root / "etc/systemd/system/edge-agent.service"
    unit.write_text(unit.read_text() + "Environment=MINE=1\n")
    installation(system).uninstall(purge=False)
    assert unit.exists()


@pytest.mark.parametrize("kept_first", [False, True])
def test_purge_leaves_the_machine_as_it_was(system: System, kept_first: bool) -> None:
    before = files(system.root)
    installation(system).install(PROGRAM, FULL)
    (system.root / "var/lib/edge-agent/outbox.db").write_bytes(b"readings")
    if kept_first:
        installation(system).uninstall(purge=False)
    installation(system).uninstall(purge=True)
    after = files(system.root)
    assert {name: after[name] for name in after if not name.startswith("etc/passwd") and name != "etc/group"} == {
        name: before[name] for name in before if not name.startswith("etc/passwd") and name != "etc/group"
    }
    assert not (system.root / "etc/edge-agent").exists()
    assert system.called("userdel") == ["userdel edge-agent"]


@pytest.mark.parametrize(
    "record",
    ["", "[]", "[" * 100_000, '{"files": []}', '{"files": null, "user_made": "no"}', '{"files": {"OTHER": 5}}'],
)
def test_record_that_is_none_removes_nothing_else_and_purge_removes_all(system: System, record: str) -> None:
    installation(system).install(PROGRAM, FULL)
    other = system.root / "other"
    other.write_text("not ours")
    written = system.root / "etc/edge-agent/installed.json"
    written.write_text(record.replace("OTHER", str(other)))
    installation(system).uninstall(purge=False)
    assert (system.root / "etc/systemd/system/edge-agent.service").exists()
    written.write_text(record.replace("OTHER", str(other)))
    installation(system).install(PROGRAM, FULL)
    written.write_text(record.replace("OTHER", str(other)))
    installation(system).uninstall(purge=True)
    assert set(files(system.root)) == {"etc/passwd", "etc/group", "other"}


def test_user_that_was_there_before_is_not_removed(system: System) -> None:
    with (system.root / "etc/passwd").open("a") as file:
        file.write("edge-agent:x:999:999::/:/x\n")
    installation(system).install(PROGRAM, FULL)
    installation(system).uninstall(purge=True)
    assert system.called("useradd") == system.called("userdel") == []


def test_program_in_a_home_is_refused(system: System) -> None:
    with pytest.raises(ConfigError, match="/opt/edge-agent"):
        installation(system).install(Path("/home/me/.venv/bin/edge-agent"), FULL)
    assert not (system.root / "etc/edge-agent").exists(), "nothing half-done"


def test_program_whose_python_lies_in_a_home_is_refused(system: System, tmp_path: Path) -> None:
    """An environment in /opt is of no use by a Python of pyenv's: the service does not see it."""
    program, python = tmp_path / "edge-agent", tmp_path / "python"
    python.symlink_to("/root/.pyenv/versions/3.11/bin/python3")
    program.write_text(f"#!{python}\nimport sys\n")
    with pytest.raises(ConfigError, match=r"/root/\.pyenv/versions/3\.11/bin/python3 lies in somebody's home"):
        installation(system).install(program, FULL)
    assert system.told == []
    program.write_text("#!/usr/bin/env python3\n")
    installation(system).install(program, FULL)


def test_image_in_the_making_is_installed_into_and_cleared_without_a_running_systemd(system: System) -> None:
    (system.root / "run/systemd/system").rmdir()
    first = installation(system)
    first.install(PROGRAM, FULL)
    assert not first.start()
    installation(system).uninstall(purge=True)
    assert system.called("systemctl") == [
        "systemctl enable edge-agent.service",
        "systemctl disable edge-agent.service edge-agent-calibrate.service",
    ]


@pytest.mark.parametrize("program", ["/opt/a b/edge-agent", "/opt/%h/edge-agent", "edge-agent", "/opt/$X/edge-agent"])
def test_path_that_a_unit_cannot_hold_is_refused(program: str) -> None:
    with pytest.raises(ConfigError, match="full path"):
        with_program("ExecStart=edge-agent run\n", Path(program))


# ---- the commands ----------------------------------------------------------------------------------------------------


def test_folder_is_staged_without_touching_the_machine(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    root = tmp_path / "staged"
    password = tmp_path / "password"
    password.write_text("s3cret-word\n")
    password.chmod(0o600)
    options = ["--root", str(root), "--device-id", "press7", "--mqtt-host", "192.0.2.1", "--mqtt-username", "press"]
    camera = ["--camera-kind", "csi", "--camera-source", "0", "--mqtt-password-file", str(password)]
    assert main([*INSTALL, *options, *camera]) == 0
    config = load(root / "etc/edge-agent/config.yaml")
    assert (config.device_id, config.cameras["line1"].kind) == ("press7", "csi")
    assert "s3cret-word" not in capsys.readouterr().out
    staged = files(root)
    assert main([*INSTALL, *options, *camera]) == 0
    assert files(root) == staged
    assert main(["uninstall", "--root", str(root), "--purge"]) == 0
    assert files(root) == {}


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="needs systemd-analyze")
def test_staged_units_are_right(tmp_path: Path) -> None:
    assert main(["install", "--yes", "--root", str(tmp_path), "--program", sys.executable]) == 0
    for unit in sorted((tmp_path / "etc/systemd/system").iterdir()):
        ran = subprocess.run(["systemd-analyze", "verify", str(unit)], capture_output=True, text=True, check=False)
        assert (ran.returncode, ran.stderr) == (0, "")


def test_answers_are_asked_for_at_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    said = {"name": "press7", "camera:": "rtsp", "path": "rtsp://192.0.2.10/live", "broker": "", "port": "8883"}
    questions: list[str] = []

    def answer(question: str) -> str:
        questions.append(question)
        return next((text for word, text in said.items() if word in question), "press")

    monkeypatch.setattr("builtins.input", answer)
    monkeypatch.setattr("getpass.getpass", lambda _question: "s3cret-word")
    answers = asked(Answers(mqtt_host="192.0.2.1"))
    assert answers == Answers("press7", "rtsp", "rtsp://192.0.2.10/live", "192.0.2.1", 8883, "press", "s3cret-word")
    assert "[192.0.2.1]" in questions[3]


def test_enter_at_every_question_means_the_defaults(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("builtins.input", lambda _question: "")
    assert asked(Answers()) == Answers()


def test_port_that_is_no_number_is_said_to_be_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("builtins.input", lambda question: "abc" if "port" in question else "")
    with pytest.raises(ConfigError, match="port"):
        asked(Answers())


def test_closed_terminal_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO())
    with pytest.raises(ConfigError, match="closed before every question"):
        asked(Answers())


def test_folder_that_cannot_be_written_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").write_text("in the way")
    assert main([*INSTALL, "--root", str(tmp_path / "file")]) == 78
    assert "cannot be written" in capsys.readouterr().err


def test_command_that_fails_says_what_it_said() -> None:
    with pytest.raises(ConfigError, match="no-such-command is not on this machine"):
        call(["no-such-command"])
    with pytest.raises(ConfigError, match="ls /nowhere-at-all failed: .*nowhere-at-all"):
        call(["ls", "/nowhere-at-all"])


def test_only_root_may_change_the_machine(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    assert main([*INSTALL]) == 78
    assert "sudo" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--camera-kind", "csi"], "go together"),
        (["--camera-kind", "csi", "--camera-source", "99"], "source"),
        (["--mqtt-host", "mqtt://x"], "host"),
        (["--device-id", "a/b"], "device_id"),
        (["--mqtt-port", "70000"], "port"),
        (["--mqtt-port", "0"], "port"),
        (["--mqtt-host", ""], "host"),
    ],
)
def test_wrong_answers_write_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], options: list[str], says: str
) -> None:
    root = tmp_path / "staged"
    assert main([*INSTALL, "--root", str(root), *options]) == 78
    assert says in capsys.readouterr().err
    assert not root.exists()


def test_units_and_settings_come_with_the_package() -> None:
    text = (ROOT / "pyproject.toml").read_text("utf-8")
    for name in ("config.yaml", "systemd/edge-agent.service", "systemd/edge-agent-calibrate.service"):
        assert f'"{name}" = "share/edge-agent/{name}"' in text
