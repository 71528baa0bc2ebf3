"""RTSP: a real server; time-outs that hold, passwords of any characters, no secret in any output."""

from __future__ import annotations

import logging
import os
import re
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import cv2
import pytest

from edge_agent.cameras.capture import CaptureThread
from edge_agent.cameras.native import opencv_has
from edge_agent.cameras.rtsp import RtspCamera
from edge_agent.errors import CameraError, ConfigError
from edge_agent.mailbox import Mailbox
from edge_agent.records import Frame
from tests.cameras.conftest import config, eventually, number_of, numbered
from tests.cameras.rtsp_server import RtspServer

pytestmark = pytest.mark.skipif(not opencv_has("FFMPEG"), reason="this OpenCV has no FFmpeg")


@pytest.fixture
def silent_port() -> Iterator[int]:
    """A port where a server accepts, reads, and never answers."""
    listener = socket.create_server(("127.0.0.1", 0))
    held: list[socket.socket] = []

    def accept() -> None:
        while True:
            try:
                held.append(listener.accept()[0])
            except OSError:
                return

    thread = threading.Thread(target=accept, daemon=True)
    thread.start()
    yield listener.getsockname()[1]
    listener.shutdown(socket.SHUT_RDWR)
    listener.close()
    thread.join(10)
    for connection in held:
        connection.close()


def test_stream_is_read_frame_by_frame_over_tcp() -> None:
    with RtspServer(lambda n: numbered(n % 16, 320, 240)) as server:
        camera = RtspCamera("a", config("rtsp", f"rtsp://127.0.0.1:{server.port}/live"))
        camera.open()
        images = [camera.read() for _ in range(10)]
        camera.close()
    assert all(image is not None and image.shape == (240, 320, 3) for image in images)
    numbers = [number_of(image) for image in images if image is not None]
    assert numbers == [(numbers[0] + n) % 16 for n in range(10)]
    assert "TCP" in server.transports[0]


@pytest.mark.parametrize(
    ("written", "login"),
    [
        ("admin:S3cr#t@pw", "admin:S3cr#t@pw"),
        ("admin:S3cret%21pw", "admin:S3cret!pw"),
        ("über:pä ss", "über:pä ss"),
    ],
)
def test_password_in_the_address_reaches_the_camera_whatever_its_characters(written: str, login: str) -> None:
    with RtspServer(lambda n: numbered(5), login=login) as server:
        camera = RtspCamera("a", config("rtsp", f"rtsp://{written}@127.0.0.1:{server.port}/live"))
        camera.open()
        assert camera.read() is not None
        camera.close()
    assert set(server.logins) == {login}


def test_password_file_is_taken_literally_and_read_again_when_it_changes(tmp_path: Path) -> None:
    secret = tmp_path / "password"
    secret.write_text("wr%21ng\n")
    secret.chmod(0o600)
    with RtspServer(lambda n: numbered(5), login="admin:100%21@#/ right") as server:
        camera = RtspCamera("a", config("rtsp", f"rtsp://admin@127.0.0.1:{server.port}/live", password_file=secret))
        with pytest.raises(CameraError, match="did not open"):
            camera.open()
        assert server.logins[-1] == "admin:wr%21ng"
        secret.write_text("100%21@#/ right\n")
        camera.open()
        assert camera.read() is not None
        camera.close()


def test_missing_password_file_is_a_wrong_setting_at_start_and_a_lost_camera_later(tmp_path: Path) -> None:
    secret = tmp_path / "password"
    settings = config("rtsp", "rtsp://admin@127.0.0.1:1/live", password_file=secret)
    with pytest.raises(ConfigError, match="password_file .* cannot be read: No such file"):
        RtspCamera("a", settings)
    secret.write_text("pw")
    secret.chmod(0o600)
    camera = RtspCamera("a", settings)
    secret.unlink()
    with pytest.raises(CameraError, match="password_file"):
        camera.open()


def test_server_that_never_answers_is_given_up_within_the_open_time_out(silent_port: int) -> None:
    camera = RtspCamera("a", config("rtsp", f"rtsp://127.0.0.1:{silent_port}/live", open_timeout_s=0.5))
    started = time.monotonic()
    with pytest.raises(CameraError, match="did not open"):
        camera.open()
    assert time.monotonic() - started < 4  # 30 s where the time-out is not passed in the constructor
    camera.close()


def test_slow_camera_opens_as_soon_as_its_first_frame_is_there() -> None:
    with RtspServer(lambda n: numbered(n % 16, 320, 240), frame_every_s=0.4) as server:
        camera = RtspCamera("a", config("rtsp", f"rtsp://127.0.0.1:{server.port}/live", open_timeout_s=2.5))
        camera.open()
        first = camera.read()
        camera.close()
    assert first is not None
    assert number_of(first) <= 2, "it waited for many frames before it opened"


def test_silent_server_leaves_the_camera_offline_and_the_rest_going(silent_port: int) -> None:
    mailbox = Mailbox()
    settings = config(
        "rtsp",
        f"rtsp://u:S3cret@127.0.0.1:{silent_port}/live",
        open_timeout_s=0.3,
        reconnect_min_s=0.05,
        reconnect_max_s=0.1,
    )
    with CaptureThread("a", settings, mailbox.put) as capture:
        eventually(lambda: capture.status().reconnects >= 2, "two attempts")
        attempts, looks = capture.status().reconnects, 0
        while (status := capture.status()).reconnects < attempts + 3:
            assert mailbox.take(0) is None
            looks += 1
        assert looks > 100, "status or mailbox waited for the camera"
    assert status.state == "offline"
    assert "S3cret" not in str(status.reason)
    assert "u:***@127.0.0.1" in str(status.reason)


