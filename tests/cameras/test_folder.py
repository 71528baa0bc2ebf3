"""Folder: natural order, odd names, damaged files skipped and counted, new files picked up."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path

import cv2
import numpy as np
import pytest

from edge_agent.cameras.base import Camera, Clock, NoFrameYet
from edge_agent.cameras.capture import CaptureThread
from edge_agent.cameras.folder import SETTLE_S, FolderCamera, natural_key
from edge_agent.errors import CameraError, FrameError
from tests.cameras.conftest import config, eventually, number_of, numbered


class Simulated:
    """A clock whose sleeps pass at once, one hour ahead of the files it sees: none counts as fresh."""

    def __init__(self, ahead_s: float = 3600.0) -> None:
        self.now = 0.0
        self.clock = Clock(unix=lambda: self.now + self.start + ahead_s, monotonic=lambda: self.now, sleep=self.sleep)
        self.start = time.time()

    def sleep(self, seconds: float) -> None:
        self.now += seconds


def write(path: Path, number: int) -> Path:
    path.write_bytes(cv2.imencode(".png", numbered(number))[1].tobytes())
    return path


def every_frame(folder: Path, **settings: object) -> FolderCamera:
    return FolderCamera("a", config("folder", str(folder), pace="every_frame", **settings), clock=Simulated().clock)


def live(folder: Path, clock: Clock | None = None, **settings: object) -> FolderCamera:
    return FolderCamera("a", config("folder", str(folder), **settings), clock=clock or Simulated().clock)


def numbers(camera: Camera, limit: int = 1000) -> list[int | str]:
    """What the next reads give: numbers, "bad" for a damaged file; to the end, to where nothing is new, or `limit`."""
    found: list[int | str] = []
    while len(found) < limit:
        try:
            image = camera.read()
        except NoFrameYet as exc:
            if "waiting" in str(exc):
                return found
            continue
        except FrameError:
            found.append("bad")
            continue
        if image is None:
            return found
        found.append(number_of(image))
    return found


def test_natural_order_is_that_of_numbers() -> None:
    names = [
        "img10.png",
        "img2.png",
        "IMG1.png",
        "img02.png",
        "b.png",
        "a9.png",
        "10.png",
        "9.png",
        "img.png",
    ]
    ordered = [path.name for path in sorted(map(Path, names), key=natural_key)]
    assert ordered == [
        "9.png",
        "10.png",
        "a9.png",
        "b.png",
        "img.png",
        "IMG1.png",
        "img02.png",
        "img2.png",
        "img10.png",
    ]


def test_images_come_in_natural_order_once(tmp_path: Path) -> None:
    for number, name in enumerate(["img1.png", "img2.PNG", "img9.jpeg", "img10.JPG", "img11.bmp", "img12.tiff"]):
        suffix = Path(name).suffix.lower()
        (tmp_path / name).write_bytes(cv2.imencode(suffix, numbered(number))[1].tobytes())
    camera = every_frame(tmp_path)
    camera.open()
    assert numbers(camera) == [0, 1, 2, 3, 4, 5]
    assert camera.read() is None
    camera.open()
    assert numbers(camera) == [0, 1, 2, 3, 4, 5]


def test_odd_names_are_read_and_other_files_are_left_alone(tmp_path: Path) -> None:
    for number, name in enumerate(["1 %d {x} 'q' \"z\".png", "2 ümläut 日本.png", "3\nnewline.png", "4 -rf *.png"]):
        write(tmp_path / name, number)
    raw = os.fsencode(tmp_path) + b"/5 \xff\xfe.png"
    shutil.copy(tmp_path / "4 -rf *.png", raw)
    (tmp_path / "notes.txt").write_text("no image")
    (tmp_path / "folder.png").mkdir()
    (tmp_path / ".hidden.png").write_bytes(b"half of a file being copied")
    (tmp_path / "dangling.png").symlink_to(tmp_path / "nowhere")
    os.mkfifo(tmp_path / "pipe.png")
    camera = every_frame(tmp_path)
    camera.open()
    assert numbers(camera) == [0, 1, 2, 3, 3]


def test_damaged_files_are_errors_of_one_frame_each(tmp_path: Path) -> None:
    whole = write(tmp_path / "1.png", 1).read_bytes()
    (tmp_path / "2.png").write_bytes(b"")
    (tmp_path / "3.png").write_bytes(whole[: len(whole) // 2])
    (tmp_path / "4.jpg").write_bytes(b"not an image at all")
    write(tmp_path / "5.png", 5)
    camera = every_frame(tmp_path)
    camera.open()
    assert numbers(camera) == [1, "bad", "bad", "bad", 5]


def test_damaged_files_are_counted_by_the_capture(tmp_path: Path) -> None:
    write(tmp_path / "1.png", 1)
    (tmp_path / "2.png").write_bytes(b"")
    write(tmp_path / "3.png", 3)
    seen: list[int] = []
    settings = config("folder", str(tmp_path), pace="every_frame")
    with CaptureThread("a", settings, lambda frame: seen.append(number_of(frame.image)) is None) as capture:
        eventually(lambda: capture.status().state == "ended", "the end")
        status = capture.status()
    assert seen == [1, 3]
    assert (status.frames, status.bad_frames, status.reconnects) == (2, 1, 0)


def test_unreadable_file_is_one_bad_frame(tmp_path: Path) -> None:
    write(tmp_path / "1.png", 1)
    write(tmp_path / "2.png", 2)
    camera = every_frame(tmp_path)
    camera.open()
    (tmp_path / "1.png").unlink()
    assert numbers(camera) == ["bad", 2]


def test_picture_above_the_pixel_cap_is_one_bad_frame(tmp_path: Path) -> None:
    write(tmp_path / "1.png", 1)
    camera = every_frame(tmp_path, max_pixels=100)
    camera.open()
    with pytest.raises(FrameError, match=r"'1\.png'.*at most 100 are read"):
        camera.read()


def test_loop_begins_again_and_sees_new_files(tmp_path: Path) -> None:
    write(tmp_path / "1.png", 1)
    write(tmp_path / "3.png", 3)
    camera = every_frame(tmp_path, loop=True)
    camera.open()
    assert numbers(camera, limit=3) == [1, 3, 1]
    write(tmp_path / "2.png", 2)
    assert numbers(camera, limit=4) == [3, 1, 2, 3]


def test_loop_over_nothing_but_damaged_files_does_not_spin(tmp_path: Path) -> None:
    (tmp_path / "1.png").write_bytes(b"")
    simulated = Simulated()
    camera = FolderCamera("a", config("folder", str(tmp_path), pace="every_frame", loop=True), clock=simulated.clock)
    camera.open()
    assert numbers(camera, limit=5) == ["bad"] * 5
    assert simulated.now >= 1.0


def test_live_folder_goes_on_with_files_that_appear(tmp_path: Path) -> None:
    write(tmp_path / "1.png", 1)
    camera = live(tmp_path)
    camera.open()
    assert numbers(camera) == [1]
    assert numbers(camera) == []
    write(tmp_path / "3.png", 3)
    write(tmp_path / "2.png", 2)
    assert numbers(camera) == [2, 3]
    assert numbers(camera) == []


def test_live_folder_takes_a_file_written_again(tmp_path: Path) -> None:
    latest = write(tmp_path / "latest.png", 1)
    camera = live(tmp_path)
    camera.open()
    assert numbers(camera) == [1]
    write(latest, 2)
    os.utime(latest, ns=(1, 1))
    assert numbers(camera) == [2]
    assert numbers(camera) == []


def test_live_folder_waits_for_a_file_that_is_being_written(tmp_path: Path) -> None:
    whole = write(tmp_path / "source", 4).read_bytes()
    simulated = Simulated(ahead_s=0.0)
    camera = live(tmp_path, simulated.clock)
    camera.open()
    half = tmp_path / "1.png"
    half.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(NoFrameYet, match="being written"):
        camera.read()
    half.write_bytes(whole)
    assert numbers(camera) == [4]


def test_file_that_stays_damaged_is_counted_once(tmp_path: Path) -> None:
    simulated = Simulated(ahead_s=0.0)
    camera = live(tmp_path, simulated.clock)
    camera.open()
    (tmp_path / "1.png").write_bytes(b"\x89PNG half")
    assert numbers(camera) == ["bad"]
    assert simulated.now >= SETTLE_S * 0.9
    assert numbers(camera) == []


def test_live_folder_keeps_to_max_fps(tmp_path: Path) -> None:
    for number in range(5):
        write(tmp_path / f"{number}.png", number)
    simulated = Simulated()
    camera = live(tmp_path, simulated.clock, max_fps=2.0)
    camera.open()
    assert numbers(camera, limit=5) == [0, 1, 2, 3, 4]
    assert simulated.now == pytest.approx(2.0, abs=0.1)


def test_capture_of_a_live_folder_skips_no_file_because_of_max_fps(tmp_path: Path) -> None:
    for number in range(8):
        write(tmp_path / f"{number}.png", number)
    seen: list[int] = []
    settings = config("folder", str(tmp_path), max_fps=50.0)
    with CaptureThread("a", settings, lambda frame: seen.append(number_of(frame.image)) is None) as capture:
        eventually(lambda: len(seen) == 8, "all eight")
        eventually(lambda: "waiting" in str(capture.status().reason), "it waits for more")
        assert capture.status().state == "online"
        write(tmp_path / "9.png", 9)
        eventually(lambda: 9 in seen, "the new file")
    assert seen == [0, 1, 2, 3, 4, 5, 6, 7, 9]


def test_missing_folder_is_a_camera_error_that_names_it(tmp_path: Path) -> None:
    with pytest.raises(CameraError, match=r"absent cannot be listed: No such file"):
        every_frame(tmp_path / "absent").open()


@pytest.mark.parametrize("make", [every_frame, live])
def test_folder_that_vanishes_and_returns_goes_on_where_it_was(
    tmp_path: Path, make: Callable[[Path], FolderCamera]
) -> None:
    stick, away = tmp_path / "stick", tmp_path / "away"
    stick.mkdir()
    for number in range(4):
        write(stick / f"{number}.png", number)
    camera = make(stick)
    camera.open()
    assert numbers(camera, limit=2) == [0, 1]
    stick.rename(away)
    with pytest.raises(CameraError, match="is gone"):
        camera.read() if make is every_frame else numbers(camera, limit=1)
    camera.close()
    with pytest.raises(CameraError, match="cannot be listed"):
        camera.open()
    away.rename(stick)
    camera.open()
    assert numbers(camera) == [2, 3]


def test_one_image_file_is_a_folder_of_one(tmp_path: Path) -> None:
    camera = every_frame(write(tmp_path / "only.png", 7))
    camera.open()
    assert numbers(camera) == [7]


def test_empty_folder_ends_at_once_or_waits(tmp_path: Path) -> None:
    camera = every_frame(tmp_path)
    camera.open()
    assert camera.read() is None
    waiting = live(tmp_path)
    waiting.open()
    with pytest.raises(NoFrameYet, match="waiting for new images"):
        waiting.read()


def test_frames_belong_to_the_caller(tmp_path: Path) -> None:
    write(tmp_path / "1.png", 1)
    camera = every_frame(tmp_path, loop=True)
    camera.open()
    first = camera.read()
    assert first is not None
    first[:] = 0
    second = camera.read()
    assert second is not None
    assert np.array_equal(second, numbered(1))


def test_pace_of_a_live_folder_is_changed_while_it_is_read(tmp_path: Path) -> None:
    for n in range(6):
        write(tmp_path / f"{n}.png", n)
    simulated = Simulated()
    folder = live(tmp_path, simulated.clock, max_fps=10.0)
    folder.open()

    def seconds_for(count: int) -> float:
        began = simulated.now
        assert len(numbers(folder, count)) == count
        return simulated.now - began

    seconds_for(1)
    assert seconds_for(2) == pytest.approx(0.2)
    folder.limit(2.0)
    seconds_for(1)  # was due already
    assert seconds_for(2) == pytest.approx(1.0, abs=0.1)
