"""Sources of frames: a folder with all that lies in folders, a camera that may not come, what the agent kept."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import closing
from itertools import islice, pairwise
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest

from edge_agent.calibrate.frames import CameraSource, FolderSource, FrameSource, OfferedFrame, RecordedSource, Skipped
from edge_agent.config import Config
from edge_agent.errors import CalibrationRefused, ConfigError
from tests.calibrate.made_frames import folder_of, jpeg, label_frame


def all_of(source: FrameSource) -> tuple[dict[str, OfferedFrame], dict[str, str]]:
    offered = list(source.offered())
    return (
        {item.name: item for item in offered if isinstance(item, OfferedFrame)},
        {item.name: item.reason for item in offered if isinstance(item, Skipped)},
    )


def test_images_are_known_by_content_whatever_their_ending(tmp_path: Path) -> None:
    folder_of(tmp_path, [0])
    (tmp_path / "IMG.JPG").write_bytes(jpeg(label_frame(1)))
    (tmp_path / "frame.dat").write_bytes(jpeg(label_frame(2)))
    (tmp_path / "png.jpg").write_bytes(cv2.imencode(".png", label_frame(3))[1].tobytes())
    frames, skipped = all_of(FolderSource(tmp_path))
    assert list(frames) == ["frame.dat", "IMG.JPG", "img0.jpg", "png.jpg"]
    assert skipped == {}
    np.testing.assert_array_equal(frames["png.jpg"].image, label_frame(3))


def test_what_is_no_usable_image_is_named_with_its_reason(tmp_path: Path) -> None:
    folder_of(tmp_path, [0])
    good = jpeg(label_frame(1))
    (tmp_path / "Thumbs.db").write_bytes(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(2000))
    (tmp_path / "empty.jpg").write_bytes(b"")
    (tmp_path / "half.jpg").write_bytes(good[: len(good) // 2])
    (tmp_path / "text.jpg").write_text("not a picture", encoding="ascii")
    (tmp_path / "large.jpg").write_bytes(jpeg(np.zeros((700, 700, 3), np.uint8)))
    (tmp_path / "notes.txt").write_text("read me", encoding="ascii")
    (tmp_path / "labels.jsonl").write_text('{"file": "img0.jpg", "text": "LOT"}', encoding="ascii")
    (tmp_path / "older").mkdir()
    (tmp_path / "lost.jpg").symlink_to(tmp_path / "nowhere.jpg")
    os.mkfifo(tmp_path / "pipe.jpg")
    source = FolderSource(tmp_path, max_pixels=640 * 480)
    frames, skipped = all_of(source)
    assert list(frames) == ["img0.jpg"]
    expected = {
        "Thumbs.db": "is no image",
        "empty.jpg": "0 bytes",
        "half.jpg": "cut short",
        "text.jpg": "not an image",
        "large.jpg": "at most 307200 are read",
        "notes.txt": "is no image",
        "older": "folder",
        "lost.jpg": "no regular file",
        "pipe.jpg": "no regular file",
    }
    assert skipped.keys() == expected.keys()
    for name, reason in expected.items():
        assert reason in skipped[name]
        assert repr(name) not in skipped[name], "the name stands beside the reason"
    assert source.labels() == {"img0.jpg": ("LOT",)}


def test_files_come_in_natural_order_one_at_a_time(tmp_path: Path) -> None:
    folder_of(tmp_path, [10, 9, 2])
    frames = FolderSource(tmp_path).offered()
    first = next(frames)
    assert isinstance(first, OfferedFrame)
    assert (first.name, first.captured_at) == ("img2.jpg", None)
    (tmp_path / "img9.jpg").unlink()
    assert [type(item).__name__ for item in frames] == ["Skipped", "OfferedFrame"]


def test_of_too_many_files_evenly_spaced_ones_are_looked_at_and_the_others_counted(tmp_path: Path) -> None:
    for number in range(100):
        (tmp_path / f"{number}.jpg").write_bytes(b"")
    source = FolderSource(tmp_path, most_files=10)
    _, skipped = all_of(source)
    assert list(skipped) == [f"{number}.jpg" for number in range(0, 100, 10)]
    assert (len(source), source.left_out) == (10, 90)


def test_name_that_is_not_utf8_is_told_in_a_way_that_can_be_printed(tmp_path: Path) -> None:
    Path(os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9.jpg")).write_bytes(jpeg(label_frame(0)))
    frames, _ = all_of(FolderSource(tmp_path))
    assert list(frames) == ["caf\\udce9.jpg"]


def test_folder_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CalibrationRefused, match="nowhere cannot be listed"):
        FolderSource(tmp_path / "nowhere")
    with pytest.raises(CalibrationRefused, match="nothing was recorded.*record_interval_s"):
        RecordedSource(tmp_path / "recorded")


def test_recorded_frames_carry_their_time_in_their_name(tmp_path: Path) -> None:
    folder_of(tmp_path, [1], "line1-1767225600123-000007.jpg")
    folder_of(tmp_path, [2], "plain{}.jpg")
    os.utime(tmp_path / "plain2.jpg", (1_700_000_000.0, 1_700_000_000.0))
    frames, _ = all_of(RecordedSource(tmp_path))
    assert {name: frame.captured_at for name, frame in frames.items()} == {
        "line1-1767225600123-000007.jpg": 1_767_225_600.123,
        "plain2.jpg": 1_700_000_000.0,
    }


def camera(**settings: Any) -> Config:
    return Config.model_validate({"cameras": {"line1": settings}})


def named(offered: Iterator[OfferedFrame | Skipped]) -> list[str]:
    return [item.name for item in offered]


def test_stored_source_whose_every_frame_counts_is_read_to_its_end(tmp_path: Path) -> None:
    folder_of(tmp_path, range(4))
    source = CameraSource("line1", camera(kind="folder", source=str(tmp_path), pace="every_frame"), timeout_s=60)
    frames, _ = all_of(source)
    assert list(frames) == [f"line1-{seq:06d}" for seq in range(4)]
    assert all(frame.captured_at is not None and frame.path is None for frame in frames.values())
    assert source.note == "it came to its end after 4 frames"


def test_live_camera_gives_one_frame_per_interval_until_enough_are_taken(tmp_path: Path) -> None:
    folder_of(tmp_path, range(3))
    config = camera(kind="folder", source=str(tmp_path), loop=True, max_fps=100)
    with closing(CameraSource("line1", config, interval_s=0.15, timeout_s=60).offered()) as offered:
        taken = [item for item in islice(offered, 3) if isinstance(item, OfferedFrame)]
    moments = [item.captured_at or 0.0 for item in taken]
    assert all(later - earlier > 0.1 for earlier, later in pairwise(moments))


def test_camera_that_gives_too_little_in_time_says_how_many_came(tmp_path: Path) -> None:
    folder_of(tmp_path, range(2))
    source = CameraSource("line1", camera(kind="folder", source=str(tmp_path), max_fps=50), interval_s=0, timeout_s=1.0)
    assert len(named(source.offered())) == 2
    assert source.note.startswith("2 frames came within 1 s (online")


def test_disabled_camera_is_opened_when_it_is_asked_for(tmp_path: Path) -> None:
    folder_of(tmp_path, range(1))
    config = camera(kind="folder", source=str(tmp_path), pace="every_frame", enabled=False)
    assert len(named(CameraSource("line1", config, timeout_s=60).offered())) == 1


def test_camera_that_cannot_be_opened_says_why_when_time_is_up(tmp_path: Path) -> None:
    source = CameraSource("line1", camera(kind="folder", source=str(tmp_path / "none")), timeout_s=0.5)
    assert named(source.offered()) == []
    assert source.note.startswith("0 frames came within 0.5 s (offline: folder")


def test_unknown_camera_is_a_config_error_that_names_the_known() -> None:
    with pytest.raises(ConfigError, match="no camera is called 'line2'; the settings have line1"):
        CameraSource("line2", camera(kind="v4l2", source="0"))
