"""Outbox contract: what waits for the broker, in order, bounded, at least once.

A message is taken with `claim`, which leaves it here, and leaves with `done` or `drop`; `requeue` puts a claimed one
back in its old place. Three lanes: *states* (retained messages, and QoS 0 telemetry), of which only the latest of a
topic is worth sending; *live* readings; and the *backlog*, readings that have waited longer than `live_for_s`. States
go first: they are few, and a broker that comes back after an hour should hear how the device is now before it hears
what it read. Then, with `live_first`, what is read now goes before what was read in that hour, each in its own order;
without it everything goes in the order of arrival.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol

from edge_agent.outbox.ledger import Ledger
from edge_agent.records import Message

# What an entry costs in memory besides topic and payload: objects and places in the tables (CPython 3.11, 64 bit:
# 735 bytes for a reading with its origin, 450 without, measured with tracemalloc; the rest is for tables that have just
# doubled).
ENTRY_OVERHEAD_BYTES = 800
DAY_S = 86_400


@dataclass(frozen=True)
class Entry:
    """A message in the outbox.

    `id` grows with the order of arrival. `queued_mono` is when it came by the monotonic clock (s), minus infinity for
    one from before this boot; `queued_at` is the same by the time of day (unix s), `trusted` whether that was
    synchronised then.
    """

    id: int
    message: Message
    queued_mono: float
    queued_at: float = 0.0
    trusted: bool = False

    @property
    def source(self) -> str:
        """Under whose name it is counted: the camera, else the first level of the topic (`event`)."""
        origin = self.message.origin
        return origin.camera if origin is not None else self.message.topic.partition("/")[0]

    @property
    def day(self) -> int:
        """The UTC day it came, as days since 1970-01-01."""
        return int(self.queued_at // DAY_S)


@dataclass(frozen=True)
class OutboxStats:
    """What waits now, and what was dropped since the start, by reason.

    `depth` counts everything that waits, of which `claimed` is under way; `bytes` is what they take in memory and
    `disk_bytes` what they take on disk. `unwritten` readings are in memory only. `fault` says why nothing is written.
    """

    depth: int
    claimed: int
    bytes: int
    disk_bytes: int
    unwritten: int
    oldest_age_s: float | None
    dropped: Mapping[str, int]
    fault: str | None


class Outbox(Protocol):
    """Every method may be called from any thread."""

    def put(self, message: Message) -> None:
        """Takes a message and never refuses: what does not fit pushes out the oldest, counted."""
        ...

    def claim(self, limit: int, replay: int | None = None) -> list[Entry]:
        """Up to `limit` messages that nobody has claimed, by lane and then oldest first; they stay until `done`.

        Of the backlog at most `replay`; None: as many as there is room for.
        """
        ...

    def done(self, ids: Iterable[int]) -> None:
        """Forgets delivered messages."""
        ...

    def requeue(self, ids: Iterable[int]) -> None:
        """Puts claimed messages back in their places; a state that has a newer one by now is dropped instead."""
        ...

    def drop(self, ids: Iterable[int], reason: str, detail: str = "") -> None:
        """Gives claimed messages up, counted under `reason`; `detail` is for people."""
        ...

    def revive(self) -> int:
        """Puts messages that were given up, and are kept whole, behind what waits; how many. They come as new."""
        ...

    def watch(self, on_put: Callable[[], None]) -> None:
        """Has `on_put` called whenever there is something new to claim; it may only wake someone."""
        ...

    def stats(self) -> OutboxStats:
        """The figures at this moment."""
        ...

    def ledger(self) -> Ledger:
        """A copy of the ledger at this moment."""
        ...

    @property
    def fault(self) -> str | None:
        """Why readings are not written to disk although they should be; None while all is well."""
        ...

    def next_seq(self, camera: str) -> int:
        """The first frame number of a camera that no reading in the ledger has reached."""
        ...

    def close(self) -> None:
        """Releases what the outbox holds; calling it again does nothing."""
        ...


def is_state(message: Message) -> bool:
    """Whether only the latest message of the topic is worth sending: a retained state, or QoS 0 telemetry."""
    return message.retain or message.qos == 0


def cost_bytes(message: Message) -> int:
    """What a message takes in memory while it waits."""
    return len(message.topic) + len(message.payload) + ENTRY_OVERHEAD_BYTES
