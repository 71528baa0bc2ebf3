"""Video: a file plays at its own pace, ends cleanly, loops, and is noticed when swapped."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from edge_agent.cameras.base import Camera, Clock, NoFrameYet
from edge_agent.cameras.capture import CaptureThread
from edge_agent.cameras.pace import Pace
from edge_agent.cameras.video import VideoCamera
from edge_agent.errors import CameraError, FrameError
from edge_agent.mailbox import Mailbox
from tests.cameras.conftest import config, eventually, number_of

Clip = Callable[..., Path]


class Simulated:
    """A clock whose sleeps pass at once."""

    def __init__(self) -> None:
        self.now = 100.0
        self.clock = Clock(unix=lambda: self.now, monotonic=lambda: self.now, sleep=self.sleep)

    def sleep(self, seconds: float) -> None:
        assert seconds >= 0
        self.now += seconds


def numbers(camera: Camera, limit: int = 1000) -> list[int]:
    """Opens, reads to the end or to `limit`, closes."""
    found: list[int] = []
    camera.open()
    while len(found) < limit and (image := camera.read()) is not None:
        found.append(number_of(image))
    camera.close()
    return found


@pytest.mark.parametrize("name", ["a.avi", "a.mp4", "with spaces, ümläuts & 100%d.avi", "numbered_%02d_001.avi"])
def test_every_frame_comes_once_in_order(clip: Clip, name: str) -> None:
    camera = VideoCamera("a", config(source=str(clip(name)), pace="every_frame"))
    assert numbers(camera) == list(range(10))
    assert numbers(camera) == list(range(10)), "opened again, it begins again"


def test_loop_begins_again_at_the_end(clip: Clip) -> None:
    camera = VideoCamera("a", config(source=str(clip(frames=3)), pace="every_frame", loop=True))
    assert numbers(camera, limit=8) == [0, 1, 2, 0, 1, 2, 0, 1]


def test_live_pace_is_the_files_own(clip: Clip) -> None:
    simulated = Simulated()
    camera = VideoCamera("a", config(source=str(clip(fps=10.0))), clock=simulated.clock)
    started = simulated.now
    assert numbers(camera) == list(range(10))
    assert 0.9 <= simulated.now - started <= 1.05


def test_every_frame_pace_never_sleeps(clip: Clip) -> None:
    simulated = Simulated()
    numbers(VideoCamera("a", config(source=str(clip(fps=10.0)), pace="every_frame"), clock=simulated.clock))
    assert simulated.now == 100.0


def test_long_gaps_are_slept_in_pieces_so_that_stopping_is_quick() -> None:
    simulated = Simulated()
    pace = Pace(3.0, simulated.clock)
    pace.wait()
    pace.given()
    pieces = 0
    while True:
        try:
            pace.wait()
            break
        except NoFrameYet:
            pieces += 1
    assert pieces == 5
    assert simulated.now == pytest.approx(103.0)


def test_late_picture_does_not_hurry_those_after_it() -> None:
    simulated = Simulated()
    pace = Pace(0.1, simulated.clock)
    pace.given()
    simulated.now += 5.0
    pace.wait()
    pace.given()
    before = simulated.now
    pace.wait()
    assert simulated.now - before == pytest.approx(0.1)


def test_missing_file_folder_and_rubbish_do_not_open(tmp_path: Path) -> None:
    rubbish = tmp_path / "rubbish.mp4"
    rubbish.write_bytes(os.urandom(5000))
    for path, said in [
        (tmp_path / "absent.mp4", "is gone: No such file"),
        (tmp_path, "kind: folder"),
        (rubbish, "is no video that OpenCV .* can open"),
    ]:
        with pytest.raises(CameraError, match=said):
            VideoCamera("a", config(source=str(path))).open()


def pictures_span(content: bytes, suffix: str) -> tuple[int, int]:
    """Where the coded pictures lie in the file."""
    if suffix == ".avi":
        return content.index(b"movi") + 4, content.rindex(b"idx1")
    return content.index(b"mdat") + 4, content.index(b"moov") - 4


def cut(path: Path, share: float) -> Path:
    """Ends the file after `share` of its pictures' bytes."""
    start, end = pictures_span(path.read_bytes(), path.suffix)
    with path.open("r+b") as file:
        file.truncate(start + int((end - start) * share))
    return path


