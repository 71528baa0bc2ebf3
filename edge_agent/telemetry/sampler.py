"""Sampler: asks every sensor at an interval and hands on one telemetry message."""

from __future__ import annotations

import logging
import math
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from edge_agent import messages
from edge_agent.errors import SensorError
from edge_agent.records import Message, Sample
from edge_agent.telemetry.base import Probe, Sensor

log = logging.getLogger(__name__)

BEAT_S = 1.0  # heat takes seconds to build up, however seldom it is reported


class Sampler:
    """A thread that builds a telemetry message every `interval_s` and gives it to `emit`.

    `probes` say before each message which sensors there are. `sections` are further members of the message, each a
    function called at that moment (frame rates, outbox, pool). `beat` is called every BEAT_S between the messages.
    The first message comes after one interval, for rates need one. A context manager: it runs inside the block.
    """

    def __init__(
        self,
        probes: Sequence[Probe],
        sections: Mapping[str, Callable[[], Any]],
        interval_s: float,
        emit: Callable[[Message], None],
        wall_clock: Callable[[], float] = time.time,
        beat: Callable[[], None] = lambda: None,
    ) -> None:
        self._probes = probes
        self._sections = sections
        self._interval_s = interval_s
        self._emit = emit
        self._wall_clock = wall_clock
        self._beat = beat
        self._warned: set[str] = set()
        self._ended = threading.Event()
        self._changed = threading.Event()  # the interval, or the wish to end: whoever waits looks up
        self._thread = threading.Thread(target=self._run, name="telemetry", daemon=True)

    def __enter__(self) -> Sampler:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Ends the thread; waits at most a second for a sensor that hangs."""
        self._ended.set()
        self._changed.set()
        self._thread.join(1.0)

    @property
    def interval_s(self) -> float:
        """Seconds between two messages."""
        return self._interval_s

    def every(self, interval_s: float) -> None:
        """From now on a message every `interval_s`; any thread."""
        if interval_s != self._interval_s:
            self._interval_s = interval_s
            self._changed.set()

    def sample(self) -> Message:
        """One telemetry message, now. A sensor that fails is null with a reason, and warned of once until it works."""
        taken_at = self._wall_clock()
        samples: list[Sample] = []
        absent: dict[str, str] = {}
        for sensor in [sensor for probe in self._probes for sensor in probe()]:
            value, reason = _read(sensor)
            samples.append(Sample(sensor.name, value, sensor.unit, taken_at))
            if reason is None:
                self._warned.discard(sensor.name)
                continue
            absent[sensor.name] = reason
            if sensor.name not in self._warned:
                self._warned.add(sensor.name)
                level = logging.WARNING if sensor.expected else logging.DEBUG
                log.log(level, "sensor %s gives no value: %s", sensor.name, reason)
        sections = {name: section() for name, section in self._sections.items()}
        return messages.telemetry(samples, absent, sections, at=taken_at)

    def _run(self) -> None:
        due_mono = time.monotonic() + self._interval_s
        beat_mono = time.monotonic()
        while not self._ended.is_set():
            if self._changed.wait(max(0.0, min(due_mono, beat_mono) - time.monotonic())):
                self._changed.clear()
                due_mono = time.monotonic() + self._interval_s
                continue
            if time.monotonic() >= beat_mono:
                self._beat()
                beat_mono = _next_due(beat_mono, BEAT_S)
            if time.monotonic() >= due_mono:
                self._emit(self.sample())
                due_mono = _next_due(due_mono, self._interval_s)


def _next_due(due_mono: float, every_s: float) -> float:
    """One interval on; a beat that a slow sensor cost is not made up for."""
    now_mono = time.monotonic()
    return due_mono + every_s if due_mono + every_s >= now_mono else now_mono + every_s


def _read(sensor: Sensor) -> tuple[float | None, str | None]:
    """The value, or None with the reason."""
    try:
        value = sensor.read()
    except (SensorError, OSError, ValueError, LookupError, ArithmeticError, RuntimeError) as exc:
        return None, f"{type(exc).__name__}: {exc}" if str(exc) else type(exc).__name__
    if not math.isfinite(value):
        return None, f"not a finite number: {value}"
    return value, None
