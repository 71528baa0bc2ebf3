"""A real Mosquitto for tests, on a free port, in a folder of its own; a proxy that misbehaves; and who listens.

broker = start_broker(tmp_path)                  # skips the test where Mosquitto is not installed
with Observer(broker.port, "edge/#") as observer:
    observer.wait_for(lambda heard: len(heard) == 5)
"""

from __future__ import annotations

import contextlib
import getpass
import os
import random
import re
import shutil
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

import paho.mqtt.client as paho
import pytest
from paho.mqtt.enums import CallbackAPIVersion, MQTTProtocolVersion

from tests import contract

# /usr/sbin is not on every user's PATH, and Debian puts the broker there
MOSQUITTO = shutil.which("mosquitto") or shutil.which("mosquitto", path="/usr/sbin:/usr/local/sbin")
DEADLINE_S = 60.0  # a machine that does other things besides takes its time; what works never waits so long
OF_A_DEVICE = re.compile("edge/[^/]+/(.+)")
HEARD_BY_IT = re.compile("config/desired|command/[^/]+")


def wait_until(true: Callable[[], bool], what: str, timeout_s: float = DEADLINE_S) -> None:
    """Polls until `true()`; fails the test, naming `what`, when it does not come."""
    deadline, pause_s = time.monotonic() + timeout_s, 0.002
    while not true():
        if time.monotonic() > deadline:
            pytest.fail(f"did not come within {timeout_s} s: {what}")
        time.sleep(pause_s)
        pause_s = min(1.5 * pause_s, 0.05)  # looking costs the time of what is waited for


# below those that the kernel gives to whoever connects: none of these is taken, nor connected to itself, while a test
# waits for what will listen there
PORTS = range(20_000, 32_768)
_given: set[int] = set()


def free_port() -> int:
    """One on which nothing listens, and which no other test is given, in whatever process it runs."""
    workers = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    worker = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
    while True:
        port = random.choice(PORTS)
        if port % workers == worker and port not in _given and _can_be_bound(port):
            _given.add(port)
            return port


def _can_be_bound(port: int) -> bool:
    with socket.socket() as sock:
        try:
            sock.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True


class Broker:
    """One Mosquitto process; started, killed, frozen and started again on the same port."""

    def __init__(self, folder: Path, settings: str = "allow_anonymous true", port: int | None = None) -> None:
        if MOSQUITTO is None:
            pytest.skip("needs Mosquitto: apt-get install mosquitto")
        self.port = port or free_port()
        self.log_path = folder / f"mosquitto-{self.port}.log"
        self._config_path = folder / f"mosquitto-{self.port}.conf"
        self._config_path.write_text(
            f"listener {self.port} 127.0.0.1\npersistence false\nlog_dest file {self.log_path}\nlog_type all\n"
            f"user {getpass.getuser()}\n{settings}\n",  # root's Mosquitto would become one that cannot read here
            encoding="utf-8",
        )
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> Broker:
        assert MOSQUITTO is not None
        self._process = subprocess.Popen(
            [MOSQUITTO, "-c", str(self._config_path)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        wait_until(self._listens, f"Mosquitto on port {self.port}, see {self.log_path}")
        return self

    def kill(self) -> None:
        """SIGKILL, as a power cut would."""
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        self._end(signal.SIGTERM)

    def freeze(self) -> None:
        """SIGSTOP: connections stay open and nothing is answered."""
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        assert self._process is not None
        self._process.send_signal(signal.SIGCONT)

    def log(self) -> str:
        return self.log_path.read_text(encoding="utf-8", errors="replace")

    def _end(self, how: signal.Signals) -> None:
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(signal.SIGCONT)
            self._process.send_signal(how)
            self._process.wait(DEADLINE_S)

    def _listens(self) -> bool:
        assert self._process is not None
        if self._process.poll() is not None:
            pytest.fail(f"Mosquitto ended with {self._process.returncode}; see {self.log_path}")
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port), timeout=1):
            return True
        return False


@pytest.fixture
def make_broker(tmp_path: Path) -> Iterator[Callable[..., Broker]]:
    """Makes brokers that are gone after the test: `make_broker("password_file ...", port=...)`."""
    brokers: list[Broker] = []

    def make(settings: str = "allow_anonymous true", port: int | None = None) -> Broker:
        brokers.append(Broker(tmp_path, settings, port))
        return brokers[-1]

    yield make
    for broker in brokers:
        broker.stop()


@pytest.fixture
def broker(make_broker: Callable[..., Broker]) -> Broker:
    """A plain broker, running."""
    return make_broker().start()


@dataclass(frozen=True)
class Heard:
    topic: str
    payload: bytes
    retained: bool


