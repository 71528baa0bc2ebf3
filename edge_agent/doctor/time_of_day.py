"""Is the clock synchronised? Readings of one that is not say so, and dates are not judged by it."""

from __future__ import annotations

from collections.abc import Iterator

from edge_agent.clock import DeviceClock
from edge_agent.doctor.base import Patient, Row


def check(patient: Patient) -> Iterator[Row]:
    if DeviceClock(patient.root).trusted():
        yield Row("clock", "ok", "synchronised")
    else:
        cure = "timedatectl set-ntp true, and a time server that can be reached"
        yield Row("clock", "warn", "not synchronised: its readings are marked, and dates are not judged", cure)
