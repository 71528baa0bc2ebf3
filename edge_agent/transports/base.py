"""Transport: hands messages to the outside and brings what comes back; knows no queue and keeps nothing.

A transport owns one thing, its connection, and when to try it again. What was not confirmed is the offerer's to keep:
the outbox is the one owner of redelivery.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from queue import Queue
from typing import Protocol

from edge_agent.records import Message


@dataclass(frozen=True)
class Inbound:
    """A message that came from outside; `topic` is below the device's own prefix, `arrived_mono` monotonic s."""

    topic: str
    payload: bytes
    retained: bool
    arrived_mono: float = field(default_factory=time.monotonic, compare=False)


class Outcome(Enum):
    """How an offer ended."""

    DELIVERED = "delivered"  # confirmed by the other side
    LOST = "lost"  # the connection ended before the confirmation: offer it again, it may arrive twice
    REFUSED = "refused"  # it will never be taken: do not offer it again


# Called once an offer has ended, with a reason for people; from any thread, so it may only enqueue.
Settle = Callable[[Outcome, str], None]


class Transport(Protocol):
    """One connection to the outside. `send` is called by the publisher's thread only."""

    @property
    def inbound(self) -> Queue[Inbound]:
        """What came from outside."""
        ...

    @property
    def inbound_dropped(self) -> int:
        """Messages from outside that were not taken: too many at once, or too large."""
        ...

    def open(self, on_ready: Callable[[], None]) -> None:
        """Starts connecting and returns at once; goes on trying in the background until `close`.

        `on_ready` is called from any thread each time that messages can be offered again after a while in which
        they could not; it may only enqueue.
        """
        ...

    @property
    def connected(self) -> bool:
        """Whether a message offered now would leave."""
        ...

    @property
    def cause(self) -> str | None:
        """Why it is not connected, without secrets; None while it is."""
        ...

    @property
    def room(self) -> int:
        """How many messages can be offered now; 0 when not connected or when the window is full."""
        ...

    def send(self, message: Message, settle: Settle) -> None:
        """Offers one message; `settle` is called exactly once, perhaps before `send` returns.

        Raises TransportError when it cannot be taken now (not connected, window full): `settle` is then not called.
        Raises it also once after a loss, before the first message of the next connection is taken, and after every
        LOST was settled: the offerer can put what was lost back in front, so that the order holds.
        Raises BrokenPipeError when the other side has gone for good.
        """
        ...

    def close(self, farewell: Message | None, timeout_s: float) -> None:
        """Publishes `farewell`, waits for its confirmation within `timeout_s`, then disconnects."""
        ...


class Backoff:
    """Delays that double from `min_s` up to `max_s`, each shortened at random by up to half.

    The jitter keeps a hall full of devices from coming back in one beat after a power cut.
    """

    def __init__(self, min_s: float, max_s: float, uniform: Callable[[float, float], float] = random.uniform) -> None:
        self._min_s = min_s
        self._max_s = max(min_s, max_s)
        self._uniform = uniform
        self._whole_s = min_s

    def next_s(self) -> float:
        """The delay before the next try, seconds."""
        delay_s = self._whole_s * self._uniform(0.5, 1.0)
        self._whole_s = min(self._whole_s * 2, self._max_s)
        return delay_s

    def reset(self) -> None:
        """Starts again at the shortest delay."""
        self._whole_s = self._min_s
