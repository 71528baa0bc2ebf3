"""Transport: hands messages to the outside and brings what comes back; knows no queue and no retry policy."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from queue import Queue
from typing import Protocol

from edge_agent.records import Message


@dataclass(frozen=True)
class Inbound:
    """A message that came from outside; `topic` is below the device's own prefix."""

    topic: str
    payload: bytes
    retained: bool


class Transport(Protocol):
    """One connection to the outside. `send` is called by the publisher's thread only."""

    inbound: Queue[Inbound]

    def open(self) -> None:
        """Starts connecting and returns at once; it goes on trying in the background until `close`."""
        ...

    def send(self, message: Message, on_delivered: Callable[[], None]) -> None:
        """Offers one message; `on_delivered` is called once the other side has confirmed it (from any thread).

        Raises TransportError when it cannot be taken now (not connected, window full): keep it, offer it again.
        """
        ...

    @property
    def connected(self) -> bool:
        """Whether a message offered now would leave."""
        ...

    def close(self, farewell: Message | None, timeout_s: float) -> None:
        """Publishes `farewell`, waits for its confirmation within `timeout_s`, then disconnects."""
        ...
