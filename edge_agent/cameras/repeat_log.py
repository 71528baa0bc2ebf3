"""Repeat log: the first of a kind is always written, those after it are counted and written now and then."""

from __future__ import annotations

import logging
import threading
from dataclasses import dataclass

from edge_agent.cameras.base import Clock

FIRST_SILENCE_S = 10.0
LONGEST_SILENCE_S = 600.0


@dataclass
class _Kind:
    silent_until: float
    silence_s: float
    unsaid: int = 0


class RepeatLog:
    """Rate limit per kind of message: silence after each doubles from 10 s to 10 min, with a count of what it hid.

    A kind that was quiet for as long as its silence starts afresh. Any thread may write.
    """

    def __init__(self, logger: logging.Logger, clock: Clock) -> None:
        self._logger = logger
        self._clock = clock
        self._lock = threading.Lock()
        self._kinds: dict[str, _Kind] = {}

    def write(self, level: int, kind: str, message: str) -> None:
        """Logs `message`, or counts it; `kind` must come from a small fixed set."""
        with self._lock:
            said = self._admit(kind, message)
        if said is not None:
            text, unsaid = said
            self._logger.log(level, "%s", text, extra={"kind": kind, "unsaid": unsaid})

    def _admit(self, kind: str, message: str) -> tuple[str, int] | None:
        """What to log now, and how many it stands for beside itself; None where it is counted instead."""
        now = self._clock.monotonic()
        known = self._kinds.get(kind)
        if known is None or (not known.unsaid and now >= known.silent_until + known.silence_s):
            self._kinds[kind] = _Kind(now + FIRST_SILENCE_S, FIRST_SILENCE_S)
            return message, 0
        if now < known.silent_until:
            known.unsaid += 1
            return None
        silence_s = min(known.silence_s * 2, LONGEST_SILENCE_S)
        self._kinds[kind] = _Kind(now + silence_s, silence_s)
        if not known.unsaid:
            return message, 0
        passed_s = now - known.silent_until + known.silence_s
        return f"{message} (and {known.unsaid} more like it in {passed_s:.0f} s)", known.unsaid
