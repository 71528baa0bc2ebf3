"""Last good: a device whose file of settings has vanished goes on as before, and says so (field case CFG-3)."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from edge_agent.errors import ConfigError
from edge_agent.remote.last_good import load_or_last_good


@pytest.fixture
def file(tmp_path: Path) -> Path:
    (tmp_path / "etc").mkdir()
    return tmp_path / "etc" / "config.yaml"


@pytest.fixture
def state(tmp_path: Path) -> Path:
    return tmp_path / "state"


def test_file_that_has_gone_is_as_it_was_and_that_is_said(file: Path, state: Path) -> None:
    file.write_text("device_id: press-7\nmqtt: {host: broker, username: u, password_file: secret}\n")
    before, nothing = load_or_last_good(file, state, {})
    assert nothing is None
    file.unlink()
    config, said = load_or_last_good(file, state, {"EDGE_AGENT_MQTT__PORT": "8883"})
    assert config.device_id == "press-7"
    assert config.mqtt.password_file == before.mqtt.password_file == file.parent / "secret"
    assert config.mqtt.port == 8883
    assert said is not None
    assert said.startswith(f"{file}: there is no such file; going on with what it held at the last start")


def test_newest_content_is_kept_for_its_owner_alone_and_written_only_when_it_differs(file: Path, state: Path) -> None:
    for name in ("a", "b", "b"):
        file.write_text(f"device_id: {name}\n")
        load_or_last_good(file, state, {})
    (kept,) = state.iterdir()
    assert kept.stat().st_mode & 0o077 == 0
    stamp = kept.stat().st_mtime_ns
    load_or_last_good(file, state, {})
    assert kept.stat().st_mtime_ns == stamp
    file.unlink()
    assert load_or_last_good(file, state, {})[0].device_id == "b"


def test_file_that_is_there_counts_whatever_is_in_it(file: Path, state: Path) -> None:
    file.write_text("device_id: press-7\n")
    load_or_last_good(file, state, {})
    file.write_text("devise_id: press-8\n")
    with pytest.raises(ConfigError, match="unknown key"):
        load_or_last_good(file, state, {})
    file.write_text("")
    assert load_or_last_good(file, state, {})[0].device_id is None


def test_path_that_cannot_be_followed_is_no_file_that_has_gone(file: Path, state: Path) -> None:
    file.write_text("device_id: press-7\n")
    load_or_last_good(file, state, {})
    file.unlink()
    file.symlink_to(file.name)
    with pytest.raises(ConfigError, match="cannot be read"):
        load_or_last_good(file, state, {})
    with pytest.raises(ConfigError, match="cannot be read"):
        load_or_last_good(file.with_name("x" * 300), state, {})


def test_file_that_was_never_there_is_missed_also_beside_another(file: Path, state: Path) -> None:
    file.write_text("device_id: press-7\n")
    load_or_last_good(file, state, {})
    with pytest.raises(ConfigError, match="there is no such file"):
        load_or_last_good(file.with_name("confg.yaml"), state, {})


def test_state_that_cannot_be_written_is_said_and_the_settings_are_used(
    file: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file.write_text("device_id: press-7\n")
    (tmp_path / "state").write_text("in the way")
    assert load_or_last_good(file, tmp_path / "state", {})[0].device_id == "press-7"
    assert "cannot be kept" in caplog.text


def test_pipe_is_read_once_and_not_kept(tmp_path: Path, state: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    pid = os.fork()
    if pid == 0:
        pipe.write_text("device_id: press-7\n")
        os._exit(0)
    assert load_or_last_good(pipe, state, {})[0].device_id == "press-7"
    os.waitpid(pid, 0)
    assert not state.exists()
