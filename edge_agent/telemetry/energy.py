"""Energy: counters of joules that this machine has, for what work costs: of a Jetson's board (its rails), of processors
(RAPL) and NVIDIA GPUs (NVML).

They count the whole package or board, whoever uses it.
"""

from __future__ import annotations

import importlib
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import ModuleType

from edge_agent.errors import SensorError
from edge_agent.telemetry.meter import LONGEST_GAP_S, EnergyMeter
from edge_agent.telemetry.rails import total_w
from edge_agent.telemetry.sysfs import is_jetson

NO_RAPL = "no RAPL counters under {folder}: not an x86 Linux machine, or a virtual one"
NO_NVML = "NVML is not asked: {reason} (pip install nvidia-ml-py)"


@dataclass(frozen=True)
class EnergyCounter:
    """`read` gives joules since some moment; it starts at 0 again beyond `wraps_at_j`, where that is not None."""

    name: str
    read: Callable[[], float]
    wraps_at_j: float | None = None

    def since(self, before_j: float) -> float:
        """Joules since `read` gave `before_j`, less than one wrap ago."""
        spent_j = self.read() - before_j
        return spent_j + self.wraps_at_j if spent_j < 0 and self.wraps_at_j is not None else spent_j


@dataclass(frozen=True)
class EnergySources:
    """The counters that can be read, and why there are no others."""

    counters: tuple[EnergyCounter, ...]
    absent: tuple[str, ...]


@contextmanager
def measured_energy(root: Path = Path("/"), gpu_bus_id: str | None = None) -> Iterator[EnergySources]:
    """What this machine has, inside: the board's total power, summed up by a thread, where its rails tell it, else what
    `find_energy` finds."""
    try:
        total_w(root)
    except SensorError as exc:
        found = find_energy(root, gpu_bus_id)
        yield EnergySources(found.counters, (str(exc), *found.absent)) if is_jetson(root) else found
        return
    with RailsCounter(root) as counter:
        yield EnergySources((EnergyCounter("board", counter.joules),), ())


class RailsCounter:
    """Sums up the board's total power, looked at every `every_s`, inside; `joules` may be called from any thread."""

    def __init__(self, root: Path, every_s: float = 0.1, clock: Callable[[], float] = time.monotonic) -> None:
        self._root = root
        self._every_s = every_s
        self._clock = clock
        self._lock = threading.Lock()
        self._meter = EnergyMeter(clock())
        self._seen_mono = clock()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="rails", daemon=True)

    def __enter__(self) -> RailsCounter:
        self.look()
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join(1.0)

    def look(self) -> None:
        """One look; one that fails is bridged by the next."""
        with suppress(SensorError), self._lock:
            watts = total_w(self._root)
            self._seen_mono = self._clock()
            self._meter.power(watts, self._seen_mono)

    def joules(self) -> float:
        """Since it began; SensorError once the rails have been silent for so long that it is not known."""
        self.look()
        with self._lock:
            if self._clock() - self._seen_mono > LONGEST_GAP_S:
                raise SensorError(f"the board's power could not be read for {LONGEST_GAP_S:g} s")
            return self._meter.total_j

    def _run(self) -> None:
        while not self._ended.wait(self._every_s):
            self.look()


def find_energy(
    root: Path = Path("/"),
    gpu_bus_id: str | None = None,
    load_module: Callable[[str], ModuleType] = importlib.import_module,
) -> EnergySources:
    """What this machine has. `gpu_bus_id`: PCI address of the GPU to ask for (`0000:3b:00.0`), None for none."""
    counters, absent = rapl(root / "sys" / "class" / "powercap")
    if gpu_bus_id is not None:
        found = nvml(gpu_bus_id, load_module)
        if isinstance(found, EnergyCounter):
            counters.append(found)
        else:
            absent.append(found)
    return EnergySources(tuple(counters), tuple(absent))


def rapl(folder: Path) -> tuple[list[EnergyCounter], list[str]]:
    """One counter per processor package (`intel-rapl:0`, on AMD too), parts of packages left out; reasons for none.

    Source: Documentation/power/powercap/powercap.rst of Linux; `energy_uj` is root's alone since 5.10.
    """
    counters: list[EnergyCounter] = []
    absent: list[str] = []
    for zone in sorted(folder.glob("intel-rapl:*")):
        if zone.name.count(":") != 1:
            continue
        energy = zone / "energy_uj"
        try:
            name = (zone / "name").read_text(encoding="ascii").strip()
            wraps_at_j = int((zone / "max_energy_range_uj").read_text(encoding="ascii")) / 1e6
            joules(energy)
        except (OSError, ValueError) as exc:
            absent.append(f"{energy} cannot be read: {getattr(exc, 'strerror', None) or exc}")
        else:
            counters.append(EnergyCounter(name, partial(joules, energy), wraps_at_j))
    return counters, absent if counters or absent else [NO_RAPL.format(folder=folder)]


def joules(path: Path) -> float:
    """What an `energy_uj` file says."""
    return int(path.read_text(encoding="ascii")) / 1e6


def nvml(bus_id: str, load_module: Callable[[str], ModuleType]) -> EnergyCounter | str:
    """The counter of the GPU at this PCI address (Volta and newer), or why there is none."""
    try:
        pynvml = load_module("pynvml")
    except ImportError as exc:
        return NO_NVML.format(reason=exc)
    try:
        pynvml.nvmlInit()
        device = pynvml.nvmlDeviceGetHandleByPciBusId(bus_id.encode())
        pynvml.nvmlDeviceGetTotalEnergyConsumption(device)
    except pynvml.NVMLError as exc:
        return f"NVML tells no energy of GPU {bus_id}: {exc}"
    return EnergyCounter(f"gpu {bus_id}", lambda: pynvml.nvmlDeviceGetTotalEnergyConsumption(device) / 1e3)
