"""`edge-agent config`: a right file is told from a wrong one, and no password is printed."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import pytest

from edge_agent.commands.config import add_parser
from edge_agent.config import load
from edge_agent.errors import ConfigError

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
