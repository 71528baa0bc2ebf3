"""Outbox in memory: what waits is lost with the process."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable

from edge_agent.outbox.base import Entry, OutboxStats, cost_bytes
from edge_agent.outbox.counts import Counts
from edge_agent.outbox.lanes import Lanes
from edge_agent.outbox.ledger import Ledger
from edge_agent.records import Message

log = logging.getLogger(__name__)


class MemoryOutbox:
    """An Outbox in memory.

    `max_bytes` bounds the memory taken (payload, topic and ENTRY_OVERHEAD_BYTES each), `max_age_s` the time waited by
    `clock` (monotonic seconds: a jump of the wall clock purges nothing). The oldest unclaimed message goes first;
    states do not age, and are pushed out only when nothing else is left.
    """

    fault: str | None = None

    def __init__(
        self,
        max_bytes: int,
        max_age_s: float,
        clock: Callable[[], float] = time.monotonic,
        *,
        unix: Callable[[], float] = time.time,
        live_for_s: float = 10.0,
        live_first: bool = True,
    ) -> None:
        self._max_bytes = max_bytes
        self._max_age_s = max_age_s
        self._clock = clock
        self._unix = unix
        self._live_first = live_first
        self._lock = threading.Lock()
        self._lanes = Lanes(live_for_s, clock)
        self._counts = Counts()
        self._last_id = 0
        self._on_put: Callable[[], None] | None = None

    def put(self, message: Message) -> None:
        with self._lock:
            self._last_id += 1
            entry = Entry(self._last_id, message, self._clock(), self._unix())
            self._counts.came(entry)
            if cost_bytes(message) > self._max_bytes:
                self._counts.given_up(entry, "too_large")
                return
            self._lanes.add(entry)
            self._purge()
        if self._on_put is not None:
            self._on_put()

    def claim(self, limit: int, replay: int | None = None) -> list[Entry]:
        with self._lock:
            self._purge()
            taken = self._lanes.claim_states(limit)
            if self._live_first:
                taken += self._lanes.claim_live(limit - len(taken), self._last_id)
            most = limit if replay is None else min(limit, len(taken) + replay)
            while len(taken) < most and (entry := self._lanes.claim_backlog(self._last_id)) is not None:
                taken.append(entry)
            if not self._live_first and not self._lanes.any_backlog:
                taken += self._lanes.claim_live(limit - len(taken), self._last_id)
            return taken

    def done(self, ids: Iterable[int]) -> None:
        with self._lock:
            for i in ids:
                entry = self._lanes.settle(i)
                if entry is not None:
                    self._counts.delivered(entry)

    def requeue(self, ids: Iterable[int]) -> None:
        with self._lock:
            self._lanes.requeue(ids)
            self._purge()

    def drop(self, ids: Iterable[int], reason: str, detail: str = "") -> None:
        with self._lock:
            for i in ids:
                entry = self._lanes.settle(i)
                if entry is not None:
                    self._counts.given_up(entry, reason)

    def revive(self) -> int:
        return 0  # what was given up is not kept

    def watch(self, on_put: Callable[[], None]) -> None:
        self._on_put = on_put

    def stats(self) -> OutboxStats:
        with self._lock:
            self._purge()
            oldest = self._lanes.oldest()
            return OutboxStats(
                depth=len(self._lanes),
                claimed=len(self._lanes.claimed),
                bytes=self._lanes.bytes,
                disk_bytes=0,
                unwritten=sum(1 for _ in self._lanes.readings()),
                oldest_age_s=None if oldest is None else self._clock() - oldest.queued_mono,
                dropped=dict(self._counts.dropped),
                fault=None,
            )

    def ledger(self) -> Ledger:
        with self._lock:
            return self._counts.ledger.copy()

    def next_seq(self, camera: str) -> int:
        with self._lock:
            return self._counts.ledger.next_seq(camera)

    def close(self) -> None:
        """Says how many readings end with this process, undelivered; nothing is to be released."""
        with self._lock:
            left = sum(1 for _ in self._lanes.readings())
            self._lanes.clear()
        if left:
            log.warning("%d readings were not delivered and are lost with this process", left)

    def _purge(self) -> None:
        """Drops what is too old, then the oldest until the rest fits; claimed messages stay."""
        for entry in self._lanes.aged():
            self._lanes.add_to_backlog(entry)
        limit_mono = self._clock() - self._max_age_s
        while (first := self._lanes.first_backlog) is not None and first.queued_mono < limit_mono:
            self._drop_oldest("too_old")
        while self._lanes.bytes > self._max_bytes and self._drop_oldest("outbox_full"):
            pass

    def _drop_oldest(self, reason: str) -> bool:
        entry = self._lanes.take_oldest() or self._lanes.take_oldest_state()
        if entry is not None:
            self._counts.given_up(entry, reason)
        return entry is not None
