"""Are the settings right, and is everything in them meant?"""

from __future__ import annotations

from collections.abc import Iterator

from edge_agent.config import cautions
from edge_agent.doctor.base import Patient, Row
from edge_agent.settings.problems import said


def check(patient: Patient) -> Iterator[Row]:
    if patient.config is None:
        yield Row(
            "settings", "fail", patient.problem or "wrong", f"run: edge-agent config validate {patient.config_file}"
        )
        return
    yield Row("settings", "ok", f"{patient.config_file} is right; this device is {patient.config.device()}")
    for caution in cautions(patient.config, patient.config_file):
        yield Row("settings", "warn", said(caution), "see docs/config.md")
