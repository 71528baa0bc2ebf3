"""MQTT inbox: what a device listens to, and what becomes of what it hears."""

from __future__ import annotations

import json
import logging
from collections import deque
from functools import partial
from queue import Full, Queue
from typing import Any

from edge_agent import messages
from edge_agent.records import Message
from edge_agent.transports.base import Inbound
from edge_agent.transports.home_assistant import BORN
from edge_agent.transports.mqtt_library import ReasonCode, SubscribeOptions, paho
from edge_agent.transports.mqtt_session import Session

log = logging.getLogger(__name__)

INBOUND_LIMIT = 100  # messages from outside that wait to be looked at
KNOWN_STATUSES = 256  # payloads that are remembered


class Inbox:
    """Commands and wishes go to `inbound`; what is over `max_payload_bytes`, or finds it full, is dropped and counted.

    The device's own status, its `will`'s topic below `prefix`, is heard as well: a late will is noted in the session,
    and a stranger under our name. `birth_topic` is Home Assistant's, whose start is noted too. Its callbacks run on the
    network thread.
    """

    def __init__(self, prefix: str, will: Message, max_payload_bytes: int, birth_topic: str | None) -> None:
        self.inbound: Queue[Inbound] = Queue(INBOUND_LIMIT)
        self.dropped = 0
        self._prefix = prefix
        self._will = will
        self._max_payload_bytes = max_payload_bytes
        self._birth_topic = birth_topic
        self._known_statuses: deque[bytes] = deque(maxlen=KNOWN_STATUSES)  # retained ones that tell of no stranger

    def attach(self, session: Session, where: str) -> None:
        """Hears what comes over a connection to the broker `where`, from its beginning on."""
        session.client.on_message = partial(self._on_message, session)
        session.client.on_subscribe = partial(self._on_subscribe, where)

    def subscribe(self, session: Session, *, options: bool) -> None:
        """Made anew at each connect, for the session is clean. Our own status is heard to catch strangers and wills.

        `options`: MQTT 5, which has them.
        """
        session.first = not self._known_statuses
        wanted = [self._prefix + messages.COMMAND_TOPICS, self._prefix + messages.DESIRED_CONFIG_TOPIC]
        status = self._prefix + self._will.topic
        expected, trigger = (f"{self._prefix}+/{what}" for what in (messages.EXPECTED, messages.TRIGGER))
        if options:
            others_only = SubscribeOptions(qos=1, noLocal=True)
            # a command that was published retained shows it, also to who was there already
            as_published = SubscribeOptions(qos=1, retainAsPublished=True)
            command, desired = wanted
            session.client.subscribe(
                [
                    (command, as_published),
                    (desired, SubscribeOptions(qos=1)),
                    (status, others_only),
                    (expected, SubscribeOptions(qos=1)),
                    (trigger, as_published),
                ]
            )
        else:
            session.client.subscribe([(topic, 1) for topic in (*wanted, status, expected, trigger)])
        if self._birth_topic is not None:
            session.client.subscribe(self._birth_topic, 1)

    def note_said(self, message: Message) -> None:
        """We have said this ourselves: where it is our status, it tells of no stranger when it comes back."""
        if message.topic == self._will.topic:
            self._known_statuses.append(message.payload)

    def _on_message(self, session: Session, _c: paho.Client, _u: Any, message: paho.MQTTMessage) -> None:
        try:
            topic = message.topic.removeprefix(self._prefix)
        except UnicodeDecodeError:
            self.dropped += 1
            return
        if self._birth_topic is not None and topic == self._birth_topic:
            if message.payload == BORN and not message.retain:  # who was there before us has heard us already
                session.listener_born = True
        elif topic == self._will.topic:
            self._hear_status(session, bytes(message.payload), message.retain)
        elif len(message.payload) > self._max_payload_bytes:
            self.dropped += 1
        else:
            try:
                self.inbound.put_nowait(Inbound(topic, bytes(message.payload), message.retain))
            except Full:
                self.dropped += 1

    def _hear_status(self, session: Session, payload: bytes, retained: bool) -> None:
        if not retained:
            session.will_seen = session.will_seen or _same_state(payload, self._will.payload)
        elif session.first:
            self._known_statuses.append(payload)  # of the process before this one
        else:
            session.stranger_before = payload not in self._known_statuses and payload != self._will.payload

    def _on_subscribe(
        self, where: str, _c: paho.Client, _u: Any, _mid: int, reasons: list[ReasonCode], _p: Any
    ) -> None:
        # the third is our own status: a broker may well keep a device from hearing that
        refused = [str(reason) for reason in (*reasons[:2], *reasons[3:]) if reason.is_failure]
        if refused:
            ours = "commands, config, expectations or triggers"
            what = ours if len(reasons) > 1 else "word of Home Assistant's start"
            log.warning("%s lets us hear no %s (%s); check its access list", where, what, refused[0])


def _same_state(payload: bytes, will: bytes) -> bool:
    """Whether two status payloads have one `state`: an older process's will differs from ours in its times."""
    try:
        said, ours = json.loads(payload), json.loads(will)
        return bool(said["state"] == ours["state"])
    except (ValueError, TypeError, KeyError, RecursionError):
        return False
