from __future__ import annotations

import platform
from pathlib import Path

import pytest

from edge_agent.backends.cpu import CPUINFO, processor

INTEL = """processor\t: 0
model name\t: Intel(R) Xeon(R) Processor
processor\t: 1
model name\t: Intel(R) Xeon(R) Processor
"""
ORIN = """processor\t: 0
BogoMIPS\t: 62.50
CPU implementer\t: 0x41
CPU architecture: 8
CPU part\t: 0xd42
processor\t: 1
CPU implementer\t: 0x41
CPU part\t: 0xd42
"""
BIG_LITTLE = "CPU implementer\t: 0x41\nCPU part\t: 0xd05\nCPU implementer\t: 0x41\nCPU part\t: 0xd0b\n"


@pytest.mark.parametrize(
    ("text", "name"),
    [
        (INTEL, "Intel(R) Xeon(R) Processor"),
        (ORIN, "CPU implementer 0x41 CPU part 0xd42"),
        (BIG_LITTLE, "CPU implementer 0x41 CPU part 0xd05+0xd0b"),
        ("", "unknown"),
        ("model name\t:\n", "unknown"),
    ],
)
def test_processor_is_named_as_its_kernel_does(tmp_path: Path, text: str, name: str) -> None:
    cpuinfo = tmp_path / "cpuinfo"
    cpuinfo.write_text(text)
    assert processor(cpuinfo) == {"architecture": platform.machine(), "cpu": name}


def test_processor_without_a_kernel_that_tells_is_unknown(tmp_path: Path) -> None:
    assert processor(tmp_path / "absent")["cpu"] == "unknown"


@pytest.mark.skipif(not CPUINFO.exists(), reason="needs Linux")
def test_this_processor_has_a_name() -> None:
    assert processor()["cpu"] != "unknown"
