"""Run: a broker, the real agent as a process of its own, and a table of what it publishes.

It ends after N readings, at the end of the source, or with Ctrl-C.
Everything that is made lies in `demo-out/`: the sample video, the config the agent ran with, and the logs.
"""

from __future__ import annotations

import json
import signal
import socket
import statistics
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from types import FrameType
from typing import IO, Any

from edge_agent.config import load
from edge_agent.demo.broker import Broker, open_broker
from edge_agent.demo.child import Child, started
from edge_agent.demo.scorecard import Scorecard
from edge_agent.demo.source import camera_block
from edge_agent.demo.subscriber import Arrival, Subscriber
from edge_agent.demo.table import FpsMeter, ReadingTable, open_table, safe
from edge_agent.demo.video import SampleVideo, sample_video
from edge_agent.errors import EXIT_OK, EXIT_SOFTWARE, ConfigError
from edge_agent.settings import strict_yaml
from edge_agent.settings.sources import STORED_KINDS
from edge_agent.settings.web import WebConfig

CAMERA = "line1"
DEVICE = "demo"
BASE_TOPIC = "edge"
PAGE_HOST = "127.0.0.1"
OUT = Path("demo-out")
NO_READING_S = 120.0  # from one reading to the next; then the demo gives up
LOG_LINES = 20


@dataclass(frozen=True)
class DemoOptions:
    """What to show. `source` None is the sample video; `frames` 0 goes on until Ctrl-C."""

    source: str | None = None
    frames: int = 0
    models_dir: Path = Path("engines")
    json: bool = False
    keep: bool = False
    out: Path = OUT


@dataclass
class Totals:
    """What came in so far."""

    readings: int = 0
    first_mono: float = 0.0
    last_mono: float = 0.0
    timings_ms: dict[str, list[float]] = field(default_factory=dict)
    fields: Counter[str] = field(default_factory=Counter)

    def add(self, reading: Mapping[str, Any], mono: float) -> None:
        self.readings += 1
        self.first_mono = self.first_mono or mono
        self.last_mono = mono
        self.fields.update(found["name"] for found in reading["fields"])
        for stage, spent_ms in reading["timings_ms"].items():
            self.timings_ms.setdefault(stage, []).append(float(spent_ms))

    @property
    def fps(self) -> float | None:
        seconds = self.last_mono - self.first_mono
        return (self.readings - 1) / seconds if seconds > 0 else None


def run_demo(options: DemoOptions, agent: Sequence[str] = (sys.executable, "-m", "edge_agent", "run")) -> int:
    """Shows readings; returns 0, also after Ctrl-C, or the agent's exit code where it died.

    `agent` is the command that runs the agent; `--config FILE` is put behind it. Raises ConfigError where the demo
    cannot start.
    """
    with signals_as_interrupt():
        try:
            return _run(options, agent)
        except KeyboardInterrupt:
            say("stopped")
            return EXIT_OK


def _run(options: DemoOptions, agent: Sequence[str]) -> int:
    try:
        options.out.mkdir(parents=True, exist_ok=True)
    except OSError as exc:
        raise ConfigError(f"cannot make the folder {options.out.absolute()}: {exc.strerror}") from exc
    if options.source is None:
        sample = prepare_sample(options.out)
        camera, scorecard = camera_block(str(sample.path)) | {"loop": True}, Scorecard(sample)
    else:
        camera, scorecard = camera_block(options.source), None
        if camera["kind"] in STORED_KINDS:
            agent = [*agent, "--until-end"]
    with open_broker(options.out) as running:
        say(f"broker: {running.name} on {running.host}:{running.port}")
        config = write_config(options, running, camera)
        with (
            Subscriber(running.host, running.port, f"{BASE_TOPIC}/{DEVICE}") as subscriber,
            started("agent", [*agent, "--config", str(config)], options.out / "agent.log") as child,
        ):
            say(f"starting the agent: loading models ... (log: {child.log})")
            say(f"the page: {page_address(config)}")
            say(f"raw messages: {raw_messages(running)}")
            show = Show(options, scorecard)
            code = show.until_done(subscriber, child, running.child)
            if code == EXIT_OK and options.keep and not show.interrupted:
                return kept_up(child)
    return code


