"""Energy counters over made sysfs trees and a stand-in for NVML."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from edge_agent.errors import SensorError
from edge_agent.telemetry.energy import EnergyCounter, RailsCounter, find_energy, measured_energy
from tests.telemetry import boards

BUS_ID = "0000:3b:00.0"


def zone(root: Path, name: str, label: str, energy_uj: str) -> Path:
    folder = root / "sys" / "class" / "powercap" / name
    folder.mkdir(parents=True)
    (folder / "name").write_text(f"{label}\n")
    (folder / "max_energy_range_uj").write_text("262143328850\n")
    (folder / "energy_uj").write_text(energy_uj)
    return folder


def nvml(energy_mj: int | str) -> Any:
    """A pynvml whose GPU has used so much, or which refuses with these words."""

    class NVMLError(Exception):
        pass

    def total(device: str) -> int:
        assert device == BUS_ID
        if isinstance(energy_mj, str):
            raise NVMLError(energy_mj)
        return energy_mj

    module = SimpleNamespace(NVMLError=NVMLError, nvmlInit=lambda: None, nvmlDeviceGetTotalEnergyConsumption=total)
    module.nvmlDeviceGetHandleByPciBusId = lambda bus_id: bus_id.decode()
    return lambda name: module


def missing(name: str) -> ModuleType:
    raise ModuleNotFoundError(f"No module named {name!r}")


def test_packages_are_counted_and_their_parts_left_out(tmp_path: Path) -> None:
    package = zone(tmp_path, "intel-rapl:0", "package-0", "1500000")
    zone(tmp_path, "intel-rapl:0:0", "core", "700000")
    zone(tmp_path, "intel-rapl:1", "package-1", "9000000")
    found = find_energy(tmp_path)
    assert [(counter.name, counter.read()) for counter in found.counters] == [("package-0", 1.5), ("package-1", 9.0)]
    assert found.absent == ()
    (package / "energy_uj").write_text("4000000\n")
    assert found.counters[0].since(1.5) == 2.5


def test_counter_that_began_anew_counts_on() -> None:
    assert EnergyCounter("package-0", lambda: 1.0, wraps_at_j=100.0).since(98.0) == 3.0


def test_machine_without_counters_says_so(tmp_path: Path) -> None:
    found = find_energy(tmp_path)
    assert found.counters == ()
    assert [reason[:16] for reason in found.absent] == ["no RAPL counters"]


@pytest.mark.parametrize("content", ["", "many\n"])
def test_counter_that_cannot_be_read_is_absent_with_its_name(tmp_path: Path, content: str) -> None:
    zone(tmp_path, "intel-rapl:0", "package-0", content)
    found = find_energy(tmp_path)
    assert found.counters == ()
    assert "intel-rapl:0/energy_uj cannot be read" in found.absent[0]


def test_counter_of_root_alone_is_absent_with_the_systems_words(tmp_path: Path) -> None:
    folder = zone(tmp_path, "intel-rapl:0", "package-0", "1")
    (folder / "energy_uj").unlink()
    (folder / "energy_uj").mkdir()  # what even root cannot read as a file
    assert "Is a directory" in find_energy(tmp_path).absent[0]


def test_gpu_is_found_by_its_address(tmp_path: Path) -> None:
    found = find_energy(tmp_path, BUS_ID, nvml(2500))
    assert [(counter.name, counter.read()) for counter in found.counters] == [(f"gpu {BUS_ID}", 2.5)]


@pytest.mark.parametrize(
    ("load_module", "says"), [(missing, "nvidia-ml-py"), (nvml("Not Supported"), f"GPU {BUS_ID}: Not Supported")]
)
def test_gpu_without_a_counter_says_why(tmp_path: Path, load_module: Any, says: str) -> None:
    found = find_energy(tmp_path, BUS_ID, load_module)
    assert found.counters == ()
    assert says in found.absent[-1]


def test_board_that_tells_its_power_is_what_is_counted(tmp_path: Path) -> None:
    with measured_energy(boards.agx_orin(tmp_path, 6)) as energy:
        (counter,) = energy.counters
        assert (counter.name, energy.absent) == ("board", ())
        before_j = counter.read()
        assert counter.since(before_j) >= 0


def test_joules_of_the_rails_are_watts_times_seconds_and_a_hiccup_is_bridged(tmp_path: Path) -> None:
    now = [0.0]
    root = boards.orin_nano(tmp_path)
    power = root / "sys/devices/platform/bus@0/c240000.i2c/i2c-1/1-0040/hwmon/hwmon1/in1_input"
    counter = RailsCounter(root, clock=lambda: now[0])
    counter.look()
    for said in (19_000, "N/A", 19_000):
        boards.write(power, said)
        now[0] += 1.0
        counter.look()
    assert counter.joules() == pytest.approx(3 * 15.2)
    boards.write(power, "N/A")
    now[0] += 5.1
    with pytest.raises(SensorError, match="could not be read for 5 s"):
        counter.joules()


def test_jetson_whose_rails_say_nothing_says_so_and_another_machine_need_not(tmp_path: Path) -> None:
    with measured_energy(boards.tegra(tmp_path / "bare")) as energy:
        assert energy.counters == ()
        assert "no INA3221 power monitor" in energy.absent[0]
    with measured_energy(tmp_path) as energy:
        assert energy == find_energy(tmp_path)
