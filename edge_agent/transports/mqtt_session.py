"""MQTT session: one connection, what is known of it, and why it ended."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Any

from edge_agent.records import Message
from edge_agent.settings.mqtt import MqttConfig
from edge_agent.transports.base import Outcome, Settle
from edge_agent.transports.mqtt_library import Properties, ReasonCode, paho

CONFLICT_TAKEOVERS = 3  # so many take-overs within CONFLICT_WITHIN_S mean that two devices share an id
CONFLICT_WITHIN_S = 60.0

# Reason codes of MQTT 5, section 2.4
KEEP_ALIVE_TIMEOUT = 0x8D
LOGIN_REFUSED = {0x86, 0x87}  # bad user name or password, not authorized
SESSION_TAKEN_OVER = 0x8E
TRY_AGAIN = {0x80, 0x83, 0x97}  # unspecified, implementation specific, quota exceeded


@dataclass(frozen=True)
class Own:
    """A message of the transport's own; `prefix` stands before its topic."""

    prefix: str
    message: Message
    settle: Settle


class Session:
    """One connection, from CONNECT to its end; paho's callbacks write here what they heard, and do nothing else."""

    def __init__(self, client: paho.Client, window: int) -> None:
        self.client = client
        self.window = window
        self.max_packet_bytes: int | None = None  # the broker's own limit, where it names one
        self.in_flight: dict[int, Settle] = {}
        self.own: deque[Own] = deque()  # births and the farewell; they go before what is offered
        self.connack: tuple[ReasonCode, Properties | None] | None = None
        self.online = False
        self.online_mono: float | None = None  # stays after the end
        self.acks: deque[tuple[int, ReasonCode]] = deque()
        self.first = False  # no connection of this process came before
        self.stranger_before = False  # someone else has said our status since then
        self.will_seen = False  # an old will has come over it now
        self.listener_born = False  # Home Assistant has started
        self.gave_up = False
        self.end: ReasonCode | None = None
        self.ended_by_broker = False
        client.on_connect = self._on_connect
        client.on_disconnect = self._on_disconnect
        client.on_publish = self._on_publish

    @property
    def room(self) -> int:
        """How many messages can be offered now."""
        return max(0, self.window - len(self.in_flight) - len(self.own)) if self.online else 0

    @property
    def refusal(self) -> ReasonCode | None:
        """The reason for which the broker did not let us in; None where it did, or has not answered."""
        return self.connack[0] if self.connack is not None and self.connack[0].is_failure else None

    def why_ended(self, config: MqttConfig, where: str) -> str:
        """Why it ended, or came to nothing, with a cure; `where` names the broker."""
        if self.connack is None:
            return self._why_silent(config, where)
        if self.refusal is not None and self.refusal.value in LOGIN_REFUSED:
            return f"{where} refused the login ({self.refusal}); check mqtt.username and mqtt.password_file"
        if self.refusal is not None:
            return f"{where} refused the connection ({self.refusal})"
        if self.ended_by_broker:
            return f"{where} ended the connection ({self.end})"
        if self.end is not None and self.end.value == KEEP_ALIVE_TIMEOUT:
            return f"{where} does not answer any more (keep-alive of {config.keepalive_s} s)"
        return f"the connection to {where} broke"

    def _why_silent(self, config: MqttConfig, where: str) -> str:
        if self.gave_up:
            return f"{where} accepts connections but says nothing for {config.connect_timeout_s:g} s"
        if config.tls:
            return (
                f"{where} closed the connection after TLS was set up; does it want a certificate of this device that"
                " it trusts (mqtt.cert_file), and does it speak the mqtt.protocol?"
            )
        return (
            f"{where} closed the connection without an answer; is it an MQTT port, with TLS as mqtt.tls says, and does"
            " it speak the mqtt.protocol?"
        )

    def _on_connect(self, _c: paho.Client, _u: Any, _f: Any, reason: ReasonCode, properties: Properties | None) -> None:
        self.connack = (reason, properties)

    def _on_disconnect(
        self, _c: paho.Client, _u: Any, flags: paho.DisconnectFlags, reason: ReasonCode, _p: Any
    ) -> None:
        self.end = reason
        self.ended_by_broker = flags.is_disconnect_packet_from_server

    def _on_publish(self, _c: paho.Client, _u: Any, mid: int, reason: ReasonCode, _p: Any) -> None:
        # paho holds a lock here that its `publish` takes too: to take ours as well would end in a deadlock
        self.acks.append((mid, reason))


class Takeovers:
    """Counts connections that another device with our name took over, until there are too many to be chance.

    MQTT 5 has a reason code for it, which not every broker sends (Mosquitto 2.0.11 just closes, as a bad network
    does). The other sign is a retained status under our name that this process never said, nor found at its start: a
    broker that comes back with what it saved a while ago is no stranger.
    """

    def __init__(self) -> None:
        self._at_mono: deque[float] = deque()

    def too_many(self, session: Session, now_mono: float) -> bool:
        """Counts the connection that has just ended; True when it is the third within a minute."""
        if session.stranger_before or (session.end is not None and session.end.value == SESSION_TAKEN_OVER):
            self._at_mono.append(now_mono)
        while self._at_mono and now_mono - self._at_mono[0] > CONFLICT_WITHIN_S:
            self._at_mono.popleft()
        if len(self._at_mono) < CONFLICT_TAKEOVERS:
            return False
        self._at_mono.clear()
        return True


def outcome(reason: ReasonCode) -> tuple[Outcome, str]:
    """How an offer ended, by the broker's answer to it, with words for people."""
    if not reason.is_failure:
        return Outcome.DELIVERED, ""
    return (Outcome.LOST if reason.value in TRY_AGAIN else Outcome.REFUSED), f"the broker did not take it ({reason})"
