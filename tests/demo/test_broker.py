"""Broker: Mosquitto and amqtt both serve the demo's subscriber, on loopback only, and are gone afterwards."""

from __future__ import annotations

import importlib.util
import json
import socket
import time
from pathlib import Path

import paho.mqtt.client as mqtt
import pytest
from paho.mqtt.enums import CallbackAPIVersion

from edge_agent.demo import broker as broker_module
from edge_agent.demo.broker import Kind, choose, free_port, mosquitto, open_broker
from edge_agent.demo.subscriber import Subscriber
from edge_agent.errors import ConfigError, TransportError

KINDS = [
    pytest.param("mosquitto", marks=pytest.mark.skipif(mosquitto() is None, reason="Mosquitto is not installed")),
    pytest.param(
        "amqtt", marks=pytest.mark.skipif(importlib.util.find_spec("amqtt") is None, reason="amqtt is not installed")
    ),
]


@pytest.mark.parametrize("kind", KINDS)
def test_messages_arrive_and_the_broker_is_gone_afterwards(kind: Kind, tmp_path: Path) -> None:
    with open_broker(tmp_path, kind) as running:
        assert running.kind == kind
        publisher = mqtt.Client(CallbackAPIVersion.VERSION2)
        publisher.connect(running.host, running.port)
        publisher.loop_start()
        publisher.publish("edge/dev1/status", b'{"state":"online"}', qos=1, retain=True).wait_for_publish(10)
        with Subscriber(running.host, running.port, "edge/dev1") as subscriber:
            publisher.publish("edge/other/line1/result", b"not for us", qos=1)
            payloads = [json.dumps({"seq": n, "text": "x" * 2000}).encode() for n in range(50)]
            for payload in payloads:
                publisher.publish("edge/dev1/line1/result", payload, qos=1)
            arrivals = [subscriber.take(10) for _ in range(51)]
            assert subscriber.take(0) is None
        assert arrivals[0] is not None
        assert (arrivals[0].topic, arrivals[0].payload) == ("edge/dev1/status", b'{"state":"online"}')
        assert [a.payload for a in arrivals[1:] if a] == payloads
        assert subscriber.dropped == 0
        publisher.disconnect()
        publisher.loop_stop()
    assert running.child.exit_code() is not None
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection((running.host, running.port), timeout=1)


@pytest.mark.parametrize("kind", KINDS)
def test_the_broker_listens_on_loopback_only(kind: Kind, tmp_path: Path) -> None:
    with open_broker(tmp_path, kind) as running:
        rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
        rows += [line.split() for line in Path("/proc/net/tcp6").read_text().splitlines()[1:]]
        listening = [row[1] for row in rows if row[3] == "0A" and int(row[1].split(":")[1], 16) == running.port]
        assert listening == [f"0100007F:{running.port:04X}"]


@pytest.mark.parametrize("kind", KINDS)
def test_the_broker_is_gone_after_ctrl_c(kind: Kind, tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt), open_broker(tmp_path, kind) as running:
        raise KeyboardInterrupt
    assert running.child.exit_code() is not None


def test_a_port_taken_in_between_is_met_with_another(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))  # held, not listening: nobody answers there and nobody else can have it
        ports = iter([other.getsockname()[1], free_port()])
        monkeypatch.setattr(broker_module, "free_port", lambda: next(ports))
        with open_broker(tmp_path) as running:
            assert running.port != other.getsockname()[1]


def test_a_broker_that_does_not_come_up_says_what_it_wrote(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        monkeypatch.setattr(broker_module, "free_port", lambda: other.getsockname()[1])
        expected = r"(?is)did not come up on 127\.0\.0\.1:\d+:.*address already in use"
        with pytest.raises(ConfigError, match=expected), open_broker(tmp_path):
            pass


def test_no_broker_at_all_names_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(broker_module, "mosquitto", lambda: None)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ConfigError, match=r"apt install mosquitto.*pip install 'edge-agent\[demo\]'"):
        choose()


def test_amqtt_takes_over_where_mosquitto_is_absent(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("amqtt")
    monkeypatch.setattr(broker_module, "mosquitto", lambda: None)
    assert choose() == "amqtt"


def test_mosquitto_is_found_where_debian_puts_it(monkeypatch: pytest.MonkeyPatch) -> None:
    if not Path("/usr/sbin/mosquitto").exists():
        pytest.skip("no /usr/sbin/mosquitto on this machine")
    monkeypatch.setenv("PATH", "/nonexistent")
    assert mosquitto() == "/usr/sbin/mosquitto"


def test_subscriber_says_when_nobody_answers() -> None:
    began = time.monotonic()
    with pytest.raises(TransportError, match="did not answer"):
        Subscriber("127.0.0.1", free_port(), "edge/dev1", timeout_s=1.0)
    assert time.monotonic() - began < 10


def test_subscriber_says_when_the_other_side_is_silent() -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        pytest.raises(TransportError, match="did not answer within 0.3 s"),
    ):
        Subscriber("127.0.0.1", server.getsockname()[1], "edge/dev1", timeout_s=0.3)
