"""What a command from afar may ask a calibration for: names and numbers of a list, never a path or a setting."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from edge_agent.calibrate.run import calibration_directory, settings_of, source_of
from edge_agent.config import plain
from edge_agent.models.spec import DEFAULT_MODELS_DIR
from tests.conftest import ROOT
from tests.remote.test_command_control import Device


@pytest.fixture
def device(tmp_path: Path) -> Iterator[Device]:
    device = Device(tmp_path)
    yield device
    device.control.close(device.desk)


@pytest.mark.parametrize(
    ("args", "says"),
    [
        ({"source": "folder"}, "args: source: its value is not"),
        ({"source": "archive"}, "args: source: its value is not"),
        ({"frames": "/etc"}, "frames"),
        ({"name": "/etc"}, "name"),
        ({"source": "camera", "camera": "../../etc"}, "camera"),
        ({"source": "camera", "camera": "/dev/video0"}, "camera"),
        ({"models_dir": "/tmp"}, "models_dir"),
        ({"settings": {"calibration": {"directory": "/etc"}}}, "settings"),
        ({"models": ["/etc/passwd"]}, "models"),
        ({"models": ["../ppocrv6-small-det"]}, "models"),
        ({"method": "shell"}, "method"),
        ({"count": 1_000_000}, "count"),
        ({"export": "/tmp/site.zip"}, "export"),
    ],
)
def test_paths_settings_and_what_is_not_on_the_list_are_refused(
    device: Device, args: dict[str, Any], says: str
) -> None:
    answer = device.answer("calibrate", {"id": "c-1", "args": args})
    assert answer["state"] == "failed"
    assert says in answer["reason"]
    assert device.wishes == []


def test_wish_has_the_settings_in_force_and_no_secret(device: Device, tmp_path: Path) -> None:
    secret = "S3cret!pw"
    device.config = device.config.model_copy(
        update={"mqtt": device.config.mqtt.model_copy(update={"password": secret, "username": "press"})}
    )
    device.start()
    args = {"models": ["ppocrv6-small-det"], "source": "recorded", "count": 12}
    assert device.answer("calibrate", {"id": "c-1", "args": args})["state"] == "accepted"
    (wish,) = device.wishes
    assert secret not in json.dumps(wish.to_json())
    assert wish.settings == plain(device.config)
    assert (wish.name, wish.models_dir) == (None, ROOT / DEFAULT_MODELS_DIR)
    settings, models_dir = settings_of(wish)
    directory = calibration_directory(settings, models_dir)
    assert directory == tmp_path / "calibration"
    (directory / "recorded").mkdir(parents=True)
    assert source_of(wish, settings, directory).described == f"recorded frames in {directory / 'recorded'}"
