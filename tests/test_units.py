"""systemd/*.service: as systemd itself reads them, and as the program that they start needs them."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
from collections import defaultdict
from pathlib import Path

import pytest

from edge_agent import agent, agent_links
from edge_agent.errors import EXIT_CONFIG
from tests.conftest import ROOT
from tests.test_docs import fault_of

UNITS = sorted((ROOT / "systemd").glob("*.service"))
MOST_EXPOSED = 2.5  # of 10, which `systemd-analyze security` gives a unit without these settings; see docs/operate.md

needs_systemd = pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="needs systemd-analyze")
every_unit = pytest.mark.parametrize("path", UNITS, ids=lambda path: path.name)


def entries(path: Path) -> dict[str, list[str]]:
    """Key -> its values in order, of all sections: a key may come more than once."""
    found = defaultdict(list)
    for line in path.read_text(encoding="utf-8").splitlines():
        if "=" in line and not line.startswith("#"):
            key, _, value = line.partition("=")
            found[key].append(value)
    return dict(found)


@pytest.fixture(scope="module")
def service() -> dict[str, list[str]]:
    return entries(ROOT / "systemd" / "edge-agent.service")


def placed(path: Path, folder: Path) -> Path:
    """The unit as it is installed, with a program that exists here: systemd looks whether it does."""
    unit = folder / path.name
    unit.write_text(re.sub(r"^(Exec\w+=-?)edge-agent ", r"\1/usr/bin/env edge-agent ", path.read_text(), flags=re.M))
    return unit


@needs_systemd
@every_unit
def test_systemd_has_nothing_to_say_against_it(path: Path, tmp_path: Path) -> None:
    ran = subprocess.run(
        ["systemd-analyze", "verify", str(placed(path, tmp_path))], capture_output=True, text=True, check=False
    )
    assert (ran.returncode, ran.stderr) == (0, "")


@needs_systemd
@every_unit
def test_it_is_exposed_no_more_than_the_documents_say(path: Path, tmp_path: Path) -> None:
    command = ["systemd-analyze", "security", "--offline=true", "--no-pager", str(placed(path, tmp_path))]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    if "unrecognized option" in ran.stderr:
        pytest.skip("needs systemd >= 250")
    found = re.search(r"exposure level for \S+: ([\d.]+)", ran.stdout)
    assert found is not None, ran
    assert float(found[1]) <= MOST_EXPOSED
    systemd = subprocess.run(["systemd-analyze", "--version"], capture_output=True, text=True, check=True).stdout
    if systemd.startswith("systemd 252"):  # others weigh a little differently
        assert f" {found[1]}" in (ROOT / "docs/operate.md").read_text("utf-8")


@every_unit
def test_it_says_what_the_command_line_understands(path: Path) -> None:
    found = entries(path)
    for command in [*found["ExecStart"], *found.get("ExecStopPost", [])]:
        program, *words = shlex.split(command.removeprefix("-"))
        assert program == "edge-agent"
        assert fault_of(words) is None


def seconds(text: str) -> float:
    assert re.fullmatch(r"\d+", text), f"{text}: plain seconds are what these tests can compute with"
    return float(text)


def test_start_limit_can_be_reached(service: dict[str, list[str]]) -> None:
    """Field case SYS-3: systemd itself passes a unit that is started again for ever."""
    burst, interval_s = int(service["StartLimitBurst"][0]), seconds(service["StartLimitIntervalSec"][0])
    restart_s = seconds(service["RestartSec"][0])
    slowest_failure_s = 60.0  # a start that loads models for a minute before it fails is to be counted as well
    assert burst * (restart_s + slowest_failure_s) < interval_s
    assert restart_s > 0, "a failure costs no processor for nothing"
    assert service["Restart"] == ["on-failure"], "a wished stop is no failure"


def test_wrong_settings_are_not_tried_again(service: dict[str, list[str]]) -> None:
    assert service["RestartPreventExitStatus"] == [str(EXIT_CONFIG)]


def test_stop_has_time_for_what_the_agent_does_then(service: dict[str, list[str]]) -> None:
    assert agent.STOP_CAMERA_S + agent_links.STOP_PUBLISHER_S < 10 < seconds(service["TimeoutStopSec"][0])
    assert service["KillMode"] == ["mixed"], "builders and calibrations are ended by the agent, not beside it"


def test_watchdog_waits_for_the_slowest_turn_and_a_build_asks_for_more(service: dict[str, list[str]]) -> None:
    assert seconds(service["WatchdogSec"][0]) >= 100 * agent.TURN_S
    assert seconds(service["TimeoutStartSec"][0]) >= 10 * agent.BUILD_REPORT_S


def test_gpu_and_cameras_can_be_reached(service: dict[str, list[str]]) -> None:
    assert set(service["SupplementaryGroups"][0].split()) == {"video", "render"}
    hiding = {"PrivateDevices", "DevicePolicy", "DeviceAllow", "ProtectClock", "MemoryDenyWriteExecute"}
    hiding |= {"PrivateUsers", "ProtectProc"}  # CUDA fails under these
    hiding |= {"PrivateTmp", "DynamicUser"}  # and the camera daemon's socket lies in /tmp
    assert hiding & set(service) == set()
    assert "/tmp" in service["ReadWritePaths"][0].split()
    assert "AF_UNIX" in service["RestrictAddressFamilies"][0].split(), "the camera daemon's socket"


def test_folders_of_its_own_are_those_that_the_program_asks_for(service: dict[str, list[str]]) -> None:
    for kind in ("StateDirectory", "RuntimeDirectory", "CacheDirectory"):
        assert service[kind] == ["edge-agent"]
        assert service[f"{kind}Mode"] == ["0750"]
    assert "CUDA_CACHE_PATH=/var/cache/edge-agent/cuda" in service["Environment"]


def test_builder_that_took_all_memory_does_not_take_the_agent_along(service: dict[str, list[str]]) -> None:
    """Field case ENG-7: systemd's default would stop the whole unit."""
    assert service["OOMPolicy"] == ["continue"]


def test_refused_model_is_no_failure_of_the_calibration() -> None:
    assert entries(ROOT / "systemd" / "edge-agent-calibrate.service")["SuccessExitStatus"] == ["1"]


@needs_systemd
def test_json_of_the_security_check_names_no_setting_that_breaks_cuda(tmp_path: Path) -> None:
    """What is left open is left open on purpose: a list, so that a new weakness is seen."""
    unit = placed(ROOT / "systemd" / "edge-agent.service", tmp_path)
    command = ["systemd-analyze", "security", "--offline=true", "--no-pager", "--json=short", str(unit)]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    if "unrecognized option" in ran.stderr:
        pytest.skip("needs systemd >= 250")
    weak = {row["json_field"] for row in json.loads(ran.stdout) if row["exposure"] and float(row["exposure"]) >= 0.2}
    assert weak <= {
        "PrivateDevices",
        "PrivateTmp",
        "PrivateUsers",
        "PrivateNetwork",
        "ProtectClock",
        "RestrictAddressFamilies_AF_INET_INET6",
        "MemoryDenyWriteExecute",
        "IPAddressDeny",
        "DeviceAllow",
        "SystemCallFilter_resources",
        "ProtectProc",
        "RootDirectoryOrRootImage",
    }
