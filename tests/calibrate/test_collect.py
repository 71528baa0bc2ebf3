"""Collecting: what becomes of good, bad and all too equal frames, and what stays when it fails or is killed."""

from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import cv2
import numpy as np
import pytest

from edge_agent.calibrate.collect import FrameWish, collect
from edge_agent.calibrate.collection import Collection, load
from edge_agent.calibrate.diversity import Gallery, impression_of
from edge_agent.calibrate.frames import CameraSource, FolderSource, RecordedSource
from edge_agent.config import Config
from edge_agent.errors import CalibrationRefused, ConfigError
from tests.calibrate.made_frames import folder_of, jpeg, label_frame


def collected(frames: Path, directory: Path, count: int = 60) -> Collection:
    return collect(FolderSource(frames), directory, FrameWish(count))


def names(collection: Collection) -> list[str]:
    return [frame.source for frame in collection.frames]


def files_of(directory: Path) -> dict[str, bytes]:
    return {str(path.relative_to(directory)): path.read_bytes() for path in directory.rglob("*") if path.is_file()}


# ENG-4: calibration that "succeeds" with no or few images


def test_empty_folder_is_refused_with_counts(tmp_path: Path) -> None:
    (tmp_path / "frames").mkdir()
    with pytest.raises(
        CalibrationRefused, match=r"0 usable frames.*at least 6.*offered 0, near duplicates 0.*skipped 0"
    ):
        collected(tmp_path / "frames", tmp_path / "collection")
    assert load(tmp_path / "collection") is None


def test_files_of_zero_bytes_are_refused_with_counts_and_reasons(tmp_path: Path) -> None:
    (tmp_path / "frames").mkdir()
    for number in range(5):
        (tmp_path / "frames" / f"{number}.jpg").write_bytes(b"")
    with pytest.raises(CalibrationRefused, match=r"offered 5, .*skipped 5 \(0\.jpg: file is empty.*and 2 more"):
        collected(tmp_path / "frames", tmp_path / "collection")


def test_seven_good_frames_are_all_used(tmp_path: Path) -> None:
    collection = collected(folder_of(tmp_path / "frames", range(7)), tmp_path / "collection")
    counts = collection.counts()
    assert (counts["offered"], counts["used"], counts["skipped"]) == (7, 7, 0)
    assert [counts[part] for part in ("calibration", "search", "held_out")] == [4, 1, 2]
    assert len(list(collection.images())) == 7


def test_bad_files_are_listed_and_an_ending_in_capitals_counts(tmp_path: Path) -> None:
    frames = folder_of(tmp_path / "frames", range(6))
    (frames / "IMG.JPG").write_bytes(jpeg(label_frame(6)))
    (frames / "cut.jpg").write_bytes(jpeg(label_frame(7))[:4000])
    (frames / "Thumbs.db").write_bytes(b"\xd0\xcf\x11\xe0" + bytes(500))
    counts = collected(frames, tmp_path / "collection").counts()
    assert (counts["offered"], counts["used"], counts["skipped"]) == (9, 7, 2)
    reasons = {skipped["name"]: skipped["reason"] for skipped in counts["skipped_files"]}
    assert set(reasons) == {"Thumbs.db", "cut.jpg"}
    assert "cut short" in reasons["cut.jpg"]


def test_one_black_frame_forty_times_is_refused_with_counts(tmp_path: Path) -> None:
    (tmp_path / "frames").mkdir()
    for number in range(40):
        (tmp_path / "frames" / f"{number}.jpg").write_bytes(jpeg(np.zeros((480, 640, 3), np.uint8)))
    with pytest.raises(CalibrationRefused, match=r"0 usable.*offered 40, near duplicates 39, without any texture 1"):
        collected(tmp_path / "frames", tmp_path / "collection")


def test_refused_frames_leave_the_collection_before_in_use(tmp_path: Path) -> None:
    before = collected(folder_of(tmp_path / "frames", range(7)), tmp_path / "collection")
    files = files_of(tmp_path / "collection")
    with pytest.raises(CalibrationRefused):
        collected(folder_of(tmp_path / "few", range(20, 25)), tmp_path / "collection")
    assert files_of(tmp_path / "collection") == files
    assert load(tmp_path / "collection") == before


# what is kept


