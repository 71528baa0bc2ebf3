"""MqttTransport against a real Mosquitto: connecting, refusals, delivery, wills, twins and frozen brokers."""

from __future__ import annotations

import json
import logging
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import paho.mqtt.client as paho
import pytest

from edge_agent import messages
from edge_agent.errors import ConfigError, TransportError
from edge_agent.records import Message
from edge_agent.settings.mqtt import MqttConfig
from edge_agent.transports.base import Inbound, Outcome
from edge_agent.transports.mqtt import MqttTransport
from edge_agent.transports.mqtt_inbox import INBOUND_LIMIT
from tests.broker import DEADLINE_S, Broker, Observer, Proxy, free_port, wait_until
from tests.certificates import make_authority, make_certificate

WILL = messages.status("offline", reason="lost", at=None, started_at=1.0)
BIRTH = messages.status("online", reason=None, at=2.0, started_at=1.0)
STOPPED = messages.status("stopped", reason="shutdown", at=3.0, started_at=1.0)
PREFIX = "edge/dev-1/"
STATUS = PREFIX + "status"
BOTH_PROTOCOLS = pytest.mark.parametrize("protocol", ["5", "3.1.1"])


def config(port: int, **keys: Any) -> MqttConfig:
    return MqttConfig(**{"port": port, "reconnect_min_s": 0.05, "reconnect_max_s": 0.2, **keys})


class Settled:
    """Collects how offers ended."""

    def __init__(self) -> None:
        self.outcomes: list[tuple[Outcome, str]] = []

    def __call__(self, outcome: Outcome, reason: str) -> None:
        self.outcomes.append((outcome, reason))

    def count(self, outcome: Outcome) -> int:
        return sum(one is outcome for one, _ in list(self.outcomes))

    def wait(self, outcome: Outcome, times: int = 1) -> None:
        wait_until(lambda: self.count(outcome) >= times, f"{times} x {outcome}; got {self.outcomes}")


Make = Callable[..., MqttTransport]


@pytest.fixture
def make() -> Iterator[Make]:
    """Makes transports of device dev-1 that are opened, and closed after the test."""
    transports: list[MqttTransport] = []

    def make(settings: MqttConfig, will: Message = WILL, birth: Any = lambda: [BIRTH]) -> MqttTransport:
        transport = MqttTransport(settings, "dev-1", will, birth)
        transports.append(transport)
        transport.open(lambda: None)
        return transport

    yield make
    for transport in transports:
        transport.close(None, 1.0)


def wait_connected(transport: MqttTransport) -> None:
    wait_until(lambda: transport.connected, f"connection; cause: {transport.cause}")


def wait_cause(transport: MqttTransport, part: str) -> None:
    wait_until(lambda: part in (transport.cause or ""), f"cause with {part!r}; it is {transport.cause!r}")


def offer(transport: MqttTransport, message: Message, settle: Settled) -> None:
    """Offers until it is taken, as a publisher would."""

    def taken() -> bool:
        try:
            transport.send(message, settle)
        except TransportError:
            return False
        return True

    wait_until(taken, f"{message.topic} taken")


# Connecting


@BOTH_PROTOCOLS
def test_message_reaches_a_subscriber_below_the_prefix(broker: Broker, make: Make, protocol: str) -> None:
    with Observer(broker.port, made_up=True) as observer:
        transport = make(config(broker.port, protocol=protocol))
        wait_connected(transport)
        settled = Settled()
        offer(transport, Message("cam-1/result", b'{"n":1}'), settled)
        offer(transport, Message("telemetry", b'{"n":2}', qos=0), settled)
        settled.wait(Outcome.DELIVERED, 2)
        observer.wait_for(PREFIX + "cam-1/result", b'{"n":1}')
        observer.wait_for(PREFIX + "telemetry", b'{"n":2}')
        assert observer.heard[0].topic == STATUS  # the birth comes before everything else
    version = "p5" if protocol == "5" else "p2"
    assert f"as edge-agent-dev-1 ({version}" in broker.log()


def test_connects_by_itself_when_the_broker_comes_late(make_broker: Callable[..., Broker], make: Make) -> None:
    port = free_port()
    transport = make(config(port))
    wait_cause(transport, "nothing listens")
    assert not transport.connected
    assert transport.room == 0
    with pytest.raises(TransportError, match="not connected"):
        transport.send(Message("cam/result", b"1"), Settled())
    make_broker(port=port).start()
    wait_connected(transport)
    assert transport.cause is None


