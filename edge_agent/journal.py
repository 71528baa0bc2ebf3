"""Journal: the program's own log, one line an event on stderr, for people (`text`) or programs (`json`).

Under systemd stderr is the journal: the level goes before each line as sd-daemon(3) has it, and the time is left to
the journal.
"""

from __future__ import annotations

import json
import logging
import os
import sys
from collections.abc import Mapping
from typing import TextIO

from edge_agent.config import Config, LogConfig
from edge_agent.records import rfc3339
from edge_agent.secrets import Secrets, read_password_file, url_secrets

# syslog(3) priorities of the levels
PRIORITIES = {"DEBUG": 7, "INFO": 6, "WARNING": 4, "ERROR": 3, "CRITICAL": 2}


class TextLines(logging.Formatter):
    """`2026-11-30T12:00:00.000Z WARNING camera line1 is offline: ...`; control characters are escaped, so that one
    event is one line whatever it quotes."""

    def __init__(self, under_systemd: bool) -> None:
        super().__init__()
        self._under_systemd = under_systemd

    def format(self, record: logging.LogRecord) -> str:
        text = "\n".join(printable(line) for line in super().format(record).split("\n"))
        if self._under_systemd:
            return f"<{PRIORITIES.get(record.levelname, 6)}>{text}"
        return f"{rfc3339(record.created)} {record.levelname:<7} {text}"


class JsonLines(logging.Formatter):
    """One JSON object a line: at, level, logger, message, and trace after an error."""

    def format(self, record: logging.LogRecord) -> str:
        event = {
            "at": rfc3339(record.created),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        if record.exc_info or record.exc_text:
            event["trace"] = record.exc_text or self.formatException(record.exc_info)  # type: ignore[arg-type]
        return json.dumps(event)


def printable(text: str) -> str:
    """`text` with control characters, lone surrogates and direction marks as escapes."""
    return "".join(c if c.isprintable() or c == "\t" else c.encode("unicode_escape").decode("ascii") for c in text)


def start_logging(
    config: LogConfig, secrets: Secrets, stream: TextIO = sys.stderr, environ: Mapping[str, str] = os.environ
) -> None:
    """Sends the log of the whole process to `stream`, without secrets; replaces what was set before."""
    lines = logging.StreamHandler(stream)
    lines.setFormatter(JsonLines() if config.format == "json" else TextLines("JOURNAL_STREAM" in environ))
    lines.addFilter(secrets)
    logging.basicConfig(handlers=[lines], level=config.level.upper(), force=True)
    logging.captureWarnings(capture=True)


def secrets_of(config: Config) -> Secrets:
    """Every secret that the configuration holds or names a file for; ConfigError for a file that cannot be used."""
    secrets = Secrets(secret for camera in config.cameras.values() for secret in url_secrets(camera.source))
    secrets.register(config.mqtt.read_password() or "")
    files = (camera.password_file for camera in config.cameras.values() if camera.enabled)
    secrets.register(*(read_password_file(path) for path in files if path is not None))
    return secrets
