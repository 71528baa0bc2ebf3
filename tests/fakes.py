"""Fakes at the three seams the design names: Engine, Camera, Transport. Nothing else is ever faked."""

from __future__ import annotations

from collections.abc import Callable

from edge_agent.backends.base import Array, Feed, TensorSpec, check_feed


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

    def infer(self, feed: Feed) -> dict[str, Array]:
        check_feed(self.inputs, feed)
        self.feeds.append(feed)
        return self.answer(feed)

    def close(self) -> None:
        self.closed = True
