"""Sysfs: reads what the kernel tells in files of one line. Whatever is wrong with one is a SensorError of one line.

`root` is the folder in which `sys`, `proc`, `etc` and `var` are: `/`, what a container mounts, or a test's own tree.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from pathlib import Path

from edge_agent.errors import SensorError

MOST_BYTES = 65_536
_NUMBER = re.compile(r"[-+]?[0-9]{1,30}")


def text(path: Path) -> str:
    """What the file says, without blanks around it. Never waits: EAGAIN is an error as any other."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            content = os.read(descriptor, MOST_BYTES)
        finally:
            os.close(descriptor)
    except OSError as exc:
        raise SensorError(f"{path.name}: {exc.strerror or exc}") from exc
    return content.decode("utf-8", "replace").strip(" \t\r\n\0")


def number(path: Path, low: int, high: int) -> int:
    """The whole number in the file; SensorError for text, and for a number that no such device has."""
    said = text(path)
    if not _NUMBER.fullmatch(said):
        raise SensorError(f"{path.name} is {said[:40]!r}; expected a whole number")
    value = int(said)
    if not low <= value <= high:
        raise SensorError(f"{path.name} is {value}; expected {low} to {high}")
    return value


def folders(pattern_root: Path, pattern: str) -> list[Path]:
    """What matches, in the order of the numbers in the names; none where nothing is or may be seen."""
    try:
        return sorted(pattern_root.glob(pattern), key=_natural)
    except OSError:
        return []


def hwmon(root: Path, name: str) -> list[Path]:
    """The hwmon folders of the chips of this name; their numbers change from boot to boot, and at each rebinding."""
    return [folder for folder in folders(root / "sys/class/hwmon", "hwmon*") if said_or_none(folder / "name") == name]


def said_or_none(path: Path) -> str | None:
    """What the file says; None where it cannot be read."""
    try:
        return text(path)
    except SensorError:
        return None


def is_jetson(root: Path) -> bool:
    """Whether this is a Tegra board, by its device tree, or by the file that L4T leaves."""
    trees = ("proc/device-tree", "sys/firmware/devicetree/base")  # a container may have either
    compatible = [said_or_none(root / tree / "compatible") or "" for tree in trees]
    return any("nvidia,tegra" in names for names in compatible) or there(root / "etc/nv_tegra_release")


def there(path: Path) -> bool:
    """Whether it exists, as far as one may see."""
    return os.access(path, os.F_OK)


def plain_name(label: str) -> str:
    """A label as the name of a member: letters, digits, underscore, at most 40."""
    return re.sub(r"[^A-Za-z0-9]+", "_", label).strip("_")[:40] or "unnamed"


def distinct(names: Iterable[str]) -> list[str]:
    """The names, those met again numbered: a, b, a_2."""
    seen: dict[str, int] = {}
    result = []
    for name in names:
        seen[name] = seen.get(name, 0) + 1
        result.append(name if seen[name] == 1 else f"{name}_{seen[name]}")
    return result


def _natural(path: Path) -> list[tuple[int, str]]:
    return [(int(part), "") if part.isdigit() else (-1, part) for part in re.split(r"([0-9]+)", str(path))]
