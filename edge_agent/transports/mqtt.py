"""MQTT: the one file that knows paho, and under which prefix topics hang.

Every connection gets a paho client of its own, with a clean session, so that nothing hides in a queue of paho's: a
message that was not confirmed when its connection ended is settled as LOST, and the outbox, the one owner of
redelivery, offers it again. When to try again is decided here (`_delay_s`) and nowhere else.

One thread connects, reads and writes; paho's callbacks run on it and only note what they heard. The client id is the
device's own and never changes: a broker that still holds a dead connection of ours then ends that one, and sends its
will, before it answers the new one; with a random id that will would come minutes later, over the newer `online`.
"""

from __future__ import annotations

import contextlib
import json
import logging
import random
import re
import selectors
import socket
import ssl
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from queue import Empty, Full, Queue
from typing import Any

from paho.mqtt import __version__ as paho_version

from edge_agent import messages
from edge_agent.config import Config, MqttConfig
from edge_agent.errors import ConfigError, TransportError
from edge_agent.records import Message
from edge_agent.transports.base import Backoff, Inbound, Outcome, Settle
from edge_agent.transports.causes import CauseLog, explain
from edge_agent.transports.home_assistant import BORN, HomeAssistant, find_announced
from edge_agent.transports.tls import tls_context

try:
    import paho.mqtt.client as paho
    from paho.mqtt.enums import CallbackAPIVersion, MQTTErrorCode, MQTTProtocolVersion
    from paho.mqtt.properties import Properties
    from paho.mqtt.reasoncodes import ReasonCode
    from paho.mqtt.subscribeoptions import SubscribeOptions
except ImportError as exc:  # 1.6 has other callbacks and reason codes, and one kind of them is enough to keep right
    raise ConfigError(
        f"paho-mqtt {paho_version} is installed and version 2 is needed; run: pip install 'paho-mqtt>=2.0,<3'"
    ) from exc

log = logging.getLogger(__name__)

INBOUND_LIMIT = 100  # messages from outside that wait to be looked at
STABLE_S = 30.0  # a connection that lasted so long starts the delays afresh
CONFLICT_TAKEOVERS = 3  # so many take-overs within CONFLICT_WITHIN_S mean that two devices share an id
CONFLICT_WITHIN_S = 60.0
KNOWN_STATUSES = 256  # payloads that are remembered
TICK_S = 1.0  # the keep-alive is looked after at least so often
PACKET_OVERHEAD_BYTES = 16  # fixed header, lengths, packet id and properties of our PUBLISH, at most

# Reason codes of MQTT 5, section 2.4
KEEP_ALIVE_TIMEOUT = 0x8D
LOGIN_REFUSED = {0x86, 0x87}  # bad user name or password, not authorized
SESSION_TAKEN_OVER = 0x8E
TRY_AGAIN = {0x80, 0x83, 0x97}  # unspecified, implementation specific, quota exceeded
UNSUPPORTED_PROTOCOL = 0x84

PROTOCOLS = {"5": MQTTProtocolVersion.MQTTv5, "3.1.1": MQTTProtocolVersion.MQTTv311}

_NAME = re.compile(r"[A-Za-z0-9._-]{1,64}")
_TOPIC = re.compile(r"[^+#/\x00-\x1f\x7f-\x9f\ud800-\udfff]+(/[^+#/\x00-\x1f\x7f-\x9f\ud800-\udfff]+)*")


@dataclass(frozen=True)
class _Own:
    """A message of the transport's own; `prefix` stands before its topic."""

    prefix: str
    message: Message
    settle: Settle


class _Session:
    """One connection, from CONNECT to its end; paho's callbacks write here what they heard, and do nothing else."""

    def __init__(self, client: paho.Client, window: int) -> None:
        self.client = client
        self.window = window
        self.max_packet_bytes: int | None = None  # the broker's own limit, where it names one
        self.in_flight: dict[int, Settle] = {}
        self.own: deque[_Own] = deque()  # births and the farewell; they go before what is offered
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
        return max(0, self.window - len(self.in_flight) - len(self.own)) if self.online else 0

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


