"""`edge-agent config`: a right file is told from a wrong one, and no password is printed."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import pytest

from edge_agent.commands.config import add_parser
from edge_agent.config import load
from edge_agent.errors import ConfigError
from edge_agent.remote.config_store import ConfigStore
from edge_agent.remote.desired import Desired, parse_desired

GOOD = """
device_id: "0012"
cameras:
  line1: {kind: rtsp, source: "rtsp://admin:S3cr#t@pw@host/live?token=S3cret"}
  "no": {kind: csi, source: 0}
mqtt: {username: agent}
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "config.yaml"
    path.write_text(GOOD, encoding="utf-8")
    path.chmod(0o600)
    return path


def run(*words: str | Path) -> int:
    parser = argparse.ArgumentParser()
    add_parser(parser.add_subparsers(required=True))
    args = parser.parse_args(["config", *map(str, words)])
    return int(args.func(args))


def test_validate_says_ok_and_counts_cameras(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("validate", file) == 0
    out, err = capsys.readouterr()
    assert out == f"{file}: ok (2 cameras)\n"
    assert f"{file}: warning: cameras.line1.source: the password stands in the address" in err
    assert "S3cr" not in out + err


def test_validate_takes_config_yaml_here_by_default(
    file: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(file.parent)
    assert run("validate") == 0
    assert capsys.readouterr().out.startswith("config.yaml: ok")


def test_validate_lists_every_mistake(file: Path) -> None:
    file.write_text("mqtt:\n  port: 70000\n  hots: a\n")
    with pytest.raises(ConfigError) as caught:
        run("validate", file)
    assert str(caught.value).splitlines() == [
        f"{file}:2: mqtt.port: 70000 is greater than 65535",
        f"{file}:3: mqtt.hots: unknown key; did you mean host?",
    ]
    assert caught.value.exit_code == 78


def test_validate_looks_at_the_environment(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EDGE_AGENT_MQTT__TLS", "flase")
    with pytest.raises(ConfigError, match="EDGE_AGENT_MQTT__TLS: mqtt.tls: 'flase' is neither"):
        run("validate", file)


def test_show_prints_everything_in_force_without_passwords(
    file: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("EDGE_AGENT_MQTT__PASSWORD", "S3cret!mqtt")
    monkeypatch.setenv("EDGE_AGENT_MQTT__HOST", "broker.plant")
    assert run("show", file) == 0
    out = capsys.readouterr().out
    assert "S3cr" not in out
    assert "rtsp://admin:***@host/live?token=***" in out
    assert "host: broker.plant" in out
    assert "this device is 0012 in topics" in out
    assert "interval_s: 10.0" in out


def test_what_show_prints_is_a_file_that_loads(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run("show", file)
    file.write_text(capsys.readouterr().out, encoding="utf-8")
    config = load(file, {})
    assert config.device_id == "0012"
    assert set(config.cameras) == {"line1", "no"}


def test_schema_describes_every_key(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("schema") == 0
    schema = json.loads(capsys.readouterr().out)
    sections = [schema, *schema["$defs"].values()]
    assert len(sections) > 5
    for section in sections:
        assert section["additionalProperties"] is False
        assert section["description"]
        for key, about in section["properties"].items():
            assert about.get("description") or "$ref" in about, f"{section['title']}.{key} has no description"
    assert "password" not in schema["$defs"]["MqttConfig"]["properties"]


# ---- what came from afar --------------------------------------------------------------------------------------------


@pytest.fixture
def store(file: Path) -> ConfigStore:
    """Version 4 is in force, version 5 was refused."""
    store = ConfigStore(file.parent / "state" / "config", clock=lambda: 1_796_040_000.0)
    store.stage(wish(4, {"log": {"level": "debug"}, "cameras": {"line1": {"max_fps": 5}}}), None)
    store.confirm()
    refused = b'{"version": 5, "patch": {"mqtt": {"password": "S3cr!et"}}}'
    store.refuse(refused, 5, "mqtt.password: is never changed from afar; set it in the device's own file")
    return store


def wish(version: int, patch: dict[str, Any]) -> Desired:
    return parse_desired(json.dumps({"version": version, "patch": patch}).encode(), 65_536)


def test_show_prints_what_came_from_afar_over_the_file(
    file: Path, store: ConfigStore, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("show", file) == 0
    out = capsys.readouterr().out
    assert "# and version 4 of 2026-11-30T12:00:00.000Z from afar over them" in out
    assert "level: debug" in out
    assert run("show", "--local", file) == 0
    assert "level: info" in capsys.readouterr().out


def test_diff_prints_each_key_with_both_values(
    file: Path, store: ConfigStore, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("diff", file) == 0
    assert capsys.readouterr().out.splitlines() == [
        f"# version 4 of 2026-11-30T12:00:00.000Z from afar, over {file}",
        "cameras.line1.max_fps: null -> 5.0",
        'log.level: "info" -> "debug"',
    ]


def test_diff_without_anything_from_afar_says_so(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("diff", file) == 0
    assert capsys.readouterr().out == "nothing from afar is in force\n"


def test_diff_says_why_what_came_is_not_in_force(
    file: Path, store: ConfigStore, capsys: pytest.CaptureFixture[str]
) -> None:
    file.write_text(file.read_text("utf-8") + "remote: {allowed_keys: [fields]}\n", encoding="utf-8")
    assert run("diff", file) == 0
    out, err = capsys.readouterr()
    assert out == "nothing from afar is in force\n"
    assert "log.level: is not among remote.allowed_keys" in err


def test_history_lists_what_ended_and_prints_a_text_without_passwords(
    file: Path, store: ConfigStore, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("history", file) == 0
    first, why = capsys.readouterr().out.splitlines()
    assert first.startswith("2026-11-30T12:00:00.000Z  version 5  refused  ")
    assert why == "  mqtt.password: is never changed from afar; set it in the device's own file"
    assert run("history", file, "--text", first.split()[-1]) == 0
    out = capsys.readouterr().out
    assert json.loads(out)["patch"]["mqtt"]["password"] == "***"
    with pytest.raises(ConfigError, match="0 texts in the history begin with 'zz'"):
        run("history", file, "--text", "zz")


def test_history_of_nothing_says_so(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("history", file) == 0
    assert capsys.readouterr().out == "nothing was refused, rolled back or replaced yet\n"


def test_rollback_takes_back_the_last_one_and_then_there_is_nothing(
    file: Path, store: ConfigStore, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("rollback", file) == 0
    assert capsys.readouterr().out == (f"version 4 of 2026-11-30T12:00:00.000Z is taken back; now in force: {file}\n")
    assert store.state().active is None
    assert run("rollback", file) == 1
    assert f"nothing from afar is in force: {file} alone is" in capsys.readouterr().err


def test_rollback_goes_to_the_one_before_or_to_the_file(
    file: Path, store: ConfigStore, capsys: pytest.CaptureFixture[str]
) -> None:
    store.stage(wish(6, {"log": {"level": "error"}}), None)
    store.confirm()
    assert run("rollback", file) == 0
    assert "version 6 of" in (out := capsys.readouterr().out)
    assert "now in force: version 4 of" in out
    assert run("rollback", "--to-file", file) == 0
    assert store.state().running is None


def test_store_is_found_in_the_state_directory_of_a_service(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "var"
    ConfigStore(folder / "config").stage(wish(7, {"log": {"level": "debug"}}), None)
    assert run("diff", "--state-dir", folder, file) == 0
    assert "version 7 of" in capsys.readouterr().out
    monkeypatch.setenv("STATE_DIRECTORY", f"{folder}:/other")
    assert run("diff", file) == 0
    assert "version 7 of" in capsys.readouterr().out
