"""Sensor: one row of telemetry, a name with its unit and the function that reads it now."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Sensor:
    """`read` returns the value in `unit`; it is called on the telemetry thread and should take milliseconds.

    What it may raise for a missing value: SensorError, OSError, ValueError, LookupError, ArithmeticError, RuntimeError.
    """

    name: str
    unit: str
    read: Callable[[], float]
