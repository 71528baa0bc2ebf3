"""V4L2: a camera keeps its name through unplugging, and is never swapped for another. Clips stand in for devices."""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial
from pathlib import Path

import cv2
import pytest

from edge_agent.cameras.capture import CaptureThread
from edge_agent.cameras.v4l2 import V4l2Camera
from edge_agent.errors import CameraError
from edge_agent.records import Frame
from edge_agent.settings.cameras import CameraConfig
from tests.cameras.conftest import config, eventually, number_of

Clip = Callable[..., Path]
NAME = "usb-Maker_Camera_SN1-video-index0"


@pytest.fixture
def dev(tmp_path: Path, clip: Clip) -> Path:
    """A /dev with two cameras: video0 shows 0..7, video2 shows 8..15."""
    root = tmp_path / "dev"
    (root / "v4l" / "by-id").mkdir(parents=True)
    clip("one.avi", frames=8).rename(root / "video0")
    clip("two.avi", frames=8, first=8).rename(root / "video2")
    return root


def plug(dev: Path, node: str, name: str = NAME) -> Path:
    link = dev / "v4l" / "by-id" / name
    link.symlink_to(dev / node)
    return link


def camera(dev: Path, source: str) -> V4l2Camera:
    return V4l2Camera("a", config("v4l2", source), dev=dev, api=cv2.CAP_FFMPEG)


def first_number(made: V4l2Camera) -> int:
    made.open()
    image = made.read()
    assert image is not None
    return number_of(image)


def test_link_is_resolved_again_at_every_open(dev: Path) -> None:
    link = plug(dev, "video0")
    made = camera(dev, str(link))
    assert first_number(made) == 0
    link.unlink()
    plug(dev, "video2")
    assert first_number(made) == 8
    made.close()


def test_missing_link_never_becomes_another_camera(dev: Path) -> None:
    made = camera(dev, str(dev / "v4l" / "by-id" / NAME))
    with pytest.raises(CameraError, match="is gone"):
        made.open()
    with pytest.raises(CameraError, match="not open"):
        made.read()


def test_unplugged_while_reading_is_noticed_at_the_next_frame(dev: Path) -> None:
    link = plug(dev, "video0")
    made = camera(dev, str(link))
    assert first_number(made) == 0
    link.unlink()
    with pytest.raises(CameraError, match=r"is gone.*plugged in"):
        made.read()
    plug(dev, "video2")
    with pytest.raises(CameraError, match="another device or file now"):
        made.read()
    made.close()


def test_unplugged_and_replugged_under_another_number_comes_back_without_a_restart(dev: Path) -> None:
    link = plug(dev, "video0")
    frames: list[Frame] = []
    settings = config("v4l2", str(link), reconnect_min_s=0.02, reconnect_max_s=0.05)

    def make(name: str, given: CameraConfig) -> V4l2Camera:
        return V4l2Camera(name, given, dev=dev, api=cv2.CAP_FFMPEG)

    with CaptureThread("a", settings, lambda frame: frames.append(frame) is None, make=make) as capture:
        eventually(lambda: frames, "frames of the first clip")
        link.unlink()
        eventually(
            lambda: capture.status().state == "offline" and "is gone" in str(capture.status().reason),
            "the loss is noticed",
            timeout_s=5,
        )
        before = len(frames)
        assert all(number_of(frame.image) < 8 for frame in frames)
        plug(dev, "video2")
        eventually(lambda: len(frames) > before, "frames after replugging")
        assert all(number_of(frame.image) >= 8 for frame in frames[before:])
    assert [frame.seq for frame in frames] == list(range(len(frames)))


@pytest.mark.parametrize("source", ["0", "number as path"])
def test_number_is_taken_with_one_warning_that_names_the_stable_path(
    dev: Path, source: str, caplog: pytest.LogCaptureFixture
) -> None:
    link = plug(dev, "video0")
    plug(dev, "video2", "usb-Other_SN2-video-index0")
    made = camera(dev, "0" if source == "0" else str(dev / "video0"))
    for _ in range(3):
        assert first_number(made) == 0
    made.close()
    warnings = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
    assert len(warnings) == 1
    assert str(link) in warnings[0]
    assert "Other" not in warnings[0]


def test_number_follows_its_camera_and_not_the_number(dev: Path) -> None:
    link = plug(dev, "video0")
    made = camera(dev, "0")
    assert first_number(made) == 0
    link.unlink()  # unplugged; another camera may be video0 by now
    with pytest.raises(CameraError, match="is gone"):
        made.open()
    plug(dev, "video2")
    assert first_number(made) == 8
    made.close()


def test_number_without_a_stable_name_is_warned_about_too(dev: Path, caplog: pytest.LogCaptureFixture) -> None:
    other = plug(dev, "video2", "usb-Other_SN2-video-index0")
    made = camera(dev, "0")
    assert first_number(made) == 0
    made.close()
    assert "has no stable name" in caplog.text
    assert str(other) in caplog.text


def test_device_that_gives_nothing_is_lost(dev: Path) -> None:
    link = plug(dev, "video0")
    made = camera(dev, str(link))
    made.open()
    for _ in range(8):
        made.read()
    with pytest.raises(CameraError, match="gave no picture"):
        made.read()
    made.close()
    made.close()


def test_video_file_named_as_a_camera_does_not_open_through_v4l2(dev: Path) -> None:
    made = V4l2Camera("a", config("v4l2", str(plug(dev, "video0"))), dev=dev)
    with pytest.raises(CameraError, match="did not open"):
        made.open()


def test_requested_format_is_asked_for_in_the_order_that_v4l2_needs(dev: Path) -> None:
    asked: list[tuple[int, float]] = []

    class Recorder:
        def set(self, prop: int, value: float) -> None:
            asked.append((prop, value))

        def get(self, prop: int) -> float:
            return float(cv2.VideoWriter.fourcc(*"Y16 "))

    settings = config("v4l2", "0", width_px=1280, height_px=720, pixel_format="Y16", bit_depth=12)
    made = V4l2Camera("a", settings, dev=dev)
    partial(made._ask_for_format, Recorder())()  # type: ignore[arg-type]
    assert asked == [
        (cv2.CAP_PROP_FOURCC, cv2.VideoWriter.fourcc(*"Y16 ")),
        (cv2.CAP_PROP_FRAME_WIDTH, 1280),
        (cv2.CAP_PROP_FRAME_HEIGHT, 720),
        (cv2.CAP_PROP_CONVERT_RGB, 0),
    ]
