"""Thermal: temperatures of the chip's zones, and whether the kernel holds it back because of them.

Zones are known by the beginning of their type, whatever its case: `cpu-thermal`, `CPU-therm`. A zone whose block has no
power (cv0 to cv2 of an Orin) answers EAGAIN: it is absent. Source: Documentation/driver-api/thermal/sysfs-api.rst.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import partial
from pathlib import Path

from edge_agent.errors import SensorError
from edge_agent.telemetry.base import Probe, Sensor
from edge_agent.telemetry.sysfs import distinct, folders, number, said_or_none

ZONE = re.compile(r"(cpu|gpu|cv[0-9]*|soc[0-9]*|tj|tboard|tdiode)[-_]", re.IGNORECASE)
POWERED_DOWN = re.compile(r"cv[0-9]*")  # zones that come and go with what they measure
LEAST_MILLIC, MOST_MILLIC = -60_000, 200_000
SLOWED = re.compile(r"(?:thermal-)?(?:cpufreq|devfreq)-(.+)", re.IGNORECASE)
MOST_STATES = 1_000_000


def probe(root: Path = Path("/")) -> Probe:
    """A row for each zone that is there now: `temp_c.gpu`."""

    def sensors() -> list[Sensor]:
        return [
            Sensor(f"temp_c.{name}", "c", partial(celsius, folder), expected=not POWERED_DOWN.fullmatch(name))
            for name, folder in find_zones(root).items()
        ]

    return sensors


def find_zones(root: Path) -> Mapping[str, Path]:
    """Name (`gpu`) -> folder of each zone of the chip; others, of disks and such, are the host's."""
    named = [
        (match[1].lower(), folder)
        for folder in folders(root / "sys/class/thermal", "thermal_zone*")
        if (match := ZONE.match(said_or_none(folder / "type") or ""))
    ]
    return dict(zip(distinct(name for name, _ in named), (folder for _, folder in named), strict=True))


def celsius(folder: Path) -> float:
    """A zone's temperature; SensorError where it has none now."""
    return number(folder / "temp", LEAST_MILLIC, MOST_MILLIC) / 1e3


def temperatures(root: Path) -> dict[str, float]:
    """Those of all zones that have one now."""
    found = {}
    for name, folder in find_zones(root).items():
        try:
            found[name] = celsius(folder)
        except SensorError:
            continue
    return found


def slowed(root: Path) -> list[str] | None:
    """Which clocks the kernel's thermal framework holds down now, `cpu0 (3 of 7)`; None where it tells of none."""
    found: list[str] = []
    any_told = False
    for folder in folders(root / "sys/class/thermal", "cooling_device*"):
        match = SLOWED.fullmatch(said_or_none(folder / "type") or "")
        if match is None:
            continue  # a fan at work is no throttling
        try:
            state = number(folder / "cur_state", 0, MOST_STATES)
        except SensorError:
            continue
        any_told = True
        if state > 0:
            found.append(f"{match[1]} ({state} of {said_or_none(folder / 'max_state') or '?'})")
    return found if any_told else None