@pytest.mark.parametrize("reason", ["without an answer", "refused the login", "is for another name"])
def test_cause_is_logged_once_however_often_it_is_tried(
    make_broker: Callable[..., Broker], make: Make, tmp_path: Path, caplog: pytest.LogCaptureFixture, reason: str
) -> None:
    """Field case MQ-5: a try that fails is not taken for online, and is not said at every retry."""
    caplog.set_level(logging.INFO)
    port, keys = free_port(), {}
    if reason == "refused the login":
        port = make_broker("allow_anonymous false").start().port
    elif reason == "is for another name":
        authority = make_authority(tmp_path)
        server = make_certificate(tmp_path, "server", authority, "DNS:broker.plant.local")
        port = make_broker(f"allow_anonymous true\ncertfile {server.cert}\nkeyfile {server.key}").start().port
        keys = {"tls": True, "ca_file": authority.cert}
    with Proxy(port) as proxy:  # where nothing is behind it, each connection is closed without a word
        transport = make(config(proxy.port, **keys))
        wait_cause(transport, reason)
        wait_until(lambda: proxy.accepted > 5, "several tries")
        assert not transport.connected
        assert transport.room == 0
    said = [record for record in caplog.records if reason in record.getMessage()]
    assert len(said) == 1


def test_unresolvable_and_impossible_host_names_are_named(make: Make) -> None:
    wait_cause(make(config(1883, host="no-such-host.invalid")), "cannot be resolved")
    wait_cause(make(config(1883, host="a..b")), "cannot be a host name")


def test_silent_server_is_given_up_and_named(make: Make) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        transport = make(config(silent.getsockname()[1], connect_timeout_s=0.2))
        wait_cause(transport, "says nothing for 0.2 s")


def test_broker_without_mqtt_5_is_met_with_3_1_1(make: Make) -> None:
    seen: list[int] = []

    def serve(server: socket.socket) -> None:
        while len(seen) < 2:
            conn, _ = server.accept()
            with conn:
                connect = conn.recv(1024)
                seen.append(connect[connect.index(b"MQTT") + 4])  # the protocol level
                conn.sendall(b"\x20\x02\x00\x01")  # CONNACK of 3.1.1: unacceptable protocol version

    with socket.create_server(("127.0.0.1", 0)) as server:
        thread = threading.Thread(target=serve, args=(server,), daemon=True)
        thread.start()
        make(config(server.getsockname()[1]))
        thread.join(DEADLINE_S)
    assert seen == [5, 4]


OLD_PAHO = {  # as 1.6 is laid out: without `enums`, and with reason codes of another name
    "paho/__init__.py": "",
    "paho/mqtt/__init__.py": '__version__ = "1.6.1"\n',
    "paho/mqtt/client.py": "class Client: ...\n",
    "paho/mqtt/properties.py": "class Properties: ...\n",
    "paho/mqtt/reasoncodes.py": "class ReasonCodes: ...\n",
    "paho/mqtt/subscribeoptions.py": "class SubscribeOptions: ...\n",
}