def test_frames_are_kept_byte_for_byte_and_read_only(tmp_path: Path) -> None:
    frames = folder_of(tmp_path / "frames", range(7))
    collection = collected(frames, tmp_path / "collection")
    for frame in collection.frames:
        kept = tmp_path / "collection" / "frames" / frame.name
        assert kept.read_bytes() == (frames / frame.source).read_bytes()
        assert stat.S_IMODE(kept.stat().st_mode) == 0o444
    assert load(tmp_path / "collection") == collection


def test_new_collection_takes_the_place_of_the_old_one_wholly(tmp_path: Path) -> None:
    collected(folder_of(tmp_path / "frames", range(7)), tmp_path / "collection")
    collection = collected(folder_of(tmp_path / "others", range(5, 13)), tmp_path / "collection")
    kept = {path.name for path in (tmp_path / "collection" / "frames").iterdir()}
    assert kept == {frame.name for frame in collection.frames}
    assert load(tmp_path / "collection") == collection


def test_same_frames_give_the_same_collection_whatever_order_and_time_they_were_copied_in(tmp_path: Path) -> None:
    folder_of(tmp_path / "one", range(12))
    folder_of(tmp_path / "two", reversed(range(12)))
    one, two = (collected(tmp_path / name, tmp_path / f"{name}-collection", 8) for name in ("one", "two"))
    assert one.digest == two.digest
    assert one.frames == two.frames
    assert one.counts()["left_out"] == 4


def test_digest_tells_collections_apart_by_content_and_by_labels(tmp_path: Path) -> None:
    frames = folder_of(tmp_path / "frames", range(7))
    first = collected(frames, tmp_path / "collection")
    (frames / "labels.jsonl").write_text('{"file": "img0.jpg", "lines": ["LOT L4000"]}\n{"file": "x", "text": "y"}')
    labelled = collected(frames, tmp_path / "collection")
    (frames / "img0.jpg").write_bytes(jpeg(label_frame(0), 80))
    changed = collected(frames, tmp_path / "collection")
    assert len({first.digest, labelled.digest, changed.digest}) == 3
    assert labelled.labels == {"img0.jpg": ("LOT L4000",)}, "frames that were not kept need no label"
    assert labelled.counts()["labelled"] == 1
    reloaded = load(tmp_path / "collection")
    assert reloaded is not None
    assert reloaded.labels == labelled.labels


def test_bad_labels_are_refused_before_any_frame_is_looked_at(tmp_path: Path) -> None:
    frames = folder_of(tmp_path / "frames", range(7))
    (frames / "labels.jsonl").write_text("LOT L4000\n")
    with pytest.raises(CalibrationRefused, match=r"labels\.jsonl, line 1"):
        collected(frames, tmp_path / "collection")


def test_parts_hold_their_shares_of_each_size_and_no_near_duplicates(tmp_path: Path) -> None:
    frames = folder_of(tmp_path / "frames", range(20))
    for number in range(20, 40):
        (frames / f"wide{number}.jpg").write_bytes(jpeg(label_frame(number, 800, 480)))
    for number in range(10):
        again = np.clip(label_frame(number).astype(int) + 1, 0, 255).astype(np.uint8)
        (frames / f"again{number}.jpg").write_bytes(jpeg(again, 80))
    collection = collected(frames, tmp_path / "collection")
    parts = Counter((frame.width_px, frame.part) for frame in collection.frames)
    for width_px in (640, 800):
        assert abs(parts[width_px, "calibration"] - 10) <= 1
        assert abs(parts[width_px, "search"] - 3) <= 1
        assert abs(parts[width_px, "held_out"] - 7) <= 1
    assert collection.counts()["near_duplicates"] == 10
    gallery = Gallery()
    assert all(gallery.admits(impression_of(image)) for _, image in collection.images())


def test_every_part_of_the_smallest_collection_has_a_frame(tmp_path: Path) -> None:
    collection = collected(folder_of(tmp_path / "frames", range(6)), tmp_path / "collection")
    assert all(collection.of(part) for part in ("calibration", "search", "held_out"))


