"""FrameRecorder: real files."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import cv2
import numpy as np
import pytest

from edge_agent import background, frame_recorder
from edge_agent.frame_recorder import FrameRecorder
from edge_agent.records import Frame
from tests.broker import DEADLINE_S, wait_until

INTERVAL_S = 600.0
rng = np.random.default_rng(3)


class Site:
    """A recorder whose clock stands until it is moved, and a camera whose pictures have a dark square somewhere."""

    def __init__(
        self, folder: Path, interval_s: float = INTERVAL_S, frames: int = 100, size_bytes: int = 1 << 30
    ) -> None:
        self.folder = folder
        self.now_mono = 100.0
        self.seq = 0
        self.recorder = FrameRecorder(folder, interval_s, frames, size_bytes, lambda: self.now_mono)

    def offer(self, at: int, camera: str = "line-1", light: int = 0) -> None:
        image = np.full((240, 320, 3), 120 + light, np.int16)
        image[100:140, at : at + 40] -= 80
        image += rng.integers(-6, 7, image.shape, np.int16)
        self.recorder.offer(Frame(camera, self.seq, 1_800_000_000.0 + self.seq, 0.0, image.astype(np.uint8)))
        self.seq += 1

    def pass_time(self, seconds: float) -> None:
        self.now_mono += seconds

    def names(self) -> list[str]:
        return sorted(path.name for path in self.folder.iterdir()) if self.folder.exists() else []

    def wait_for(self, count: int) -> list[str]:
        wait_until(lambda: self.recorder.kept >= count, f"{count} frames")
        return self.names()


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Callable[..., Site]]:
    def made(**settings: float) -> Site:
        site = Site(tmp_path / "recorded", **settings)  # type: ignore[arg-type]
        sites.append(site)
        return site

    sites: list[Site] = []
    yield made
    for site in sites:
        site.recorder.close()


def test_frame_is_kept_as_it_was_with_its_time(make: Callable[..., Site]) -> None:
    site = make()
    site.offer(at=40)
    (name,) = site.wait_for(1)
    assert name == "1800000000000-line-1-0.jpg"
    path = site.folder / name
    assert path.stat().st_mtime == 1_800_000_000.0
    image = cv2.imread(str(path))
    assert image.shape == (240, 320, 3)
    assert abs(float(image[120, 60].mean()) - 40) < 8
    assert path.stat().st_mode & 0o007 == 0, "what a camera sees is not for everybody"


def test_one_frame_of_each_camera_in_the_interval(make: Callable[..., Site]) -> None:
    site = make()
    site.offer(at=40)
    site.wait_for(1)
    site.offer(at=40, camera="line-2")
    site.wait_for(2)
    site.pass_time(INTERVAL_S - 1)
    site.offer(at=200)
    site.pass_time(1)
    site.offer(at=200)
    assert [name.split("-", 1)[1] for name in site.wait_for(3)] == ["line-1-0.jpg", "line-2-1.jpg", "line-1-3.jpg"]


def test_picture_like_the_last_one_kept_is_passed_over(make: Callable[..., Site]) -> None:
    site = make()
    site.offer(at=40)
    site.wait_for(1)
    for _ in range(5):
        site.pass_time(INTERVAL_S)
        site.offer(at=40, light=30)
    site.pass_time(INTERVAL_S)
    site.offer(at=60)
    assert [name.split("-")[-1] for name in site.wait_for(2)] == ["0.jpg", "6.jpg"]


def test_frames_are_compared_once_a_second_while_none_differs(
    make: Callable[..., Site], monkeypatch: pytest.MonkeyPatch
) -> None:
    site = make()
    site.offer(at=40)
    site.wait_for(1)
    site.pass_time(INTERVAL_S)
    site.offer(at=40)
    monkeypatch.setattr(frame_recorder, "thumb_of", lambda _: pytest.fail("compared"))
    for _ in range(9):
        site.pass_time(0.1)
        site.offer(at=200)


def test_labels_in_turn_at_the_pace_of_the_comparing_are_all_kept(make: Callable[..., Site]) -> None:
    """Two labels take turns five times a second: looking every 1.2 s would see the same one for ever."""
    site = make(interval_s=0.01)
    site.offer(at=40)
    site.wait_for(1)
    for turn in range(1, 200):
        site.pass_time(0.1999)
        site.offer(at=40 + 80 * (turn % 2))
    site.wait_for(4)


def test_oldest_go_first_beyond_the_count(make: Callable[..., Site]) -> None:
    site = make(frames=3)
    for count in range(1, 6):
        site.offer(at=40 * count)
        site.wait_for(count)
        site.pass_time(INTERVAL_S)
    assert [name.split("-")[-1] for name in site.names()] == ["2.jpg", "3.jpg", "4.jpg"]


def test_oldest_go_first_beyond_the_bytes(make: Callable[..., Site]) -> None:
    site = make()
    site.offer(at=40)
    (name,) = site.wait_for(1)
    one_bytes = (site.folder / name).stat().st_size
    small = make(size_bytes=int(one_bytes * 3.5))
    small.seq = 1
    for count in range(1, 5):
        small.offer(at=40 * count + 20)
        small.wait_for(count)
        assert sum(path.stat().st_size for path in small.folder.iterdir()) <= one_bytes * 3.5
        small.pass_time(INTERVAL_S)
    assert [name.split("-")[-1] for name in small.names()] == ["2.jpg", "3.jpg", "4.jpg"], "of an earlier run, too"


def test_files_of_others_stay_and_halves_of_ours_go(make: Callable[..., Site]) -> None:
    site = make(frames=1)
    site.folder.mkdir()
    for name in ("notes.txt", "IMG_1.jpg", ".1700000000000-line-1-7.jpg.x8d"):
        (site.folder / name).write_bytes(b"x")
    for count in (1, 2):
        site.offer(at=80 * count)
        site.wait_for(count)
        site.pass_time(INTERVAL_S)
    assert site.names() == ["1800000001000-line-1-1.jpg", "IMG_1.jpg", "notes.txt"]


def test_disk_that_takes_no_more_ends_it_with_one_warning(
    make: Callable[..., Site], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    site = make()

    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(frame_recorder, "write_atomically", full)
    site.offer(at=40)
    wait_until(lambda: site.recorder.stopped is not None, "the end")
    for count in range(5):
        site.pass_time(INTERVAL_S)
        site.offer(at=40 * count)
    site.recorder.close()
    assert len(caplog.records) == 1
    assert "No space left on device; reading goes on" in caplog.text
    assert site.recorder.kept == 0


def test_folder_that_is_a_file_ends_it_with_one_warning(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "recorded").write_text("")
    site = Site(tmp_path / "recorded" / "deeper")
    site.offer(at=40)
    site.recorder.close()
    assert site.recorder.stopped is not None
    assert len(caplog.records) == 1


def test_frame_larger_than_all_that_may_be_kept_pushes_none_out(make: Callable[..., Site]) -> None:
    site = make(size_bytes=1000)
    site.folder.mkdir()
    (site.folder / "1700000000000-line-1-0.jpg").write_bytes(b"x")
    site.offer(at=40)
    wait_until(lambda: site.recorder.stopped is not None, "the end")
    assert "calibration.record_max_bytes is 1000" in str(site.recorder.stopped)
    assert site.names() == ["1700000000000-line-1-0.jpg"]


def test_disk_that_hangs_holds_nobody_up(make: Callable[..., Site], monkeypatch: pytest.MonkeyPatch) -> None:
    site = make(interval_s=0.0)
    released = threading.Event()
    written = threading.Event()

    def hang(*_: object, **__: object) -> None:
        written.set()
        released.wait(DEADLINE_S)
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(frame_recorder, "write_atomically", hang)
    monkeypatch.setattr(background, "CLOSE_S", 0.05)
    site.offer(at=40)
    assert written.wait(DEADLINE_S)
    for count in range(20):
        site.pass_time(2.0)
        site.offer(at=10 * count)
    site.recorder.close()
    released.set()
