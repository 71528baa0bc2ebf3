"""Cpu: which processor this is, so that what was measured on one is not believed on another."""

from __future__ import annotations

import platform
from pathlib import Path

CPUINFO = Path("/proc/cpuinfo")
ARM_PARTS = ("CPU implementer", "CPU part")  # ARM kernels give numbers in place of a name


def processor(cpuinfo: Path = CPUINFO) -> dict[str, str]:
    """`architecture` and `cpu`, the model as /proc/cpuinfo has it; `unknown` where it says nothing of the kind."""
    try:
        lines = cpuinfo.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        lines = []
    told: dict[str, list[str]] = {}
    for line in lines:
        name, _, value = line.partition(":")
        if value.strip() and value.strip() not in told.setdefault(name.strip(), []):
            told[name.strip()].append(value.strip())
    if "model name" in told:
        name = ", ".join(told["model name"])
    else:
        name = " ".join(f"{part} {'+'.join(told[part])}" for part in ARM_PARTS if part in told)
    return {"architecture": platform.machine(), "cpu": name or "unknown"}
