"""Fan: how it is driven (hwmon `pwmfan`) and how fast it turns (hwmon `pwm_tach`)."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from edge_agent.telemetry.base import Probe, Sensor
from edge_agent.telemetry.sysfs import hwmon, number, there

MOST_RPM = 100_000


def probe(root: Path = Path("/")) -> Probe:
    """`fan_percent` and `fan_rpm` of the first fan; nothing where there is none."""
    return partial(sensors, root)


def sensors(root: Path) -> list[Sensor]:
    """The rows of the fan that is there now."""
    rows = [Sensor("fan_percent", "percent", partial(_percent, folder)) for folder in hwmon(root, "pwmfan")[:1]]
    return rows + [Sensor("fan_rpm", "rpm", partial(_rpm, folder)) for folder in hwmon(root, "pwm_tach")[:1]]


def _percent(folder: Path) -> float:
    return round(number(folder / "pwm1", 0, 255) / 255 * 100, 1)


def _rpm(folder: Path) -> float:
    """Kernels name the file `rpm` or, by the hwmon ABI, `fan1_input`."""
    old = folder / "rpm"
    return number(old if there(old) else folder / "fan1_input", 0, MOST_RPM)
