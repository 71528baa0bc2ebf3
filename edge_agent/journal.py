"""Journal: the program's own log, one line an event on stderr: for people (`text`), as key=value pairs (`logfmt`) or
for programs (`json`).

Where stderr is systemd's journal, the level goes before each line as sd-daemon(3) has it, and the time is left to the
journal. What comes too often is counted instead of written.
"""

from __future__ import annotations

import json
import logging
import os
import sys
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Any, TextIO

from edge_agent.config import Config
from edge_agent.records import rfc3339
from edge_agent.secrets import Secrets, read_password_file, url_secrets
from edge_agent.settings.log import LogConfig

log = logging.getLogger(__name__)

# syslog(3) priorities of the levels
PRIORITIES = {"DEBUG": 7, "INFO": 6, "WARNING": 4, "ERROR": 3, "CRITICAL": 2}
BURST = 20
REFILL_S = 60.0


class TextLines(logging.Formatter):
    """`2026-11-30T12:00:00.000Z WARNING camera line1 is offline: ...`; control characters are escaped, so that one
    event is one line whatever it quotes."""

    def __init__(self, to_journal: bool) -> None:
        super().__init__()
        self._to_journal = to_journal

    def formatMessage(self, record: logging.LogRecord) -> str:
        return printable(record.message)

    def format(self, record: logging.LogRecord) -> str:
        """The event's line, then those of a traceback where there is one."""
        lines = [printable(line) for line in super().format(record).split("\n")]
        if self._to_journal:  # which takes each line for an event
            return "\n".join(for_journal(record, line) for line in lines)
        return f"{rfc3339(record.created)} {record.levelname:<7} " + "\n".join(lines)


class KeyValueLines(logging.Formatter):
    """`level=warning logger=edge_agent.agent message="frame 7 of camera line1 dropped" kind=line1 unsaid=12`.

    The members of JsonLines as logfmt; a value with a blank or a sign in it stands in quotes, as JSON has them.
    """

    def __init__(self, to_journal: bool) -> None:
        super().__init__()
        self._to_journal = to_journal

    def format(self, record: logging.LogRecord) -> str:
        pairs = " ".join(f"{name}={_pair_value(value)}" for name, value in members(record, self).items())
        return for_journal(record, pairs.partition(" ")[2]) if self._to_journal else pairs


class JsonLines(logging.Formatter):
    """One JSON object a line: at, level, logger, message; kind and unsaid of what comes again and again; trace after an
    error."""

    def __init__(self, to_journal: bool) -> None:
        super().__init__()
        self._to_journal = to_journal

    def format(self, record: logging.LogRecord) -> str:
        line = json.dumps(members(record, self))
        return for_journal(record, line) if self._to_journal else line


def members(record: logging.LogRecord, formatter: logging.Formatter) -> dict[str, Any]:
    """What a program wants to know of an event, `at` first."""
    event: dict[str, Any] = {
        "at": rfc3339(record.created),
        "level": record.levelname.lower(),
        "logger": record.name,
        "message": record.getMessage(),
    }
    event |= {name: value for name in ("kind", "unsaid") if (value := getattr(record, name, None))}
    if record.exc_info or record.exc_text:
        event["trace"] = record.exc_text or formatter.formatException(record.exc_info)  # type: ignore[arg-type]
    return event


def _pair_value(value: Any) -> str:
    text = str(value)
    bare = text and text.isprintable() and not set(text) & set(' "=\\')
    if bare:
        return text
    # as JSON has them: \x7f or \U000e0001, which `printable` writes, ends a reader of quoted values
    return "".join(c if c.isprintable() else json.dumps(c)[1:-1] for c in json.dumps(text, ensure_ascii=False))


def for_journal(record: logging.LogRecord, line: str) -> str:
    """The line behind its level, which the journal takes off again."""
    return f"<{PRIORITIES.get(record.levelname, 6)}>{line}"


def printable(text: str) -> str:
    """`text` with control characters, line ends, lone surrogates and direction marks as escapes."""
    return "".join(c if c.isprintable() or c == "\t" else c.encode("unicode_escape").decode("ascii") for c in text)


FORMATS: Mapping[str, Callable[[bool], logging.Formatter]] = {
    "text": TextLines,
    "logfmt": KeyValueLines,
    "json": JsonLines,
}


@dataclass
class _Kind:
    left: float  # lines that may be written at once
    at_mono: float
    unsaid: int = 0


class FloodGate(logging.Filter):
    """Of one kind of message BURST are written, then one in REFILL_S, which says how many were not.

    A kind is a line of the program. What a RepeatLog has counted already passes, and so do debug lines, which somebody
    asked for. Any thread.
    """

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._monotonic = monotonic
        self._lock = threading.Lock()
        self._kinds: dict[tuple[str, int], _Kind] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        if record.levelno < logging.INFO or hasattr(record, "unsaid"):
            return True
        with self._lock:
            now_mono = self._monotonic()
            kind = self._kinds.setdefault((record.pathname, record.lineno), _Kind(BURST, now_mono))
            kind.left = min(BURST, kind.left + (now_mono - kind.at_mono) / REFILL_S)
            kind.at_mono = now_mono
            if kind.left < 1:
                kind.unsaid += 1
                return False
            kind.left -= 1
            unsaid, kind.unsaid = kind.unsaid, 0
        if unsaid:
            record.msg, record.args = f"{record.getMessage()} (and {unsaid} more like it)", ()
            record.unsaid = unsaid
        return True


def start_logging(
    config: LogConfig, secrets: Secrets, stream: TextIO = sys.stderr, environ: Mapping[str, str] = os.environ
) -> None:
    """Sends the log of the whole process to `stream`, without secrets; replaces what was set before."""
    lines = logging.StreamHandler(stream)
    lines.setFormatter(FORMATS[config.format](is_journal(stream, environ)))
    lines.addFilter(FloodGate())
    lines.addFilter(secrets)
    logging.basicConfig(handlers=[lines], level=config.level.upper(), force=True)
    logging.captureWarnings(capture=True)


def is_journal(stream: TextIO, environ: Mapping[str, str]) -> bool:
    """Whether `stream` is systemd's journal: JOURNAL_STREAM alone is handed down to a desktop's terminals as well."""
    try:
        status = os.fstat(stream.fileno())
    except (OSError, ValueError):  # a closed stream, or one that is no file
        return False
    return environ.get("JOURNAL_STREAM") == f"{status.st_dev}:{status.st_ino}"


def log_uncaught() -> None:
    """Has errors that nobody foresaw, in any thread, written by the log as well: without secrets, in its format."""

    def main_thread(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        if issubclass(kind, KeyboardInterrupt):
            sys.__excepthook__(kind, error, trace)
        else:
            log.critical("ended by an error that nobody foresaw", exc_info=(kind, error, trace))

    def other_thread(args: threading.ExceptHookArgs) -> None:
        error = args.exc_value or args.exc_type()
        name = args.thread.name if args.thread is not None else "unknown"
        log.critical(
            "thread %s ended by an error that nobody foresaw", name, exc_info=(args.exc_type, error, args.exc_traceback)
        )

    sys.excepthook = main_thread
    threading.excepthook = other_thread


def secrets_of(config: Config) -> Secrets:
    """Every secret that the configuration holds or names a file for; ConfigError for a file that cannot be used."""
    secrets = Secrets(secret for camera in config.cameras.values() for secret in url_secrets(camera.source))
    secrets.register(config.mqtt.read_password() or "")
    files = (camera.password_file for camera in config.cameras.values() if camera.enabled)
    secrets.register(*(read_password_file(path) for path in files if path is not None))
    return secrets
