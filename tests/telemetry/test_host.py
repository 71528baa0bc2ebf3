"""Host sensors on this very machine."""

from __future__ import annotations

import os
import shutil
import threading
from pathlib import Path

import psutil
import pytest

from edge_agent import registry, telemetry
from edge_agent.errors import SensorError
from edge_agent.telemetry.base import Sensor
from edge_agent.telemetry.host import sensors
from tests.telemetry import boards


def row(rows: list[Sensor], name: str) -> Sensor:
    return next(sensor for sensor in rows if sensor.name == name)


@pytest.mark.parametrize("group", sorted(telemetry.SENSORS))
def test_every_sensor_of_the_table_has_its_own_name_and_a_unit_in_it(group: str, tmp_path: Path) -> None:
    rows: list[Sensor] = registry.load(telemetry.SENSORS, group, "sensor group")(boards.orin_nano(tmp_path))()
    names = [sensor.name for sensor in rows]
    assert len(set(names)) == len(names)
    for sensor in rows:
        unit = {"count": ""}.get(sensor.unit, f"_{sensor.unit}")
        assert sensor.name.split(".")[0].endswith(unit), sensor


def test_host_figures_agree_with_the_machine(tmp_path: Path) -> None:
    rows = sensors(tmp_path)
    assert row(rows, "disk_total_bytes").read() == shutil.disk_usage(tmp_path).total
    total = row(rows, "ram_total_bytes").read()
    assert total == os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    assert 0 < row(rows, "ram_available_bytes").read() < total
    assert 1_000_000 < row(rows, "process_rss_bytes").read() < total
    assert 0 <= row(rows, "cpu_percent").read() <= 100


def test_a_thread_more_shows() -> None:
    threads = row(sensors(), "process_threads")
    before = threads.read()
    end = threading.Event()
    thread = threading.Thread(target=end.wait)
    thread.start()
    assert threads.read() == before + 1
    end.set()
    thread.join()


def test_disk_that_is_gone_raises_what_the_sampler_meets(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="No such file"):
        row(sensors(tmp_path / "gone"), "disk_free_bytes").read()


def test_temperature_rows_follow_the_chips_and_a_lost_one_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    class Reading:
        def __init__(self, label: str, current: float) -> None:
            self.label, self.current = label, current

    chips = {"coretemp": [Reading("Package id 0", 51.0), Reading("Core 0", 50.0)], "acpitz": [Reading("", 40.0)]}
    monkeypatch.setattr(psutil, "sensors_temperatures", lambda: chips, raising=False)
    rows = {sensor.name: sensor for sensor in sensors() if sensor.unit == "c"}
    assert {name: sensor.read() for name, sensor in rows.items()} == {
        "temp_c.acpitz": 40.0,
        "temp_c.coretemp_package_id_0": 51.0,
        "temp_c.coretemp_core_0": 50.0,
    }
    del chips["coretemp"]
    with pytest.raises(SensorError, match="temperature 1 of coretemp is gone"):
        rows["temp_c.coretemp_core_0"].read()


def test_zones_of_the_chip_are_left_to_their_own_group(monkeypatch: pytest.MonkeyPatch) -> None:
    reading = type("Reading", (), {"label": "", "current": 45.0})()
    chips = {"cpu_thermal": [reading], "gpu-thermal": [reading], "nvme": [reading]}
    monkeypatch.setattr(psutil, "sensors_temperatures", lambda: chips, raising=False)
    assert [sensor.name for sensor in sensors() if sensor.unit == "c"] == ["temp_c.nvme"]


def test_machine_without_temperatures_has_no_such_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(psutil, "sensors_temperatures", raising=False)
    assert not [sensor for sensor in sensors() if sensor.unit == "c"]