def test_images_are_the_very_pixels_that_a_folder_camera_gives(tmp_path: Path) -> None:
    """CAM-5 (c): one solid red label through both paths is red in the same channel."""
    frames = folder_of(tmp_path / "frames", range(6))
    red = label_frame(0).copy()
    red[:200] = (0, 0, 255)
    cv2.imwrite(str(frames / "red.png"), red)
    collection = collected(frames, tmp_path / "collection")
    seen = {frame.source: image for frame, image in collection.images()}
    np.testing.assert_array_equal(seen["red.png"], red)
    np.testing.assert_array_equal(seen["img3.jpg"], cv2.imread(str(frames / "img3.jpg")))


def test_recorded_frames_are_spread_over_time(tmp_path: Path) -> None:
    for number in range(14):
        at_ms = 1_767_225_600_000 + (number if number < 12 else number * 1000) * 1000
        folder_of(tmp_path / "recorded", [number], f"line1-{at_ms}-{{}}.jpg")
    collection = collect(RecordedSource(tmp_path / "recorded"), tmp_path / "collection", FrameWish(6))
    times = [frame.captured_at for frame in collection.frames]
    assert times == sorted(times, key=lambda at: at or 0.0)
    assert max(times, key=lambda at: at or 0.0) == 1_767_225_600.0 + 13_000
    assert min(times, key=lambda at: at or 0.0) == 1_767_225_600.0


def test_frames_of_a_camera_are_kept_as_png_until_enough_are_different(tmp_path: Path) -> None:
    frames = folder_of(tmp_path / "frames", [0, 0, 1, 2, 3, 4, 5, 6, 7, 8])
    (frames / "img0b.jpg").write_bytes((frames / "img0.jpg").read_bytes())
    config = Config.model_validate(
        {"cameras": {"line1": {"kind": "folder", "source": str(frames), "pace": "every_frame"}}}
    )
    collection = collect(CameraSource("line1", config, timeout_s=60), tmp_path / "collection", FrameWish(7))
    assert (len(collection.frames), collection.tally.near_duplicates) == (7, 1)
    assert all(frame.name.endswith(".png") for frame in collection.frames)
    _, image = next(collection.images())
    np.testing.assert_array_equal(image, cv2.imread(str(frames / "img0.jpg")))
    assert load(tmp_path / "collection") == collection


def test_camera_that_shows_too_few_things_is_refused_and_leaves_nothing_behind(tmp_path: Path) -> None:
    config = Config.model_validate(
        {
            "cameras": {
                "line1": {"kind": "folder", "source": str(folder_of(tmp_path / "frames", range(3))), "loop": True}
            }
        }
    )
    source = CameraSource("line1", config, interval_s=0, timeout_s=1.5)
    with pytest.raises(
        CalibrationRefused, match=r"camera line1: 3 usable frames.*near duplicates \d+.*came within 1.5 s"
    ):
        collect(source, tmp_path / "collection")
    assert files_of(tmp_path / "collection") == {}


def test_progress_grows_to_one(tmp_path: Path) -> None:
    said: list[float] = []
    folder_of(tmp_path / "frames", range(7))
    collect(FolderSource(tmp_path / "frames"), tmp_path / "collection", report=said.append)
    assert said == sorted(said)
    assert said[-1] == 1.0
    assert len(said) > 7


@pytest.mark.parametrize("count", [0, 5, 10_001])
def test_wish_for_too_few_or_too_many_frames_is_a_config_error(count: int) -> None:
    with pytest.raises(ConfigError, match=f"{count} frames were asked for; expected 6 to 10000"):
        FrameWish(count)


# what is damaged


@pytest.fixture
def kept(tmp_path: Path) -> Collection:
    return collected(folder_of(tmp_path / "frames", range(6)), tmp_path / "collection")


def test_changed_missing_and_foreign_files_are_named(kept: Collection) -> None:
    path = kept.directory / "frames" / kept.frames[2].name
    content = path.read_bytes()
    path.unlink()
    with pytest.raises(CalibrationRefused, match=rf"{path.name} \(from img2\.jpg\) cannot be read: No such file"):
        load(kept.directory)
    path.write_bytes(content[:-1])
    with pytest.raises(CalibrationRefused, match=rf"{path.name} \(from img2\.jpg\) is damaged"):
        load(kept.directory)
    with pytest.raises(CalibrationRefused, match=r"img2\.jpg"):
        list(kept.images())


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ({"v": 2}, "has version 2, this program reads 1"),
        ({"digest": "0" * 64}, "its digest is another"),
        ({"extra": 1}, "extra"),
        ({"frames": []}, "frames"),
        ({"offered": "7"}, "offered"),
    ],
)
def test_manifest_that_says_something_else_is_refused(kept: Collection, change: dict[str, object], fault: str) -> None:
    path = kept.directory / "manifest.json"
    manifest = json.loads(path.read_bytes()) | change
    path.chmod(0o644)
    path.write_text(json.dumps(manifest), encoding="ascii")
    with pytest.raises(CalibrationRefused, match=rf"manifest\.json .*{fault}"):
        load(kept.directory)