class _Takeovers:
    """Counts connections that another device with our name took over, until there are too many to be chance.

    MQTT 5 has a reason code for it, which not every broker sends (Mosquitto 2.0.11 just closes, as a bad network
    does). The other sign is a retained status under our name that this process never said, nor found at its start: a
    broker that comes back with what it saved a while ago is no stranger.
    """

    def __init__(self) -> None:
        self._at_mono: deque[float] = deque()

    def too_many(self, session: _Session, now_mono: float) -> bool:
        """Counts the connection that has just ended; True when it is the third within a minute."""
        if session.stranger_before or (session.end is not None and session.end.value == SESSION_TAKEN_OVER):
            self._at_mono.append(now_mono)
        while self._at_mono and now_mono - self._at_mono[0] > CONFLICT_WITHIN_S:
            self._at_mono.popleft()
        if len(self._at_mono) < CONFLICT_TAKEOVERS:
            return False
        self._at_mono.clear()
        return True


class MqttTransport:
    """A Transport over MQTT 5 or 3.1.1, with TLS and login where configured.

    `will` is what the broker says when the connection dies (it should differ from any other process's, as by the
    time it started: a stranger under our name is known by that), `birth` gives the retained states to say after each
    connect (called on the network thread: it must be quick and safe to call from there). `inbound` gets commands and
    the desired config; what finds it full, or is over `max_payload_bytes`, is dropped and counted. `home_assistant`
    has what is to be said there.
    Raises ConfigError for a device id that is no topic level and for password or certificate files it cannot use.
    """

    def __init__(
        self,
        config: MqttConfig,
        device_id: str,
        will: Message,
        birth: Callable[[], list[Message]] = list,
        home_assistant: HomeAssistant | None = None,
    ) -> None:
        if not _NAME.fullmatch(device_id):
            raise ConfigError(f"device_id is {device_id[:80]!r}; use 1 to 64 of the characters A-Z a-z 0-9 . _ -")
        self.inbound: Queue[Inbound] = Queue(INBOUND_LIMIT)
        self.inbound_dropped = 0
        self._config = config
        self._where = f"{config.host}:{config.port}"
        self._client_id = config.client_id or f"edge-agent-{device_id}"
        self._prefix = f"{config.base_topic}/{device_id}/"
        self._will = will
        self._birth = birth
        self._home_assistant = home_assistant
        self._protocol = PROTOCOLS[config.protocol]
        self._new_client()  # a password or certificate file that cannot be used shows now
        self._backoff = Backoff(config.reconnect_min_s, config.reconnect_max_s)
        self._causes = CauseLog()
        self._cause = "not connected yet"
        self._takeovers = _Takeovers()
        self._lock = threading.Lock()  # guards _session, its in_flight and online, and _loss_unnoticed
        self._session: _Session | None = None
        self._loss_unnoticed = False
        self._known_statuses: deque[bytes] = deque(maxlen=KNOWN_STATUSES)  # retained ones that tell of no stranger
        self._closing = threading.Event()
        self._on_ready: Callable[[], None] = _do_nothing
        self._thread: threading.Thread | None = None
        self._wake_in, self._wake_out = socket.socketpair()
        self._wake_in.setblocking(False)
        self._wake_out.setblocking(False)

    @classmethod
    def from_config(
        cls, config: Config, device_id: str, will: Message, birth: Callable[[], list[Message]]
    ) -> MqttTransport:
        """The transport that a whole configuration asks for."""
        return cls(config.mqtt, device_id, will, birth, HomeAssistant(config, device_id, find_announced()))

    # What the publisher calls

    def open(self, on_ready: Callable[[], None]) -> None:
        self._on_ready = on_ready
        self._start_thread(0.0)

    @property
    def connected(self) -> bool:
        session = self._session
        return session is not None and session.online

    @property
    def cause(self) -> str | None:
        return None if self.connected else self._cause

    @property
    def room(self) -> int:
        with self._lock:
            return 0 if self._session is None else self._session.room

    def send(self, message: Message, settle: Settle) -> None:
        with self._lock:
            session = self._session
            refusal = self._refusal(self._prefix, message, session)
            if refusal is None:
                if session is None or not session.online:
                    raise TransportError(f"not connected: {self._cause}")
                if self._loss_unnoticed:
                    self._loss_unnoticed = False
                    raise TransportError("the connection was renewed; offer again what was lost, then the rest")
                if session.room == 0:
                    raise TransportError(f"{len(session.in_flight)} messages await confirmation: the window is full")
                self._publish(session, _Own(self._prefix, message, settle))
        if refusal is None:
            self._wake()
        else:
            settle(Outcome.REFUSED, refusal)

    def close(self, farewell: Message | None, timeout_s: float) -> None:
        """As in Transport; a farewell that is not confirmed cuts the socket instead, so that the will is sent."""
        deadline = time.monotonic() + timeout_s
        self._closing.set()
        tidy = farewell is None or self._say_farewell(farewell, timeout_s)
        with self._lock:
            session = self._session
        leaving = session is not None and session.online and tidy
        if session is not None and leaving:
            session.client.disconnect()
        elif session is not None:
            _cut(session.client)
        self._wake()
        if self._thread is None:
            return
        # a thread that is still connecting is left behind: it ends by itself
        self._thread.join(max(0.2, deadline - time.monotonic()) if leaving else 0.2)
        if self._thread.is_alive() and session is not None:
            _cut(session.client)  # a frozen broker does not even take the DISCONNECT

    # The network thread

    def _start_thread(self, delay_s: float) -> None:
        thread = threading.Thread(target=self._run, args=(delay_s,), name="mqtt", daemon=True)
        thread.start()
        self._thread = thread

    def _run(self, delay_s: float) -> None:
        try:
            while not self._closing.wait(delay_s):
                delay_s = self._connect_and_serve()
        finally:
            if not self._closing.is_set():  # an error that nobody foresaw ends this thread, aloud; another takes over
                log.error("the MQTT network thread died; a new one takes over")
                delay_s = self._backoff.next_s()
                try:
                    self._start_thread(delay_s)
                except RuntimeError:  # the system gives no thread: this one goes on
                    self._run(delay_s)

    def _connect_and_serve(self) -> float:
        """One connection from start to end; returns after how many seconds to try the next one."""
        session = None
        try:
            session = _Session(self._new_client(), self._config.max_inflight)
            session.client.on_message = self._on_message
            session.client.on_subscribe = self._on_subscribe
            with self._lock:
                self._session = session
            session.client.connect(self._config.host, self._config.port, self._config.keepalive_s)
            self._serve(session)
            cause = self._why_ended(session)
        except ConfigError as exc:
            cause = str(exc)
        except UnicodeError:
            cause = f"mqtt.host {self._config.host!r} cannot be a host name; check its dots and length"
        except OSError as exc:
            cause = explain(exc, self._config.host, self._config.port, time.time())
        finally:
            self._settle_lost(session)
        return self._delay_s(session, cause)

    def _serve(self, session: _Session) -> None:
        """Moves bytes until the connection ends."""
        client = session.client
        give_up_mono = time.monotonic() + self._config.connect_timeout_s
        with selectors.DefaultSelector() as selector:
            selector.register(self._wake_out, selectors.EVENT_READ)
            if (sock := client.socket()) is not None:
                selector.register(sock, selectors.EVENT_READ)
            while (sock := client.socket()) is not None:
                self._turn(client, sock, selector)
                self._digest(session)
                if not session.online and (self._closing.is_set() or time.monotonic() > give_up_mono):
                    session.gave_up = True
                    return

    def _turn(self, client: paho.Client, sock: Any, selector: selectors.BaseSelector) -> None:
        selector.modify(sock, selectors.EVENT_READ | (selectors.EVENT_WRITE if client.want_write() else 0))
        pending = isinstance(sock, ssl.SSLSocket) and sock.pending() > 0  # decrypted already: select cannot see it
        ready = {key.fileobj: events for key, events in selector.select(0 if pending else TICK_S)}
        if self._wake_out in ready:
            _drain(self._wake_out)
        if pending or ready.get(sock, 0) & selectors.EVENT_READ:
            client.loop_read()
        if client.want_write():
            client.loop_write()
        client.loop_misc()

    def _digest(self, session: _Session) -> None:
        """Acts on what the callbacks noted, outside of paho's locks."""
        if session.connack is not None and session.online_mono is None and session.client.socket() is not None:
            reason, properties = session.connack
            if not reason.is_failure:
                self._go_online(session, properties)
        while session.acks:
            mid, reason = session.acks.popleft()
            with self._lock:
                settle = session.in_flight.pop(mid, None)
            if settle is not None:
                settle(*_outcome(reason))
        self._send_own(session)
        if session.will_seen and session.online and not self._closing.is_set():
            session.will_seen = False
            log.info("an old last will came over our newer status; saying it again")
            self._say_birth(session)
        if session.listener_born and session.online:
            session.listener_born = False
            log.info("Home Assistant has started; announcing this device again")
            self._announce(session)

    def _go_online(self, session: _Session, properties: Properties | None) -> None:
        session.window = min(session.window, getattr(properties, "ReceiveMaximum", session.window))
        session.max_packet_bytes = getattr(properties, "MaximumPacketSize", None)
        session.first = not self._known_statuses
        self._subscribe(session.client)  # before the birth: the retained status comes as it was before us
        self._say_birth(session)
        self._announce(session)
        with self._lock:
            session.online = True
            session.online_mono = time.monotonic()
        self._causes.connected()
        log.info("connected to %s as %s", self._where, self._client_id)
        self._on_ready()

    def _subscribe(self, client: paho.Client) -> None:
        """Made anew at each connect, for the session is clean. Our own status is heard to catch strangers and wills."""
        wanted = [self._prefix + messages.COMMAND_TOPICS, self._prefix + messages.DESIRED_CONFIG_TOPIC]
        status = self._prefix + self._will.topic
        if self._protocol == MQTTProtocolVersion.MQTTv5:  # paho 2.0.0 cannot tell its own
            others_only = SubscribeOptions(qos=1, noLocal=True)
            # a command that was published retained shows it, also to who was there already
            as_published = SubscribeOptions(qos=1, retainAsPublished=True)
            command, desired = wanted
            client.subscribe([(command, as_published), (desired, SubscribeOptions(qos=1)), (status, others_only)])
        else:
            client.subscribe([(topic, 1) for topic in (*wanted, status)])
        if self._home_assistant is not None and self._home_assistant.birth_topic is not None:
            client.subscribe(self._home_assistant.birth_topic, 1)

    def _say_birth(self, session: _Session) -> None:
        births = self._birth()
        with self._lock:
            session.own.extend(_Own(self._prefix, message, self._settle_birth) for message in births)
        self._send_own(session)

    def _announce(self, session: _Session) -> None:
        if self._home_assistant is None:
            return
        with self._lock:
            session.own.extend(_Own("", message, settle) for message, settle in self._home_assistant.announcements())
        self._send_own(session)

    def _send_own(self, session: _Session) -> None:
        """Sends births and the farewell, as many as the window takes."""
        refused: list[tuple[Settle, str]] = []
        with self._lock:
            while session.own and len(session.in_flight) < session.window:
                own = session.own[0]
                refusal = self._refusal(own.prefix, own.message, session)
                if refusal is not None:
                    refused.append((own.settle, refusal))
                else:
                    try:
                        self._publish(session, own)
                    except TransportError:
                        break  # the connection is ending: all of them will be settled as lost
                session.own.popleft()
        for settle, refusal in refused:
            settle(Outcome.REFUSED, refusal)

    def _settle_birth(self, outcome: Outcome, reason: str) -> None:
        if outcome is Outcome.REFUSED:
            log.warning("a state was not taken: %s", reason)
        self._on_ready()  # there is more room

    def _settle_lost(self, session: _Session | None) -> None:
        """Ends the session for `send`, then hands back what was in flight."""
        if session is None:
            return
        with self._lock:
            self._session = None
            self._loss_unnoticed = self._loss_unnoticed or session.online
            session.online = False
            lost = [*session.in_flight.values(), *(own.settle for own in session.own)]
            session.in_flight.clear()
            session.own.clear()
        if (sock := session.client.socket()) is not None:
            sock.close()
        for settle in lost:
            settle(Outcome.LOST, "the connection ended before the confirmation came")

    # Why, and when again

    def _why_ended(self, session: _Session) -> str:
        if session.connack is None:
            if session.gave_up:
                return f"{self._where} accepts connections but says nothing for {self._config.connect_timeout_s:g} s"
            if self._config.tls:
                return (
                    f"{self._where} closed the connection after TLS was set up; does it want a certificate of this"
                    " device that it trusts (mqtt.cert_file), and does it speak the mqtt.protocol?"
                )
            return (
                f"{self._where} closed the connection without an answer; is it an MQTT port, with TLS as mqtt.tls says,"
                " and does it speak the mqtt.protocol?"
            )
        reason = session.connack[0]
        if reason.is_failure:
            return self._why_refused(reason)
        if session.ended_by_broker:
            return f"{self._where} ended the connection ({session.end})"
        if session.end is not None and session.end.value == KEEP_ALIVE_TIMEOUT:
            return f"{self._where} does not answer any more (keep-alive of {self._config.keepalive_s} s)"
        return f"the connection to {self._where} broke"

    def _why_refused(self, reason: ReasonCode) -> str:
        if reason.value in LOGIN_REFUSED:
            return f"{self._where} refused the login ({reason}); check mqtt.username and mqtt.password_file"
        if reason.value == UNSUPPORTED_PROTOCOL and self._protocol == MQTTProtocolVersion.MQTTv5:
            self._protocol = MQTTProtocolVersion.MQTTv311
            return f"{self._where} does not speak MQTT 5; going on with 3.1.1 (set mqtt.protocol to save this try)"
        return f"{self._where} refused the connection ({reason})"

    def _delay_s(self, session: _Session | None, cause: str) -> float:
        """Seconds until the next try: the one place that decides it."""
        if self._closing.is_set():
            return 0.0
        now_mono = time.monotonic()
        if session is not None and self._takeovers.too_many(session, now_mono):
            delay_s = self._config.conflict_backoff_s * random.uniform(0.5, 1.5)  # the twin must not keep step
            self._cause = (
                f"id_conflict: another device has taken over the client id {self._client_id!r} {CONFLICT_TAKEOVERS}"
                f" times within {CONFLICT_WITHIN_S:g} s; give each device its own device_id"
            )
            log.warning("%s; the next try is in %.0f s", self._cause, delay_s)
            return delay_s
        self._cause = cause
        self._causes.failed(cause)
        if session is not None and session.online_mono is not None and now_mono - session.online_mono >= STABLE_S:
            self._backoff.reset()
        return self._backoff.next_s()

    # paho's remaining callbacks, on the network thread

    def _on_message(self, _c: paho.Client, _u: Any, message: paho.MQTTMessage) -> None:
        try:
            topic = message.topic.removeprefix(self._prefix)
        except UnicodeDecodeError:
            self.inbound_dropped += 1
            return
        if self._home_assistant is not None and topic == self._home_assistant.birth_topic:
            self._hear_listener(bytes(message.payload), message.retain)
            return
        if topic == self._will.topic:
            self._hear_status(bytes(message.payload), message.retain)
            return
        if len(message.payload) > self._config.max_payload_bytes:
            self.inbound_dropped += 1
            return
        try:
            self.inbound.put_nowait(Inbound(topic, bytes(message.payload), message.retain))
        except Full:
            self.inbound_dropped += 1

    def _hear_status(self, payload: bytes, retained: bool) -> None:
        session = self._session
        if session is None:
            return
        if not retained:
            session.will_seen = session.will_seen or _same_state(payload, self._will.payload)
        elif session.first:
            self._known_statuses.append(payload)  # of the process before this one
        else:
            session.stranger_before = payload not in self._known_statuses and payload != self._will.payload

    def _hear_listener(self, payload: bytes, retained: bool) -> None:
        session = self._session
        if session is not None and payload == BORN and not retained:  # who was there before us has heard us already
            session.listener_born = True

    def _on_subscribe(self, _c: paho.Client, _u: Any, _mid: int, reasons: list[ReasonCode], _p: Any) -> None:
        # the third is our own status: a broker may well keep a device from hearing that
        refused = [str(reason) for reason in reasons[:2] if reason.is_failure]
        if refused:
            what = "commands or config" if len(reasons) > 1 else "word of Home Assistant's start"
            log.warning("%s lets us hear no %s (%s); check its access list", self._where, what, refused[0])

    # paho's client

    def _publish(self, session: _Session, own: _Own) -> None:
        """Hands the message to paho; the lock is held, so that its confirmation finds it in flight."""
        message = own.message
        info = session.client.publish(own.prefix + message.topic, message.payload, message.qos, message.retain)
        if info.rc != MQTTErrorCode.MQTT_ERR_SUCCESS:
            raise TransportError(f"not taken now: {paho.error_string(info.rc)}")
        session.in_flight[info.mid] = own.settle
        if message.topic == self._will.topic:
            self._known_statuses.append(message.payload)

    def _refusal(self, prefix: str, message: Message, session: _Session | None) -> str | None:
        """Why the message can never be sent, or None."""
        size_bytes = len(message.payload)
        if size_bytes > self._config.max_payload_bytes:
            limit_bytes = self._config.max_payload_bytes
            return f"{message.topic}: {size_bytes} bytes are over mqtt.max_payload_bytes, {limit_bytes}"
        topic = prefix + message.topic
        if not _TOPIC.fullmatch(message.topic) or len(topic.encode()) > 65_535:
            return f"{message.topic[:80]!r} is no topic to publish on; it has wildcards, empty levels or controls"
        limit = None if session is None else session.max_packet_bytes
        if limit is not None and size_bytes + len(topic.encode()) + PACKET_OVERHEAD_BYTES > limit:
            return f"{message.topic}: {size_bytes} bytes are over what {self._where} takes in one packet, {limit}"
        return None

    def _new_client(self) -> paho.Client:
        """A client that has never connected. Files are read here, so renewed certificates and passwords are used."""
        client = paho.Client(
            CallbackAPIVersion.VERSION2, self._client_id, protocol=self._protocol, reconnect_on_failure=False
        )
        client.connect_timeout = self._config.connect_timeout_s
        client.max_inflight_messages_set(self._config.max_inflight)
        if self._config.username is not None:
            client.username_pw_set(self._config.username, self._config.read_password())
        if self._config.tls:
            client.tls_set_context(tls_context(self._config))
        client.will_set(self._prefix + self._will.topic, self._will.payload, self._will.qos, self._will.retain)
        client.on_socket_open = _send_at_once
        client.on_socket_register_write = _do_nothing  # else paho would write on the publisher's thread as well
        return client

    def _say_farewell(self, farewell: Message, timeout_s: float) -> bool:
        """Whether the broker has confirmed it."""
        confirmed: Queue[bool] = Queue()

        def settled(outcome: Outcome, _reason: str) -> None:
            confirmed.put(outcome is Outcome.DELIVERED)

        with self._lock:
            session = self._session
            if session is None or not session.online:
                return False
            session.own.append(_Own(self._prefix, farewell, settled))
        self._wake()
        try:
            return confirmed.get(timeout=timeout_s)
        except Empty:
            return False

    def _wake(self) -> None:
        with contextlib.suppress(BlockingIOError):  # it is full: the thread has enough to wake up from
            self._wake_in.send(b"\0")


