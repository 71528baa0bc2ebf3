"""Energy: counters of joules that this machine has, for what work costs: of processors (RAPL) and NVIDIA GPUs (NVML).

They count the whole package or board, whoever uses it.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import ModuleType

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
