"""Journal: one line an event, no secret, no control character."""

from __future__ import annotations

import io
import json
import logging
import os
import subprocess
import sys
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
    assert "Z WARNING camera said two\\nlines with" in text  # nobody forges a line of the log
    assert "\\x1b[31m\\u202e" in text
    assert "ValueError: broken by ***" in text
    assert "S3cret" not in text


def test_journal_gets_a_priority_before_each_line_and_no_time(tmp_path: Path) -> None:
    with (tmp_path / "journal").open("w+", encoding="utf-8") as stream:
        status = os.fstat(stream.fileno())
        start_logging(LogConfig(), Secrets(), stream, {"JOURNAL_STREAM": f"{status.st_dev}:{status.st_ino}"})
        try:
            raise ValueError("broken")
        except ValueError:
            logging.getLogger("edge_agent.test").exception("caught")
        stream.seek(0)
        lines = stream.read().splitlines()
    assert lines[0] == "<3>caught"
    assert lines[-1] == "<3>ValueError: broken"
    assert all(line.startswith("<3>") for line in lines)


def test_terminal_of_a_desktop_is_not_taken_for_the_journal(tmp_path: Path) -> None:
    with (tmp_path / "log").open("w+", encoding="utf-8") as stream:
        start_logging(LogConfig(), Secrets(), stream, {"JOURNAL_STREAM": "8:1"})
        logging.getLogger("edge_agent.test").warning("hello")
        stream.seek(0)
        assert stream.read().endswith("Z WARNING hello\n")


UNFORESEEN = """
import sys, threading
from edge_agent.config import LogConfig
from edge_agent.journal import log_uncaught, start_logging
from edge_agent.secrets import Secrets
start_logging(LogConfig(format=sys.argv[1]), Secrets(["S3cret!pw"]))
log_uncaught()
def fail():
    raise TypeError("cannot open rtsp://admin:S3cret%21pw@host")
thread = threading.Thread(target=fail, name="publisher")
thread.start()
thread.join()
fail()
"""


@pytest.mark.parametrize("form", ["text", "json"])
def test_error_that_nobody_foresaw_is_logged_in_form_and_without_secrets(form: str) -> None:
    done = subprocess.run([sys.executable, "-c", UNFORESEEN, form], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "S3cret" not in done.stderr
    assert done.stderr.count("TypeError: cannot open rtsp://admin:***@host") == 2
    assert "thread publisher ended by an error that nobody foresaw" in done.stderr
    if form == "json":
        events = [json.loads(line) for line in done.stderr.splitlines()]
        assert [event["level"] for event in events] == ["critical", "critical"]
    else:
        assert "Z CRITICAL ended by an error that nobody foresaw" in done.stderr


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
