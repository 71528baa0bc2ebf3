"""Outbox on disk: readings outlive the process, and a power cut takes at most what came within the flush window.

`put` leaves a reading in memory and wakes the writer, the one thread that writes. It puts everything that came, left
and was counted since the last time into one transaction: at once after a quiet moment, then every `flush_s`. A reading
is offered to nobody before it is on disk, and its row goes after it was confirmed. In memory stay the readings that
are still live, and those under way; the backlog is read from disk in pieces as it leaves.

When the disk fails, everything goes on from memory, as far as `max_memory_bytes` reach; the writer tries again every
RETRY_S, and what waits in memory then moves to disk.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from edge_agent.clock import DeviceClock
from edge_agent.outbox.ages import Ages
from edge_agent.outbox.base import Entry, OutboxStats, cost_bytes, is_state
from edge_agent.outbox.counts import Counts
from edge_agent.outbox.lanes import Lanes
from edge_agent.outbox.ledger import Ledger
from edge_agent.outbox.pending import Pending
from edge_agent.outbox.soundness import open_store, set_aside
from edge_agent.outbox.store import DAMAGED, Batch, DeadLetter, Store, StoreDamaged, StoreUnavailable
from edge_agent.records import Message

log = logging.getLogger(__name__)

RETRY_S = 5.0
HANG_S = 10.0  # a write that takes longer is one that fails
LAZY_S = 1.0  # deliveries and counts wait so long for a reading to be written with; losing them repeats a delivery
PURGE_EVERY_S = 30.0
CLOSE_S = 5.0
FILL_READINGS = 256  # of the backlog, read at once
FILL_BYTES = 2_097_152  # and at most an eighth of what may be in memory
SLACK = 0.01  # of max_bytes, freed beyond what is needed: so that not every reading pushes one out
FULL_EVERY_S = 3600.0  # that readings are pushed out is said so often

# What happened, for whoever looks after the device: kind and text.
Tell = Callable[[str, str], None]


@dataclass(frozen=True)
class Limits:
    """Bounds of an outbox on disk: of the file's pages in use, of what waits in memory, of a reading's age; how long
    readings may be unwritten, count as live, and whether live ones go first; when a disk that failed is tried again."""

    max_bytes: int = 268_435_456
    max_memory_bytes: int = 67_108_864
    max_age_s: float = 604_800.0
    flush_s: float = 0.2
    live_for_s: float = 10.0
    live_first: bool = True
    retry_s: float = RETRY_S


class DiskOutbox:
    """An Outbox in an SQLite file at `path`; beyond its bounds the oldest reading goes first. `tell` is called from the
    writer's thread."""

    def __init__(self, path: Path, clock: DeviceClock, tell: Tell, limits: Limits | None = None) -> None:
        self._limits = limits = limits or Limits()
        self._path = path
        self._clock = clock
        self._tell = tell
        self._fill_bytes = min(FILL_BYTES, limits.max_memory_bytes // 8)
        self._max_memory_bytes = limits.max_memory_bytes - self._fill_bytes
        self._ages = Ages(clock)
        # _reading before _lock where both are taken: rows found on disk are compared with what is in memory before
        # the writer forgets what it has deleted
        self._reading = threading.Lock()
        self._lock = threading.Lock()
        self._wake = threading.Condition(self._lock)
        self._announced = threading.Condition(self._lock)
        self._lanes = Lanes(limits.live_for_s, clock.monotonic)
        self._counts = Counts()
        self._pending = Pending()
        self._last_id = self._announced_id = 0
        self._written_id = 0  # every reading up to here that is still wanted is on disk
        self._revived_of: Store | None = None  # whose dead letters wait again, up to this row
        self._revived_row = 0
        self._on_disk = 0  # readings that are not in memory
        self._cursor = 0  # up to here rows were looked at; those that are not in memory have higher ids
        self._evicted_id = 0  # the newest of those
        self._disk_bytes = 0
        self._fault: str | None = None
        self._damage: str | None = None  # found while reading
        self._condemned: str | None = None  # why the file is to be moved aside before the next is opened
        # when last, by time.monotonic
        self._flushed_mono = self._wrote_mono = self._purged_mono = self._full_said_mono = float("-inf")
        self._urgent = self._closing = False
        self._on_put: Callable[[], None] = _nothing
        self._news: list[tuple[str, str]] = []
        self._store: Store | None = None
        self._try_to_open()
        self._thread = threading.Thread(target=self._write_on, name="outbox", daemon=True)
        self._thread.start()

    # The contract

    def put(self, message: Message) -> None:
        with self._lock:
            self._last_id += 1
            now_mono, now, trusted = self._clock.monotonic(), self._clock.unix(), self._clock.trusted()
            entry = Entry(self._last_id, message, now_mono, now, trusted)
            self._counts.came(entry)
            claimable = is_state(message)
            if claimable:
                self._lanes.add(entry)
            elif not self._take(entry):
                return
            else:
                self._await_disk(entry)
                claimable = self._fault is not None
        if claimable:
            self._on_put()
        elif self._pending.is_writing and time.monotonic() - self._flushed_mono > HANG_S:
            self._fail(f"{self._path} cannot be written: the disk has not answered for {HANG_S:g} s")
            self._say_news()  # the writer cannot

    def claim(self, limit: int, replay: int | None = None) -> list[Entry]:
        with self._lock:
            self._age()
            taken = self._lanes.claim_states(limit)
            if self._limits.live_first:
                taken += self._lanes.claim_live(limit - len(taken), self._claimable_id)
        most = limit if replay is None else min(limit, len(taken) + replay)
        while len(taken) < most and (entry := self._claim_backlog()) is not None:
            taken.append(entry)
        if not self._limits.live_first and len(taken) < limit:
            with self._lock:
                if not self._lanes.any_backlog and self._on_disk == 0:
                    taken += self._lanes.claim_live(limit - len(taken), self._claimable_id)
        return taken

    def done(self, ids: Iterable[int]) -> None:
        with self._lock:
            for i in ids:
                entry = self._lanes.settle(i)
                if entry is not None:
                    self._counts.delivered(entry)
                    self._delete(entry)

    def requeue(self, ids: Iterable[int]) -> None:
        with self._lock:
            self._lanes.requeue(ids, self._evicted_id)
            self._leave_to_disk()

    def drop(self, ids: Iterable[int], reason: str, detail: str = "") -> None:
        with self._lock:
            for i in ids:
                entry = self._lanes.settle(i)
                if entry is None:
                    continue
                self._give_up(entry, reason)
                if not is_state(entry.message):
                    self._pending.dead.append(DeadLetter(self._clock.unix(), reason, detail, entry.message))
            self._wake.notify()

    def revive(self) -> int:
        with self._reading:
            store = self._store
            if store is None:
                return 0
            after = self._revived_row if store is self._revived_of else 0
            try:
                row, messages = store.given_up(after)
            except (StoreUnavailable, StoreDamaged) as exc:
                log.warning("what was given up cannot be read: %s", exc)
                return 0
        for message in messages:
            self.put(message)
        with self._lock:  # the old rows go with the new ones, or after them
            self._revived_of, self._revived_row = store, max(after, row)
            self._pending.forget_row = self._revived_row
            self._wake.notify()
        return len(messages)

    def watch(self, on_put: Callable[[], None]) -> None:
        self._on_put = on_put

    def stats(self) -> OutboxStats:
        with self._lock:
            self._age()
            must_look = self._oldest_is_on_disk()
        if must_look:
            self._fill(self._oldest_is_on_disk)
        with self._lock:
            oldest = self._lanes.oldest()
            return OutboxStats(
                depth=len(self._lanes) + self._on_disk,
                claimed=len(self._lanes.claimed),
                bytes=self._lanes.bytes,
                disk_bytes=self._disk_bytes,
                unwritten=len(self._pending),
                oldest_age_s=None if oldest is None else self._ages.of_s(oldest),
                dropped=dict(self._counts.dropped),
                fault=self._fault,
            )

    def ledger(self) -> Ledger:
        with self._lock:
            return self._counts.ledger.copy()

    @property
    def fault(self) -> str | None:
        return self._fault

    def next_seq(self, camera: str) -> int:
        with self._lock:
            return self._counts.ledger.next_seq(camera)

    def close(self) -> None:
        """Writes what is not written yet; says how many readings wait for the next start, or are lost."""
        with self._lock:
            if self._closing:
                return
            self._closing = True
            self._wake.notify()
            self._announced.notify_all()
        self._thread.join(CLOSE_S)
        if self._thread.is_alive():
            log.warning("%s: the disk does not answer; leaving what is not written", self._path)
            return
        with self._reading, self._lock:
            lost, kept = len(self._pending), self._counts.ledger.queued
            store, self._store = self._store, None
            self._lanes.clear()
            self._on_disk = 0
        if store is not None:
            store.close()
        if lost:
            log.warning("%d readings were not delivered and are lost with this process: %s", lost, self._fault)
        if kept > lost:
            log.info("%d readings wait in %s for the next start", kept - lost, self._path)

    # With the lock held

    @property
    def _claimable_id(self) -> int:
        """Up to here readings may be offered."""
        return self._written_id if self._fault is None else self._last_id

    def _oldest_is_on_disk(self) -> bool:
        """Whether what has waited longest is there alone."""
        return self._on_disk > 0 and not self._comes_first(self._lanes.oldest())

    def _backlog_is_on_disk(self) -> bool:
        """Whether the oldest reading of the backlog is there alone."""
        return self._on_disk > 0 and not self._comes_first(self._lanes.first_backlog)

    def _comes_first(self, entry: Entry | None) -> bool:
        """Whether it came before all that is on disk alone."""
        return entry is not None and entry.id <= self._cursor

    def _take(self, entry: Entry) -> bool:
        if cost_bytes(entry.message) > min(self._limits.max_bytes, self._max_memory_bytes) // 2:
            self._count_drop(entry, "too_large")
            return False
        self._lanes.add(entry)
        if not self._pending.unwritten:
            self._wake.notify()
        self._pending.add(entry)
        if self._pending.unwritten_bytes > self._max_memory_bytes // 4 and not self._urgent and self._fault is None:
            self._urgent = True  # more than the flush window was meant to hold
            self._wake.notify()
        self._age()
        while self._lanes.bytes > self._max_memory_bytes and self._relieve_memory():
            pass
        return True

    def _await_disk(self, entry: Entry) -> None:
        if self._limits.flush_s == 0 and threading.current_thread() is not self._thread:
            self._announced.wait_for(lambda: self._announced_id >= entry.id or self._fault or self._closing, HANG_S)

    def _age(self) -> None:
        for entry in self._lanes.aged():
            self._evict(entry)

    def _evict(self, entry: Entry) -> bool:
        """Leaves a reading that was taken out of its lane to the disk; False where it has to stay in memory."""
        if entry.id <= self._cursor or not self._is_written(entry.id):
            self._lanes.add_to_backlog(entry)
            return False
        self._on_disk += 1
        self._evicted_id = max(self._evicted_id, entry.id)
        return True

    def _leave_to_disk(self) -> None:
        """Keeps of the backlog only in memory what reading on from the cursor would not find."""
        for entry in list(self._lanes.backlog_above(self._cursor)):
            self._evict(entry)

    def _is_written(self, id_: int) -> bool:
        return id_ <= self._written_id and not self._pending.holds(id_)

    def _relieve_memory(self) -> bool:
        """Makes some room in memory; the oldest live reading is on disk too, unless the disk fails or is too slow."""
        entry = self._lanes.take_oldest_live()
        if entry is not None and self._evict(entry):
            return True
        oldest = self._lanes.take_oldest()
        if oldest is not None:
            self._give_up(oldest, "outbox_full")
        return oldest is not None

    def _delete(self, entry: Entry) -> None:
        if not is_state(entry.message) and self._pending.delete(entry.id):
            self._wake.notify()

    def _give_up(self, entry: Entry, reason: str) -> None:
        self._count_drop(entry, reason)
        self._delete(entry)

    def _count_drop(self, entry: Entry, reason: str) -> None:
        self._counts.given_up(entry, reason)
        now = time.monotonic()
        if reason == "outbox_full" and now - self._full_said_mono >= FULL_EVERY_S:
            self._full_said_mono = now
            text = "the outbox is full: the oldest readings are dropped, and counted in the ledger"
            log.warning("%s", text)
            self._news.append(("outbox_full", text))
            self._wake.notify()

    # Reading from disk

    def _claim_backlog(self) -> Entry | None:
        """The oldest reading of the backlog, claimed; too old ones are dropped on the way."""
        while self._look_at_backlog():
            with self._lock:
                entry = self._lanes.claim_backlog(self._claimable_id)
                if entry is None:
                    return None
                if self._ages.of_s(entry) <= self._limits.max_age_s:
                    return entry
                self._lanes.settle(entry.id)
                self._give_up(entry, "too_old")
        return None

    def _look_at_backlog(self) -> bool:
        """Sees to it that the oldest reading of the backlog is in memory; False where there is none."""
        while True:
            with self._lock:
                first = self._lanes.first_backlog
                if not self._backlog_is_on_disk():
                    return first is not None
            if not self._fill(self._backlog_is_on_disk):
                return first is not None

    def _fill(self, needed: Callable[[], bool]) -> bool:
        """Reads on where the last time ended; False where the disk cannot be read. Where another thread has just done
        so it may not be `needed` any more: memory would fill beyond its bound."""
        with self._reading:
            with self._lock:
                if not needed():
                    return True
                store, after = self._store, self._cursor
                end, first_live = self._written_id + 1, self._lanes.first_live_id
            if store is None:
                return False
            try:
                before = end if first_live is None else min(end, first_live)
                entries, at_end = store.read(after, before, FILL_READINGS, self._fill_bytes)
            except (StoreUnavailable, StoreDamaged) as exc:
                self._note_unreadable(exc)
                return False
            with self._lock:
                for entry in entries:
                    self._cursor = entry.id
                    if self._is_known(entry.id):
                        continue
                    self._on_disk -= 1
                    if entry.message.payload == DAMAGED:
                        self._give_up(entry, "damaged")
                    else:
                        self._lanes.add_to_backlog(entry)
                if at_end:
                    self._on_disk = 0
            return True

    def _is_known(self, id_: int) -> bool:
        """Whether a row found on disk is under way, or was and is still to be deleted."""
        return id_ in self._lanes.claimed or self._pending.is_leaving(id_)

    def _note_unreadable(self, exc: Exception) -> None:
        with self._lock:
            if isinstance(exc, StoreDamaged):
                self._damage = f"is damaged ({exc})"
                self._urgent = True
                self._wake.notify()
        log.debug("%s cannot be read: %s", self._path, exc)

    # The writer's thread

    def _write_on(self) -> None:
        while True:
            with self._lock:
                while not self._closing and (wait_s := self._due_mono() - time.monotonic()) > 0:
                    self._wake.wait(wait_s)
                ending = self._closing
                self._urgent = False
            if self._store is None:
                self._try_to_open()
            self._purge()
            self._flush()
            self._say_news()
            if ending:
                return

    def _due_mono(self) -> float:
        """When something is to be done next."""
        if self._urgent or self._news:
            return float("-inf")
        if self._fault is not None:
            return self._flushed_mono + self._limits.retry_s
        if self._pending.unwritten:
            return self._wrote_mono + self._limits.flush_s
        if self._pending.can_wait or self._counts.ledger.any_changed:
            return self._flushed_mono + max(self._limits.flush_s, LAZY_S)
        return max(self._purged_mono, self._flushed_mono) + PURGE_EVERY_S

    def _flush(self) -> None:
        """One transaction with all that changed since the last."""
        self._flushed_mono = time.monotonic()
        with self._lock:
            store, damage, self._damage = self._store, self._damage, None
            last_id = self._last_id
            batch = self._pending.batch(self._counts.ledger)
            if batch.arrived:
                self._wrote_mono = self._flushed_mono
        if store is None:
            self._take_back(batch)
            return
        if damage is not None:
            self._take_back(batch)
            self._begin_anew(store, damage)
            return
        try:
            store.write(batch)
            used_bytes = store.used_bytes()
        except StoreUnavailable as exc:
            store.make_room()
            self._take_back(batch)
            self._fail(f"{self._path} cannot be written: {exc}")
        except StoreDamaged as exc:
            self._take_back(batch)
            self._begin_anew(store, f"cannot be used any more ({exc})")
        else:
            self._settle(last_id, used_bytes)
            with self._lock:
                if batch.revived == self._revived_row:
                    self._revived_row = 0  # they are gone, and their numbers may be given anew
            self._keep_to_size(used_bytes)

    def _take_back(self, batch: Batch) -> None:
        with self._lock:
            self._pending.take_back(batch, self._counts.ledger)

    def _settle(self, last_id: int, used_bytes: int) -> None:
        """What was written may be offered now, and what aged meanwhile need not stay in memory."""
        with self._reading, self._lock:
            any_new = self._pending.written()
            self._written_id = last_id
            self._disk_bytes = used_bytes
            recovered, self._fault = self._fault, None
            self._leave_to_disk()
        if recovered is not None:
            log.warning("%s can be written again; what waited in memory is on disk now", self._path)
            self._news.append(("outbox_on_disk", f"{self._path} can be written again"))
        if any_new:
            self._on_put()
        with self._lock:
            self._announced_id = last_id
            self._announced.notify_all()

    def _keep_to_size(self, used_bytes: int) -> None:
        """Drops the oldest readings until the pages in use fit; the next transaction deletes them."""
        over_bytes = used_bytes - self._limits.max_bytes
        if over_bytes <= 0:
            return
        over_bytes += int(self._limits.max_bytes * SLACK)
        while over_bytes > 0 and (entry := self._take_oldest()) is not None:
            over_bytes -= cost_bytes(entry.message)
            with self._lock:
                self._give_up(entry, "outbox_full")
                self._urgent = True

    def _take_oldest(self) -> Entry | None:
        self._look_at_backlog()
        with self._lock:
            return self._lanes.take_oldest()

    def _purge(self) -> None:
        """Drops readings that are too old, now and then."""
        now = time.monotonic()
        if now - self._purged_mono < PURGE_EVERY_S:
            return
        self._purged_mono = now
        with self._lock:
            self._age()
        while self._look_at_backlog():
            with self._lock:
                first = self._lanes.first_backlog
                if first is None or self._ages.of_s(first) <= self._limits.max_age_s:
                    return
                self._lanes.take_oldest()
                self._give_up(first, "too_old")

    def _fail(self, why: str) -> None:
        with self._lock:
            known, self._fault = self._fault, why
            self._announced.notify_all()
        if known is None:
            log.warning("%s; readings are kept in memory until it can", why)
            self._news.append(("outbox_in_memory", f"{why}; readings are kept in memory"))
            self._on_put()

    def _say_news(self) -> None:
        news, self._news = self._news, []
        for kind, text in news:
            self._tell(kind, text)

    # Opening, and beginning anew

    def _try_to_open(self) -> None:
        try:
            if self._condemned is not None:
                self._news.append(("outbox_replaced", set_aside(self._path, self._condemned)))
                self._condemned = None
            opened = open_store(self._path, self._clock.boot_id)
            rows = opened.store.ledger()
        except (StoreUnavailable, StoreDamaged) as exc:
            self._flushed_mono = time.monotonic()
            self._fail(str(exc))
            return
        for finding in opened.findings:
            log.warning("%s", finding)
            self._news.append(("outbox_replaced", finding))
        with self._reading, self._lock:
            self._store = opened.store
            self._counts.ledger.merge(rows)
            self._on_disk = sum(row.queued for row in rows)
            self._cursor = min([opened.store.first_id, *self._pending.unwritten]) - 1
        if self._on_disk:
            log.info("%d readings of before wait in %s", self._on_disk, self._path)

    def _begin_anew(self, store: Store, why: str) -> None:
        """Gives the file up; all that is in memory goes into the next one, the rest is counted as dropped."""
        log.warning("%s %s; a new one is begun", self._path, why)
        with self._reading, self._lock:
            self._store, self._condemned = None, why
            self._pending.begin_anew(self._lanes.readings())
            present = Counter((entry.source, entry.day) for entry in self._pending.unwritten.values())
            lost = self._counts.ledger.lose_all_but(present, "damaged")
            if lost:
                self._counts.dropped["damaged"] += lost
            self._counts.ledger.mark_changed()
            self._on_disk = self._evicted_id = 0
            self._urgent = True
        store.close()


def _nothing() -> None:
    pass