@pytest.mark.parametrize("content", [b"", b"{", b"[1]", b"\xff\xfe", b"[" * 100_000])
def test_manifest_that_is_none_is_refused(kept: Collection, content: bytes) -> None:
    path = kept.directory / "manifest.json"
    path.chmod(0o644)
    path.write_bytes(content)
    with pytest.raises(CalibrationRefused, match=r"manifest\.json is damaged"):
        load(kept.directory)


def test_manifest_cannot_name_a_file_outside(kept: Collection) -> None:
    path = kept.directory / "manifest.json"
    manifest = json.loads(path.read_bytes())
    manifest["frames"][0]["name"] = "../../frames/img0.jpg"
    path.chmod(0o644)
    path.write_text(json.dumps(manifest), encoding="ascii")
    with pytest.raises(CalibrationRefused, match=r"frames\.0\.name"):
        load(kept.directory)


# what is killed

KILLED = """
import sys, time
from pathlib import Path
from edge_agent.calibrate import collect as verbs
from edge_agent.calibrate.frames import FolderSource

stop_at = sys.argv[3]

def stop(*_):
    print("here", flush=True)
    time.sleep(600)

if stop_at == "first frame":
    stored = verbs.stored
    def storing(*a):
        stored(*a)
        stop()
    verbs.stored = storing
elif stop_at == "before manifest":
    verbs.commit = stop
elif stop_at == "after manifest":
    verbs.clear_leftovers = stop
verbs.collect(FolderSource(Path(sys.argv[1])), Path(sys.argv[2]))
"""


@pytest.mark.parametrize("moment", ["first frame", "before manifest", "after manifest"])
def test_kill_leaves_the_old_collection_or_the_new_one_whole(tmp_path: Path, moment: str) -> None:
    old = collected(folder_of(tmp_path / "frames", range(6)), tmp_path / "collection")
    folder_of(tmp_path / "new", range(8, 15))
    command = [sys.executable, "-c", KILLED, str(tmp_path / "new"), str(tmp_path / "collection"), moment]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "here\n"
        child.send_signal(signal.SIGKILL)
    found = load(tmp_path / "collection")
    assert found is not None
    assert names(found) == ([f"img{n}.jpg" for n in range(8, 15)] if moment == "after manifest" else names(old))
    assert len(list(found.images())) == len(found.frames)
    again = collected(tmp_path / "new", tmp_path / "collection")
    left = {path.name for path in (tmp_path / "collection" / "frames").iterdir()}
    assert left == {frame.name for frame in again.frames}, "what the killed one left is cleared away"


def test_kill_at_any_moment_leaves_a_whole_collection(tmp_path: Path) -> None:
    collected(folder_of(tmp_path / "frames", range(6)), tmp_path / "collection")
    folder_of(tmp_path / "new", range(8, 15))
    script = (
        "import sys; from pathlib import Path; from edge_agent.calibrate.collect import collect\n"
        "from edge_agent.calibrate.frames import FolderSource\n"
        "print('here', flush=True)\n"
        "while True:\n"
        "    for name in ('new', 'frames'):\n"
        "        collect(FolderSource(Path(sys.argv[1], name)), Path(sys.argv[1], 'collection'))"
    )
    for pause_s in (0.05, 0.31, 0.57):
        with subprocess.Popen([sys.executable, "-c", script, str(tmp_path)], stdout=subprocess.PIPE) as child:
            assert child.stdout is not None
            child.stdout.readline()
            time.sleep(pause_s)  # any moment will do
            os.kill(child.pid, signal.SIGKILL)
        found = load(tmp_path / "collection")
        assert found is not None
        assert len(found.frames) in (6, 7)
