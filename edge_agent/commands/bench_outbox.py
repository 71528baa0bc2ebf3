"""`edge-agent bench outbox`: readings a second through outbox and broker, how fast a backlog drains, bytes written.

The readings are made, the rest is the agent's own: the outbox on disk in a temporary folder, the publisher, MQTT at
QoS 1. A reading counts as delivered once the broker has confirmed it.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from edge_agent.config import Config
from edge_agent.errors import ConfigError, EdgeAgentError
from edge_agent.settings.mqtt import MqttConfig
from edge_agent.settings.outbox import OutboxConfig

if TYPE_CHECKING:
    from edge_agent.outbox.base import Outbox
    from edge_agent.publisher import Publisher
    from edge_agent.records import Message, Reading, TextLine

NAME = "outbox"  # in the place of a model's name
CAMERAS = 4
LINES = 6
PACED_PER_S = 30.0
MOST_WAITING = 2000  # readings: the producer waits beyond, as the main loop of an agent never would
GIVE_UP_S = 120.0
STEP_S = 0.02


def written_bytes() -> int:
    """What this process has had written to disk, by the kernel's count; 0 where it does not count."""
    try:
        lines = Path("/proc/self/io").read_text(encoding="ascii").splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in lines if line.startswith("write_bytes:")), 0)


def rss_mb() -> float:
    """This process's memory."""
    import psutil

    return round(psutil.Process().memory_info().rss / 1e6, 1)


@dataclass
class Counters:
    """What the process used, in between two looks."""

    began: float = field(default_factory=time.perf_counter)
    cpu_began: float = field(default_factory=time.process_time)
    written_began: int = field(default_factory=written_bytes)
    rss_mb: list[float] = field(default_factory=list)

    def look(self) -> None:
        self.rss_mb.append(rss_mb())

    def figures(self, readings: int) -> dict[str, Any]:
        """Per second and per reading; memory at the start of the run and at its end."""
        seconds = time.perf_counter() - self.began
        return {
            "readings": readings,
            "seconds": round(seconds, 2),
            "readings_per_s": round(readings / seconds, 1),
            "cpu_percent": round(100 * (time.process_time() - self.cpu_began) / seconds, 1),
            "written_bytes_per_reading": round((written_bytes() - self.written_began) / max(1, readings)),
            "rss_mb_first": self.rss_mb[0] if self.rss_mb else rss_mb(),
            "rss_mb_most": max(self.rss_mb, default=rss_mb()),
        }


def add_options(parser: argparse.ArgumentParser) -> None:
    """The options of this measurement alone."""
    group = parser.add_argument_group("bench outbox")
    group.add_argument("--host", metavar="HOST[:PORT]", help="a broker to use (default: one is started here)")
    group.add_argument("--backlog", type=count, default=100_000, metavar="N", help="readings (default: %(default)s)")


def count(text: str) -> int:
    """A number of readings."""
    if not text.isdecimal() or not 1 <= int(text) <= 10_000_000:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 1 to 10000000")
    return int(text)


def measure(config: Config, host: str | None, backlog: int, seconds: float) -> dict[str, Any]:
    """Three figures in turn: at 30 readings/s what is written; as fast as it goes; a backlog of so many."""
    with tempfile.TemporaryDirectory(prefix="edge-agent-bench-", dir=".") as folder:
        with broker_settings(config.mqtt, host, Path(folder)) as mqtt:
            bench = _Bench(config.outbox, mqtt, Path(folder))
            figures: dict[str, Any] = {"payload_bytes": bench.payload_bytes, "flush_ms": config.outbox.flush_ms}
            figures["paced"] = bench.paced(PACED_PER_S, seconds)
            figures["sustained"] = bench.sustained(seconds)
            figures["backlog"] = bench.drained(backlog)
        return figures


@contextmanager
def broker_settings(mqtt: MqttConfig, host: str | None, folder: Path) -> Iterator[MqttConfig]:
    """How to reach the broker: the named one, or a Mosquitto that runs while inside."""
    if host is not None:
        name, _, port = host.partition(":")
        if not name or not (port or "1883").isdecimal():
            raise ConfigError(f"--host is {host!r}; expected HOST or HOST:PORT")
        yield mqtt.model_copy(update={"host": name, "port": int(port or mqtt.port)})
        return
    from edge_agent.demo.broker import mosquitto, open_broker

    if mosquitto() is None:
        raise ConfigError("Mosquitto is not installed here; `apt install mosquitto`, or name a broker with --host")
    with open_broker(folder, "mosquitto") as running:
        yield MqttConfig(host=running.host, port=running.port, max_inflight=mqtt.max_inflight)


