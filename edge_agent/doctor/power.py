"""In which power mode is the board?"""

from __future__ import annotations

from collections.abc import Iterator

from edge_agent.doctor.base import Patient, Row
from edge_agent.errors import SensorError
from edge_agent.telemetry.power_mode import power_mode


def check(patient: Patient) -> Iterator[Row]:
    if not (patient.root / "etc/nv_tegra_release").exists():
        yield Row("power", "ok", "no Jetson, no power modes")
        return
    try:
        yield Row("power", "ok", f"power mode {power_mode(patient.root)}")
    except (SensorError, OSError) as exc:
        yield Row("power", "warn", str(exc), "in a container: mount /var/lib/nvpmodel/status and /etc/nvpmodel.conf")
