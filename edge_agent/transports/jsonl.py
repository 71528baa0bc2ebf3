"""JSON Lines: every message as one line `{"topic":...,"payload":...}` on stdout or in a file; for pipes and trials."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Callable
from pathlib import Path
from queue import Queue

from edge_agent.config import Config
from edge_agent.errors import ConfigError, TransportError
from edge_agent.records import Message, json_bytes
from edge_agent.transports.base import Inbound, Outcome, Settle

STDOUT_FD = 1
ROOM = 64  # offered at once: a line is written before `send` returns, so this only paces the publisher


class JsonlTransport:
    """A Transport that is always connected: what is written counts as delivered; nothing ever comes back.

    `path` None writes to stdout. `prefix` (`<base>/<device>/`) stands before each topic, as on a broker. A file is
    appended to. Raises ConfigError when it cannot be opened. Once the reader of stdout has gone (`| head`), `send`
    raises BrokenPipeError; that of a named pipe may come back, and is waited for.
    """

    def __init__(self, prefix: str, path: Path | None = None, birth: Callable[[], list[Message]] = list) -> None:
        self.inbound: Queue[Inbound] = Queue()
        self.inbound_dropped = 0
        self._prefix = prefix
        self._birth = birth
        self._owns_fd = path is not None
        self._cause: str | None = None
        self._torn = False  # the last line is incomplete
        try:
            flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
            self._fd = STDOUT_FD if path is None else os.open(path, flags, 0o600)
        except OSError as exc:
            raise ConfigError(f"{path} cannot be opened for writing: {exc.strerror}") from exc

    @classmethod
    def from_config(
        cls, config: Config, device_id: str, will: Message, birth: Callable[[], list[Message]]
    ) -> JsonlTransport:
        """The transport that a whole configuration asks for; nobody could say a will here."""
        return cls(f"{config.mqtt.base_topic}/{device_id}/", None, birth)

    def open(self, on_ready: Callable[[], None]) -> None:
        with contextlib.suppress(TransportError, BrokenPipeError):  # the publisher meets the same fault
            for message in self._birth():
                self.send(message, _forget)
        on_ready()

    @property
    def connected(self) -> bool:
        return True

    @property
    def cause(self) -> str | None:
        return self._cause

    @property
    def room(self) -> int:
        return ROOM

    def send(self, message: Message, settle: Settle) -> None:
        try:
            body = json.loads(message.payload)
        except (ValueError, RecursionError):
            settle(Outcome.REFUSED, f"{message.topic}: the payload is not JSON")
            return
        line = json_bytes({"topic": self._prefix + message.topic, "payload": body}) + b"\n"
        self._write(b"\n" + line if self._torn else line)
        settle(Outcome.DELIVERED, "")

    def close(self, farewell: Message | None, timeout_s: float) -> None:
        if self._fd < 0:
            return
        if farewell is not None:
            with contextlib.suppress(TransportError, BrokenPipeError):  # whoever read has gone
                self.send(farewell, _forget)
        if self._owns_fd:
            os.close(self._fd)
        self._fd = -1

    def _write(self, line: bytes) -> None:
        """Writes all of `line`; after a failure the next line starts anew, so that a reader loses one line at most."""
        rest = memoryview(line)
        try:
            while rest:
                rest = rest[os.write(self._fd, rest) :]
        except OSError as exc:
            if isinstance(exc, BrokenPipeError) and not self._owns_fd:
                raise
            self._torn = self._torn or 0 < len(rest) < len(line)
            self._cause = f"a line cannot be written: {exc.strerror}"
            raise TransportError(self._cause) from exc
        self._torn, self._cause = False, None


def _forget(outcome: Outcome, reason: str) -> None:
    """For messages that nobody offers again."""
