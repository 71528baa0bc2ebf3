"""SeenIds: the commands that came, by id, on disk: each runs once, also across restarts and redelivery."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal

from edge_agent.cameras.base import Clock
from edge_agent.cameras.repeat_log import RepeatLog
from edge_agent.files import write_atomically

log = logging.getLogger(__name__)

VERSION = 1
FILE = "commands.json"
PRIVATE = 0o600
MAX_BODY_BYTES = 4096  # of an answer that is remembered whole
MAX_BODIES_BYTES = 16_384  # of all of them, the newest first: the whole file is written for each command


@dataclass(frozen=True)
class Seen:
    """A command: `state` accepted while it is under way; `body` the members of its answer, {} where they were large
    or many came since."""

    id: str
    name: str
    state: Literal["accepted", "done", "failed"]
    body: Mapping[str, Any]
    at: float


class SeenIds:
    """The newest `kept` commands, in the file `path`. Not for several threads. `clock` gives unix seconds.

    A disk that takes nothing costs the memory across restarts, which is said, and no command.
    """

    def __init__(self, path: Path, kept: int, clock: Callable[[], float] = time.time) -> None:
        """Reads what is there; a damaged file is put aside, aloud."""
        self._path = path
        self._kept = kept
        self._clock = clock
        self._journal = RepeatLog(log, Clock())
        self._seen: dict[str, Seen] = {each.id: each for each in self._read()}

    def get(self, command_id: str) -> Seen | None:
        """What is known of a command; None for a new one."""
        return self._seen.get(command_id)

    def under_way(self) -> list[Seen]:
        """Commands that were accepted and have no end, oldest first."""
        return [each for each in self._seen.values() if each.state == "accepted"]

    def accept(self, command_id: str, name: str, *, at_once: bool = True) -> None:
        """Notes a command before it runs: on disk when this returns, where the disk takes it; with `at_once` false,
        for one that may as well run twice, with its end. The oldest that have ended go first, then the oldest."""
        self._seen[command_id] = Seen(command_id, name, "accepted", {}, self._clock())
        while len(self._seen) > self._kept:
            ended = (each.id for each in self._seen.values() if each.state != "accepted")
            del self._seen[next(ended, next(iter(self._seen)))]
        if at_once:
            self._write()

    def end(self, command_id: str, state: Literal["done", "failed"], body: Mapping[str, Any]) -> None:
        """Notes how a command ended."""
        seen = self._seen.get(command_id)
        if seen is None:
            return  # so many came since that it is forgotten
        small = len(json.dumps(body)) <= MAX_BODY_BYTES
        self._seen[command_id] = replace(seen, state=state, body=body if small else {})
        self._forget_bodies()
        self._write()

    def forget(self, command_id: str) -> None:
        """The command was not run after all, and may come again."""
        if self._seen.pop(command_id, None) is not None:
            self._write()

    def _forget_bodies(self) -> None:
        """Keeps of old answers no more than that they were given."""
        left_bytes = MAX_BODIES_BYTES
        for each in reversed(list(self._seen.values())):
            left_bytes -= len(json.dumps(each.body)) if each.body else 0
            if left_bytes < 0 and each.body:
                self._seen[each.id] = replace(each, body={})

    def _read(self) -> list[Seen]:
        try:
            return _from_json(self._path.read_bytes())
        except FileNotFoundError:
            return []
        except OSError as exc:
            log.warning("%s cannot be read (%s): a command that comes again may run again", self._path, exc.strerror)
        except (ValueError, KeyError, TypeError, RecursionError) as exc:
            log.warning("%s is damaged (%s): a command that comes again may run again", self._path, exc)
            with suppress(OSError):
                self._path.replace(self._path.with_suffix(".damaged"))
        return []

    def _write(self) -> None:
        content = json.dumps({"v": VERSION, "commands": [asdict(each) for each in self._seen.values()]})
        try:
            write_atomically(self._path, content.encode(), PRIVATE)
        except OSError as exc:
            text = f"{self._path} cannot be written ({exc.strerror}): after a restart a command may run again"
            self._journal.write(logging.WARNING, "not written", text)


def _from_json(content: bytes) -> list[Seen]:
    """The inverse of what `_write` writes; ValueError, KeyError or TypeError for anything else."""
    values = json.loads(content)
    if values["v"] != VERSION:
        raise ValueError(f"version {values['v']!r}, expected {VERSION}")
    return [
        Seen(str(each["id"]), str(each["name"]), each["state"], each["body"], each["at"]) for each in values["commands"]
    ]