def _outcome(reason: ReasonCode) -> tuple[Outcome, str]:
    if not reason.is_failure:
        return Outcome.DELIVERED, ""
    return (Outcome.LOST if reason.value in TRY_AGAIN else Outcome.REFUSED), f"the broker did not take it ({reason})"


def _same_state(payload: bytes, will: bytes) -> bool:
    """Whether two status payloads have one `state`: an older process's will differs from ours in its times."""
    try:
        said, ours = json.loads(payload), json.loads(will)
        return bool(said["state"] == ours["state"])
    except (ValueError, TypeError, KeyError, RecursionError):
        return False


def _cut(client: paho.Client) -> None:
    """Ends the connection without a DISCONNECT, so that the broker sends the will; safe from any thread."""
    sock = client.socket()
    if isinstance(sock, socket.socket):
        with contextlib.suppress(OSError):  # it is gone already
            # not SSLSocket's own, which takes the encryption off under the feet of the network thread
            socket.socket.shutdown(sock, socket.SHUT_RDWR)


def _send_at_once(_client: paho.Client, _userdata: Any, sock: Any) -> None:
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # small messages must not wait for one another


def _do_nothing(*_: Any) -> None:
    pass


def _drain(sock: socket.socket) -> None:
    with contextlib.suppress(BlockingIOError):
        while sock.recv(4096):
            pass
