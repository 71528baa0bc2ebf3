"""Ring: the newest messages of a kind, numbered, for whoever looks; the oldest go first."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from itertools import takewhile


@dataclass(frozen=True)
class Entry:
    """A message: `number` grows, also across restarts of the program; `camera` "" for one of the device itself;
    `payload` is a JSON object on one line."""

    number: int
    camera: str
    payload: bytes


class Ring:
    """At most `most` messages of at most `max_bytes` together; every method may be called from any thread.

    Who reads keeps a number of its own and asks for what came after it: one that is slow misses what went meanwhile,
    and costs nobody anything. `clock` gives unix seconds.
    """

    def __init__(self, most: int, max_bytes: int, clock: Callable[[], float] = time.time) -> None:
        self._most = most
        self._max_bytes = max_bytes
        self._lock = threading.Lock()
        self._entries: deque[Entry] = deque()
        self._bytes = 0
        self._last = int(clock() * 1000)  # a number from before a restart is smaller than any from after it
        self.dropped = 0

    @property
    def last(self) -> int:
        """The number of the newest message that came."""
        return self._last

    def append(self, camera: str, payload: bytes) -> None:
        """One more; the oldest go where there are too many, or too many bytes."""
        with self._lock:
            self._last += 1
            self._entries.append(Entry(self._last, camera, payload))
            self._bytes += len(payload)
            while len(self._entries) > self._most or (self._bytes > self._max_bytes and len(self._entries) > 1):
                self._bytes -= len(self._entries.popleft().payload)
                self.dropped += 1

    def after(self, number: int, camera: str | None = None, limit: int = 100) -> tuple[list[Entry], int, int]:
        """Of those that came after `number`, the first `limit` of a camera, None for any, oldest first; the number to
        ask after next time; and how many after `number` have gone already, of whatever camera."""
        with self._lock:
            first = self._entries[0].number if self._entries else self._last + 1
            newer = list(takewhile(lambda entry: entry.number > number, reversed(self._entries)))
            last = self._last
        found = [entry for entry in reversed(newer) if camera in (None, entry.camera)]
        going_on = found[limit - 1].number if len(found) > limit else max(number, last)
        return found[:limit], going_on, max(0, first - number - 1)

    def before(
        self,
        number: int | None,
        camera: str | None = None,
        limit: int = 100,
        wanted: Callable[[Entry], bool] = lambda entry: True,
    ) -> tuple[list[Entry], int | None]:
        """The newest `limit` that are `wanted` of a camera before `number`, None for the newest of all, newest first;
        and the number to ask before next time, None where nothing older is kept."""
        with self._lock:
            entries = list(self._entries)
        found: list[Entry] = []
        for entry in reversed(entries):
            if (number is not None and entry.number >= number) or camera not in (None, entry.camera):
                continue
            if wanted(entry):
                if len(found) == limit:
                    return found, found[-1].number
                found.append(entry)
        return found, None
