"""MQTT: connects, reads and writes, and says when to try again; beside it stand its client, session and inbox.

Every connection gets a paho client of its own, with a clean session, so that nothing hides in a queue of paho's: a
message that was not confirmed when its connection ended is settled as LOST, and the outbox, the one owner of
redelivery, offers it again. When to try again is decided here (`_delay_s`) and nowhere else.

One thread connects, reads and writes; paho's callbacks run on it and only note what they heard. The client id is the
device's own and never changes: a broker that still holds a dead connection of ours then ends that one, and sends its
will, before it answers the new one; with a random id that will would come minutes later, over the newer `online`.
"""

from __future__ import annotations

import contextlib
import logging
import random
import re
import selectors
import socket
import ssl
import threading
import time
from collections.abc import Callable
from queue import Empty, Queue
from typing import Any

from edge_agent.config import Config
from edge_agent.errors import ConfigError, TransportError
from edge_agent.records import Message
from edge_agent.settings.mqtt import MqttConfig
from edge_agent.transports.base import Backoff, Inbound, Outcome, Settle
from edge_agent.transports.causes import CauseLog, explain
from edge_agent.transports.home_assistant import HomeAssistant, find_announced
from edge_agent.transports.mqtt_client import PROTOCOLS, cut, new_client
from edge_agent.transports.mqtt_inbox import Inbox
from edge_agent.transports.mqtt_library import MQTTErrorCode, MQTTProtocolVersion, Properties, paho
from edge_agent.transports.mqtt_session import CONFLICT_TAKEOVERS, CONFLICT_WITHIN_S, Own, Session, Takeovers, outcome

log = logging.getLogger(__name__)

STABLE_S = 30.0  # a connection that lasted so long starts the delays afresh
TICK_S = 1.0  # the keep-alive is looked after at least so often
PACKET_OVERHEAD_BYTES = 16  # fixed header, lengths, packet id and properties of our PUBLISH, at most

UNSUPPORTED_PROTOCOL = 0x84  # reason code of MQTT 5, section 2.4

_NAME = re.compile(r"[A-Za-z0-9._-]{1,64}")
_TOPIC = re.compile(r"[^+#/\x00-\x1f\x7f-\x9f\ud800-\udfff]+(/[^+#/\x00-\x1f\x7f-\x9f\ud800-\udfff]+)*")


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
        self._config = config
        self._where = f"{config.host}:{config.port}"
        self._client_id = config.client_id or f"edge-agent-{device_id}"
        self._prefix = f"{config.base_topic}/{device_id}/"
        self._will = will
        self._birth = birth
        self._home_assistant = home_assistant
        self._protocol = PROTOCOLS[config.protocol]
        self._inbox = Inbox(
            self._prefix, will, config.max_payload_bytes, None if home_assistant is None else home_assistant.birth_topic
        )
        self._new_client()  # a password or certificate file that cannot be used shows now
        self._backoff = Backoff(config.reconnect_min_s, config.reconnect_max_s)
        self._causes = CauseLog()
        self._cause = "not connected yet"
        self._takeovers = Takeovers()
        self._lock = threading.Lock()  # guards _session, its in_flight and online, and _loss_unnoticed
        self._session: Session | None = None
        self._loss_unnoticed = False
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
    def inbound(self) -> Queue[Inbound]:
        return self._inbox.inbound

    @property
    def inbound_dropped(self) -> int:
        return self._inbox.dropped

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
                self._publish(session, Own(self._prefix, message, settle))
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
            cut(session.client)
        self._wake()
        if self._thread is None:
            return
        # a thread that is still connecting is left behind: it ends by itself
        self._thread.join(max(0.2, deadline - time.monotonic()) if leaving else 0.2)
        if self._thread.is_alive() and session is not None:
            cut(session.client)  # a frozen broker does not even take the DISCONNECT

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
            session = Session(self._new_client(), self._config.max_inflight)
            self._inbox.attach(session, self._where)
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

    def _serve(self, session: Session) -> None:
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

    def _digest(self, session: Session) -> None:
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
                settle(*outcome(reason))
        self._send_own(session)
        if session.will_seen and session.online and not self._closing.is_set():
            session.will_seen = False
            log.info("an old last will came over our newer status; saying it again")
            self._say_birth(session)
        if session.listener_born and session.online:
            session.listener_born = False
            log.info("Home Assistant has started; announcing this device again")
            self._announce(session)

    def _go_online(self, session: Session, properties: Properties | None) -> None:
        session.window = min(session.window, getattr(properties, "ReceiveMaximum", session.window))
        session.max_packet_bytes = getattr(properties, "MaximumPacketSize", None)
        # before the birth: the retained status comes as it was before us
        self._inbox.subscribe(session, options=self._protocol == MQTTProtocolVersion.MQTTv5)
        self._say_birth(session)
        self._announce(session)
        with self._lock:
            session.online = True
            session.online_mono = time.monotonic()
        self._causes.connected()
        log.info("connected to %s as %s", self._where, self._client_id)
        self._on_ready()

    def _say_birth(self, session: Session) -> None:
        births = self._birth()
        with self._lock:
            session.own.extend(Own(self._prefix, message, self._settle_birth) for message in births)
        self._send_own(session)

    def _announce(self, session: Session) -> None:
        if self._home_assistant is None:
            return
        with self._lock:
            session.own.extend(Own("", message, settle) for message, settle in self._home_assistant.announcements())
        self._send_own(session)

    def _send_own(self, session: Session) -> None:
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

    def _settle_lost(self, session: Session | None) -> None:
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

    def _why_ended(self, session: Session) -> str:
        refusal = session.refusal
        if (
            refusal is not None
            and refusal.value == UNSUPPORTED_PROTOCOL
            and self._protocol == MQTTProtocolVersion.MQTTv5
        ):
            self._protocol = MQTTProtocolVersion.MQTTv311
            return f"{self._where} does not speak MQTT 5; going on with 3.1.1 (set mqtt.protocol to save this try)"
        return session.why_ended(self._config, self._where)

    def _delay_s(self, session: Session | None, cause: str) -> float:
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

    # paho's client

    def _publish(self, session: Session, own: Own) -> None:
        """Hands the message to paho; the lock is held, so that its confirmation finds it in flight."""
        message = own.message
        info = session.client.publish(own.prefix + message.topic, message.payload, message.qos, message.retain)
        if info.rc != MQTTErrorCode.MQTT_ERR_SUCCESS:
            raise TransportError(f"not taken now: {paho.error_string(info.rc)}")
        session.in_flight[info.mid] = own.settle
        self._inbox.note_said(message)

    def _refusal(self, prefix: str, message: Message, session: Session | None) -> str | None:
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
        return new_client(self._config, self._client_id, self._protocol, self._prefix, self._will)

    def _say_farewell(self, farewell: Message, timeout_s: float) -> bool:
        """Whether the broker has confirmed it."""
        confirmed: Queue[bool] = Queue()

        def settled(outcome: Outcome, _reason: str) -> None:
            confirmed.put(outcome is Outcome.DELIVERED)

        with self._lock:
            session = self._session
            if session is None or not session.online:
                return False
            session.own.append(Own(self._prefix, farewell, settled))
        self._wake()
        try:
            return confirmed.get(timeout=timeout_s)
        except Empty:
            return False

    def _wake(self) -> None:
        with contextlib.suppress(BlockingIOError):  # it is full: the thread has enough to wake up from
            self._wake_in.send(b"\0")


def _do_nothing(*_: Any) -> None:
    pass


def _drain(sock: socket.socket) -> None:
    with contextlib.suppress(BlockingIOError):
        while sock.recv(4096):
            pass
