"""Watch: what is told of an interval, and the signs for the policy, on trees of boards."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from edge_agent.telemetry.sampler import Sampler
from edge_agent.telemetry.watch import BoardWatch
from tests.telemetry import boards
from tests.telemetry.test_nvml import pynvml

RAILS = "sys/devices/platform/bus@0/c240000.i2c/i2c-1/1-0040/hwmon/hwmon1"


class Device:
    """A watch on a tree, with a clock and counts that the test moves."""

    def __init__(self, root: Path, load_module: Any = None) -> None:
        self.root = root
        self.now_mono = 0.0
        self.frames = self.readings = 0
        more = {} if load_module is None else {"load_module": load_module}
        self.watch = BoardWatch(root, lambda: (self.frames, self.readings), lambda: self.now_mono, **more)
        self.sampler = Sampler([self.watch.probe()], self.watch.sections(), 10.0, lambda message: None)

    def body(self) -> dict[str, Any]:
        return dict(json.loads(self.sampler.sample().payload))

    def work(self, seconds: int, frames: int, readings: int) -> None:
        for _ in range(seconds):
            self.now_mono += 1.0
            self.watch.measure()
        self.frames += frames
        self.readings += readings


@pytest.fixture
def nano(tmp_path: Path) -> Device:
    device = Device(boards.orin_nano(tmp_path))
    device.watch.measure()
    return device


def test_joules_of_a_frame_and_a_reading_are_those_of_the_interval(nano: Device) -> None:
    nano.work(10, frames=100, readings=20)
    body = nano.body()
    assert body["j_per_frame"] == 1.52
    assert body["j_per_reading"] == 7.6
    assert body["energy_j"] == 152.0
    boards.write(nano.root / RAILS / "curr1_input", 400)
    nano.watch.measure()
    nano.work(10, frames=10, readings=0)
    body = nano.body()
    assert body["j_per_frame"] == pytest.approx(7.6, rel=0.1)
    assert body["j_per_reading"] is None
    assert "no frame with text was read" in body["absent"]["j_per_reading"]


def test_duty_of_the_gpu_is_the_mean_of_the_interval_and_not_the_last_look(nano: Device) -> None:
    load = nano.root / "sys/devices/platform/bus@0/17000000.gpu/load"
    nano.body()
    for permille in (0, 1000, 500):
        boards.write(load, permille)
        nano.work(1, 1, 1)
    assert nano.body()["gpu_duty_percent"] == 50.0  # the message's own look is the fourth


def test_machine_without_a_power_monitor_has_no_cost_and_says_why(tmp_path: Path) -> None:
    device = Device(tmp_path)
    device.work(5, 50, 50)
    body = device.body()
    assert body["j_per_frame"] is None
    assert "no INA3221" in body["absent"]["j_per_frame"]
    assert "energy_j" not in body
    assert "gpu_duty_percent" not in body
    assert body["throttled"] is None
    assert body["power_mode"] is None


def test_other_machines_count_the_energy_of_their_processors(tmp_path: Path) -> None:
    zone = tmp_path / "sys/class/powercap/intel-rapl:0"
    for file, content in (("name", "package-0"), ("max_energy_range_uj", 1_000_000_000), ("energy_uj", 900_000_000)):
        boards.write(zone / file, content)
    device = Device(tmp_path)
    device.watch.measure()
    for microjoules in (930_000_000, 960_000_000, 10_000_000):  # it begins anew beyond 1000 J
        boards.write(zone / "energy_uj", microjoules)
        device.work(1, 10, 5)
    body = device.body()
    assert body["energy_j"] == 110.0
    assert body["j_per_frame"] == pytest.approx(110 / 30, abs=1e-3)


def test_over_current_throttles_for_one_message_and_only_oc1_and_oc2_alarm(nano: Device) -> None:
    counters = nano.root / "sys/devices/platform/soctherm_oc/hwmon/hwmon3"
    assert nano.watch.signs().over_current == 0
    assert nano.body()["throttled"] is False
    boards.write(counters / "oc3_event_cnt", 90)
    boards.write(counters / "oc2_event_cnt", 2)
    signs = nano.watch.signs()
    assert (signs.over_current, signs.slowed) == (2, ())
    assert signs.temp_c["tj"] == 52.0
    nano.watch.signs()
    body = nano.body()
    assert (body["throttled"], body["throttled_by"]) == (True, ["over-current oc2", "over-current oc3"])
    nano.watch.signs()
    body = nano.body()
    assert (body["throttled"], body["throttled_by"]) == (False, [])


def test_clocks_held_down_are_said_as_long_as_they_are(nano: Device) -> None:
    cooling = nano.root / "sys/class/thermal/cooling_device0"
    for file, content in (("type", "cpufreq-cpu0"), ("cur_state", 2), ("max_state", 9)):
        boards.write(cooling / file, content)
    assert nano.watch.signs().slowed == ("cpu0 (2 of 9)",)
    assert [nano.body()["throttled_by"] for _ in range(2)] == [["cpu0 (2 of 9)"]] * 2
    boards.write(cooling / "cur_state", 0)
    nano.watch.signs()
    assert nano.body()["throttled"] is False


def test_discrete_gpu_adds_its_heat_and_what_slows_it(tmp_path: Path) -> None:
    device = Device(tmp_path, pynvml())
    signs = device.watch.signs()
    assert signs.temp_c == {"gpu0": 66, "gpu1": 66}
    assert signs.slowed == ("gpu1: heat",)
    assert device.body()["throttled"] is True


def test_power_mode_is_named(nano: Device) -> None:
    assert nano.body()["power_mode"] == "MAXN_SUPER"
