"""GPU memory of a Jetson: what nvmap has handed out of the board's one memory. The kernel tells root alone."""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path

from edge_agent.errors import SensorError
from edge_agent.telemetry.base import Probe, Sensor
from edge_agent.telemetry.sysfs import text

CLIENTS = "sys/kernel/debug/nvmap/iovmm/clients"
UNITS = {"K": 1024, "M": 1024**2, "": 1}


def probe(root: Path = Path("/")) -> Probe:
    """`gpu_memory_bytes`; nothing where it may not be read."""

    def sensors() -> list[Sensor]:
        path = root / CLIENTS
        try:
            with path.open("rb"):
                return [Sensor("gpu_memory_bytes", "bytes", partial(total_bytes, path))]
        except OSError:
            return []

    return sensors


def total_bytes(path: Path) -> float:
    """The line `total  123456K` of the list of clients."""
    match = re.search(r"^total\s+([0-9]{1,15})([KM]?)\b", text(path), re.MULTILINE)
    if match is None:
        raise SensorError(f"{path.name} has no line with a total")
    return int(match[1]) * UNITS[match[2]]
