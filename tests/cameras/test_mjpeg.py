"""Motion JPEG over HTTP: a real server that changes its size, damages frames, stalls and asks for a password."""

from __future__ import annotations

import base64
import contextlib
import threading
from collections.abc import Callable, Iterator, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import cv2
import numpy as np
import numpy.typing as npt
import pytest

from edge_agent.cameras.base import make_camera
from edge_agent.cameras.capture import CaptureThread
from edge_agent.cameras.mjpeg import HABIT_FRAMES, MjpegCamera
from edge_agent.errors import CameraError, ConfigError, FrameError
from edge_agent.records import Frame
from tests.cameras.conftest import config, eventually, number_of, numbered

Part = bytes
Serve = Callable[..., str]


def jpeg(number: int, width: int = 320, height: int = 240, detailed: bool = False) -> bytes:
    picture: npt.NDArray[np.uint8] = numbered(number % 16, width, height)
    if detailed:
        picture = np.random.default_rng(number).integers(0, 256, (height, width, 3)).astype(np.uint8)
    return cv2.imencode(".jpg", picture)[1].tobytes()


def part(content: bytes, declared: int | None = -1) -> Part:
    """One part; `declared` is its Content-Length: -1 the true one, None no such header."""
    length = "" if declared is None else f"Content-Length: {len(content) if declared == -1 else declared}\r\n"
    return b"--edge\r\nContent-Type: image/jpeg\r\n" + length.encode() + b"\r\n" + content + b"\r\n"


@pytest.fixture
def serve() -> Iterator[Serve]:
    """serve(parts, ...) starts a server and gives its address; `hold` keeps the connection open at the end."""
    servers: list[ThreadingHTTPServer] = []
    over = threading.Event()

    def start(
        parts: Sequence[Part],
        kind: str = "multipart/x-mixed-replace; boundary=edge",
        login: str | None = None,
        status: int = 200,
        hold: bool = False,
        repeat: bool = False,
        asked: list[str] | None = None,
        echo: bool = False,
        *,
        location: str | None = None,
    ) -> str:
        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                if asked is not None:
                    asked.append(self.path)
                token = "Basic " + base64.b64encode((login or "").encode()).decode()
                if login is not None and self.headers.get("Authorization") != token:
                    self.send_response(401)
                    self.send_header("WWW-Authenticate", 'Basic realm="camera"')
                    self.send_header("Content-Length", "0")
                    self.end_headers()
                    return
                moved = location is not None and self.path != "/video.mjpg"
                self.send_response(200 if moved else status, f"no such path {self.path}" if echo else None)
                self.send_header("Content-Type", kind)
                if location is not None and self.path == "/video.mjpg":
                    self.send_header("Location", location)
                self.end_headers()
                with contextlib.suppress(OSError):
                    while True:
                        for one in parts:
                            self.wfile.write(one)
                            if over.wait(0.005):
                                return
                        if not repeat:
                            break
                    if hold:
                        over.wait(30)

            def log_message(self, *_: object) -> None:
                pass

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        servers.append(server)
        return f"http://127.0.0.1:{server.server_port}/video.mjpg"

    yield start
    over.set()
    for server in servers:
        server.shutdown()
        server.server_close()


def camera(source: str, **settings: object) -> MjpegCamera:
    return MjpegCamera("a", config("video", source, **settings))


def everything(made: MjpegCamera) -> list[tuple[int, ...] | str]:
    """(number, width) of each picture, "bad" for a damaged one, to the end of the stream."""
    found: list[tuple[int, ...] | str] = []
    made.open()
    while True:
        try:
            image = made.read()
        except FrameError:
            found.append("bad")
        except CameraError:
            made.close()
            return found
        else:
            assert image is not None
            found.append((number_of(image), image.shape[1]))


def test_http_address_of_kind_video_is_a_motion_jpeg_camera(serve: Serve) -> None:
    made = make_camera("a", config("video", serve([part(jpeg(3))])))
    made.open()
    image = made.read()
    made.close()
    assert image is not None
    assert number_of(image) == 3


def test_stream_that_changes_its_size_gives_each_frame_as_it_is(serve: Serve) -> None:
    parts = [part(jpeg(n)) for n in range(10)] + [part(jpeg(n, 640, 480)) for n in range(10)]
    assert everything(camera(serve(parts))) == [(n, 320) for n in range(10)] + [(n, 640) for n in range(10)]


