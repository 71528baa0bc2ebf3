"""Power mode: which of the board's nvpmodel modes is in force, by its files; no root and no tool needed."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from edge_agent.errors import SensorError
from edge_agent.telemetry.sysfs import said_or_none, text

STATUS = "var/lib/nvpmodel/status"
CATALOGUE = "etc/nvpmodel.conf"
_MODE = re.compile(r"^\s*<\s*POWER_MODEL\s+ID=([0-9]{1,4})\s+NAME=([^\s>]{1,64})\s*>", re.MULTILINE)


@dataclass(frozen=True)
class PowerMode:
    """A mode by its number, and its name where the catalogue has it."""

    id: int
    name: str | None

    def __str__(self) -> str:
        return str(self.id) if self.name is None else self.name


def power_mode(root: Path) -> PowerMode:
    """The mode in force; SensorError where that cannot be told."""
    said = text(root / STATUS)
    match = re.search(r"pmode:([0-9]{1,4})\b", said)
    if match is None:
        raise SensorError(f"{STATUS} is {said[:40]!r}; expected pmode: and a number")
    mode_id = int(match[1])
    return PowerMode(mode_id, catalogue(root).get(mode_id))


def catalogue(root: Path) -> dict[int, str]:
    """Number -> name of the modes that the board has; empty where there is no catalogue."""
    return {int(mode_id): name for mode_id, name in _MODE.findall(said_or_none(root / CATALOGUE) or "")}