def test_stream_that_falls_silent_is_lost_within_the_read_time_out_and_comes_back() -> None:
    frames: list[Frame] = []

    def put(frame: Frame) -> bool:
        frames.append(frame)
        return True

    with RtspServer(lambda n: numbered(n % 16, 320, 240), stop_after=20) as server:
        settings = config(
            "rtsp",
            f"rtsp://127.0.0.1:{server.port}/live",
            read_timeout_s=0.5,
            reconnect_min_s=0.05,
            reconnect_max_s=0.1,
        )
        with CaptureThread("a", settings, put) as capture:
            eventually(lambda: capture.status().reconnects >= 1, "the loss is noticed")
            before = len(frames)
            eventually(lambda: len(frames) > before, "frames of the next connection")
    assert server.sessions >= 2
    assert [frame.seq for frame in frames] == list(range(len(frames)))


def test_read_before_open_and_close_twice_are_harmless() -> None:
    camera = RtspCamera("a", config("rtsp", "rtsp://127.0.0.1:1/live"))
    with pytest.raises(CameraError, match="not open"):
        camera.read()
    camera.close()
    camera.close()


def test_gstreamer_asked_for_but_missing_is_a_wrong_setting() -> None:
    if opencv_has("GStreamer"):
        pytest.skip("this OpenCV has GStreamer")
    with pytest.raises(ConfigError, match=f"GStreamer; this one .version {cv2.__version__}"):
        RtspCamera("a", config("rtsp", "rtsp://127.0.0.1:1/live", decoder="gstreamer"))


def test_refused_stream_says_where_without_the_password(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    settings = config("rtsp", "rtsp://admin:S3cret%21pw@127.0.0.1:1/live", reconnect_min_s=0.01, reconnect_max_s=0.01)
    with CaptureThread("door", settings, lambda frame: True) as capture:
        eventually(lambda: capture.status().state == "offline", "offline")
    assert "rtsp://admin:***@127.0.0.1:1/live" in caplog.text
    assert "S3cret" not in caplog.text


def libavformat() -> int:
    """The major version; 0 where OpenCV does not tell."""
    found = re.search(r"avformat:\s+YES \((\d+)", cv2.getBuildInformation())
    return int(found[1]) if found else 0


@pytest.mark.skipif(libavformat() < 62, reason="FFmpeg before 8 follows an RTSP redirect whatever it is told")
def test_redirect_to_another_address_is_not_followed() -> None:
    with socket.create_server(("127.0.0.1", 0)) as secret, socket.create_server(("127.0.0.1", 0)) as server:

        def answer() -> None:
            connection, _ = server.accept()
            with connection, connection.makefile("rb") as incoming:
                for line in incoming:
                    if line.lower().startswith(b"cseq:"):
                        to = f"Location: rtsp://127.0.0.1:{secret.getsockname()[1]}/live"
                        connection.sendall(b"RTSP/1.0 302 Moved\r\n" + line + to.encode() + b"\r\n\r\n")

        thread = threading.Thread(target=answer, daemon=True)
        thread.start()
        camera = RtspCamera("a", config("rtsp", f"rtsp://127.0.0.1:{server.getsockname()[1]}/live"))
        with pytest.raises(CameraError):
            camera.open()
        thread.join(10)
        secret.setblocking(False)
        with pytest.raises(BlockingIOError):
            secret.accept()


LEAK = """
import logging, sys, time
logging.basicConfig(level=logging.DEBUG)
from edge_agent.cameras.capture import CaptureThread
from edge_agent.settings.cameras import CameraConfig
for source in sys.argv[1:]:
    config = CameraConfig(kind="rtsp", source=source, reconnect_min_s=0.05, reconnect_max_s=0.05, open_timeout_s=1.0)
    with CaptureThread("a", config, lambda frame: True) as capture:
        deadline = time.monotonic() + 20
        while capture.status().reconnects < 3 and time.monotonic() < deadline:
            time.sleep(0.01)
        print(capture.status(), capture.config.source == source)
"""


def test_no_password_in_any_output_even_with_native_debugging_switched_on() -> None:
    talkative = {
        "OPENCV_LOG_LEVEL": "DEBUG",
        "OPENCV_VIDEOIO_DEBUG": "1",
        "OPENCV_FFMPEG_DEBUG": "1",
        "OPENCV_VIDEOCAPTURE_DEBUG": "1",
    }
    sources = ["rtsp://admin:S3cret%21pw@127.0.0.1:1/live", "rtsp://admin:S3cr#t@pw@127.0.0.1:1/live"]
    done = subprocess.run(
        [sys.executable, "-c", LEAK, *sources],
        env={**os.environ, **talkative},
        cwd=Path(__file__).resolve().parents[2],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    output = done.stdout + done.stderr
    assert output.count("reconnects=3") + output.count("reconnects=4") == 2, output
    assert "admin:***@127.0.0.1:1/live" in output
    for secret in ("S3cret%21pw", "S3cret!pw", "S3cr#t@pw", "S3cr%23t", "S3cr"):
        assert secret not in output
