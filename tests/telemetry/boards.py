"""Boards: trees of sysfs as Jetson boards have them, made of files, by board and JetPack line."""

from __future__ import annotations

import os
from pathlib import Path

from edge_agent.files import write_atomically

NANO_RAILS = {1: ("VDD_IN", 19_000, 800), 2: ("VDD_CPU_GPU_CV", 19_000, 300), 3: ("VDD_SOC", 19_000, 200)}
AGX_RAILS = {1: ("VDD_GPU_SOC", 20_000, 500), 2: ("VDD_CPU_CV", 20_000, 250), 3: ("VIN_SYS_5V0", 5_000, 1_000)}
AGX_MORE = {1: ("NC", 0, 0), 2: ("VDDQ_VDD2_1V8AO", 5_000, 400), 3: ("NC", 0, 0)}
NVPMODEL = """\
# a catalogue as L4T has it
< PARAM TYPE=FILE NAME=CPU_ONLINE >
CORE_0 /sys/devices/system/cpu/cpu0/online
< POWER_MODEL ID=0 NAME=15W >
CPU_ONLINE CORE_0 1
< POWER_MODEL ID=1 NAME=7W >
CPU_ONLINE CORE_0 1
< POWER_MODEL ID=2 NAME=MAXN_SUPER >
< PM_CONFIG DEFAULT=0 >
"""


def write(path: Path, content: object) -> Path:
    """In one step, as the kernel's own files change: whoever reads meanwhile finds the one or the other."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, f"{content}\n".encode(), durable=False)
    return path


def link(path: Path, target: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.symlink_to(target)


def ina3221(root: Path, address: str, number: int, rails: dict[int, tuple[str, int, int]]) -> Path:
    """A power monitor at `hwmon<number>`, found by class and by driver as on a board; its hwmon folder."""
    device = root / f"sys/devices/platform/bus@0/c240000.i2c/i2c-1/1-{address}"
    folder = device / f"hwmon/hwmon{number}"
    write(folder / "name", "ina3221")
    for channel, (label, millivolts, milliamperes) in rails.items():
        write(folder / f"in{channel}_label", label)
        write(folder / f"in{channel}_input", millivolts)
        write(folder / f"curr{channel}_input", milliamperes)
        write(folder / f"in{channel + 3}_input", 1234)  # shunt voltage, uV
    write(folder / "in7_label", "sum of shunt voltages")
    write(folder / "in7_input", 3702)
    link(root / f"sys/class/hwmon/hwmon{number}", folder)
    driver = root / f"sys/bus/i2c/drivers/ina3221/1-{address}"
    if not driver.exists():
        link(driver, device)
    return folder


def chip(root: Path, number: int, name: str, **files: object) -> Path:
    """Any other hwmon chip."""
    folder = root / f"sys/devices/platform/{name}/hwmon/hwmon{number}"
    write(folder / "name", name)
    for file, content in files.items():
        write(folder / file, content)
    link(root / f"sys/class/hwmon/hwmon{number}", folder)
    return folder


def renumber(root: Path, old: int, new: int) -> None:
    """A chip is bound again and has another number."""
    entry = root / f"sys/class/hwmon/hwmon{old}"
    folder = entry.resolve()
    entry.unlink()
    moved = folder.rename(folder.with_name(f"hwmon{new}"))
    link(root / f"sys/class/hwmon/hwmon{new}", moved)


def zone(root: Path, number: int, kind: str, temp: object) -> Path:
    folder = root / f"sys/class/thermal/thermal_zone{number}"
    write(folder / "type", kind)
    return write(folder / "temp", temp)


def devfreq(root: Path, gpu: str, name: str, load: object) -> None:
    """The GPU at `gpu`, a path below sys/devices, and its devfreq node."""
    device = root / "sys/devices" / gpu
    write(device / "load", load)
    write(device / "of_node/name", name)
    node = root / "sys/class/devfreq" / device.name
    for file, hertz in (("cur_freq", 624_750_000), ("min_freq", 306_000_000), ("max_freq", 918_000_000)):
        write(node / file, hertz)
    link(node / "device", device)


def over_current(root: Path, number: int, *counts: int) -> Path:
    events = {f"oc{n}_event_cnt": count for n, count in enumerate(counts, start=1)}
    return chip(root, number, "soctherm_oc", **events, **{f"oc{n}_throt_en": 1 for n in range(1, len(counts) + 1)})


def tegra(root: Path) -> Path:
    path = root / "proc/device-tree/compatible"
    path.parent.mkdir(parents=True)
    path.write_bytes(b"nvidia,p3768-0000+p3767-0005\0nvidia,tegra234\0")
    write(root / "var/lib/nvpmodel/status", "pmode:0002 fmode:quiet")
    write(root / "etc/nvpmodel.conf", NVPMODEL)
    return root


def orin_nano(folder: Path) -> Path:
    """Orin Nano or NX on JetPack 6.2 (L4T 36.5)."""
    root = tegra(folder / "orin_nano")
    chip(root, 0, "pwmfan", pwm1=127)
    ina3221(root, "0040", 1, NANO_RAILS)
    chip(root, 2, "pwm_tach", rpm=2_400)
    over_current(root, 3, 0, 0, 7)
    devfreq(root, "platform/bus@0/17000000.gpu", "gpu", 615)
    for n, (kind, temp) in enumerate([("cpu", 51_000), ("gpu", 49_500), ("soc0", 48_000), ("tj", 52_000)]):
        zone(root, n, f"{kind}-thermal", temp)
    return root


def agx_orin(folder: Path, jetpack: int) -> Path:
    """AGX Orin on JetPack 5, 6 or 7."""
    root = tegra(folder / f"agx_orin_{jetpack}")
    gpu, name, ending = {
        5: ("17000000.ga10b", "ga10b", "therm"),
        6: ("platform/bus@0/17000000.gpu", "gpu", "thermal"),
        7: ("platform/bus@0/17000000.gpu", "gpu", "thermal"),
    }[jetpack]
    ina3221(root, "0041", 2, AGX_MORE)
    ina3221(root, "0040", 4, AGX_RAILS)
    over_current(root, 0, 1, 2, 3)
    devfreq(root, gpu, name, 1000)
    kinds = ["CPU", "GPU", "SOC0", "tj"] if jetpack == 5 else ["cpu", "gpu", "soc0", "tj"]
    for n, kind in enumerate(kinds):
        zone(root, n, f"{kind}-{ending}", 40_000 + 1000 * n)
    return root


def fifo(path: Path) -> int:
    """Puts a pipe with an open, silent writer in the file's place: reading it gives EAGAIN. The descriptor to close."""
    path.unlink(missing_ok=True)
    os.mkfifo(path)
    return os.open(path, os.O_RDWR | os.O_NONBLOCK)
