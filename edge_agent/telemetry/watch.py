"""Watch: looks at the board every second, for what is told of an interval and for the policy that keeps it cool."""

from __future__ import annotations

import importlib
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import fmean
from typing import Any

from edge_agent.errors import SensorError
from edge_agent.telemetry import gpu, nvml, thermal
from edge_agent.telemetry.base import Probe, Sensor
from edge_agent.telemetry.energy import EnergyCounter, find_energy
from edge_agent.telemetry.meter import EnergyMeter, per
from edge_agent.telemetry.over_current import OverCurrent
from edge_agent.telemetry.power_mode import power_mode
from edge_agent.telemetry.rails import total_w
from edge_agent.telemetry.sysfs import is_jetson

ALARMING = ("oc1", "oc2")  # under-voltage and average over-current; oc3 alone is short spikes, no fault
Counts = Callable[[], tuple[int, int]]  # frames read, readings with text; since the start


@dataclass(frozen=True)
class Signs:
    """How the board is: temperatures by zone, C; alarming over-current events since the last look; what holds its
    clocks down."""

    temp_c: Mapping[str, float]
    over_current: int = 0
    slowed: tuple[str, ...] = ()


class BoardWatch:
    """The looks, all of them from the telemetry thread. `root` as in telemetry.sysfs; `clock` monotonic seconds."""

    def __init__(
        self,
        root: Path,
        counts: Counts,
        clock: Callable[[], float] = time.monotonic,
        load_module: nvml.Load = importlib.import_module,
    ) -> None:
        self._root = root
        self._counts = counts
        self._clock = clock
        self._gpus = nvml.Gpus(root, load_module)
        self._over_current = OverCurrent(root)
        self._meter = EnergyMeter(clock())
        self._counted = counts()
        self._counters: tuple[EnergyCounter, ...] = () if is_jetson(root) else find_energy(root).counters
        self._read_j: tuple[float, list[float]] | None = None  # when, and what the counters said
        self._loads: list[float] = []
        self._now: tuple[str, ...] | None = None  # what holds it back, None where that cannot be told
        self._causes: dict[str, None] = {}  # in the order in which they came

    def signs(self) -> Signs:
        """One look for the policy."""
        gained = {name: n for name, n in self._over_current.gained().items() if isinstance(n, int)}
        told = [found for found in (thermal.slowed(self._root), self._gpus.throttled()) if found is not None]
        slowed = tuple(cause for found in told for cause in found)
        over_current = tuple(f"over-current {name}" for name, n in sorted(gained.items()) if n > 0)
        self._now = (*over_current, *slowed) if told or gained else None
        self._causes.update(dict.fromkeys(self._now or ()))
        alarming = sum(gained.get(name, 0) for name in ALARMING)
        temps = {**thermal.temperatures(self._root), **self._gpu_temperatures()}
        return Signs(temps, alarming, slowed)

    def measure(self) -> None:
        """One look at power and load."""
        now_mono = self._clock()
        try:
            self._meter.power(total_w(self._root), now_mono)
        except SensorError as exc:
            self._meter.lost(str(exc))
            self._read_counters(now_mono)
        with suppress(SensorError):
            self._loads.append(gpu.load_percent(self._root))

    def probe(self) -> Probe:
        """What is told of the interval between two messages: duty of the GPU, energy, and what work cost of it."""
        return self._sensors

    def sections(self) -> dict[str, Callable[[], Any]]:
        """Members of a telemetry message."""
        return {"throttled": self._throttled, "throttled_by": self._throttled_by, "power_mode": self._power_mode}

    def _sensors(self) -> list[Sensor]:
        self.measure()
        joules = self._meter.take(self._clock())
        before, self._counted = self._counted, self._counts()
        frames, readings = (now - then for now, then in zip(self._counted, before, strict=True))
        rows = [
            Sensor("j_per_frame", "j", partial(per, joules, frames, "frame was read"), expected=False),
            Sensor("j_per_reading", "j", partial(per, joules, readings, "frame with text was read"), expected=False),
        ]
        if not isinstance(joules, SensorError):
            rows.append(Sensor("energy_j", "j", lambda: round(self._meter.total_j, 1)))
        if self._loads:
            loads, self._loads = self._loads, []
            rows.append(Sensor("gpu_duty_percent", "percent", lambda: round(fmean(loads), 1)))
        return rows

    def _read_counters(self, now_mono: float) -> None:
        """Elsewhere than on a Jetson: what processors say that they have used up."""
        if not self._counters:
            return
        try:
            said = [counter.read() for counter in self._counters]
            if self._read_j is not None:
                then_mono, before = self._read_j
                wraps = [counter.wraps_at_j or 0.0 for counter in self._counters]
                spent = [now - b if now >= b else now - b + w for now, b, w in zip(said, before, wraps, strict=True)]
                self._meter.spent(sum(spent), now_mono - then_mono)
            self._read_j = (now_mono, said)
        except (OSError, ValueError) as exc:
            self._meter.lost(str(exc))
            self._read_j = None

    def _gpu_temperatures(self) -> dict[str, float]:
        found = {}
        for row in self._gpus.sensors():
            group, _, name = row.name.partition(".")
            if group == "temp_c":
                try:
                    found[name] = row.read()
                except SensorError:
                    continue
        return found

    def _throttled(self) -> bool | None:
        """Whether anything held the board back since the last message; asked before `_throttled_by`."""
        return None if self._now is None else bool(self._causes or self._now)

    def _throttled_by(self) -> list[str]:
        causes, self._causes = {**self._causes, **dict.fromkeys(self._now or ())}, {}
        return list(causes)

    def _power_mode(self) -> str | None:
        try:
            return str(power_mode(self._root))
        except SensorError:
            return None
