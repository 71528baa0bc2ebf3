"""Over-current: how often the board was held back by its supply, by the Orin's `soctherm_oc` counters.

OC1 is under-voltage, OC2 average over-current, OC3 instantaneous over-current. They count since boot; what is told is
how many came since the last look. OC3 alone is short spikes met by the protection, no fault.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path

from edge_agent.errors import SensorError
from edge_agent.telemetry.base import Probe, Sensor
from edge_agent.telemetry.sysfs import folders, hwmon, number

MOST_EVENTS = 2**63 - 1


class OverCurrent:
    """What each counter has gained since this object looked last; what was before its first look does not count."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._before = self.totals()

    def totals(self) -> dict[str, int | SensorError]:
        """Counter (`oc1`) -> events since boot, or why that cannot be read; empty where the board has none."""
        found: dict[str, int | SensorError] = {}
        for folder in hwmon(self._root, "soctherm_oc"):
            for path in folders(folder, "oc*_event_cnt"):
                name = path.name.partition("_")[0]
                try:
                    found[name] = number(path, 0, MOST_EVENTS)
                except SensorError as exc:
                    found[name] = exc
        return found

    def gained(self) -> dict[str, int | SensorError]:
        """Counter -> events since the last call; a counter that went back began anew at 0."""
        now = self.totals()
        gained = {
            name: total if isinstance(total, SensorError) else self._since(name, total) for name, total in now.items()
        }
        self._before.update({name: total for name, total in now.items() if not isinstance(total, SensorError)})
        return gained

    def _since(self, name: str, total: int) -> int:
        before = self._before.get(name, total)
        if isinstance(before, SensorError):  # it could not be read at the first look
            return 0
        return total - before if total >= before else total


def probe(root: Path = Path("/")) -> Probe:
    """The counters, `over_current.oc1`, as events since the last message."""
    counters = OverCurrent(root)

    def sensors() -> list[Sensor]:
        gained = counters.gained()
        return [Sensor(f"over_current.{name}", "count", partial(_value, gained, name)) for name in sorted(gained)]

    return sensors


def _value(gained: Mapping[str, int | SensorError], name: str) -> float:
    value = gained[name]
    if isinstance(value, SensorError):
        raise value
    return value
