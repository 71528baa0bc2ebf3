"""Board sensors on trees of files as Orin boards have them (field case TEL-1)."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from edge_agent import registry
from edge_agent.errors import SensorError
from edge_agent.telemetry import SENSORS
from edge_agent.telemetry.base import Probe
from edge_agent.telemetry.over_current import OverCurrent
from edge_agent.telemetry.power_mode import catalogue, power_mode
from edge_agent.telemetry.rails import total_w
from edge_agent.telemetry.sampler import Sampler
from edge_agent.telemetry.sysfs import is_jetson
from edge_agent.telemetry.thermal import slowed, temperatures
from tests.telemetry import boards

HWMON = "sys/devices/platform/bus@0/c240000.i2c/i2c-1/1-0040/hwmon"


def strict(payload: bytes) -> Any:
    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} in {payload!r}")

    return json.loads(payload, parse_constant=refuse)


class Board:
    """All board groups of SENSORS on one tree."""

    def __init__(self, root: Path) -> None:
        self.root = root
        probes: list[Probe] = [
            registry.load(SENSORS, group, "sensor group")(root) for group in SENSORS if group not in ("host", "nvml")
        ]
        self.sampler = Sampler(probes, {}, 10.0, lambda message: None)

    def body(self) -> dict[str, Any]:
        return dict(strict(self.sampler.sample().payload))


@pytest.fixture
def nano(tmp_path: Path) -> Board:
    return Board(boards.orin_nano(tmp_path))


@pytest.fixture
def silent() -> Iterator[list[int]]:
    """Descriptors of pipes, closed at the end."""
    descriptors: list[int] = []
    yield descriptors
    for descriptor in descriptors:
        os.close(descriptor)


def test_orin_nano_tells_everything_and_vdd_in_is_its_total(nano: Board) -> None:
    body = nano.body()
    del body["v"], body["at"]
    assert body == {
        "power_w": {"VDD_IN": 15.2, "VDD_CPU_GPU_CV": 5.7, "VDD_SOC": 3.8, "total": 15.2},
        "over_current": {"oc1": 0, "oc2": 0, "oc3": 0},
        "temp_c": {"cpu": 51.0, "gpu": 49.5, "soc0": 48.0, "tj": 52.0},
        "gpu_load_percent": 61.5,
        "gpu_clock_hz": 624_750_000,
        "gpu_clock_max_hz": 918_000_000,
        "fan_percent": 49.8,
        "fan_rpm": 2_400,
        "absent": {},
    }


@pytest.mark.parametrize("jetpack", [5, 6, 7])
def test_agx_orin_total_is_the_three_rails_of_its_first_monitor(tmp_path: Path, jetpack: int) -> None:
    body = Board(boards.agx_orin(tmp_path, jetpack)).body()
    assert body["power_w"] == {
        "VDD_GPU_SOC": 10.0,
        "VDD_CPU_CV": 5.0,
        "VIN_SYS_5V0": 5.0,
        "VDDQ_VDD2_1V8AO": 2.0,
        "total": 20.0,
    }
    assert body["temp_c"] == {"cpu": 40.0, "gpu": 41.0, "soc0": 42.0, "tj": 43.0}
    assert body["gpu_load_percent"] == 100.0
    assert body["absent"] == {}


def test_rails_that_only_the_driver_leads_to_are_found(tmp_path: Path) -> None:
    folder = tmp_path / "sys/bus/i2c/drivers/ina3221/1-0040/hwmon/hwmon3"
    for file, content in (("in1_label", "VDD_IN"), ("in1_input", 19000), ("curr1_input", 800), ("in2_label", "NC")):
        boards.write(folder / file, content)
    assert Board(tmp_path).body()["power_w"] == {"VDD_IN": 15.2, "total": 15.2}


def test_rails_of_the_old_kernels_are_read_as_well(tmp_path: Path) -> None:
    folder = tmp_path / "sys/bus/i2c/drivers/ina3221x/1-0040/iio:device0"
    boards.write(folder / "rail_name_0", "VDD_IN")
    boards.write(folder / "in_power0_input", 15_200)
    boards.write(folder / "rail_name_1", "VDD_SOC")
    boards.write(folder / "in_power1_input", 3_800)
    assert Board(tmp_path).body()["power_w"] == {"VDD_IN": 15.2, "VDD_SOC": 3.8, "total": 15.2}


def test_chips_renumbered_between_two_reads_are_found_again(nano: Board) -> None:
    before = nano.body()
    boards.renumber(nano.root, 1, 9)
    boards.renumber(nano.root, 3, 1)
    boards.renumber(nano.root, 2, 3)
    after = nano.body()
    assert {**after, "at": before["at"]} == before


def test_gpu_node_that_appears_late_is_taken_up(tmp_path: Path) -> None:
    board = Board(boards.tegra(tmp_path / "late"))
    assert board.body()["gpu_load_percent"] is None
    boards.devfreq(board.root, "platform/bus@0/17000000.gpu", "gpu", 5)
    assert board.body()["gpu_load_percent"] == 0.5


def test_board_without_a_monitor_says_so_once_and_sends_the_rest(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    board = Board(boards.tegra(tmp_path / "bare"))
    boards.devfreq(board.root, "17000000.ga10b", "ga10b", 10)
    body = board.body()
    board.body()
    assert body["power_w"] == {"total": None}
    assert "no INA3221 power monitor" in body["absent"]["power_w.total"]
    assert body["gpu_load_percent"] == 1.0
    assert [(record.levelno, "power_w.total" in record.getMessage()) for record in caplog.records] == [
        (logging.WARNING, True)
    ]


def test_machine_that_is_no_jetson_is_not_warned_of(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    body = Board(tmp_path).body()
    assert set(body) == {"v", "at", "power_w", "absent"}
    assert caplog.records == []


def test_unknown_board_has_rails_and_no_invented_total(tmp_path: Path) -> None:
    boards.ina3221(tmp_path, "0040", 0, {1: ("5V_MAIN", 5_000, 1_000), 2: ("nc", 0, 0), 3: ("5V_MAIN", 5_000, 2_000)})
    body = Board(tmp_path).body()
    assert body["power_w"] == {"5V_MAIN": 5.0, "5V_MAIN_2": 10.0, "total": None}
    assert "no total is known of rails 5V_MAIN" in body["absent"]["power_w.total"]


def test_zone_without_power_answers_eagain_and_is_absent_without_a_warning(
    nano: Board, silent: list[int], caplog: pytest.LogCaptureFixture
) -> None:
    silent.append(boards.fifo(boards.zone(nano.root, 9, "cv0-thermal", 1)))
    body = nano.body()
    assert body["temp_c"]["cv0"] is None
    assert body["absent"] == {"temp_c.cv0": "SensorError: temp: Resource temporarily unavailable"}
    assert body["temp_c"]["gpu"] == 49.5
    assert "cv0" not in temperatures(nano.root)
    assert caplog.records == []


@pytest.mark.parametrize(
    ("file", "content", "member", "says"),
    [
        (f"{HWMON}/hwmon1/curr1_input", "N/A", "power_w.VDD_IN", "curr1_input is 'N/A'; expected a whole number"),
        (f"{HWMON}/hwmon1/in1_input", "", "power_w.VDD_IN", "in1_input is ''"),
        (f"{HWMON}/hwmon1/in1_input", None, "power_w.VDD_IN", "in1_input: No such file"),
        (f"{HWMON}/hwmon1/in1_input", 4_294_967_295, "power_w.VDD_IN", "expected 0 to 30000"),
        (f"{HWMON}/hwmon1/in1_input", -5, "power_w.VDD_IN", "expected 0 to 30000"),
        (f"{HWMON}/hwmon1/curr1_input", "9" * 400, "power_w.VDD_IN", "expected a whole number"),
        ("sys/class/thermal/thermal_zone1/temp", -273_000, "temp_c.gpu", "expected -60000 to 200000"),
        ("sys/class/thermal/thermal_zone1/temp", "nan", "temp_c.gpu", "'nan'"),
        ("sys/devices/platform/bus@0/17000000.gpu/load", 1_001, "gpu_load_percent", "expected 0 to 1000"),
        ("sys/class/devfreq/17000000.gpu/cur_freq", None, "gpu_clock_hz", "No such file"),
        ("sys/devices/platform/pwmfan/hwmon/hwmon0/pwm1", 256, "fan_percent", "expected 0 to 255"),
        ("sys/devices/platform/pwm_tach/hwmon/hwmon2/rpm", "stopped", "fan_rpm", "'stopped'"),
        ("sys/devices/platform/soctherm_oc/hwmon/hwmon3/oc2_event_cnt", -1, "over_current.oc2", "expected 0"),
    ],
)
def test_nonsense_in_one_file_costs_its_own_value_and_nothing_else(
    nano: Board, file: str, content: object, member: str, says: str
) -> None:
    sound = nano.body()
    path = nano.root / file
    path.unlink()
    if content is not None:
        boards.write(path, content)
    body = nano.body()
    group, _, name = member.partition(".")
    assert (body[group][name] if name else body[group]) is None
    assert says in body["absent"][member]
    lost = {member, "power_w.total"} if member == "power_w.VDD_IN" else {member}
    assert set(body["absent"]) == lost
    for key in set(sound) - {"at", "absent", group}:
        assert body[key] == sound[key]


def test_negative_trickle_of_an_idle_rail_is_told_as_it_is(nano: Board) -> None:
    boards.write(nano.root / f"{HWMON}/hwmon1/curr3_input", -8)
    assert nano.body()["power_w"]["VDD_SOC"] == -0.152


def test_over_current_is_told_as_what_came_since_the_last_message(nano: Board) -> None:
    counter = nano.root / "sys/devices/platform/soctherm_oc/hwmon/hwmon3/oc3_event_cnt"
    told = []
    for total in (7, 12, 12, 3):  # begins at 7; the board was reset before the last
        boards.write(counter, total)
        told.append(nano.body()["over_current"]["oc3"])
    assert told == [0, 5, 0, 3]


def test_counter_that_was_unreadable_at_first_does_not_count_its_past(tmp_path: Path) -> None:
    root = boards.orin_nano(tmp_path)
    counter = root / "sys/devices/platform/soctherm_oc/hwmon/hwmon3/oc1_event_cnt"
    boards.write(counter, "busy")
    counters = OverCurrent(root)
    boards.write(counter, 40)
    assert counters.gained()["oc1"] == 0
    boards.write(counter, 42)
    assert counters.gained()["oc1"] == 2


def test_fan_speed_has_either_name(nano: Board) -> None:
    tach = nano.root / "sys/devices/platform/pwm_tach/hwmon/hwmon2"
    (tach / "rpm").rename(tach / "fan1_input")
    assert nano.body()["fan_rpm"] == 2_400


def test_gpu_memory_is_told_where_it_may_be_read(nano: Board) -> None:
    clients = nano.root / "sys/kernel/debug/nvmap/iovmm/clients"
    boards.write(clients, "CLIENT PROCESS PID SIZE\nuser edge-agent 812 402300K\ntotal                 402344K")
    assert nano.body()["gpu_memory_bytes"] == 402_344 * 1024
    boards.write(clients, "CLIENT PROCESS PID SIZE")
    assert nano.body()["gpu_memory_bytes"] is None


def test_power_mode_has_its_number_and_the_name_of_the_catalogue(nano: Board) -> None:
    assert catalogue(nano.root) == {0: "15W", 1: "7W", 2: "MAXN_SUPER"}
    assert str(power_mode(nano.root)) == "MAXN_SUPER"
    (nano.root / "etc/nvpmodel.conf").unlink()
    assert str(power_mode(nano.root)) == "2"
    boards.write(nano.root / "var/lib/nvpmodel/status", "pmode:")
    with pytest.raises(SensorError, match="expected pmode: and a number"):
        power_mode(nano.root)


def test_clocks_that_heat_holds_down_are_named(nano: Board) -> None:
    assert slowed(nano.root) is None
    cooling = nano.root / "sys/class/thermal"
    for n, (kind, state) in enumerate([("pwm-fan", 2), ("cpufreq-cpu0", 0), ("devfreq-17000000.gpu", 0)]):
        boards.write(cooling / f"cooling_device{n}/type", kind)
        boards.write(cooling / f"cooling_device{n}/cur_state", state)
        boards.write(cooling / f"cooling_device{n}/max_state", 7)
    assert slowed(nano.root) == []
    boards.write(cooling / "cooling_device2/cur_state", 3)
    assert slowed(nano.root) == ["17000000.gpu (3 of 7)"]


def test_total_that_cannot_be_told_says_why(tmp_path: Path) -> None:
    with pytest.raises(SensorError, match="no INA3221 power monitor"):
        total_w(tmp_path)


@pytest.mark.parametrize(
    ("file", "content", "jetson"),
    [
        ("proc/device-tree/compatible", "nvidia,p3701-0000\0nvidia,tegra234", True),
        ("sys/firmware/devicetree/base/compatible", "nvidia,p3701-0000\0nvidia,tegra234", True),
        ("etc/nv_tegra_release", "# R36 (release), REVISION: 4.3", True),
        ("proc/device-tree/compatible", "raspberrypi,4-model-b\0brcm,bcm2711", False),
        ("proc/cpuinfo", "nvidia,tegra234", False),
    ],
)
def test_jetson_is_known_by_its_device_tree_or_its_release(
    tmp_path: Path, file: str, content: str, jetson: bool
) -> None:
    boards.write(tmp_path / file, content)
    assert is_jetson(tmp_path) is jetson
