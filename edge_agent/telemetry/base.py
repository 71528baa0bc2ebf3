"""Sensor: one row of telemetry, a name with its unit and the function that reads it now."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from edge_agent.errors import SensorError


@dataclass(frozen=True)
class Sensor:
    """`read` returns the value in `unit`; it is called on the telemetry thread and should take milliseconds.

    What it may raise for a missing value: SensorError, OSError, ValueError, LookupError, ArithmeticError, RuntimeError.
    A sensor that is not `expected` to have a value at all times is missed without a warning.
    """

    name: str
    unit: str
    read: Callable[[], float]
    expected: bool = True


# Looks for the sensors that are there now: numbers of nodes change, drivers come late. Called before each message.
Probe = Callable[[], list[Sensor]]


def absent(name: str, unit: str, reason: str, *, expected: bool = True) -> Sensor:
    """A sensor that has no value, and why."""

    def read() -> float:
        raise SensorError(reason)

    return Sensor(name, unit, read, expected)
