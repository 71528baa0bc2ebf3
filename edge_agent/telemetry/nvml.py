"""NVML: the figures of discrete NVIDIA GPUs, by the optional package nvidia-ml-py (extra `nvml`).

A Jetson's integrated GPU is left to sysfs: NVML has nothing to say of it.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

from edge_agent.errors import SensorError
from edge_agent.telemetry.base import Probe, Sensor
from edge_agent.telemetry.sysfs import is_jetson

Load = Callable[[str], ModuleType]
# for which clocks are held down, bits of nvmlDeviceGetCurrentClocksThrottleReasons (nvml.h); the power limit, at
# which a busy GPU always works, is none
REASONS = {0x08: "hardware slowdown", 0x20: "heat", 0x40: "heat, by hardware", 0x80: "power brake"}


class Gpus:
    """The discrete GPUs, asked for once; none where the package or the driver is missing."""

    def __init__(self, root: Path, load_module: Load = importlib.import_module) -> None:
        self.pynvml: Any = None
        self.devices: list[Any] = []
        if is_jetson(root):
            return
        try:
            self.pynvml = load_module("pynvml")
        except ImportError:
            return
        try:
            self.pynvml.nvmlInit()
            self.devices = [self.pynvml.nvmlDeviceGetHandleByIndex(n) for n in range(self.pynvml.nvmlDeviceGetCount())]
        except self.pynvml.NVMLError:
            self.devices = []

    def sensors(self) -> list[Sensor]:
        """Rows of each GPU: `power_w.gpu0`, `temp_c.gpu0` and so on."""
        return [row for n, device in enumerate(self.devices) for row in self._rows(f"gpu{n}", device)]

    def throttled(self) -> list[str] | None:
        """Why GPUs are held back now, `gpu0: heat`; None where there is no GPU that tells."""
        if not self.devices:
            return None
        found = []
        for n, device in enumerate(self.devices):
            try:
                bits = int(self.pynvml.nvmlDeviceGetCurrentClocksThrottleReasons(device))
            except self.pynvml.NVMLError:
                return None
            found += [f"gpu{n}: {reason}" for bit, reason in REASONS.items() if bits & bit]
        return found

    def _rows(self, name: str, device: Any) -> list[Sensor]:
        nvml = self.pynvml
        rows: list[tuple[str, str, Callable[[], float]]] = [
            ("gpu_load_percent", "percent", lambda: nvml.nvmlDeviceGetUtilizationRates(device).gpu),
            ("gpu_clock_hz", "hz", lambda: nvml.nvmlDeviceGetClockInfo(device, nvml.NVML_CLOCK_GRAPHICS) * 1e6),
            ("gpu_memory_used_bytes", "bytes", lambda: nvml.nvmlDeviceGetMemoryInfo(device).used),
            ("gpu_memory_total_bytes", "bytes", lambda: nvml.nvmlDeviceGetMemoryInfo(device).total),
            ("temp_c", "c", lambda: nvml.nvmlDeviceGetTemperature(device, nvml.NVML_TEMPERATURE_GPU)),
            ("power_w", "w", lambda: nvml.nvmlDeviceGetPowerUsage(device) / 1e3),
        ]
        return [Sensor(f"{group}.{name}", unit, partial(self._guarded, read)) for group, unit, read in rows]

    def _guarded(self, read: Callable[[], float]) -> float:
        try:
            return float(read())
        except self.pynvml.NVMLError as exc:
            raise SensorError(str(exc)) from exc


def probe(root: Path = Path("/"), load_module: Load = importlib.import_module) -> Probe:
    """The rows of the discrete GPUs that the driver knows at the start."""
    rows = Gpus(root, load_module).sensors()
    return lambda: rows
