"""Sample video: the conveyor as a file that any OpenCV can play, beside a JSON file with the truth of every frame.

Motion JPEG in AVI: OpenCV writes it by itself, so that it needs neither FFmpeg nor GStreamer (JetPack's build).
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import cv2
import numpy as np

from edge_agent.cameras.native import NativeCapture, prepare_opencv
from edge_agent.demo.labels import Label, sample_labels
from edge_agent.demo.scene import HEIGHT_PX, WIDTH_PX, Conveyor, SceneFrame, SceneText
from edge_agent.errors import CameraError, ConfigError
from edge_agent.records import json_bytes

RENDERER = 1  # goes up with every change to labels.py or scene.py: old files are then rendered afresh
FPS = 20.0
QUALITY = 45  # OpenCV's own JPEG scale; about 140 kB a frame, the text as sharp as before

VIDEO_BYTES = 100 << 20  # more than it has

Progress = Callable[[int, int], None]  # frames done, frames in all


class Scene(Protocol):
    """What can be filmed."""

    def frame(self, index: int) -> SceneFrame:
        """The picture of that number."""
        ...


@dataclass(frozen=True, eq=False)
class SampleVideo:
    """A video file and what is to be read in it, frame by frame."""

    path: Path
    fps: float
    labels: tuple[dict[str, str], ...]
    frames: tuple[tuple[SceneText, ...], ...]


def sample_video(folder: Path, year: int, progress: Progress = lambda done, total: None) -> SampleVideo:
    """The sample video in `folder`, rendered when it is not there yet; `year` sets the labels' expiry dates.

    It appears whole or not at all. Raises ConfigError when it cannot be written.
    """
    stem = f"labels-r{RENDERER}-{year}"
    path, truth_path = folder / f"{stem}.avi", folder / f"{stem}.json"
    if not path.is_file() or not truth_path.is_file():
        require_room(folder)
        render_video(path, truth_path, sample_labels(year), progress)
    return load(path, truth_path)


def render_video(path: Path, truth_path: Path, labels: tuple[Label, ...], progress: Progress, frames: int = 0) -> None:
    """Renders the video, or its first `frames` frames; the truth is in place before the video appears."""
    conveyor = Conveyor(labels)
    total = frames or conveyor.frames
    unfinished_truth = truth_path.with_suffix(f".{os.getpid()}.part")
    unfinished = path.with_name(f"{path.stem}.{os.getpid()}.part.avi")  # OpenCV chooses the container by the ending
    try:
        seen = write_frames(unfinished, conveyor, total, progress)
        truth = {
            "renderer": RENDERER,
            "width_px": WIDTH_PX,
            "height_px": HEIGHT_PX,
            "fps": FPS,
            "labels": [label_truth(label) for label in labels],
            "frames": [[_text_to_json(text) for text in texts] for texts in seen],
        }
        unfinished_truth.write_bytes(json_bytes(truth))
        unfinished_truth.replace(truth_path)
        unfinished.replace(path)
    except OSError as exc:
        raise ConfigError(f"the sample video {path} cannot be written: {exc.strerror}") from exc
    finally:
        for rest in (unfinished, unfinished_truth):
            with suppress(OSError):
                rest.unlink()


def write_frames(
    path: Path, scene: Scene, total: int, progress: Progress, fps: float = FPS
) -> list[tuple[SceneText, ...]]:
    """Writes the first `total` pictures of a scene; the texts in each. Raises ConfigError where that cannot be."""
    writer = cv2.VideoWriter(
        str(path), cv2.CAP_OPENCV_MJPEG, cv2.VideoWriter.fourcc(*"MJPG"), fps, (WIDTH_PX, HEIGHT_PX)
    )
    if not writer.isOpened():
        raise ConfigError(f"OpenCV {cv2.__version__} cannot write {path}; is its folder writable, the disk full?")
    seen = []
    try:
        writer.set(cv2.VIDEOWRITER_PROP_QUALITY, QUALITY)
        for index in range(total):
            frame = scene.frame(index)
            writer.write(frame.image)
            seen.append(frame.texts)
            progress(index + 1, total)
    finally:
        writer.release()
    _require_whole(path, total)
    return seen


def _require_whole(path: Path, total: int) -> None:
    """Raises ConfigError where the file has not all the frames: OpenCV writes on without a word on a full disk."""
    prepare_opencv()
    whole = False
    with suppress(CameraError), closing(NativeCapture(str(path), cv2.CAP_OPENCV_MJPEG, path.name)) as player:
        player.set(cv2.CAP_PROP_POS_FRAMES, total - 1)
        whole = player.get(cv2.CAP_PROP_FRAME_COUNT) == total and player.read() is not None
    if not whole:
        raise ConfigError(f"the sample video {path} is not whole; is the disk full?")


def require_room(folder: Path) -> None:
    """Makes the folder; raises ConfigError where it cannot be, or where the video would not fit in."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        free_bytes = shutil.disk_usage(folder).free
    except OSError as exc:
        raise ConfigError(f"cannot make the folder {folder.absolute()}: {exc.strerror}") from exc
    if free_bytes < VIDEO_BYTES:
        raise ConfigError(
            f"{folder.absolute()} has {free_bytes >> 20} MB free; the sample video needs {VIDEO_BYTES >> 20} MB"
        )


def load(path: Path, truth_path: Path) -> SampleVideo:
    """The video and its truth. Raises ConfigError when the truth is damaged."""
    try:
        truth = json.loads(truth_path.read_bytes())
        frames = tuple(tuple(_text_from_json(text) for text in texts) for texts in truth["frames"])
        return SampleVideo(path, float(truth["fps"]), tuple(truth["labels"]), frames)
    except (ValueError, KeyError, TypeError) as exc:
        raise ConfigError(f"{truth_path} is damaged ({exc}); delete it and start the demo again") from exc


def label_truth(label: Label) -> dict[str, str]:
    """What a perfect reader finds on the label; dates are ISO 8601."""
    return {
        "product": label.product,
        "lot": label.lot,
        "expiry": label.expiry.isoformat(),
        "serial": label.serial,
        "net_weight": label.net_weight,
        "gtin": label.gtin,
        "url": label.url,
    }


def _text_to_json(text: SceneText) -> dict[str, Any]:
    quad = [[round(float(x), 1), round(float(y), 1)] for x, y in text.quad]
    return {"item": text.item, "text": text.text, "quad": quad, "cut": text.cut}


def _text_from_json(entry: dict[str, Any]) -> SceneText:
    return SceneText(int(entry["item"]), str(entry["text"]), np.array(entry["quad"], np.float32), bool(entry["cut"]))
