"""Pipelines as text, and what must hold before a CSI camera can work."""

from __future__ import annotations

from pathlib import Path

import cv2
import pytest

from edge_agent.cameras.csi import CsiCamera, csi_obstacles
from edge_agent.cameras.gstreamer import csi_pipeline, quoted, rtsp_pipeline
from edge_agent.cameras.native import opencv_has, opencv_has_gstreamer
from edge_agent.errors import CameraError, ConfigError
from tests.cameras.conftest import config

JETPACK = "  Video I/O:\n    FFMPEG:                      YES\n    GStreamer:                   YES (1.20.3)\n"
PIP = "  Video I/O:\n    FFMPEG:                      YES\n    GStreamer:                   NO\n"


def test_csi_pipeline_ends_in_bgr_and_the_newest_frame() -> None:
    assert csi_pipeline(1, 1280, 720) == (
        "nvarguscamerasrc sensor-id=1 ! video/x-raw(memory:NVMM),format=NV12,width=1280,height=720 ! "
        "nvvidconv ! video/x-raw,format=BGRx ! videoconvert ! video/x-raw,format=BGR ! "
        "appsink drop=true max-buffers=1 sync=false"
    )
    assert "width" not in csi_pipeline(0, None, None)


def test_rtsp_pipeline_uses_tcp_and_quotes_the_address() -> None:
    pipeline = rtsp_pipeline("rtsp://admin:S3cr%23t@10.0.0.5/live?channel=1&x=2")
    assert pipeline.startswith(
        'rtspsrc location="rtsp://admin:S3cr%23t@10.0.0.5/live?channel=1&x=2" protocols=tcp latency=200 ! '
    )
    assert pipeline.endswith("format=BGR ! appsink drop=true max-buffers=1 sync=false")


@pytest.mark.parametrize("text", ['" ! filesink location=/etc/passwd', '\\" ! x', "a b ! c", "\\"])
def test_quoted_value_cannot_add_an_element(text: str) -> None:
    value = quoted(text)
    assert value[0] == value[-1] == '"'
    inner, unquoted, at = value[1:-1], "", 0
    while at < len(inner):
        assert inner[at] != '"', "the value ends early"
        at += inner[at] == "\\"
        unquoted += inner[at]
        at += 1
    assert unquoted == text


def test_build_information_tells_what_opencv_has() -> None:
    assert opencv_has_gstreamer(JETPACK)
    assert not opencv_has_gstreamer(PIP)
    assert opencv_has("ffmpeg", PIP)
    assert not opencv_has_gstreamer("")


def test_opencv_without_gstreamer_is_a_wrong_setting_that_names_version_and_file(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as refusal:
        CsiCamera("line1", config("csi", "0"), container_marks=(tmp_path / "none",), build_information=PIP)
    message = str(refusal.value)
    assert refusal.value.exit_code == 78
    assert cv2.__version__ in message
    assert cv2.__file__ in message
    assert "pip uninstall" in message
    assert "cameras.line1" in message
    assert "\n" not in message


def test_container_without_the_daemons_socket_is_told_in_one_line(tmp_path: Path) -> None:
    mark, sock = tmp_path / "dockerenv", tmp_path / "argus_socket"
    mark.touch()
    obstacles = csi_obstacles(sock, (mark,), JETPACK)
    assert obstacles == [f"this container does not see the camera daemon; mount its socket: -v {sock}:{sock}"]
    with pytest.raises(ConfigError, match=f"-v {sock}:{sock}; also: a CSI camera needs an OpenCV with GStreamer"):
        CsiCamera("a", config("csi", "csi://0"), argus_socket=sock, container_marks=(mark,), build_information=PIP)
    sock.touch()
    assert csi_obstacles(sock, (mark,), JETPACK) == []


def test_daemon_that_does_not_run_is_a_camera_to_try_again(tmp_path: Path) -> None:
    camera = CsiCamera(
        "a",
        config("csi", "0"),
        argus_socket=tmp_path / "argus_socket",
        container_marks=(tmp_path / "none",),
        build_information=JETPACK,
    )
    with pytest.raises(CameraError, match="systemctl restart nvargus-daemon"):
        camera.open()
    with pytest.raises(CameraError, match="not open"):
        camera.read()
    camera.close()