class Observer:
    """A subscriber with paho itself, so that the tests do not believe our own transport.

    What devices say must keep the contract (tests/contract.py), else the test fails at the end of the block;
    `made_up`: for payloads that are the test's own.
    """

    def __init__(self, port: int, *filters: str, made_up: bool = False) -> None:
        self.heard: list[Heard] = []
        self._made_up = made_up
        self._published: list[bytes] = []
        self._filters = filters or ("#",)
        self._subscribed = threading.Event()
        self._client = paho.Client(CallbackAPIVersion.VERSION2, protocol=MQTTProtocolVersion.MQTTv5)
        self._client.on_connect = self._on_connect
        self._client.on_subscribe = lambda *_: self._subscribed.set()
        self._client.on_disconnect = lambda *_: self._subscribed.clear()
        self._client.on_message = self._on_message
        self._client.reconnect_delay_set(1, 1)
        self._client.connect("127.0.0.1", port)

    def __enter__(self) -> Observer:
        self._client.loop_start()
        self.wait_subscribed()
        return self

    def __exit__(self, _t: type[BaseException] | None, raised: BaseException | None, _tb: TracebackType | None) -> None:
        self._client.disconnect()
        self._client.loop_stop()
        if raised is None and not self._made_up:
            assert self.faults() == []

    def faults(self) -> list[str]:
        """How what devices said breaks the contract."""
        said = [one for one in self.heard if one.payload not in self._published]
        below = [(match[1], one.payload) for one in said if (match := OF_A_DEVICE.fullmatch(one.topic))]
        faults = [contract.fault_of(topic, payload) for topic, payload in below if not HEARD_BY_IT.fullmatch(topic)]
        return [fault for fault in faults if fault is not None]

    def wait_subscribed(self) -> None:
        assert self._subscribed.wait(DEADLINE_S), "the observer could not subscribe"

    @property
    def subscribed(self) -> bool:
        return self._subscribed.is_set()

    def publish(self, topic: str, payload: bytes, retain: bool = False) -> None:
        self._published.append(payload)
        self._client.publish(topic, payload, qos=1, retain=retain).wait_for_publish(DEADLINE_S)

    def payloads(self, topic: str) -> list[bytes]:
        return [one.payload for one in list(self.heard) if one.topic == topic]

    def wait_for(self, topic: str, payload: bytes, times: int = 1) -> None:
        """Waits until `payload` was heard on `topic` so many times."""
        wait_until(
            lambda: self.payloads(topic).count(payload) >= times, f"{payload!r} on {topic}; heard {self.heard[-20:]}"
        )

    def _on_connect(self, client: paho.Client, *_: Any) -> None:
        client.subscribe([(f, 1) for f in self._filters])

    def _on_message(self, _client: paho.Client, _userdata: Any, message: paho.MQTTMessage) -> None:
        self.heard.append(Heard(message.topic, bytes(message.payload), message.retain))


class Proxy:
    """Stands between a device and a broker, and fails on demand: refuses, cuts, or swallows the broker's answers."""

    def __init__(self, target_port: int) -> None:
        self.target_port = target_port
        self.accepted = 0
        self.swallow_answers = False
        self._open = True
        self._pairs: list[tuple[socket.socket, socket.socket]] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listener.getsockname()[1])
        self._thread = threading.Thread(target=self._accept, daemon=True)
        self._thread.start()

    def __enter__(self) -> Proxy:
        return self

    def __exit__(self, _t: type[BaseException] | None, _v: BaseException | None, _tb: TracebackType | None) -> None:
        self.cut()
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join(DEADLINE_S)

    def cut(self) -> None:
        """Ends every connection; new ones are accepted."""
        pairs, self._pairs = self._pairs, []
        for pair in pairs:
            for sock in pair:
                with contextlib.suppress(OSError):
                    sock.shutdown(socket.SHUT_RDWR)

    def shut(self) -> None:
        """Ends every connection, and each new one at once, until `reopen`."""
        self._open = False
        self.cut()

    def reopen(self) -> None:
        self._open = True

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                device, _ = self._listener.accept()
                self.accepted += 1
                if not self._open:
                    device.close()
                    continue
                try:
                    upstream = socket.create_connection(("127.0.0.1", self.target_port), timeout=DEADLINE_S)
                except OSError:
                    device.close()
                    continue
                upstream.settimeout(None)
                self._pairs.append((device, upstream))
                threading.Thread(target=self._pump, args=(device, upstream, False), daemon=True).start()
                threading.Thread(target=self._pump, args=(upstream, device, True), daemon=True).start()

    def _pump(self, source: socket.socket, sink: socket.socket, answers: bool) -> None:
        with contextlib.suppress(OSError):
            while chunk := source.recv(65_536):
                if not (answers and self.swallow_answers):
                    sink.sendall(chunk)
        for sock in (source, sink):
            with contextlib.suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)