def kept_up(agent: Child) -> int:
    """Waits for the agent's end, or for Ctrl-C; the exit code."""
    say("the broker and the agent go on (--keep); Ctrl-C ends them")
    while agent.exit_code() is None:
        time.sleep(0.5)
    return told_of_its_end(agent) if agent.exit_code() else EXIT_OK


def prepare_sample(out: Path) -> SampleVideo:
    """The sample video, rendered the first time."""
    progress = Progress("rendering the sample video", sys.stderr)
    return sample_video(out, date.today().year, progress)


def write_config(
    options: DemoOptions, running: Broker, camera: Mapping[str, Any], sections: Mapping[str, Any] | None = None
) -> Path:
    """config.yaml for this run, with further `sections`, for its owner's eyes only: a stream's URL may hold a
    password."""
    values = {
        "device_id": DEVICE,
        "models_dir": str(options.models_dir.expanduser().absolute()),
        "cameras": {CAMERA: dict(camera)},
        "mqtt": {
            "host": running.host,
            "port": running.port,
            "base_topic": BASE_TOPIC,
            "protocol": running.protocol,
        },
        "web": {"enabled": True, "port": page_port()},
        "items": {"trust_clock": True},  # on a machine that nothing synchronises every date would be in doubt
        "outbox": {"kind": "memory"},  # the next demo is not to begin with what was left of this one
        **(sections or {}),
    }
    path = options.out / "config.yaml"
    text = "# written by `edge-agent demo`; the config.yaml of the project tells every key\n" + strict_yaml.dump(values)
    path.touch(0o600)
    path.chmod(0o600)  # it may be there from before
    path.write_text(text, encoding="utf-8")
    return path


def page_port() -> int:
    """The page's usual port, or another one where that is taken."""
    for port in (WebConfig().port, 0):
        with suppress(OSError), socket.create_server((PAGE_HOST, port)) as listening:
            return int(listening.getsockname()[1])
    raise ConfigError(f"no port of {PAGE_HOST} is free for the page")


def page_address(config: Path) -> str:
    """Where the page is."""
    return f"http://{PAGE_HOST}:{load(config, {}).web.port}/"


def raw_messages(running: Broker) -> str:
    """The command that shows every message as it is."""
    return f"mosquitto_sub -h {running.host} -p {running.port} -v -t '{BASE_TOPIC}/{DEVICE}/#'"


