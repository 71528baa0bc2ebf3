"""Journal: one line an event, no secret, no control character."""

from __future__ import annotations

import io
import json
import logging
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import pytest

from edge_agent.cameras.base import Clock
from edge_agent.cameras.repeat_log import RepeatLog
from edge_agent.config import Config
from edge_agent.journal import BURST, FloodGate, secrets_of, start_logging
from edge_agent.secrets import Secrets
from edge_agent.settings.cameras import CameraConfig
from edge_agent.settings.log import LogConfig
from edge_agent.settings.mqtt import MqttConfig


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


def in_journal(config: LogConfig, path: Path) -> list[str]:
    """The lines that systemd's journal gets of an error and its traceback."""
    with path.open("w+", encoding="utf-8") as stream:
        status = os.fstat(stream.fileno())
        start_logging(config, Secrets(), stream, {"JOURNAL_STREAM": f"{status.st_dev}:{status.st_ino}"})
        try:
            raise ValueError("broken")
        except ValueError:
            logging.getLogger("edge_agent.test").exception("caught")
        stream.seek(0)
        return stream.read().splitlines()


def test_journal_gets_a_priority_before_each_line_and_no_time(tmp_path: Path) -> None:
    lines = in_journal(LogConfig(), tmp_path / "journal")
    assert lines[0] == "<3>caught"
    assert lines[-1] == "<3>ValueError: broken"
    assert all(line.startswith("<3>") for line in lines)


def test_journal_gets_pairs_and_objects_with_their_priority_too(tmp_path: Path) -> None:
    (pairs,) = in_journal(LogConfig(format="logfmt"), tmp_path / "pairs")
    assert pairs.startswith('<3>level=error logger=edge_agent.test message=caught trace="Traceback (most recent')
    assert pairs.endswith('ValueError: broken"')
    (event,) = in_journal(LogConfig(format="json"), tmp_path / "objects")
    assert event.startswith("<3>{")
    assert json.loads(event.removeprefix("<3>"))["message"] == "caught"


def test_terminal_of_a_desktop_is_not_taken_for_the_journal(tmp_path: Path) -> None:
    with (tmp_path / "log").open("w+", encoding="utf-8") as stream:
        start_logging(LogConfig(), Secrets(), stream, {"JOURNAL_STREAM": "8:1"})
        logging.getLogger("edge_agent.test").warning("hello")
        stream.seek(0)
        assert stream.read().endswith("Z WARNING hello\n")


PAIR = re.compile(r'([a-z]+)=("(?:[^"\\]|\\.)*"|[^ "=]+)(?: |$)')


def pairs_of(line: str) -> dict[str, str]:
    found = PAIR.findall(line)
    assert " ".join(f"{name}={value}" for name, value in found) == line, "nothing but pairs"
    return {name: json.loads(value) if value.startswith('"') else value for name, value in found}


def test_logfmt_is_pairs_that_come_apart_again() -> None:
    events = [pairs_of(line) for line in written(LogConfig(format="logfmt"), {}).splitlines()]
    assert [event["level"] for event in events] == ["warning", "error"]
    assert events[0]["logger"] == "edge_agent.test"
    assert events[0]["message"] == "camera said two\nlines with ***\x1b[31m\u202e"
    assert events[1]["trace"].endswith("ValueError: broken by ***")


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        'say "no"',
        "a\\b",
        "a=b",
        "\tx",
        "\x00",
        "\x7f",
        "\x85",
        "\xa0",
        "\u2028",
        "\ufeff",
        "\U000e0001",
        "\ud800",
    ],
)
def test_value_of_a_pair_is_what_was_said_whatever_is_in_it(text: str) -> None:
    stream = io.StringIO()
    start_logging(LogConfig(format="logfmt"), Secrets(), stream, {})
    logging.getLogger("edge_agent.test").warning("%s", text)
    (line,) = stream.getvalue().split("\n")[:-1]
    assert line.isprintable()
    assert pairs_of(line)["message"] == text


@pytest.mark.parametrize("form", ["logfmt", "json"])
def test_what_comes_again_and_again_has_its_kind_and_count_as_members(form: Literal["logfmt", "json"]) -> None:
    stream, now = io.StringIO(), [0.0]
    start_logging(LogConfig(format=form), Secrets(), stream, {})
    journal = RepeatLog(logging.getLogger("edge_agent.test"), Clock(monotonic=lambda: now[0]))
    for _ in range(2001):
        journal.write(logging.WARNING, "open", "the cable is loose")
        now[0] += 0.005
    lines = [json.loads(line) if form == "json" else pairs_of(line) for line in stream.getvalue().splitlines()]
    assert [(event["kind"], event.get("unsaid")) for event in lines] == [
        ("open", None),
        ("open", 1999 if form == "json" else "1999"),
    ]


class Flood:
    """A log that one line of the program floods; `said` is what is written."""

    def __init__(self) -> None:
        self.now_s = 1000.0
        self.said: list[str] = []
        self.unsaid = 0
        self._log = logging.getLogger("edge_agent.test.flood")
        self._log.propagate = False
        self._log.setLevel(logging.DEBUG)
        lines = logging.Handler()
        lines.addFilter(FloodGate(lambda: self.now_s))
        lines.emit = self._emit  # type: ignore[method-assign]
        self._log.handlers = [lines]

    def _emit(self, record: logging.LogRecord) -> None:
        self.said.append(record.getMessage())
        self.unsaid += getattr(record, "unsaid", 0)

    def write(self, level: int, text: str) -> None:
        self._log.log(level, "%s", text)

    def other(self) -> None:
        self._log.warning("something else")


def test_line_that_floods_is_written_a_few_times_with_the_count_of_the_rest() -> None:
    """Field case SYS-3: every 5 ms for a minute."""
    flood = Flood()
    for n in range(12_000):
        flood.write(logging.ERROR, f"frame {n} is broken")
        flood.now_s += 0.005
    assert flood.said[:2] == ["frame 0 is broken", "frame 1 is broken"]
    assert len(flood.said) < 30
    flood.now_s += 60
    flood.write(logging.ERROR, "the last one")
    assert re.fullmatch(r"the last one \(and \d+ more like it\)", flood.said[-1])
    assert len(flood.said) + flood.unsaid == 12_001, "a hidden message was not counted"


def test_first_of_each_line_is_written_whatever_floods_beside_it() -> None:
    flood = Flood()
    for _ in range(1000):
        flood.write(logging.WARNING, "again")
    flood.other()
    assert flood.said[-1] == "something else"
    assert len(flood.said) == BURST + 1


def test_debug_lines_which_somebody_asked_for_are_all_written() -> None:
    flood = Flood()
    for n in range(1000):
        flood.write(logging.DEBUG, str(n))
    assert len(flood.said) == 1000


UNFORESEEN = """
import sys, threading
from edge_agent.settings.log import LogConfig
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


@pytest.mark.parametrize("form", ["text", "logfmt", "json"])
def test_error_that_nobody_foresaw_is_logged_in_form_and_without_secrets(form: str) -> None:
    done = subprocess.run([sys.executable, "-c", UNFORESEEN, form], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "S3cret" not in done.stderr
    assert done.stderr.count("TypeError: cannot open rtsp://admin:***@host") == 2
    assert "thread publisher ended by an error that nobody foresaw" in done.stderr
    if form != "text":
        events = [json.loads(line) if form == "json" else pairs_of(line) for line in done.stderr.splitlines()]
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