@pytest.mark.parametrize("verb", ["run --config config.yaml", "demo --frames 1", "bench outbox"])
def test_paho_of_version_1_is_refused_with_what_to_do(tmp_path: Path, verb: str) -> None:
    """Field case MQ-12: version 2 alone is supported."""
    for name, source in OLD_PAHO.items():
        path = tmp_path / "old" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(source)
    (tmp_path / "config.yaml").write_text("mqtt:\n  port: 1\n")
    environ = {**os.environ, "PYTHONPATH": f"{tmp_path / 'old'}:{Path(__file__).resolve().parents[2]}"}
    command = [sys.executable, "-m", "edge_agent", *verb.split()]
    ended = subprocess.run(command, env=environ, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
    assert ended.returncode == 78
    assert ended.stderr.splitlines()[-1] == (
        "edge-agent: paho-mqtt 1.6.1 is installed and version 2 is needed; run: pip install 'paho-mqtt>=2.0,<3'"
    )


# Login and TLS


def test_wrong_password_is_not_online_and_is_named_without_the_password(
    make_broker: Callable[..., Broker], make: Make, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    users = tmp_path / "users"
    subprocess.run(["mosquitto_passwd", "-b", "-c", users, "reader", "S3cr#t@pw"], check=True, capture_output=True)
    broker = make_broker(f"allow_anonymous false\npassword_file {users}").start()
    secret = tmp_path / "password"
    secret.touch(mode=0o600)
    secret.write_text("wr0ng-S3cret\n")
    transport = make(config(broker.port, username="reader", password_file=secret))
    wait_cause(transport, "refused the login")
    assert not transport.connected
    secret.write_text("S3cr#t@pw\n")  # read again at each try: no restart is needed
    wait_connected(transport)
    assert "refused the login" in caplog.text
    assert "wr0ng" not in caplog.text
    assert "S3cr#t" not in caplog.text


def test_tls_with_client_certificate_connects(make_broker: Callable[..., Broker], make: Make, tmp_path: Path) -> None:
    authority = make_authority(tmp_path)
    server = make_certificate(tmp_path, "server", authority, "DNS:localhost,IP:127.0.0.1")
    device = make_certificate(tmp_path, "device", authority, "DNS:dev-1")
    broker = make_broker(
        f"allow_anonymous true\ncafile {authority.cert}\ncertfile {server.cert}\nkeyfile {server.key}\n"
        "require_certificate true"
    ).start()
    secure = {"tls": True, "ca_file": authority.cert}
    anonymous = make(config(broker.port, client_id="no-cert", **secure))
    transport = make(config(broker.port, cert_file=device.cert, key_file=device.key, **secure))
    wait_connected(transport)
    settled = Settled()
    for n in range(50):
        offer(transport, Message("cam/result", b"%d" % n + b" " * 20_000), settled)
    settled.wait(Outcome.DELIVERED, 50)
    wait_until(lambda: "yet" not in (anonymous.cause or "yet"), "a cause")
    assert not anonymous.connected


@pytest.mark.parametrize("shown", ["none", "of another authority"])
def test_missing_or_foreign_client_certificate_is_named(
    make_broker: Callable[..., Broker], make: Make, tmp_path: Path, shown: str
) -> None:
    authority = make_authority(tmp_path)
    server = make_certificate(tmp_path, "server", authority, "IP:127.0.0.1")
    broker = make_broker(
        f"allow_anonymous true\ncafile {authority.cert}\ncertfile {server.cert}\nkeyfile {server.key}\n"
        "require_certificate true"
    ).start()
    own = {}
    if shown != "none":
        (tmp_path / "other").mkdir()
        device = make_certificate(tmp_path / "other", "device", make_authority(tmp_path / "other"), "DNS:dev-1")
        own = {"cert_file": device.cert, "key_file": device.key}
    transport = make(config(broker.port, tls=True, ca_file=authority.cert, **own))
    wait_cause(transport, "mqtt.cert_file")
    assert not transport.connected


@pytest.mark.parametrize(
    ("san", "start", "trusted", "cause"),
    [
        ("DNS:broker.plant.local", "20200101000000Z", True, "is for another name, not 127.0.0.1"),
        ("IP:127.0.0.1", "20900101000000Z", True, "the clock of this device says 20"),
        ("IP:127.0.0.1", "20200101000000Z", False, "is not trusted"),
    ],
    ids=["other name", "not yet valid", "unknown authority"],
)
def test_certificate_that_does_not_fit_is_named_and_never_accepted(
    make_broker: Callable[..., Broker], make: Make, tmp_path: Path, san: str, start: str, trusted: bool, cause: str
) -> None:
    authority = make_authority(tmp_path)
    server = make_certificate(tmp_path, "server", authority, san, start)
    other = tmp_path / "other"
    other.mkdir()
    trust = authority.cert if trusted else make_authority(other).cert
    broker = make_broker(f"allow_anonymous true\ncertfile {server.cert}\nkeyfile {server.key}").start()
    transport = make(config(broker.port, tls=True, ca_file=trust))
    wait_cause(transport, cause)
    assert not transport.connected


def test_expired_certificate_is_named(make_broker: Callable[..., Broker], make: Make, tmp_path: Path) -> None:
    authority = make_authority(tmp_path)
    server = make_certificate(tmp_path, "server", authority, "IP:127.0.0.1", "20200101000000Z", "20210101000000Z")
    broker = make_broker(f"allow_anonymous true\ncertfile {server.cert}\nkeyfile {server.key}").start()
    wait_cause(make(config(broker.port, tls=True, ca_file=authority.cert)), "has expired")


def test_plain_port_asked_for_tls_is_named(broker: Broker, make: Make) -> None:
    transport = make(config(broker.port, tls=True, connect_timeout_s=0.5))
    wait_until(lambda: transport.cause != "not connected yet", "a cause")
    assert not transport.connected
    assert any(part in str(transport.cause) for part in ("TLS", "mqtt.tls", "does not answer"))


@pytest.mark.parametrize("key", ["password_file", "ca_file", "cert_file"])
def test_file_that_cannot_be_used_ends_the_start_and_names_its_key(tmp_path: Path, key: str) -> None:
    files = {key: tmp_path / "missing"} | ({"key_file": tmp_path / "missing"} if key == "cert_file" else {})
    settings = config(1883, username="u", tls=True, **files)
    with pytest.raises(ConfigError, match=key.replace("_", ".")):
        MqttTransport(settings, "dev-1", WILL)


@pytest.mark.parametrize("name", ["line#1", "a/+/b", "x\0", "x" * 70_000, "../other", "", "dev\n"])
def test_device_id_that_is_no_topic_level_is_refused(name: str) -> None:
    with pytest.raises(ConfigError, match="device_id"):
        MqttTransport(config(1883), name, WILL)


# Delivery


def test_full_window_takes_no_more_until_confirmed(broker: Broker, make: Make) -> None:
    with Proxy(broker.port) as proxy:
        transport = make(config(proxy.port, max_inflight=3))
        wait_connected(transport)
        wait_until(lambda: transport.room == 3, "the birth confirmed")
        proxy.swallow_answers = True
        settled = Settled()
        for n in range(3):
            offer(transport, Message("cam/result", b"%d" % n), settled)
        assert transport.room == 0
        with pytest.raises(TransportError, match="window is full"):
            transport.send(Message("cam/result", b"3"), settled)
        assert settled.outcomes == []
        proxy.cut()
        settled.wait(Outcome.LOST, 3)
        proxy.swallow_answers = False


def test_receive_maximum_of_the_broker_narrows_the_window(make_broker: Callable[..., Broker], make: Make) -> None:
    broker = make_broker("allow_anonymous true\nmax_inflight_messages 2").start()
    births = [messages.camera_status(f"cam-{n}", "online", reason=None, last_frame_at=None, at=1.0) for n in range(9)]
    transport = make(config(broker.port, max_inflight=50), birth=lambda: births)
    wait_connected(transport)
    wait_until(lambda: transport.room == 2, "nine births through a window of two")
    settled = Settled()
    for n in range(20):
        offer(transport, Message("cam/result", b"%d" % n), settled)
    settled.wait(Outcome.DELIVERED, 20)
    assert "receive maximum" not in broker.log().lower()


def test_renewed_connection_refuses_once_so_that_lost_messages_go_first(broker: Broker, make: Make) -> None:
    with Proxy(broker.port) as proxy:
        transport = make(config(proxy.port))
        wait_connected(transport)
        proxy.swallow_answers = True
        lost = Settled()
        offer(transport, Message("cam/result", b"1"), lost)
        proxy.cut()
        lost.wait(Outcome.LOST)
        proxy.swallow_answers = False
        wait_connected(transport)
        with pytest.raises(TransportError, match="renewed"):
            transport.send(Message("cam/result", b"2"), Settled())
        second = Settled()
        transport.send(Message("cam/result", b"1"), second)
        second.wait(Outcome.DELIVERED)


def test_unconfirmed_message_is_not_sent_again_by_the_library(broker: Broker, make: Make) -> None:
    with Observer(broker.port, PREFIX + "+/result", made_up=True) as observer, Proxy(broker.port) as proxy:
        transport = make(config(proxy.port))
        wait_connected(transport)
        proxy.swallow_answers = True
        lost, marker = Settled(), Settled()
        offer(transport, Message("cam/result", b"1"), lost)
        observer.wait_for(PREFIX + "cam/result", b"1")
        proxy.cut()
        proxy.swallow_answers = False
        lost.wait(Outcome.LOST)
        offer(transport, Message("cam/result", b"2"), marker)
        observer.wait_for(PREFIX + "cam/result", b"2")
        assert observer.payloads(PREFIX + "cam/result") == [b"1", b"2"]


@pytest.mark.parametrize("topic", ["a/+/b", "cam/#", "x\0y", "", "/cam", "cam//x", "\ud800"])
def test_illegal_topic_is_refused_and_never_reaches_the_broker(broker: Broker, make: Make, topic: str) -> None:
    transport = make(config(broker.port))
    wait_connected(transport)
    refused, good = Settled(), Settled()
    transport.send(Message(topic, b"1"), refused)
    assert refused.count(Outcome.REFUSED) == 1
    offer(transport, Message("cam/result", b"1"), good)
    good.wait(Outcome.DELIVERED)
    assert broker.log().count("New client connected") == 1


def test_payload_over_our_limit_is_refused_even_while_offline() -> None:
    transport = MqttTransport(config(free_port(), max_payload_bytes=2048), "dev-1", WILL)
    settled = Settled()
    transport.send(Message("cam/result", b"x" * 2049), settled)
    assert settled.outcomes == [(Outcome.REFUSED, "cam/result: 2049 bytes are over mqtt.max_payload_bytes, 2048")]


def test_payload_over_the_brokers_limit_is_refused_without_losing_the_connection(
    make_broker: Callable[..., Broker], make: Make
) -> None:
    broker = make_broker("allow_anonymous true\nmax_packet_size 3000").start()
    transport = make(config(broker.port))
    wait_connected(transport)
    large, fits, small = Settled(), Settled(), Settled()
    transport.send(Message("cam/result", b"x" * 3000), large)
    assert large.count(Outcome.REFUSED) == 1
    longest = 3000 - len(PREFIX + "cam/result") - 16
    offer(transport, Message("cam/result", b"x" * longest), fits)
    offer(transport, Message("cam/result", b"y"), small)
    fits.wait(Outcome.DELIVERED)
    small.wait(Outcome.DELIVERED)
    assert broker.log().count("New client connected") == 1


def test_message_the_broker_will_not_take_is_refused_with_its_reason(
    make_broker: Callable[..., Broker], make: Make, tmp_path: Path
) -> None:
    acl = tmp_path / "acl"
    acl.write_text(f"topic write {STATUS}\ntopic readwrite {PREFIX}ok/#\n")
    broker = make_broker(f"allow_anonymous true\nacl_file {acl}").start()
    transport = make(config(broker.port))
    wait_connected(transport)
    denied, allowed = Settled(), Settled()
    offer(transport, Message("cam/result", b"1"), denied)
    offer(transport, Message("ok/result", b"1"), allowed)
    allowed.wait(Outcome.DELIVERED)
    assert [outcome for outcome, _ in denied.outcomes] == [Outcome.REFUSED]
    assert "Not authorized" in denied.outcomes[0][1]


# What comes from outside


@BOTH_PROTOCOLS
def test_commands_and_desired_config_arrive_also_after_a_reconnect(broker: Broker, make: Make, protocol: str) -> None:
    with Observer(broker.port, made_up=True) as observer, Proxy(broker.port) as proxy:
        observer.publish(PREFIX + "config/desired", b'{"version":1}', retain=True)
        transport = make(config(proxy.port, protocol=protocol))
        assert transport.inbound.get(timeout=DEADLINE_S) == Inbound("config/desired", b'{"version":1}', retained=True)
        wait_connected(transport)
        observer.publish(PREFIX + "command/ping", b'{"id":"1"}')
        assert transport.inbound.get(timeout=DEADLINE_S) == Inbound("command/ping", b'{"id":"1"}', retained=False)
        proxy.cut()
        assert transport.inbound.get(timeout=DEADLINE_S) == Inbound("config/desired", b'{"version":1}', retained=True)
        observer.publish(PREFIX + "command/ping/reply", b"{}")  # our own words are not heard
        observer.publish(PREFIX + "command/ping", b'{"id":"2"}')
        assert transport.inbound.get(timeout=DEADLINE_S).payload == b'{"id":"2"}'


def test_flood_from_outside_is_bounded_and_counted(broker: Broker, make: Make) -> None:
    with Observer(broker.port, "none") as observer:
        transport = make(config(broker.port, max_payload_bytes=1024))
        wait_connected(transport)
        observer.publish(PREFIX + "command/ping", b"x" * 2000)
        for n in range(INBOUND_LIMIT + 20):
            observer.publish(PREFIX + "command/ping", b"%d" % n)
        wait_until(lambda: transport.inbound_dropped == 21, "drops")
        assert transport.inbound.qsize() == INBOUND_LIMIT
        assert transport.inbound.get().payload == b"0"
        assert transport.connected


def test_refused_subscription_is_told(
    make_broker: Callable[..., Broker], make: Make, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    # Mosquitto grants what its access list denies; a broker that says no answers SUBACK with 0x87
    answers = [b"\x20\x03\x00\x00\x00", b"\x90\x06\x00\x01\x00\x87\x87\x87"]
    with socket.create_server(("127.0.0.1", 0)) as server:
        transport = make(config(server.getsockname()[1]), birth=list)
        conn, _ = server.accept()
        with conn:
            for answer in answers:
                conn.recv(4096)
                conn.sendall(answer)
            wait_until(lambda: "lets us hear no commands" in caplog.text, "the warning")
            transport.close(None, 0.1)


# Wills, births and farewells


@BOTH_PROTOCOLS
def test_clean_stop_says_stopped_and_no_will_follows(broker: Broker, make: Make, protocol: str) -> None:
    with Observer(broker.port) as observer:
        transport = make(config(broker.port, protocol=protocol))
        wait_connected(transport)
        transport.close(STOPPED, 5.0)
        observer.wait_for(STATUS, STOPPED.payload)
        wait_until(lambda: "Client edge-agent-dev-1 disconnected." in broker.log(), "DISCONNECT in the broker's log")
        assert observer.payloads(STATUS) == [BIRTH.payload, STOPPED.payload]
    with Observer(broker.port) as late:
        late.wait_for(STATUS, STOPPED.payload)
        assert late.heard[0].retained


DEVICE = """
import sys, time
from edge_agent.settings.mqtt import MqttConfig
from edge_agent.records import Message
from edge_agent.transports.mqtt import MqttTransport
will, birth = (Message("status", text.encode(), retain=True) for text in sys.argv[2:4])
transport = MqttTransport(MqttConfig(port=int(sys.argv[1])), "dev-1", will, lambda: [birth])
transport.open(lambda: None)
while True:
    time.sleep(60)
"""


@pytest.fixture
def device(broker: Broker) -> Iterator[subprocess.Popen[bytes]]:
    """A whole process that is device dev-1."""
    arguments = [str(broker.port), WILL.payload.decode(), '{"state":"online","pid":1}']
    process = subprocess.Popen([sys.executable, "-c", DEVICE, *arguments], cwd=Path(__file__).resolve().parents[2])
    yield process
    process.kill()
    process.wait(DEADLINE_S)


def test_sigkill_says_offline_and_a_new_start_says_online(
    broker: Broker, make: Make, device: subprocess.Popen[bytes]
) -> None:
    with Observer(broker.port, made_up=True) as observer:
        observer.wait_for(STATUS, b'{"state":"online","pid":1}')
        device.kill()
        observer.wait_for(STATUS, WILL.payload)
        make(config(broker.port))
        observer.wait_for(STATUS, BIRTH.payload)
        assert observer.heard[-1].payload == BIRTH.payload


def test_will_of_a_hanging_old_connection_comes_before_the_new_online(
    broker: Broker, make: Make, device: subprocess.Popen[bytes]
) -> None:
    with Observer(broker.port, made_up=True) as observer:
        observer.wait_for(STATUS, b'{"state":"online","pid":1}')
        os.kill(device.pid, signal.SIGSTOP)  # as a device whose cable was pulled: the broker still holds its connection
        transport = make(config(broker.port))
        observer.wait_for(STATUS, BIRTH.payload)
        device.kill()
        settled = Settled()
        offer(transport, Message("cam/result", b"after"), settled)
        observer.wait_for(PREFIX + "cam/result", b"after")
        states = [json.loads(payload)["state"] for payload in observer.payloads(STATUS)]
        assert states == ["online", "offline", "online"]


@BOTH_PROTOCOLS
def test_late_will_over_our_status_is_answered_with_the_status(broker: Broker, make: Make, protocol: str) -> None:
    with Observer(broker.port) as observer:
        transport = make(config(broker.port, protocol=protocol))
        wait_connected(transport)
        observer.wait_for(STATUS, BIRTH.payload)
        observer.publish(STATUS, b'{"state":"offline","reason":"lost","started_at":"earlier"}', retain=True)
        observer.wait_for(STATUS, BIRTH.payload, times=2)
        observer.publish(STATUS, b"not even JSON")
        observer.publish(PREFIX + "command/ping", b"{}")
        transport.inbound.get(timeout=DEADLINE_S)
        assert observer.payloads(STATUS).count(BIRTH.payload) == 2
    with Observer(broker.port) as late:
        late.wait_for(STATUS, BIRTH.payload)


def test_unconfirmed_farewell_lets_the_will_speak(broker: Broker, make: Make) -> None:
    with Observer(broker.port) as observer, Proxy(broker.port) as proxy:
        transport = make(config(proxy.port))
        wait_connected(transport)
        proxy.swallow_answers = True
        transport.close(STOPPED, 0.3)
        observer.wait_for(STATUS, WILL.payload)


def test_unconfirmed_farewell_lets_the_will_speak_over_tls_too(
    make_broker: Callable[..., Broker], make: Make, tmp_path: Path
) -> None:
    authority = make_authority(tmp_path)
    server = make_certificate(tmp_path, "server", authority, "IP:127.0.0.1")
    secure_port = free_port()
    secure = f"listener {secure_port} 127.0.0.1\ncertfile {server.cert}\nkeyfile {server.key}\nallow_anonymous true"
    broker = make_broker(f"allow_anonymous true\n{secure}").start()
    with Observer(broker.port) as observer, Proxy(secure_port) as proxy:
        transport = make(config(proxy.port, tls=True, ca_file=authority.cert))
        wait_connected(transport)
        proxy.swallow_answers = True
        transport.close(STOPPED, 0.3)
        observer.wait_for(STATUS, WILL.payload)


def test_close_is_prompt_while_nothing_answers(make: Make) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        transport = make(config(silent.getsockname()[1], connect_timeout_s=60.0))
        silent.accept()
        before = time.monotonic()
        transport.close(STOPPED, 5.0)
        assert time.monotonic() - before < 4


# Brokers that fail, devices that are two


@BOTH_PROTOCOLS
def test_frozen_broker_is_noticed_and_met_again(broker: Broker, make: Make, protocol: str) -> None:
    settings = config(broker.port, protocol=protocol, connect_timeout_s=0.3).model_copy(update={"keepalive_s": 1})
    transport = make(settings)
    settled = Settled()

    def offered_to_a_frozen_broker() -> bool:
        """False where the connection was lost before: a machine that stands still for a second costs one."""
        wait_connected(transport)
        broker.freeze()
        try:
            transport.send(Message("cam/result", b"1"), settled)
        except TransportError:
            broker.thaw()
            return False
        return True

    wait_until(offered_to_a_frozen_broker, "the offer")
    wait_until(lambda: not transport.connected, "the loss noticed")
    settled.wait(Outcome.LOST)
    wait_cause(transport, "says nothing for 0.3 s")
    broker.thaw()
    wait_connected(transport)


@BOTH_PROTOCOLS
def test_two_devices_with_one_id_are_told_and_stand_back(
    broker: Broker, make: Make, protocol: str, caplog: pytest.LogCaptureFixture
) -> None:
    twins = []
    for started_at in (5.0, 6.0):
        will = messages.status("offline", reason="lost", at=None, started_at=started_at)
        birth = messages.status("online", reason=None, at=7.0, started_at=started_at)
        twins.append(make(config(broker.port, protocol=protocol), will, [birth].copy))
    wait_until(lambda: any("id_conflict" in (twin.cause or "") for twin in twins), "id_conflict as a cause")
    wait_until(lambda: any(twin.connected for twin in twins), "the other one in peace")
    connects = broker.log().count("New client connected")
    assert connects <= 30  # eight do where each twin hears of the other before it is cut off
    time.sleep(0.5)
    assert broker.log().count("New client connected") == connects
    warning = next(record.getMessage() for record in caplog.records if "id_conflict" in record.getMessage())
    assert "'edge-agent-dev-1'" in warning


@BOTH_PROTOCOLS
def test_restarting_broker_is_no_id_conflict(broker: Broker, make: Make, protocol: str) -> None:
    transport = make(config(broker.port, protocol=protocol))
    for _ in range(4):
        wait_connected(transport)
        broker.kill()
        wait_cause(transport, "nothing listens")
        broker.start()
    wait_connected(transport)


@BOTH_PROTOCOLS
def test_broker_that_comes_back_with_an_old_status_is_no_id_conflict(broker: Broker, make: Make, protocol: str) -> None:
    """As one does that keeps what is retained on disk and writes it down now and then."""
    predecessor = messages.status("online", reason=None, at=0.5, started_at=0.1).payload
    count = iter(range(1000))
    with Observer(broker.port, STATUS) as observer, Proxy(broker.port) as proxy:
        observer.publish(STATUS, predecessor, retain=True)

        def birth() -> list[Message]:
            return [messages.status("online", reason=None, at=2.0 + next(count), started_at=1.0)]

        transport = make(config(proxy.port, protocol=protocol), birth=birth)
        wait_connected(transport)
        first = messages.status("online", reason=None, at=2.0, started_at=1.0).payload
        observer.wait_for(STATUS, first)
        for n, old in enumerate((predecessor, first) * 3, start=1):
            proxy.shut()
            wait_until(lambda: not transport.connected, "the cut")
            observer.wait_for(STATUS, WILL.payload, times=n)
            observer.publish(STATUS, old, retain=True)
            proxy.reopen()
            wait_connected(transport)
        assert "id_conflict" not in str(transport.cause)
        wait_connected(transport)


DIES = pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")


def once(real: Callable[..., Any], fault: BaseException) -> Callable[..., Any]:
    """`real`, that raises the first time."""
    faults = [fault]

    def call(*args: Any) -> Any:
        if faults:
            raise faults.pop()
        return real(*args)

    return call


@DIES
@pytest.mark.parametrize("method", ["loop_read", "loop_write", "loop_misc", "connect"])
@pytest.mark.parametrize("fault", [RuntimeError("a fault in the library"), MemoryError(), SystemExit(1)], ids=repr)
def test_dead_network_thread_is_replaced_whatever_it_died_of(
    broker: Broker,
    make: Make,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    method: str,
    fault: BaseException,
) -> None:
    monkeypatch.setattr(paho.Client, method, once(getattr(paho.Client, method), fault))
    transport = make(config(broker.port))
    wait_until(lambda: "network thread died" in caplog.text, "the death noticed")
    wait_connected(transport)
    settled = Settled()
    offer(transport, Message("cam/result", b"1"), settled)
    settled.wait(Outcome.DELIVERED)


@DIES
def test_dead_network_thread_is_replaced(broker: Broker, make: Make, caplog: pytest.LogCaptureFixture) -> None:
    calls: list[int] = []

    def birth() -> list[Message]:
        calls.append(1)
        if len(calls) == 1:
            raise RuntimeError("a fault in the agent")
        return [BIRTH]

    transport = make(config(broker.port), birth=birth)
    wait_connected(transport)
    assert len(calls) == 2
    assert "network thread died" in caplog.text
    settled = Settled()
    offer(transport, Message("cam/result", b"1"), settled)
    settled.wait(Outcome.DELIVERED)


@DIES
def test_network_thread_that_cannot_be_replaced_goes_on(
    broker: Broker, make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[int] = []
    start = threading.Thread.start

    def birth() -> list[Message]:
        calls.append(1)
        if len(calls) < 4:
            monkeypatch.setattr(threading.Thread, "start", refuse)
            raise RuntimeError("a fault in the agent")
        return [BIRTH]

    def refuse(thread: threading.Thread) -> None:
        if thread.name == "mqtt":
            raise RuntimeError("can't start new thread")
        start(thread)

    transport = make(config(broker.port), birth=birth)
    wait_connected(transport)
    settled = Settled()
    offer(transport, Message("cam/result", b"1"), settled)
    settled.wait(Outcome.DELIVERED)
    transport.close(STOPPED, 5.0)
    wait_until(lambda: "Client edge-agent-dev-1 disconnected." in broker.log(), "DISCONNECT in the broker's log")


@DIES
def test_message_under_way_at_the_death_of_the_network_thread_is_lost_and_not_forgotten(
    broker: Broker, make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Proxy(broker.port) as proxy:
        transport = make(config(proxy.port))
        wait_connected(transport)
        wait_until(lambda: transport.room == 20, "the birth confirmed")
        proxy.swallow_answers = True
        settled = Settled()
        offer(transport, Message("cam/result", b"1"), settled)
        monkeypatch.setattr(paho.Client, "loop_misc", once(paho.Client.loop_misc, RuntimeError("a fault")))
        settled.wait(Outcome.LOST)
        proxy.swallow_answers = False
        wait_connected(transport)
