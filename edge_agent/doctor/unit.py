"""Is the agent a service here, and can that one be started?"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

from edge_agent.doctor.base import Patient, Row

PLACES = ("etc/systemd/system", "usr/lib/systemd/system", "lib/systemd/system")
INSTALL = "run: sudo edge-agent install"


def check(patient: Patient) -> Iterator[Row]:
    units = [patient.root / place / "edge-agent.service" for place in PLACES]
    unit = next((path for path in units if path.is_file()), None)
    if any((patient.root / mark).exists() for mark in (".dockerenv", "run/.containerenv")):
        yield Row("service", "ok", "a container: what starts it is outside")
        return
    if unit is None:
        yield Row("service", "warn", "not installed: nothing starts the agent with the machine", INSTALL)
        return
    program = re.search(r"^ExecStart=(\S+)", unit.read_text(encoding="utf-8"), re.MULTILINE)
    if program is None or not os.access(patient.root / Path(program[1]).relative_to("/"), os.X_OK):
        yield Row(
            "service", "fail", f"{unit} starts {program[1] if program else 'nothing'}, which is no program", INSTALL
        )
        return
    enabled = (patient.root / "etc/systemd/system/multi-user.target.wants/edge-agent.service").is_symlink()
    cure = None if enabled else "run: sudo systemctl enable --now edge-agent"
    yield Row("service", "ok" if enabled else "warn", f"{unit}, {'enabled' if enabled else 'not enabled'}", cure)