@pytest.mark.parametrize("name", ["a.avi", "a.mp4"])
def test_corrupt_tail_ends_cleanly_and_is_said(clip: Clip, name: str, caplog: pytest.LogCaptureFixture) -> None:
    path = clip(name, frames=16)
    content = bytearray(path.read_bytes())
    start, end = pictures_span(bytes(content), path.suffix)
    middle = (start + end) // 2
    content[middle:end] = bytes((n * 167 + 13) % 256 for n in range(end - middle))
    path.write_bytes(content)
    found = numbers(VideoCamera("a", config(source=str(path), pace="every_frame")), limit=50)
    assert found[:4] == [0, 1, 2, 3]
    assert len(found) <= 16
    if len(found) < 15:
        assert f"ends after {len(found)} of 16 frames" in caplog.text


def test_cut_file_gives_what_it_has_and_says_that_it_is_short(clip: Clip, caplog: pytest.LogCaptureFixture) -> None:
    path = cut(clip("a.avi", frames=16), 0.6)
    found = numbers(VideoCamera("a", config(source=str(path), pace="every_frame")), limit=50)
    assert found[:6] == [0, 1, 2, 3, 4, 5]
    assert len(found) < 14
    assert f"ends after {len(found)} of" in caplog.text


def test_video_without_one_picture_is_an_error_not_an_endless_loop(clip: Clip) -> None:
    path = clip("a.avi", frames=4)
    content = path.read_bytes()
    movi = content.index(b"movi")
    path.write_bytes(content[: movi + 4])
    camera = VideoCamera("a", config(source=str(path), pace="every_frame", loop=True))
    with pytest.raises(CameraError):
        numbers(camera)


def test_pixel_cap_holds_for_video(clip: Clip) -> None:
    camera = VideoCamera("a", config(source=str(clip()), max_pixels=3000))
    camera.open()
    with pytest.raises(FrameError, match="64x48 = 3072 pixels; at most 3000"):
        camera.read()
    camera.close()


def test_link_swapped_while_running_is_noticed_and_followed(clip: Clip, tmp_path: Path) -> None:
    first, second = clip("one.avi", frames=8, fps=30.0), clip("two.avi", frames=8, fps=30.0, first=8)
    link = tmp_path / "current.avi"
    link.symlink_to(first)
    mailbox = Mailbox()
    settings = config(source=str(link), loop=True, reconnect_min_s=0.02, reconnect_max_s=0.05)
    seen: set[int] = set()

    def taking(wanted: set[int]) -> Callable[[], bool]:
        def take() -> bool:
            frame = mailbox.take(0.1)
            if frame is not None:
                seen.add(number_of(frame.image))
            return bool(seen & wanted)

        return take

    with CaptureThread("a", settings, mailbox.put) as capture:
        eventually(taking(set(range(8))), "frames of the first clip")
        link.unlink()
        eventually(lambda: capture.status().state == "offline", "the loss")
        assert "is gone" in str(capture.status().reason)
        seen.clear()
        link.symlink_to(second)
        eventually(taking(set(range(8, 16))), "frames of the second clip")
        while mailbox.take(0):
            pass
        seen.clear()
        other = tmp_path / "next"
        other.symlink_to(first)
        other.replace(link)  # swapped in one step, never absent
        eventually(taking(set(range(8))), "frames of the first clip again")


def test_stop_is_quick_at_one_frame_a_minute(clip: Clip) -> None:
    frames: list[object] = []
    settings = config(source=str(clip(fps=1.0)))
    capture = CaptureThread("a", settings, lambda frame: frames.append(frame) is None)
    capture.start()
    eventually(lambda: frames, "a frame")
    assert capture.stop(timeout_s=5.0)
    assert not any(thread.name == "camera-a" for thread in threading.enumerate())


def test_end_warning_is_given_once_for_a_looping_damaged_file(clip: Clip, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    path = cut(clip("a.avi", frames=16), 0.6)
    numbers(VideoCamera("a", config(source=str(path), pace="every_frame", loop=True)), limit=60)
    assert caplog.text.count("ends after") == 1