def test_change_of_size_is_counted(serve: Serve) -> None:
    source = serve([part(jpeg(1)), part(jpeg(2, 640, 480))], hold=True)
    with CaptureThread("a", config("video", source, read_timeout_s=4.0), lambda frame: True) as capture:
        eventually(lambda: capture.status().frames == 2, "both frames")
        assert capture.status().resizes == 1
        assert (capture.status().width_px, capture.status().height_px) == (640, 480)


@pytest.mark.parametrize("declared", ["true length", "whole length", "no length"])
def test_half_a_jpeg_is_never_a_picture_and_the_stream_goes_on(serve: Serve, declared: str) -> None:
    pictures = [jpeg(n, detailed=True) for n in range(21)]
    parts = [part(picture, None if declared == "no length" else -1) for picture in pictures]
    half = pictures[11][: len(pictures[11]) // 2]
    parts[11] = part(half, {"true length": -1, "whole length": len(pictures[11]), "no length": None}[declared])
    found = everything(camera(serve(parts)))
    assert "bad" in found
    good = [entry for entry in found if entry != "bad"]
    assert 19 <= len(good) <= 20, "more than the damaged frame and the one it ran into was lost"


def test_foreign_bytes_within_a_jpeg_are_counted_as_a_bad_frame(serve: Serve) -> None:
    pictures = [bytearray(jpeg(n, detailed=True)) for n in range(5)]
    middle = len(pictures[2]) // 2
    pictures[2][middle : middle + 60] = bytes(range(196, 256))
    settings = config("video", serve([part(bytes(p)) for p in pictures], hold=True), read_timeout_s=4.0)
    with CaptureThread("a", settings, lambda frame: True) as capture:
        eventually(lambda: capture.status().frames == 4, "four good frames")
        assert capture.status().bad_frames == 1


def test_damage_that_keeps_a_jpegs_form_is_counted_as_a_bad_frame(serve: Serve) -> None:
    """libjpeg paints on after it; every other frame is read as usual."""
    pictures = [bytearray(jpeg(n, detailed=True)) for n in range(8)]
    for n in (2, 5):
        middle = len(pictures[n]) // 2
        pictures[n][middle : middle + 60] = bytes(range(60))
    assert everything(camera(serve([part(bytes(p)) for p in pictures]))).count("bad") == 2


def test_camera_in_the_habit_of_spare_bytes_is_read_once_the_habit_is_known(serve: Serve) -> None:
    spare = [jpeg(n)[:-2] + b"\xa1\x55" * 4 + b"\xff\xd9" for n in range(12)]
    found = everything(camera(serve([part(content) for content in spare])))
    assert found == ["bad"] * (HABIT_FRAMES - 1) + [(n, 320) for n in range(HABIT_FRAMES - 1, 12)]


def test_spare_bytes_in_a_single_frame_are_damage(serve: Serve) -> None:
    contents = [jpeg(n) for n in range(12)]
    contents[7] = contents[7][:-2] + b"\xa1\x55" * 4 + b"\xff\xd9"
    found = everything(camera(serve([part(content) for content in contents])))
    assert found == [(n, 320) if n != 7 else "bad" for n in range(12)]


def test_part_that_is_no_jpeg_is_a_bad_frame(serve: Serve) -> None:
    assert everything(camera(serve([part(b"<html>busy</html>"), part(jpeg(2))]))) == ["bad", (2, 320)]


@pytest.mark.parametrize("boundary", ["edge", "--edge", '"edge"'])
def test_boundary_is_found_however_the_camera_writes_it(serve: Serve, boundary: str) -> None:
    source = serve([part(jpeg(n), None) for n in range(3)], kind=f"multipart/x-mixed-replace;boundary={boundary}")
    assert everything(camera(source)) == [(0, 320), (1, 320), (2, 320)]


def test_password_reaches_the_camera_and_no_message(serve: Serve) -> None:
    source = serve([part(jpeg(4))], login="admin:S3cr#t@pw").replace("http://", "http://admin:S3cr#t@pw@")
    assert everything(camera(source)) == [(4, 320)]
    wrong = camera(source.replace("S3cr#t", "Wr0ng#"))
    with pytest.raises(CameraError) as refusal:
        wrong.open()
    assert "401" in str(refusal.value)
    assert "admin:***@127.0.0.1" in str(refusal.value)
    assert "Wr0ng" not in str(refusal.value)


@pytest.mark.parametrize(
    ("kind", "status", "said"),
    [
        ("text/html", 200, "sends text/html; expected multipart"),
        ("image/jpeg", 200, "sends image/jpeg"),
        ("text/html", 404, "answers 404"),
    ],
)
def test_what_is_no_stream_is_refused_by_name(serve: Serve, kind: str, status: int, said: str) -> None:
    with pytest.raises(CameraError, match=said):
        camera(serve([b"hello"], kind=kind, status=status)).open()


def test_refused_connection_and_other_schemes() -> None:
    with pytest.raises(CameraError, match="did not open: .*refused"):
        camera("http://127.0.0.1:1/x").open()
    for source in ("ftp://u:S3cret@host/x", "http://u:S3cret@[::1/x", "http://u:S3cret@host:abc/x"):
        unchecked = config().model_copy(update={"source": source})  # the settings refuse it before
        with pytest.raises(ConfigError, match="expected http") as refusal:
            MjpegCamera("door", unchecked)
        assert "S3cret" not in str(refusal.value)


def test_address_with_blanks_and_letters_beyond_ascii_is_asked_for_as_http_has_it(serve: Serve) -> None:
    asked: list[str] = []
    source = serve([part(jpeg(4))], asked=asked)
    assert everything(camera(f"{source}/ä b%20c?channel=1 2&token=S3cret pw")) == [(4, 320)]
    assert asked == ["/video.mjpg/%C3%A4%20b%20c?channel=1%202&token=S3cret%20pw"]


def test_camera_that_repeats_what_it_was_asked_gives_no_secret_away(serve: Serve) -> None:
    source = serve([], status=404, echo=True)
    with pytest.raises(CameraError, match=r"answers 404 no such path /video.mjpg/x\?token=\*\*\*") as refusal:
        camera(f"{source}/x?token=S3cret").open()
    assert "S3cret" not in str(refusal.value)


def test_stream_that_falls_silent_is_lost_within_the_read_time_out(serve: Serve) -> None:
    made = camera(serve([part(jpeg(1)), part(jpeg(2))[:400]], hold=True), read_timeout_s=0.3)
    made.open()
    assert made.read() is not None
    with pytest.raises(CameraError, match="no whole picture within 0.3 s"):
        made.read()
    made.close()


def test_server_that_dribbles_is_lost_within_the_read_time_out_too(serve: Serve) -> None:
    made = camera(serve([b"--edge\r\nContent-Length: 500000\r\n\r\n", *([b"x" * 8] * 1000)]), read_timeout_s=0.3)
    made.open()
    with pytest.raises(CameraError, match="no whole picture"):
        made.read()
    made.close()


def test_part_that_claims_to_be_enormous_is_not_read(serve: Serve) -> None:
    made = camera(serve([part(b"x", 10**15)], hold=True))
    made.open()
    with pytest.raises(CameraError, match="declares 1000000000000000 bytes"):
        made.read()
    made.close()


def test_camera_that_hangs_up_is_opened_again(serve: Serve) -> None:
    frames: list[Frame] = []
    settings = config("video", serve([part(jpeg(1)), part(jpeg(2))]), reconnect_min_s=0.01, reconnect_max_s=0.02)
    with CaptureThread("a", settings, lambda frame: frames.append(frame) is None) as capture:
        eventually(lambda: len(frames) >= 5, "frames of three connections")
        assert capture.status().reconnects >= 2
    assert [frame.seq for frame in frames] == list(range(len(frames)))


@pytest.mark.parametrize("elsewhere", ["http://localhost:{port}/other", "http://127.0.0.1:{other}/video.mjpg"])
def test_camera_that_points_to_another_host_or_port_is_not_followed(serve: Serve, elsewhere: str) -> None:
    asked: list[str] = []
    other = serve([part(jpeg(1))], asked=asked).rpartition(":")[2].partition("/")[0]
    address = serve([], status=302, location=elsewhere.format(port=other, other=other))
    made = camera(address.replace("//", "//user:S3cret@"))
    with pytest.raises(CameraError, match="leads to another host") as caught:
        made.open()
    assert asked == []
    assert "S3cret" not in str(caught.value)


def test_camera_that_points_to_another_of_its_pages_is_followed(serve: Serve) -> None:
    made = camera(serve([part(jpeg(3))], status=302, location="/live/video.mjpg"))
    made.open()
    picture = made.read()
    assert picture is not None
    assert number_of(picture) == 3
    made.close()
