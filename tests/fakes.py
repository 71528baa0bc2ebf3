"""Fakes at the three seams the design names: Engine, Camera, Transport. Nothing else is ever faked."""

from __future__ import annotations

from collections.abc import Callable
from queue import Queue

import numpy as np
import numpy.typing as npt

from edge_agent.backends.base import Array, Feed, TensorSpec, check_feed
from edge_agent.errors import EngineError, TransportError
from edge_agent.records import Message
from edge_agent.transports.base import Inbound, Outcome, Settle


class FakeEngine:
    """An Engine whose `infer` is a function; keeps the feeds that it got."""

    def __init__(
        self,
        answer: Callable[[Feed], dict[str, Array]],
        inputs: tuple[TensorSpec, ...],
        outputs: tuple[TensorSpec, ...] = (),
    ) -> None:
        self.answer = answer
        self.inputs = inputs
        self.outputs = outputs
        self.fingerprint = "fake"
        self.feeds: list[Feed] = []
        self.closed = False
        self.under_way: Feed | None = None

    def infer(self, feed: Feed) -> dict[str, Array]:
        self.enqueue(feed)
        return self.collect()

    def enqueue(self, feed: Feed) -> None:
        if self.closed or self.under_way is not None:
            raise EngineError("closed, or a run is under way")
        check_feed(self.inputs, feed)
        self.under_way = feed
        self.feeds.append(feed)

    def collect(self) -> dict[str, Array]:
        feed, self.under_way = self.under_way, None
        if feed is None:
            raise EngineError("nothing to collect")
        return self.answer(feed)

    def close(self) -> None:
        self.closed = True


class FakeCamera:
    """A Camera whose `open` and `read` are functions (they may raise, or block); counts its calls."""

    def __init__(
        self, read: Callable[[], npt.NDArray[np.uint8] | None], open_: Callable[[], None] = lambda: None
    ) -> None:
        self._read = read
        self._open = open_
        self.opens = self.reads = self.closes = 0

    def open(self) -> None:
        self.opens += 1
        self._open()

    def read(self) -> npt.NDArray[np.uint8] | None:
        self.reads += 1
        return self._read()

    def close(self) -> None:
        self.closes += 1


class FakeTransport:
    """A Transport with a window; the test says when it connects, and how each offer in flight ends."""

    def __init__(self, window: int = 100) -> None:
        self.inbound: Queue[Inbound] = Queue()
        self.inbound_dropped = 0
        self.cause: str | None = "not connected yet"
        self.connected = False
        self.sent: list[Message] = []
        self.in_flight: list[tuple[Message, Settle]] = []
        self.farewells: list[Message | None] = []
        self.refuse: Callable[[Message], str | None] = lambda message: None
        self._window = window
        self._loss_unnoticed = False
        self._on_ready: Callable[[], None] = lambda: None

    def open(self, on_ready: Callable[[], None]) -> None:
        self._on_ready = on_ready

    @property
    def room(self) -> int:
        return self._window - len(self.in_flight) if self.connected else 0

    def send(self, message: Message, settle: Settle) -> None:
        reason = self.refuse(message)
        if reason is not None:
            settle(Outcome.REFUSED, reason)
            return
        if not self.connected or self.room == 0 or self._loss_unnoticed:
            self._loss_unnoticed = False
            raise TransportError("not now")
        self.sent.append(message)
        self.in_flight.append((message, settle))

    def close(self, farewell: Message | None, timeout_s: float) -> None:
        self.connected = False
        self.farewells.append(farewell)

    def connect(self) -> None:
        self.connected, self.cause = True, None
        self._on_ready()

    def disconnect(self) -> None:
        """The connection ends; what is in flight is lost."""
        self.connected, self.cause, self._loss_unnoticed = False, "it broke", True
        self.settle_all(Outcome.LOST)

    def settle_all(self, outcome: Outcome = Outcome.DELIVERED) -> None:
        """Ends everything in flight, in the order of sending."""
        in_flight, self.in_flight = self.in_flight, []
        for _, settle in in_flight:
            settle(outcome, "told to")
