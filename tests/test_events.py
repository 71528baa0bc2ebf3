"""Events: one message at once, then seldom; nothing said before there was an outbox is lost."""

from __future__ import annotations

import json

from edge_agent.events import AGAIN_AFTER_S, Events
from edge_agent.records import Message


class Times:
    def __init__(self) -> None:
        self.mono = 50.0


def said(put: list[Message]) -> list[tuple[str, str, int]]:
    bodies = [json.loads(message.payload) for message in put]
    return [(body["kind"], body["text"], body["unsaid"]) for body in bodies]


def test_event_is_a_message_at_qos_1_that_is_not_retained() -> None:
    put: list[Message] = []
    events = Events(clock=lambda: 0.0)
    events.attach(put.append)
    events.say("outbox_full", "the oldest go")
    assert [(message.topic, message.qos, message.retain) for message in put] == [("event", 1, False)]
    assert said(put) == [("outbox_full", "the oldest go", 0)]


def test_event_is_kept_at_once_also_before_there_is_an_outbox() -> None:
    kept: list[Message] = []
    events = Events(kept.append)
    events.say("outbox_replaced", "it was damaged")
    assert said(kept) == [("outbox_replaced", "it was damaged", 0)]
    events.attach(lambda _message: None)
    assert len(kept) == 1
    events.say("outbox_full", "the oldest go")
    events.say("outbox_full", "the oldest go")
    assert len(kept) == 2, "what is not said is not kept"


def test_what_is_said_before_the_outbox_is_there_waits_for_it() -> None:
    put: list[Message] = []
    events = Events()
    events.say("outbox_replaced", "it was damaged")
    events.attach(put.append)
    assert said(put) == [("outbox_replaced", "it was damaged", 0)]


def test_repetitions_of_a_kind_are_counted_and_said_once_a_minute() -> None:
    times, put = Times(), list[Message]()
    events = Events(monotonic=lambda: times.mono)
    events.attach(put.append)
    for n in range(5):
        events.say("dead_letter", f"message {n}")
    events.say("outbox_full", "another kind")
    times.mono += AGAIN_AFTER_S
    events.say("dead_letter", "message 5")
    assert said(put) == [
        ("dead_letter", "message 0", 0),
        ("outbox_full", "another kind", 0),
        ("dead_letter", "message 5", 4),
    ]
