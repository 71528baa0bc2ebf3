"""NVML: rows of discrete GPUs, over a module that answers as nvidia-ml-py does, and over the real one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from edge_agent.errors import SensorError
from edge_agent.telemetry.nvml import Gpus, probe
from tests.telemetry import boards


class NVMLError(Exception):
    pass


def raising(text: str) -> Callable[..., Any]:
    def call(*_: object) -> Any:
        raise NVMLError(text)

    return call


def pynvml(**changed: Any) -> Callable[[str], Any]:
    module = {
        "NVMLError": NVMLError,
        "NVML_CLOCK_GRAPHICS": 0,
        "NVML_TEMPERATURE_GPU": 0,
        "nvmlInit": lambda: None,
        "nvmlDeviceGetCount": lambda: 2,
        "nvmlDeviceGetHandleByIndex": lambda n: n,
        "nvmlDeviceGetUtilizationRates": lambda device: SimpleNamespace(gpu=40 + device),
        "nvmlDeviceGetClockInfo": lambda device, clock: 1_410,
        "nvmlDeviceGetMemoryInfo": lambda device: SimpleNamespace(used=10**9, total=8 * 10**9),
        "nvmlDeviceGetTemperature": lambda device, sensor: 66,
        "nvmlDeviceGetPowerUsage": lambda device: 72_500,
        "nvmlDeviceGetCurrentClocksThrottleReasons": lambda device: 0x21 if device else 0x1,
        **changed,
    }
    return lambda name: SimpleNamespace(**module)


def test_each_gpu_has_its_rows(tmp_path: Path) -> None:
    values = {sensor.name: sensor.read() for sensor in probe(tmp_path, pynvml())()}
    assert values["gpu_load_percent.gpu0"] == 40
    assert values["gpu_load_percent.gpu1"] == 41
    assert values["gpu_clock_hz.gpu0"] == 1.41e9
    assert values["power_w.gpu1"] == 72.5
    assert values["temp_c.gpu0"] == 66
    assert Gpus(tmp_path, pynvml()).throttled() == ["gpu1: heat"]


def test_figure_that_a_gpu_does_not_have_is_a_sensor_error(tmp_path: Path) -> None:
    rows = probe(tmp_path, pynvml(nvmlDeviceGetPowerUsage=raising("Not Supported")))()
    row = next(sensor for sensor in rows if sensor.name == "power_w.gpu0")
    with pytest.raises(SensorError, match="Not Supported"):
        row.read()
    gpus = Gpus(tmp_path, pynvml(nvmlDeviceGetCurrentClocksThrottleReasons=raising("Not Supported")))
    assert gpus.throttled() is None


def test_nothing_is_there_without_the_package_or_the_driver_and_on_a_jetson(tmp_path: Path) -> None:
    def missing(name: str) -> ModuleType:
        raise ImportError(name)

    assert probe(tmp_path, missing)() == []
    assert probe(tmp_path, pynvml(nvmlInit=raising("Driver Not Loaded")))() == []
    assert Gpus(tmp_path, missing).throttled() is None
    assert probe(boards.orin_nano(tmp_path), pynvml())() == []


def test_real_package_is_met_whether_or_not_a_driver_is_there(tmp_path: Path) -> None:
    pytest.importorskip("pynvml", reason="needs nvidia-ml-py: pip install 'edge-agent[nvml]'")
    for sensor in probe(tmp_path)():
        assert sensor.name.split(".")[1].startswith("gpu")
