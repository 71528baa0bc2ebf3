"""Publisher: outbox to transport, one thread; the one place that decides what is offered again and what is given up.

What goes out leaves the outbox only when the other side has confirmed it. What was lost with a connection goes back to
its place and is offered again before anything newer, so that each camera's readings keep their order; it may arrive
twice, under the same id. When to connect again is the transport's business: this thread sleeps until it says so.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from queue import Queue

from edge_agent import messages
from edge_agent.errors import TransportError
from edge_agent.outbox.base import Entry, Outbox, is_state
from edge_agent.records import Message
from edge_agent.transports.base import Backoff, Inbound, Outcome, Transport

log = logging.getLogger(__name__)

# A message that ends the connection each time it is sent would block all that stand behind it. One that was the first
# of those lost ALONE_AFTER times in a row is sent alone; lost POISON_AFTER times, the last ones alone, it is given up.
ALONE_AFTER = 2
POISON_AFTER = 5
WARN_EVERY_S = 60.0
REPLAY_TURN_S = 0.02  # a limited backlog leaves in such steps


@dataclass(frozen=True)
class PublisherStats:
    """Counts since the start. `retries`: lost and offered again; `failed`: not taken when offered; `dead_lettered`:
    given up, refused or poison (the outbox counts each reason)."""

    delivered: int
    retries: int
    failed: int
    dead_lettered: int
    in_flight: int
    connected: bool
    cause: str | None


class Publisher:
    """Takes messages from `outbox` and offers them to `transport`, which it opens and closes.

    A result that waited longer than `historical_after_s` by `clock` (the outbox's) is marked historical; of those at
    most `replay_per_s` are sent a second (0: as many as go). `tell` hears (kind, text) of messages given up, and
    of those from outside that were not taken. `start`, `stop` and `stats` may be called from any thread.
    """

    def __init__(
        self,
        outbox: Outbox,
        transport: Transport,
        historical_after_s: float = 10.0,
        clock: Callable[[], float] = time.monotonic,
        backoff: Backoff | None = None,
        *,
        replay_per_s: float = 0.0,
        tell: Callable[[str, str], None] | None = None,
    ) -> None:
        self._outbox = outbox
        self._transport = transport
        self._historical_after_s = historical_after_s
        self._clock = clock
        self._backoff = backoff or Backoff(0.02, 2.0)
        self._replay = _Replay(replay_per_s) if replay_per_s > 0 else None
        self._tell = tell
        self._condition = threading.Condition()
        self._fed = False  # new data in the outbox
        self._news = False  # something was settled, the transport is ready, or the end is wanted
        self._stop_by: float | None = None
        self._settled: deque[tuple[int, Outcome, str]] = deque()
        self._in_flight: dict[int, Entry] = {}  # in the order of sending
        self._suspect: tuple[int, int] | None = None  # id, times it was the first of those lost
        self._delivered = self._retries = self._failed = self._dead_lettered = 0
        self._warned_at: float | None = None
        self._told_dropped = 0  # so many of those from outside
        self.fault: BrokenPipeError | None = None  # set when its thread ended because nobody will ever read on
        self._thread = threading.Thread(target=self._run, name="publisher", daemon=True)

    def start(self) -> None:
        """Opens the transport and begins; returns at once."""
        self._outbox.watch(self._on_put)
        self._transport.open(self._on_ready)
        self._thread.start()

    def stop(self, farewell: Message | None, timeout_s: float) -> None:
        """Delivers what it can within `timeout_s` while connected, then closes the transport with `farewell`.

        What is left stays in the outbox. A quarter of the time, and all that is left over, is the farewell's.
        """
        began = time.monotonic()
        with self._condition:
            self._stop_by = self._clock() + 0.75 * timeout_s
            self._news = True
            self._condition.notify()
        if self._thread.is_alive():
            self._thread.join(timeout_s)
        self._transport.close(farewell, max(0.0, began + timeout_s - time.monotonic()))
        self._take_settled()

    @property
    def alive(self) -> bool:
        """Whether its thread runs; False after an error that nobody foresaw."""
        return self._thread.is_alive()

    @property
    def inbound(self) -> Queue[Inbound]:
        """What came from outside."""
        return self._transport.inbound

    @property
    def inbound_dropped(self) -> int:
        """Messages from outside that were not taken."""
        return self._transport.inbound_dropped

    def stats(self) -> PublisherStats:
        return PublisherStats(
            delivered=self._delivered,
            retries=self._retries,
            failed=self._failed,
            dead_lettered=self._dead_lettered,
            in_flight=len(self._in_flight),
            connected=self._transport.connected,
            cause=self._transport.cause,
        )

    # Called from other threads: they only leave a note

    def _on_put(self) -> None:
        with self._condition:
            self._fed = True
            self._condition.notify()

    def _on_ready(self) -> None:
        with self._condition:
            self._news = True
            self._condition.notify()

    def _on_settled(self, entry_id: int, outcome: Outcome, reason: str) -> None:
        self._settled.append((entry_id, outcome, reason))
        self._on_ready()

    # The publisher's thread

    def _run(self) -> None:
        try:
            self._deliver()
        except BrokenPipeError as exc:
            self.fault = exc

    def _deliver(self) -> None:
        while True:
            any_lost = self._take_settled()
            self._tell_dropped()
            if self._finished():
                return
            if any_lost:
                self._rest(self._backoff.next_s())
            elif self._offer():
                self._await_work()

    def _offer(self) -> bool:
        """Offers what there is room for; True when there is nothing more to do until something happens."""
        room = self._transport.room
        if self._suspect is not None and self._suspect[1] >= ALONE_AFTER:
            room = min(room, 0 if self._in_flight else 1)
        if room <= 0:
            return True
        entries = self._claim(room)
        for n, entry in enumerate(entries):
            self._in_flight[entry.id] = entry
            try:
                self._transport.send(self._aged(entry), partial(self._on_settled, entry.id))
            except TransportError as exc:
                log.debug("%s", exc)
                self._failed += 1
                for unsent in entries[n:]:
                    self._in_flight.pop(unsent.id, None)
                self._outbox.requeue(unsent.id for unsent in entries[n:])
                self._take_settled()
                self._rest(self._backoff.next_s())
                return False
        return not entries

    def _claim(self, room: int) -> list[Entry]:
        if self._replay is None:
            return self._outbox.claim(room)
        allowed = self._replay.allowed()
        entries = self._outbox.claim(room, allowed)
        self._replay.took(sum(map(self._is_historical, entries)), allowed)
        return entries

    def _take_settled(self) -> bool:
        """Tells the outbox how offers ended; True when some were lost."""
        done: list[int] = []
        lost: list[int] = []
        while self._settled:
            entry_id, outcome, reason = self._settled.popleft()
            if outcome is Outcome.DELIVERED:
                done.append(entry_id)
            elif outcome is Outcome.LOST:
                lost.append(entry_id)
            else:
                self._give_up(entry_id, "refused", reason)
        self._outbox.done(done)
        self._delivered += len(done)
        for entry_id in done:
            self._in_flight.pop(entry_id, None)
        if done:
            self._backoff.reset()
        if self._suspect is not None and self._suspect[0] in done:
            self._suspect = None
        if lost:
            self._take_lost(lost)
        return bool(lost)

    def _take_lost(self, lost: list[int]) -> None:
        alone = len(self._in_flight) == 1
        first = next((entry_id for entry_id in self._in_flight if entry_id in lost), lost[0])
        times = self._suspect[1] + 1 if self._suspect is not None and self._suspect[0] == first else 1
        self._suspect = (first, times)
        if times >= POISON_AFTER and alone:
            lost.remove(first)
            size_bytes = len(self._in_flight[first].message.payload)
            detail = f"the connection was lost {times} times while its {size_bytes} bytes were being sent"
            self._give_up(first, "poison", f"{detail}; does the broker limit the size of a message?")
        for entry_id in lost:
            self._in_flight.pop(entry_id, None)
        self._retries += len(lost)
        self._outbox.requeue(lost)

    def _give_up(self, entry_id: int, reason: str, detail: str) -> None:
        entry = self._in_flight.pop(entry_id, None)
        if self._suspect is not None and self._suspect[0] == entry_id:
            self._suspect = None
        self._outbox.drop([entry_id], reason, detail)
        self._dead_lettered += 1
        now = time.monotonic()
        if self._warned_at is None or now - self._warned_at >= WARN_EVERY_S:
            self._warned_at = now
            topic = "a message" if entry is None else entry.message.topic
            log.warning("%s given up (%s; %d so far): %s", topic, reason, self._dead_lettered, detail)
        if self._tell is not None and entry is not None and entry.message.topic != messages.EVENT_TOPIC:
            self._tell("dead_letter", f"{entry.message.topic} given up ({reason}): {detail}")

    def _tell_dropped(self) -> None:
        """Looked at with whatever leaves, telemetry at the latest: who floods this device does not keep it awake."""
        count = self._transport.inbound_dropped
        if self._tell is not None and count > self._told_dropped:
            self._told_dropped = count
            why = "too many came at once, or one was larger than mqtt.max_payload_bytes"
            self._tell("inbound_dropped", f"messages to this device not taken since it started: {count}; {why}")

    def _aged(self, entry: Entry) -> Message:
        return messages.as_historical(entry.message) if self._is_historical(entry) else entry.message

    def _is_historical(self, entry: Entry) -> bool:
        return not is_state(entry.message) and self._clock() - entry.queued_mono >= self._historical_after_s

    def _finished(self) -> bool:
        if self._stop_by is None:
            return False
        nothing_left = not self._in_flight and self._outbox.stats().depth == 0
        return nothing_left or not self._transport.connected or self._clock() >= self._stop_by

    def _await_work(self) -> None:
        """Sleeps until there is new data or news; while stopping, at most until the deadline; while the backlog may not
        go faster, until some more of it may."""
        with self._condition:
            timeout_s = None if self._stop_by is None else max(0.0, self._stop_by - self._clock())
            if self._replay is not None and self._replay.held_back:
                timeout_s = min(REPLAY_TURN_S, REPLAY_TURN_S if timeout_s is None else timeout_s)
            self._condition.wait_for(lambda: self._fed or self._news, timeout_s)
            self._fed = self._news = False

    def _rest(self, delay_s: float) -> None:
        """Sleeps that long, or until there is news; new data alone does not end a back-off."""
        with self._condition:
            self._condition.wait_for(lambda: self._news, delay_s)
            self._news = False


class _Replay:
    """How much of the backlog may go: `per_s`, saved up for at most a quarter of a second."""

    def __init__(self, per_s: float) -> None:
        self._per_s = per_s
        self._most = max(1.0, per_s / 4)
        self._saved = self._most
        self._counted_mono = time.monotonic()
        self.held_back = False  # more might have gone

    def allowed(self) -> int:
        """So many may go now."""
        now_mono = time.monotonic()
        self._saved = min(self._most, self._saved + (now_mono - self._counted_mono) * self._per_s)
        self._counted_mono = now_mono
        return int(max(0.0, self._saved))

    def took(self, count: int, allowed: int) -> None:
        """So many went, of those allowed."""
        self._saved -= count
        self.held_back = count >= allowed
