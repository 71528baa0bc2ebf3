"""Journal: one line an event, no secret, no control character."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Iterator
from pathlib import Path

import pytest

from edge_agent.config import CameraConfig, Config, LogConfig, MqttConfig
from edge_agent.journal import secrets_of, start_logging
from edge_agent.secrets import Secrets


@pytest.fixture(autouse=True)
def root_logger_as_before() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers, root.level = handlers, level
    logging.captureWarnings(capture=False)


def written(config: LogConfig, environ: dict[str, str]) -> str:
    stream = io.StringIO()
    start_logging(config, Secrets(["S3cret!pw"]), stream, environ)
    log = logging.getLogger("edge_agent.test")
    log.debug("too quiet")
    log.warning("camera said %s with S3cret%%21pw\x1b[31m\u202e", "two\nlines")
    try:
        raise ValueError("broken by S3cret!pw")
    except ValueError:
        log.exception("caught")
    return stream.getvalue()


def test_text_has_time_level_and_neither_secret_nor_control_character() -> None:
    text = written(LogConfig(), {})
    assert "too quiet" not in text
    assert "Z WARNING camera said two" in text
    assert "\\x1b[31m\\u202e" in text
    assert "ValueError: broken by ***" in text
    assert "S3cret" not in text


def test_journal_gets_priorities_and_no_time() -> None:
    assert written(LogConfig(), {"JOURNAL_STREAM": "8:1"}).startswith("<4>camera said two")


def test_json_is_one_object_a_line() -> None:
    text = written(LogConfig(format="json", level="debug"), {})
    events = [json.loads(line) for line in text.splitlines()]
    assert [event["level"] for event in events] == ["debug", "warning", "error"]
    assert "broken by ***" in events[2]["trace"]
    assert "S3cret" not in text


def test_passwords_in_sources_and_files_never_reach_the_log(tmp_path: Path) -> None:
    (tmp_path / "mqtt").write_text("br0ker\n", encoding="utf-8")
    (tmp_path / "camera").write_text("c%m\n", encoding="utf-8")
    for file in tmp_path.iterdir():
        file.chmod(0o600)
    config = Config(
        mqtt=MqttConfig(username="agent", password_file=tmp_path / "mqtt"),
        cameras={
            "a": CameraConfig(kind="rtsp", source="rtsp://admin:S3cret%21pw@host/live"),
            "b": CameraConfig(kind="rtsp", source="rtsp://admin@host/live", password_file=tmp_path / "camera"),
        },
    )
    said = secrets_of(config).scrub("br0ker S3cret!pw S3cret%21pw c%m c%25m")
    assert said == "*** *** *** *** ***"
