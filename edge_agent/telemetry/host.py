"""Host: processor, memory, disk, this process and temperatures, by psutil."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil

from edge_agent.errors import SensorError
from edge_agent.telemetry.base import Probe, Sensor
from edge_agent.telemetry.thermal import ZONE

log = logging.getLogger(__name__)


def probe(root: Path = Path("/")) -> Probe:
    """The host's rows; they are this machine's own wherever `root` is."""
    rows = sensors()
    return lambda: rows


def sensors(folder: Path = Path()) -> list[Sensor]:
    """The host's rows; the disk is the one that holds `folder`. Looks once which temperatures this machine has."""
    process = psutil.Process(os.getpid())
    psutil.cpu_percent()  # the first call only starts the interval that the next one reports on
    process.cpu_percent()
    rows: list[tuple[str, str, Callable[[], float]]] = [
        ("cpu_percent", "percent", psutil.cpu_percent),
        ("ram_total_bytes", "bytes", lambda: psutil.virtual_memory().total),
        ("ram_available_bytes", "bytes", lambda: psutil.virtual_memory().available),
        ("swap_used_bytes", "bytes", lambda: psutil.swap_memory().used),
        ("disk_total_bytes", "bytes", lambda: psutil.disk_usage(str(folder)).total),
        ("disk_free_bytes", "bytes", lambda: psutil.disk_usage(str(folder)).free),
        ("process_cpu_percent", "percent", process.cpu_percent),  # of one core: more than 100 with several threads
        ("process_rss_bytes", "bytes", lambda: process.memory_info().rss),
        ("process_threads", "count", process.num_threads),
        ("process_open_files", "count", process.num_fds),
    ]
    rows += [(name, "c", _temperature(chip, position)) for name, chip, position in _temperature_places()]
    return [Sensor(name, unit, _guarded(read)) for name, unit, read in rows]


def _guarded(read: Callable[[], float]) -> Callable[[], float]:
    """psutil's errors as ours: they derive from Exception alone."""

    def guarded() -> float:
        try:
            return float(read())
        except psutil.Error as exc:
            raise SensorError(str(exc)) from exc

    return guarded


def _temperature_places() -> list[tuple[str, str, int]]:
    """Name, chip and position of each temperature, such as `temp_c.coretemp_core_0`; zones of the chip are those of
    telemetry.thermal."""
    try:
        found = sorted(_temperatures().items())
    except (OSError, psutil.Error) as exc:
        log.warning("temperatures cannot be read and are left out: %s", exc)
        return []
    return [
        (f"temp_c.{_label(chip, reading.label, position)}", chip, position)
        for chip, readings in found
        if not ZONE.match(chip)
        for position, reading in enumerate(readings)
    ]


def _label(chip: str, label: str, position: int) -> str:
    return f"{chip}_{label or position}".replace(" ", "_").lower() if label or position else chip


def _temperature(chip: str, position: int) -> Callable[[], float]:
    def read() -> float:
        readings = _temperatures().get(chip, [])
        if position >= len(readings):
            raise SensorError(f"temperature {position} of {chip} is gone")
        return float(readings[position].current)

    return read


def _temperatures() -> dict[str, list[Any]]:
    """psutil has no such function where the system offers none (macOS)."""
    read = getattr(psutil, "sensors_temperatures", None)
    return {} if read is None else dict(read())
