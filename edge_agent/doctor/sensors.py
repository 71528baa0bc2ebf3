"""Which sensors were found?"""

from __future__ import annotations

from collections.abc import Iterator

from edge_agent import registry
from edge_agent.doctor.base import Patient, Row
from edge_agent.errors import SensorError
from edge_agent.telemetry import SENSORS
from edge_agent.telemetry.base import Sensor


def check(patient: Patient) -> Iterator[Row]:
    for name in SENSORS:
        sensors: list[Sensor] = registry.load(SENSORS, name, "sensor")(patient.root)()
        found: list[str] = []
        missing: list[str] = []
        for sensor in sensors:
            (missing if (reason := why_absent(sensor)) else found).append(f"{sensor.name}{reason and f' ({reason})'}")
        text = f"{name}: {len(found)} found" + (f", without {'; '.join(missing[:3])}" if missing else "")
        board = (patient.root / "etc/nv_tegra_release").exists()
        if not found and board and name != "nvml":
            yield Row("sensors", "warn", text, "in a container: mount /sys read-only")
        else:
            yield Row("sensors", "ok", text)


def why_absent(sensor: Sensor) -> str:
    """The reason; empty where it gives a value."""
    try:
        sensor.read()
    except (SensorError, OSError, ValueError, LookupError, ArithmeticError, RuntimeError) as exc:
        return str(exc) or type(exc).__name__
    return ""
