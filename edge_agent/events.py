"""Events: what happened to the device, for whoever looks after it: one message each, seldom."""

from __future__ import annotations

import logging
import threading
import time
from collections import Counter
from collections.abc import Callable

from edge_agent import messages
from edge_agent.records import Message

log = logging.getLogger(__name__)

AGAIN_AFTER_S = 60.0  # of one kind; what comes sooner is counted, and said with the next
KEPT = 32  # said before there was an outbox to put them into


class Events:
    """Says events; every method may be called from any thread. What is said before `attach` waits for it.

    `keep` takes each one at once, wherever it goes to later. `clock` gives unix seconds, `monotonic` the seconds that
    repetitions are measured in.
    """

    def __init__(
        self,
        keep: Callable[[Message], None] = lambda _message: None,
        clock: Callable[[], float] = time.time,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._keep = keep
        self._clock = clock
        self._monotonic = monotonic
        self._lock = threading.Lock()
        self._put: Callable[[Message], None] | None = None
        self._early: list[Message] = []
        self._said_mono: dict[str, float] = {}
        self._unsaid: Counter[str] = Counter()

    def attach(self, put: Callable[[Message], None]) -> None:
        """From now on events go to `put`, those that wait first."""
        with self._lock:
            early, self._early, self._put = self._early, [], put
        for message in early:
            put(message)

    def say(self, kind: str, text: str) -> None:
        """Something of this kind happened; one message at once, then at most one a minute of a kind."""
        with self._lock:
            now_mono = self._monotonic()
            if now_mono - self._said_mono.get(kind, float("-inf")) < AGAIN_AFTER_S:
                self._unsaid[kind] += 1
                return
            self._said_mono[kind] = now_mono
            message = messages.event(kind, text, unsaid=self._unsaid.pop(kind, 0), at=self._clock())
            put = self._put
            if put is None:
                self._early = [*self._early, message][-KEPT:]
        self._keep(message)
        if put is not None:
            put(message)
