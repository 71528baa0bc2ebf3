"""Rails: what the board draws, by its INA3221 power monitors.

Source: Documentation/hwmon/ina3221.rst of Linux: `in[1-3]_input` mV, `curr[1-3]_input` mA; channels from 4 on are shunt
voltages, 7 their sum. Kernels of JetPack 4 say the same by iio: `rail_name_N`, `in_powerN_input` mW.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from edge_agent.errors import SensorError
from edge_agent.telemetry.base import Probe, Sensor
from edge_agent.telemetry.sysfs import distinct, folders, hwmon, is_jetson, number, plain_name, said_or_none

TOTAL = "total"
# the rails that together are all that the module draws, the first set of which all are there. AGX Orin: its second
# monitor has VDDQ_VDD2_1V8AO, fed from VIN_SYS_5V0: it would count twice. Orin NX, Nano: the others are below VDD_IN.
TOTALS = (("VDD_IN",), ("VDD_GPU_SOC", "VDD_CPU_CV", "VIN_SYS_5V0"))
CHANNELS = (1, 2, 3)
MOST_MV, MOST_MA = 30_000, 60_000  # the monitor measures up to 26 V
LEAST_MA = -1_000  # an idle rail reads a few mA below zero
NO_RAILS = "no INA3221 power monitor: no such chip, its driver is not loaded, or /sys is not mounted here"


@dataclass(frozen=True)
class Rail:
    """One rail by its label; `read_w` gives its power, W, or raises SensorError."""

    label: str
    read_w: Callable[[], float]


def probe(root: Path = Path("/")) -> Probe:
    """The rails found at each look, and their total where the board is known."""
    return partial(sensors, root)


def sensors(root: Path) -> list[Sensor]:
    """One row a rail, `power_w.VDD_IN`, and `power_w.total`, which has a reason instead of a value where the board is
    not known or has no monitor."""
    rails = find_rails(root)
    names = distinct(plain_name(rail.label) for rail in rails)
    rows = [Sensor(f"power_w.{name}", "w", rail.read_w) for name, rail in zip(names, rails, strict=True)]
    expected = bool(rails) or is_jetson(root)
    return [*rows, Sensor(f"power_w.{TOTAL}", "w", partial(_total_w, rails), expected)]


def total_w(root: Path) -> float:
    """What the module draws now, W; SensorError where it cannot be told."""
    return _total_w(find_rails(root))


def _total_w(rails: list[Rail]) -> float:
    total = total_of(rails)
    if total is None:
        known = ", ".join(rail.label for rail in rails)
        raise SensorError(f"no total is known of rails {known}" if rails else NO_RAILS)
    return total()


def total_of(rails: list[Rail]) -> Callable[[], float] | None:
    """What gives the board's power, W; None for rails of a board that TOTALS does not know."""
    by_label = {rail.label: rail for rail in reversed(rails)}
    for labels in TOTALS:
        if all(label in by_label for label in labels):
            parts = [by_label[label].read_w for label in labels]
            return lambda: round(sum(read() for read in parts), 3)
    return None


def find_rails(root: Path) -> list[Rail]:
    """Every connected channel of every monitor, by the chip's name, whatever its number is now."""
    found = [rail for folder in monitors(root) for rail in _hwmon_rails(folder)]
    return found or [rail for folder in _iio_monitors(root) for rail in _iio_rails(folder)]


def monitors(root: Path) -> list[Path]:
    """The hwmon folders of the INA3221 chips, by address: 0x40 before 0x41."""
    by_driver = folders(root / "sys/bus/i2c/drivers/ina3221", "*-00*/hwmon/hwmon*")
    by_name = hwmon(root, "ina3221")
    real = {os.path.realpath(folder) for folder in by_driver}
    return by_driver + [folder for folder in by_name if os.path.realpath(folder) not in real]


def _hwmon_rails(folder: Path) -> list[Rail]:
    labels = {channel: said_or_none(folder / f"in{channel}_label") or "" for channel in CHANNELS}
    return [Rail(label, partial(_power_w, folder, n)) for n, label in labels.items() if _connected(label)]


def _power_w(folder: Path, channel: int) -> float:
    millivolts = number(folder / f"in{channel}_input", 0, MOST_MV)
    milliamperes = number(folder / f"curr{channel}_input", LEAST_MA, MOST_MA)
    return round(millivolts * milliamperes / 1e6, 3)


def _iio_monitors(root: Path) -> list[Path]:
    return folders(root / "sys/bus/i2c/drivers/ina3221x", "*-00*/iio:device*")


def _iio_rails(folder: Path) -> list[Rail]:
    labels = {n: said_or_none(folder / f"rail_name_{n}") or "" for n in range(3)}
    most_mw = MOST_MV * MOST_MA // 1000
    return [
        Rail(label, lambda path=folder / f"in_power{n}_input": number(path, -most_mw, most_mw) / 1e3)  # type: ignore[misc]
        for n, label in labels.items()
        if _connected(label)
    ]


def _connected(label: str) -> bool:
    """A channel that nothing is wired to is labelled NC; `sum of shunt voltages` is none of channels 1 to 3."""
    return bool(label) and "NC" not in label.upper().split() and not label.upper().startswith("NC")
