"""Sample video: plays, is rendered once, appears whole or not at all, and its truth survives the file."""

from __future__ import annotations

import os
from pathlib import Path

import cv2
import numpy as np
import pytest

from edge_agent.demo import video
from edge_agent.demo.labels import sample_labels
from edge_agent.demo.scene import Conveyor
from edge_agent.errors import ConfigError

FRAMES = 12
LABELS = sample_labels(2026)[:2]


@pytest.fixture(scope="module")
def rendered(tmp_path_factory: pytest.TempPathFactory) -> video.SampleVideo:
    folder = tmp_path_factory.mktemp("video")
    path, truth = folder / "labels.avi", folder / "labels.json"
    video.render_video(path, truth, LABELS, lambda done, total: None, FRAMES)
    assert sorted(p.name for p in folder.iterdir()) == ["labels.avi", "labels.json"], "nothing else is left behind"
    return video.load(path, truth)


def test_the_video_plays_with_every_frame_in_place(rendered: video.SampleVideo) -> None:
    conveyor = Conveyor(LABELS)
    player = cv2.VideoCapture(str(rendered.path))
    assert player.get(cv2.CAP_PROP_FPS) == pytest.approx(video.FPS)
    for index in range(FRAMES):
        ok, image = player.read()
        assert ok
        assert np.abs(image.astype(int) - conveyor.frame(index).image.astype(int)).mean() < 4
    assert not player.read()[0]
    player.release()


def test_the_truth_is_that_of_the_scene(rendered: video.SampleVideo) -> None:
    assert len(rendered.frames) == FRAMES
    expected = Conveyor(LABELS).frame(5).texts
    for got, want in zip(rendered.frames[5], expected, strict=True):
        assert (got.item, got.text, got.cut) == (want.item, want.text, want.cut)
        assert np.abs(got.quad - want.quad).max() < 0.1
    assert rendered.labels[1]["expiry"] == "2027-05-17"
    assert rendered.labels[1]["lot"] == "L24-1187"


def test_progress_counts_up_to_the_end(tmp_path: Path) -> None:
    steps: list[tuple[int, int]] = []
    video.render_video(tmp_path / "a.avi", tmp_path / "a.json", LABELS[:1], lambda *step: steps.append(step), 3)
    assert steps == [(1, 3), (2, 3), (3, 3)]


def test_the_video_is_rendered_once_and_again_for_another_year(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[Path] = []

    def render(path: Path, truth: Path, labels: object, progress: object) -> None:
        calls.append(path)
        path.touch()
        truth.write_text('{"fps": 20, "labels": [], "frames": []}')

    monkeypatch.setattr(video, "render_video", render)
    for year in (2026, 2026, 2027):
        video.sample_video(tmp_path / "new folder", year)
    assert [path.name for path in calls] == [f"labels-r{video.RENDERER}-{year}.avi" for year in (2026, 2027)]


def test_a_render_that_is_broken_off_leaves_no_video(tmp_path: Path) -> None:
    def stop(done: int, total: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        video.render_video(tmp_path / "a.avi", tmp_path / "a.json", LABELS, stop, FRAMES)
    assert list(tmp_path.iterdir()) == []


def test_a_damaged_truth_is_named_with_the_cure(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text('{"fps": 20')
    with pytest.raises(ConfigError, match=r"a\.json is damaged .*delete it"):
        video.load(tmp_path / "a.avi", tmp_path / "a.json")


def test_a_folder_that_cannot_be_written_is_a_config_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot write"):
        video.render_video(tmp_path / "absent" / "a.avi", tmp_path / "a.json", LABELS, lambda a, b: None, 1)


def test_a_video_that_lost_its_end_is_no_video(tmp_path: Path) -> None:
    """As OpenCV leaves it behind on a full disk, without an error."""

    def lose_the_end(done: int, total: int) -> None:
        if done == total:
            (part,) = tmp_path.glob("*.part.avi")
            os.truncate(part, 100_000)
            part.unlink()  # the writer goes on writing, into nothing
            part.write_bytes(b"RIFF")

    with pytest.raises(ConfigError, match="is not whole"):
        video.render_video(tmp_path / "a.avi", tmp_path / "a.json", LABELS, lose_the_end, FRAMES)
    assert list(tmp_path.iterdir()) == []


def test_too_little_room_is_said_before_anything_is_rendered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(video.shutil, "disk_usage", lambda folder: type("Usage", (), {"free": 5 << 20}))
    monkeypatch.setattr(video, "render_video", lambda *args: pytest.fail("it was rendered"))
    with pytest.raises(ConfigError, match="has 5 MB free; the sample video needs 100 MB"):
        video.sample_video(tmp_path, 2026)


def test_a_file_in_the_folders_place_is_a_config_error(tmp_path: Path) -> None:
    (tmp_path / "demo-out").touch()
    with pytest.raises(ConfigError, match="cannot make the folder .*demo-out: File exists"):
        video.sample_video(tmp_path / "demo-out", 2026)
