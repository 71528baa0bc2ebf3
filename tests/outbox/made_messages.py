"""What the tests of outboxes share: messages that are numbers, and a clock that the test moves."""

from __future__ import annotations

from edge_agent.outbox.base import Entry
from edge_agent.records import Message, Origin


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def result(n: int, camera: str = "cam", size: int = 0) -> Message:
    return Message(f"{camera}/result", b"%d" % n + b" " * size)


def reading(n: int, camera: str = "cam", size: int = 0) -> Message:
    """A result that tells of a capture."""
    return Message(f"{camera}/result", b"%d" % n + b" " * size, origin=Origin(f"{camera}-{n}", camera, n, 100.0 + n))


def state(n: int, topic: str = "health") -> Message:
    return Message(topic, b"%d" % n, retain=True)


def payloads(entries: list[Entry]) -> list[int]:
    return [int(entry.message.payload) for entry in entries]