class _Bench:
    def __init__(self, outbox: OutboxConfig, mqtt: MqttConfig, folder: Path) -> None:
        self._outbox = outbox
        self._mqtt = mqtt
        self._folder = folder
        self._seq = 0
        self.payload_bytes = len(self._message().payload)

    def paced(self, per_s: float, seconds: float) -> dict[str, Any]:
        """At the pace of a camera: what a reading costs."""
        with self._opened("paced") as outbox, self._publishing(outbox):
            counters, count = Counters(), int(per_s * seconds)
            for n in range(count):
                time.sleep(max(0.0, counters.began + n / per_s - time.perf_counter()))
                outbox.put(self._message())
            wait_for(lambda: outbox.stats().depth == 0, "the last readings")
            return counters.figures(count)

    def sustained(self, seconds: float) -> dict[str, Any]:
        """As many as go, for so long."""
        with self._opened("sustained") as outbox, self._publishing(outbox):
            counters, count = Counters(), 0
            while time.perf_counter() - counters.began < seconds:
                room = MOST_WAITING - outbox.stats().depth
                for _ in range(room):
                    outbox.put(self._message())
                count += room
                counters.look()
                time.sleep(STEP_S)
            wait_for(lambda: outbox.stats().depth == 0, "the last readings")
            return counters.figures(count)

    def drained(self, count: int) -> dict[str, Any]:
        """From the broker's return until nothing waits any more."""
        with self._opened("backlog") as outbox:
            filling = Counters()
            for n in range(count):
                outbox.put(self._message())
                if n % 1000 == 0:
                    filling.look()
            wait_for(lambda: outbox.stats().unwritten == 0, "the backlog on disk")
            filled = filling.figures(count)
        with self._opened("backlog") as outbox, self._publishing(outbox):
            draining = Counters()
            wait_for(lambda: outbox.stats().depth == 0, "the end of the backlog", draining.look)
            return {"filling": filled, "draining": draining.figures(count)}

    @contextmanager
    def _opened(self, name: str) -> Iterator[Outbox]:
        from edge_agent.clock import DeviceClock
        from edge_agent.outbox.opening import open_outbox

        settings = self._outbox.model_copy(
            update={"kind": "disk", "path": self._folder / f"{name}.db", "max_bytes": 1 << 32}
        )
        outbox = open_outbox(settings, DeviceClock(), _raise)
        try:
            yield outbox
        finally:
            outbox.close()

    @contextmanager
    def _publishing(self, outbox: Outbox) -> Iterator[Publisher]:
        from edge_agent import messages
        from edge_agent.publisher import Publisher
        from edge_agent.transports.mqtt import MqttTransport

        will = messages.status("offline", reason="lost", at=None, started_at=time.time())
        transport = MqttTransport(self._mqtt, "bench", will)
        publisher = Publisher(outbox, transport, self._outbox.historical_after_s)
        publisher.start()
        try:
            yield publisher
        finally:
            publisher.stop(None, 1.0)

    def _message(self) -> Message:
        from edge_agent import messages

        self._seq += 1
        return messages.result(made_reading(self._seq), boot_id="0" * 32, clock_trusted=True)


def made_reading(seq: int) -> Reading:
    """A label with LINES lines and two fields, as large as most are."""
    from edge_agent.records import Field, Reading

    fields = (
        Field("expiry_date", "2027-08-12", "2027-08-12", 0.98, (0,)),
        Field("lot", f"L{seq:07}", f"L{seq:07}", 0.98, (1,)),
    )
    engines = {"detect": "onnxruntime-1.32.0:3b1f0c8817aa:fp32", "recognise": "onnxruntime-1.32.0:9ac2e4d01b57:fp32"}
    timings_ms = {"detect": 21.4, "recognise": 12.9, "extract": 0.6, "total": 34.9}
    camera, at, mono = f"line{seq % CAMERAS}", time.time(), time.monotonic()
    return Reading(
        camera, seq, at, 1280, 720, made_lines(), fields, timings_ms, engines, "onnxruntime", captured_mono=mono
    )


@cache
def made_lines() -> tuple[TextLine, ...]:
    """The lines of every reading."""
    import numpy as np

    from edge_agent.records import Quad, TextBox, TextLine

    corners = np.array([[412.5, 230.5], [655.5, 231.0], [655.5, 262.0], [412.5, 261.5]], np.float32)
    return tuple(
        TextLine(f"BEST BEFORE 2027-08-{n:02}", 0.98, TextBox(Quad(corners + 40 * n), 0.91)) for n in range(LINES)
    )


def wait_for(true: Callable[[], bool], what: str, look: Callable[[], None] | None = None) -> None:
    """Polls until `true()`; EdgeAgentError, naming `what`, where it does not come."""
    deadline = time.monotonic() + GIVE_UP_S
    while not true():
        if time.monotonic() > deadline:
            raise EdgeAgentError(f"gave up after {GIVE_UP_S:g} s of waiting for {what}; does the broker answer?")
        if look is not None:
            look()
        time.sleep(STEP_S)


def table(figures: dict[str, Any]) -> str:
    """A row for each measurement."""
    parts = {"at 30 readings/s": figures["paced"], "as fast as it goes": figures["sustained"]}
    parts |= {"filling a backlog": figures["backlog"]["filling"], "draining it": figures["backlog"]["draining"]}
    rows = [f"a reading is {figures['payload_bytes']} bytes; outbox.flush_ms is {figures['flush_ms']}", ""]
    rows.append(f"{'':<20}{'readings':>10}{'s':>8}{'per s':>10}{'cpu %':>8}{'bytes written':>15}{'rss MB':>16}")
    for name, part in parts.items():
        memory = f"{part['rss_mb_first']:.0f} to {part['rss_mb_most']:.0f}"
        rows.append(
            f"{name:<20}{part['readings']:>10}{part['seconds']:>8.1f}{part['readings_per_s']:>10.0f}"
            f"{part['cpu_percent']:>8.0f}{part['written_bytes_per_reading']:>15}{memory:>16}"
        )
    return "\n".join(rows)


def _raise(kind: str, text: str) -> None:
    raise EdgeAgentError(f"{kind}: {text}")
