"""Native captures: opened and closed a great many times, nothing is left behind."""

from __future__ import annotations

import gc
import os
from collections.abc import Callable
from pathlib import Path

import cv2
import psutil
import pytest

from edge_agent.cameras import CAMERAS
from edge_agent.cameras.base import make_camera
from edge_agent.cameras.native import NativeCapture, opencv_has, prepare_opencv, timeouts
from edge_agent.errors import CameraError, ConfigError
from tests.cameras.conftest import config

SOURCES = {"csi": "0", "folder": "/nowhere", "rtsp": "rtsp://127.0.0.1:1/x", "v4l2": "0", "video": "/nowhere"}


@pytest.mark.parametrize("kind", sorted(CAMERAS))
def test_every_kind_can_be_made_by_name_and_fails_to_open_by_camera_error(kind: str) -> None:
    try:
        camera = make_camera("a", config(kind, SOURCES[kind]))
    except ConfigError as exc:
        assert kind == "csi"
        assert "GStreamer" in str(exc)
        return
    with pytest.raises(CameraError):
        camera.open()
    with pytest.raises(CameraError):
        camera.read()
    camera.close()
    camera.close()


def test_native_debugging_is_switched_off_in_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENCV_LOG_LEVEL", "DEBUG")
    monkeypatch.setenv("OPENCV_VIDEOIO_DEBUG", "1")
    prepare_opencv()
    assert "OPENCV_LOG_LEVEL" not in os.environ
    assert "OPENCV_VIDEOIO_DEBUG" not in os.environ


@pytest.mark.skipif(not opencv_has("FFMPEG"), reason="this OpenCV has no FFmpeg")
def test_six_hundred_opens_leave_no_memory_files_or_threads_behind(clip: Callable[..., Path], tmp_path: Path) -> None:
    prepare_opencv()
    path = clip("a.avi", frames=2)
    (tmp_path / "rubbish.avi").write_bytes(b"RIFF" + bytes(500))
    process = psutil.Process()

    def cycle() -> None:
        with pytest.raises(CameraError):
            NativeCapture(str(tmp_path / "rubbish.avi"), cv2.CAP_FFMPEG, "rubbish", timeouts(1, 1))
        capture = NativeCapture(str(path), cv2.CAP_FFMPEG, "clip", timeouts(1, 1))
        assert capture.read() is not None
        capture.close()

    for _ in range(20):
        cycle()
    gc.collect()
    before = (process.num_fds(), process.num_threads())
    rss_bytes = process.memory_info().rss
    for _ in range(300):
        cycle()
    gc.collect()
    assert (process.num_fds(), process.num_threads()) == before
    assert process.memory_info().rss - rss_bytes < 20_000_000
