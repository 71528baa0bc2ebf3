"""GPU: load and clocks of a Jetson's integrated one, by devfreq, whose node may appear after the program's start."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from edge_agent.errors import SensorError
from edge_agent.telemetry.base import Probe, Sensor, absent
from edge_agent.telemetry.sysfs import folders, is_jetson, number, said_or_none, there

NAMES = ("ga10b", "gpu")
# where the load lies on JetPack 5, 6 and 7 when devfreq does not lead to it
LOADS = (
    "sys/devices/platform/bus@0/17000000.gpu/load",
    "sys/devices/platform/17000000.gpu/load",
    "sys/devices/platform/gpu.0/load",
    "sys/devices/17000000.ga10b/load",
    "sys/devices/platform/17000000.ga10b/load",
    "sys/devices/gpu.0/load",
)
MOST_HZ = 10_000_000_000
NO_GPU = "no GPU in /sys/class/devfreq yet"


def probe(root: Path = Path("/")) -> Probe:
    """`gpu_load_percent`, `gpu_clock_hz`, `gpu_clock_max_hz`; nothing where this is no Jetson."""
    return partial(sensors, root)


def sensors(root: Path) -> list[Sensor]:
    """The rows of the GPU that is there now."""
    node, load = find_node(root), find_load(root)
    if load is None and not is_jetson(root):
        return []
    if load is None:
        return [absent("gpu_load_percent", "percent", NO_GPU)]
    rows = [Sensor("gpu_load_percent", "percent", partial(_percent, load))]
    if node is not None:
        clocks = (("gpu_clock_hz", "cur_freq"), ("gpu_clock_max_hz", "max_freq"))
        rows += [Sensor(name, "hz", partial(number, node / file, 0, MOST_HZ)) for name, file in clocks]
    return rows


def load_percent(root: Path) -> float:
    """How busy the GPU is now; SensorError where that cannot be told."""
    load = find_load(root)
    if load is None:
        raise SensorError(NO_GPU)
    return _percent(load)


def find_node(root: Path) -> Path | None:
    """The GPU's folder below /sys/class/devfreq, by its name in the device tree."""
    for folder in folders(root / "sys/class/devfreq", "*"):
        name = said_or_none(folder / "device/of_node/name") or folder.name.rpartition(".")[2]
        if name in NAMES:
            return folder
    return None


def find_load(root: Path) -> Path | None:
    """The file with the GPU's load, permille."""
    node = find_node(root)
    places = [root / place for place in LOADS]
    found = [node / "device/load", *places] if node is not None else places
    return next((path for path in found if there(path)), None)


def _percent(load: Path) -> float:
    return number(load, 0, 1000) / 10
