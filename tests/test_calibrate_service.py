"""systemd/edge-agent-calibrate.service: as systemd itself reads it."""

from __future__ import annotations

import configparser
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.test_docs import fault_of

UNIT = ROOT / "systemd" / "edge-agent-calibrate.service"


@pytest.fixture
def service() -> configparser.SectionProxy:
    unit = configparser.ConfigParser(interpolation=None, strict=False)
    unit.optionxform = str  # type: ignore[assignment, method-assign]
    unit.read(UNIT)
    return unit["Service"]


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="needs systemd-analyze")
def test_systemd_has_nothing_to_say_against_it(tmp_path: Path) -> None:
    unit = tmp_path / UNIT.name
    unit.write_text(UNIT.read_text().replace("ExecStart=edge-agent", f"ExecStart={sys.executable}"))
    ran = subprocess.run(["systemd-analyze", "verify", str(unit)], capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stderr) == (0, "")


def test_it_says_what_the_command_line_understands(service: configparser.SectionProxy) -> None:
    program, *words = shlex.split(service["ExecStart"])
    assert program == "edge-agent"
    assert words[0] == "calibrate"
    assert fault_of(words) is None


def test_reading_comes_first(service: configparser.SectionProxy) -> None:
    assert service["Type"] == "oneshot"
    assert int(service["CPUWeight"]) < 100
    assert int(service["IOWeight"]) < 100
    assert int(service["Nice"]) > 0
    assert int(service["OOMScoreAdjust"]) > 0
    assert service["StateDirectory"] == "edge-agent"
