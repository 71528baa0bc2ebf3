"""Source: what people type becomes a camera, or an error that helps."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from edge_agent.demo.source import camera_block
from edge_agent.errors import ConfigError
from edge_agent.settings.cameras import CameraConfig


def test_streams_and_sensors() -> None:
    assert camera_block("rtsp://admin:pw@cam/live") == {"kind": "rtsp", "source": "rtsp://admin:pw@cam/live"}
    assert camera_block("RTSPS://cam/live")["kind"] == "rtsp"
    assert camera_block("http://cam:81/stream") == {"kind": "video", "source": "http://cam:81/stream"}
    assert camera_block("csi://1") == {"kind": "csi", "source": "1"}


def test_files_and_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a b.mp4").touch()
    (tmp_path / "IMG.JPG").touch()
    (tmp_path / "upload").write_bytes(b"P5 2 2 255\n....")
    monkeypatch.chdir(tmp_path)
    for source in ("a b.mp4", str(tmp_path / "a b.mp4"), f"file://{tmp_path}/a%20b.mp4"):
        block = camera_block(source)
        assert block == {"kind": "video", "source": str(tmp_path / "a b.mp4")}
    assert camera_block("IMG.JPG")["kind"] == "folder"
    assert camera_block("upload")["kind"] == "folder", "its bytes say image"
    assert camera_block(".")["source"] == str(tmp_path)
    assert camera_block(".")["pace"] == "every_frame"


def test_a_home_folder_is_understood(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "a.png").touch()
    assert camera_block("~")["source"] == str(tmp_path)


def test_a_video_device_is_a_v4l2_camera(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Path, "is_char_device", lambda self: str(self) == "/dev/video3")
    assert camera_block("/dev/video3") == {"kind": "v4l2", "source": "/dev/video3"}
    assert camera_block("3") == {"kind": "v4l2", "source": "/dev/video3"}


@pytest.mark.parametrize("source", ["rtsp://a/b", "http://a/b", "csi://0", "."])
def test_every_block_is_a_valid_camera_of_the_config(
    source: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a.png").touch()
    monkeypatch.chdir(tmp_path)
    CameraConfig(**camera_block(source))


def test_a_folder_without_images_and_a_pipe_are_refused(tmp_path: Path) -> None:
    (tmp_path / ".hidden.png").touch()
    (tmp_path / "notes.txt").touch()
    with pytest.raises(ConfigError, match=r"no image in the folder .*; known endings: \.bmp"):
        camera_block(str(tmp_path))
    os.mkfifo(tmp_path / "pipe.png")
    with pytest.raises(ConfigError, match="neither file nor folder"):
        camera_block(str(tmp_path / "pipe.png"))


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("/dev/video99", "there is no camera /dev/video99; th"),
        ("99", "there is no camera /dev/video99"),
        ("nowhere.mp4", r"there is no /.*nowhere\.mp4; expected a camera"),
        ("ftp://host/x", "cannot be a ftp:// address; expected a camera"),
        ("x" * 300, "cannot be looked at: File name too long"),
        ("rtps://admin:S3cret@host/x", "cannot be a rtps:// address"),
        ("csi://front", "write its number: csi://0"),
    ],
)
def test_what_cannot_be_a_source_is_refused_with_advice(source: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message) as refused:
        camera_block(source)
    assert "S3cret" not in str(refused.value)