class Show:
    """Takes messages as they come and shows them."""

    def __init__(self, options: DemoOptions, scorecard: Scorecard | None) -> None:
        self._options = options
        self._scorecard = scorecard
        self._totals = Totals()
        self._fps = FpsMeter()
        self._states: dict[str, str] = {}
        self.interrupted = False

    def until_done(self, subscriber: Subscriber, agent: Child, broker: Child) -> int:
        """Shows readings until there are enough or Ctrl-C; the agent's exit code where it ended before, else 0."""
        code = EXIT_OK
        try:
            with open_table("edge_agent demo, Ctrl-C ends it", sys.stdout, self._options.json) as table:
                code = self._take(subscriber, agent, broker, table)
        except KeyboardInterrupt:
            self.interrupted = True
            if not self._totals.readings:
                raise
        if code != EXIT_OK:
            return code
        for line in self.summary():
            say(line, sys.stderr if self._options.json else sys.stdout)
        return EXIT_OK

    def _take(self, subscriber: Subscriber, agent: Child, broker: Child, table: ReadingTable) -> int:
        last_mono = time.monotonic()
        while not self._enough():
            arrival = subscriber.take(0.5)
            if arrival is not None and arrival.topic.endswith("/result"):
                last_mono = arrival.arrived_mono
                self._reading(arrival, table)
            elif arrival is not None:
                self._state(arrival, table)
            elif agent.exit_code() is not None:
                if agent.exit_code() == EXIT_OK and self._totals.readings:
                    return EXIT_OK  # the source has come to its end
                return told_of_its_end(agent)
            elif broker.exit_code() is not None:
                return told_of_its_end(broker)
            elif time.monotonic() - last_mono > NO_READING_S:
                say(f"no reading for {NO_READING_S:.0f} s")
                return told_of_its_end(agent)
        return EXIT_OK

    def _enough(self) -> bool:
        return 0 < self._options.frames <= self._totals.readings

    def _reading(self, arrival: Arrival, table: ReadingTable) -> None:
        reading = json.loads(arrival.payload)
        self._totals.add(reading, arrival.arrived_mono)
        if self._scorecard:
            self._scorecard.add(reading)
        table.add(reading, self._fps.tick(str(reading["camera"]), arrival.arrived_mono))

    def _state(self, arrival: Arrival, table: ReadingTable) -> None:
        """Says what the pipeline and the cameras report, once for each change."""
        name = arrival.topic.removeprefix(f"{BASE_TOPIC}/{DEVICE}/")
        if name != "health" and not name.endswith("/status"):
            return
        message = json.loads(arrival.payload)
        state = safe(message.get("pipeline") or message.get("state"))
        reason = f": {safe(message['reason'])}" if message.get("reason") else ""
        subject = "pipeline" if name == "health" else f"camera {safe(name.removesuffix('/status'))}"
        if self._states.get(name) != state + reason:
            self._states[name] = state + reason
            table.note(f"== {subject} {state}{reason}")

    def summary(self) -> list[str]:
        """What was seen, how fast, how right, and where to go from here."""
        totals = self._totals
        speed = f", {totals.fps:.1f} a second" if totals.fps else ""
        timings = ", ".join(f"{stage} {statistics.median(ms):.0f} ms" for stage, ms in totals.timings_ms.items())
        lines = ["", f"{totals.readings} readings in {totals.last_mono - totals.first_mono:.1f} s{speed}"]
        lines += [f"  median: {timings}"] if timings else []
        if self._scorecard:
            lines += ["  against what the renderer drew, for labels in full view:"]
            lines += [f"    {line}" for line in self._scorecard.summary()]
        else:
            found = ", ".join(f"{name} {count}" for name, count in totals.fields.most_common())
            lines += [f"  fields found: {found or 'none'}"]
        return lines + where_next(self._options)


def told_of_its_end(child: Child) -> int:
    """Shows the end of the child's log; returns its exit code, or 70 where that says nothing."""
    code = child.exit_code()
    say(f"the {child.name} {'is running' if code is None else f'ended with code {code}'}; the end of {child.log}:")
    for line in child.last_lines(LOG_LINES):
        say(f"  {line}")
    return code if code is not None and 0 < code < 128 else EXIT_SOFTWARE


def where_next(options: DemoOptions) -> list[str]:
    """Pointers for the curious."""
    return [
        "",
        "where next",
        f"  {options.out}/config.yaml     what the agent ran with; config.yaml tells every key",
        "  docs/first-steps.md      from here to a label of your own",
        "  edge-agent read label.jpg --draw drawn/         your pictures, read once and drawn",
        "  make demo SOURCE=/dev/video0                    your camera; a file, a folder or an RTSP URL as well",
        "  edge-agent demo --keep                          leaves the broker and the page up",
    ]


def say(text: str, stream: IO[str] | None = None) -> None:
    """One line about the demo itself; on stderr, so that stdout carries readings alone."""
    print(f"== {text}" if text and not text.startswith(" ") and stream is None else text, file=stream or sys.stderr)


class Progress:
    """A line that grows on a terminal, every tenth elsewhere; called with (done, total)."""

    def __init__(self, what: str, stream: IO[str]) -> None:
        self._what = what
        self._stream = stream
        self._shown = -1

    def __call__(self, done: int, total: int) -> None:
        percent = done * 100 // total
        step = 1 if self._stream.isatty() else 10
        if percent // step == self._shown:
            return
        self._shown = percent // step
        last = done == total
        if self._stream.isatty():
            print(f"\r== {self._what}: {percent} %", end="\n" if last else "", file=self._stream, flush=True)
        else:
            print(f"== {self._what}: {percent} %", file=self._stream, flush=True)


@contextmanager
def signals_as_interrupt() -> Iterator[None]:
    """SIGTERM and SIGHUP end the demo like Ctrl-C, so that its children never outlive it."""

    def interrupt(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    before = {number: signal.signal(number, interrupt) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
