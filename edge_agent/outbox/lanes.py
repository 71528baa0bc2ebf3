"""Lanes: what of an outbox is in memory, by lane: states, live readings, and backlog; and what is claimed.

Not for several threads at once: the outbox's lock guards it.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from heapq import heappop, heappush

from edge_agent.outbox.base import Entry, cost_bytes, is_state

_Heap = list[tuple[int, Entry]]  # by id, and that is by the order of arrival


class Lanes:
    """`live_for_s` is how long a reading counts as live by `clock` (monotonic s)."""

    def __init__(self, live_for_s: float, clock: Callable[[], float]) -> None:
        self._live_for_s = live_for_s
        self._clock = clock
        self._states: OrderedDict[int, Entry] = OrderedDict()
        self._latest: dict[str, int] = {}  # topic -> id of its newest state, also after that one was delivered
        self._live: _Heap = []
        self._backlog: _Heap = []
        self.claimed: dict[int, Entry] = {}
        self.bytes = 0  # of everything here, claimed too

    def __len__(self) -> int:
        return len(self._states) + len(self._live) + len(self._backlog) + len(self.claimed)

    def readings(self) -> Iterator[Entry]:
        """Everything but states, claimed or not."""
        yield from (entry for _, entry in self._live)
        yield from (entry for _, entry in self._backlog)
        yield from (entry for entry in self.claimed.values() if not is_state(entry.message))

    def add(self, entry: Entry) -> None:
        """Takes a new message: a state in place of the one that waits on its topic, a reading behind the others."""
        self.bytes += cost_bytes(entry.message)
        if not is_state(entry.message):
            heappush(self._live, (entry.id, entry))
            return
        topic = entry.message.topic
        older = self._states.pop(self._latest.get(topic, 0), None)  # a claimed one is on its way: it ends by itself
        if older is not None:
            self.bytes -= cost_bytes(older.message)
        self._latest[topic] = entry.id
        self._states[entry.id] = entry

    def add_to_backlog(self, entry: Entry) -> None:
        """Takes a reading that waited elsewhere, or stays here although it is no longer live."""
        self.bytes += cost_bytes(entry.message)
        heappush(self._backlog, (entry.id, entry))

    def aged(self) -> Iterator[Entry]:
        """Takes out the readings that are no longer live, oldest first."""
        limit_mono = self._clock() - self._live_for_s
        while self._live and self._live[0][1].queued_mono <= limit_mono:
            yield self._out(heappop(self._live)[1])

    def backlog_above(self, id_: int) -> Iterator[Entry]:
        """Takes readings out of the backlog whose id is greater."""
        staying = [item for item in self._backlog if item[0] <= id_]
        leaving = [item for item in self._backlog if item[0] > id_]
        if leaving:
            self._backlog = staying  # a sorted list's part in heap order need not be a heap
            self._backlog.sort()
        for _, entry in leaving:
            yield self._out(entry)

    def claim_states(self, limit: int) -> list[Entry]:
        """Up to `limit` states, in the order of their last change."""
        taken: list[Entry] = []
        while self._states and len(taken) < limit:
            taken.append(self._claimed(self._states.popitem(last=False)[1]))
        return taken

    def claim_live(self, limit: int, last_id: int) -> list[Entry]:
        """Up to `limit` live readings, none beyond `last_id`."""
        taken: list[Entry] = []
        while len(taken) < limit and self._live and self._live[0][0] <= last_id:
            taken.append(self._claimed(heappop(self._live)[1]))
        return taken

    def claim_backlog(self, last_id: int) -> Entry | None:
        """The oldest reading of the backlog, if its id is not beyond `last_id`."""
        if not self._backlog or self._backlog[0][0] > last_id:
            return None
        return self._claimed(heappop(self._backlog)[1])

    def take_oldest(self) -> Entry | None:
        """Takes out the oldest unclaimed reading; None where there is none."""
        heap = min((heap for heap in (self._live, self._backlog) if heap), default=None)
        return None if heap is None else self._out(heappop(heap)[1])

    def take_oldest_live(self) -> Entry | None:
        """Takes out the oldest unclaimed live reading; None where there is none."""
        return self._out(heappop(self._live)[1]) if self._live else None

    def take_oldest_state(self) -> Entry | None:
        """Takes out the state that has waited longest; None where there is none."""
        return self._out(self._states.popitem(last=False)[1]) if self._states else None

    def settle(self, id_: int) -> Entry | None:
        """Takes out a claimed message; None for one that is not."""
        entry = self.claimed.pop(id_, None)
        return None if entry is None else self._out(entry)

    def requeue(self, ids: Iterable[int], backlog_id: int = 0) -> None:
        """Puts claimed messages back; a state that has a newer one by now goes. A reading that is no longer live goes
        into the backlog, as do all up to `backlog_id`."""
        limit_mono = self._clock() - self._live_for_s
        for i in sorted(self.claimed.keys() & set(ids), reverse=True):
            entry = self.claimed.pop(i)
            if not is_state(entry.message):
                is_live = i > backlog_id and entry.queued_mono > limit_mono
                heappush(self._live if is_live else self._backlog, (i, entry))
            elif self._latest[entry.message.topic] == i:
                self._states[i] = entry
                self._states.move_to_end(i, last=False)
            else:
                self._out(entry)

    @property
    def first_live_id(self) -> int | None:
        """The lowest id of a live reading."""
        return self._live[0][0] if self._live else None

    @property
    def first_backlog(self) -> Entry | None:
        """The oldest reading of the backlog, as far as it is here."""
        return self._backlog[0][1] if self._backlog else None

    @property
    def any_backlog(self) -> bool:
        """Whether some of the backlog is here."""
        return bool(self._backlog)

    def oldest(self) -> Entry | None:
        """What has been here longest, claimed or not."""
        entries = [entry for heap in (self._live, self._backlog) for _, entry in heap[:1]]
        entries += list(self._states.values())[:1]
        entries += list(self.claimed.values())
        return min(entries, key=lambda entry: entry.id, default=None)

    def clear(self) -> None:
        """Forgets everything."""
        self._states.clear()
        self._live.clear()
        self._backlog.clear()
        self.claimed.clear()
        self.bytes = 0

    def _claimed(self, entry: Entry) -> Entry:
        self.claimed[entry.id] = entry
        return entry

    def _out(self, entry: Entry) -> Entry:
        self.bytes -= cost_bytes(entry.message)
        return entry
