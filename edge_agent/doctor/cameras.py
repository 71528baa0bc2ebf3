"""Does each camera open and give pictures, how large, how soon, in colour? (field case DKR-1)"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from queue import Empty, Queue

import numpy as np

from edge_agent.cameras.base import Image, NoFrameYet, make_camera
from edge_agent.cameras.native import prepare_opencv
from edge_agent.doctor.base import Patient, Row
from edge_agent.errors import CameraError, ConfigError, FrameError
from edge_agent.settings.cameras import CameraConfig

SHARED_KINDS = ("folder", "rtsp", "video")  # that more than one may open
DARK = 8  # mean of 255 below which nothing is to be seen
GREY = 1.0  # mean difference of channels below which there is no colour


def check(patient: Patient) -> Iterator[Row]:
    cameras = {} if patient.config is None else patient.config.cameras
    prepare_opencv()
    for name, camera in cameras.items():
        if not camera.enabled:
            yield Row(f"camera {name}", "ok", "disabled")
        elif camera.kind not in SHARED_KINDS and agent_runs(patient):
            yield Row(f"camera {name}", "ok", "not opened: the agent that runs holds it; its status tells more")
        else:
            yield in_time(name, camera)
    if not cameras:
        yield Row("camera", "warn", "none is configured", "name one in cameras, see docs/cameras.md")


def agent_runs(patient: Patient) -> bool:
    """Whether an agent that keeps its state there is alive."""
    return any(_alive(folder / "last-words.json", patient.root) for folder in patient.state_folders)


def _alive(words: Path, root: Path) -> bool:
    try:
        said = json.loads(words.read_text(encoding="utf-8"))
        command = (root / "proc" / str(int(said["pid"])) / "cmdline").read_bytes()
    except (OSError, ValueError, KeyError, TypeError):
        return False
    return said.get("ended") in (None, "restart") and b"edge" in command and b"run" in command


def in_time(
    name: str, camera: CameraConfig, take: Callable[[str, CameraConfig], tuple[Image, float]] | None = None
) -> Row:
    """The camera's row; one whose native code hangs is left behind, and said to hang."""
    answers: Queue[Row] = Queue()

    def look() -> None:
        answers.put(looked_at(name, camera, take or first_picture))

    threading.Thread(target=look, name=f"doctor-{name}", daemon=True).start()
    timeout_s = camera.open_timeout_s + camera.read_timeout_s + 2.0
    try:
        return answers.get(timeout=timeout_s)
    except Empty:
        return Row(f"camera {name}", "fail", f"hangs: nothing came within {timeout_s:g} s", "unplug it and plug it in")


def looked_at(name: str, camera: CameraConfig, take: Callable[[str, CameraConfig], tuple[Image, float]]) -> Row:
    """What one picture tells."""
    row = f"camera {name}"
    try:
        image, took_s = take(name, camera)
    except ConfigError as exc:
        return Row(row, "fail", str(exc), "see the text")
    except (CameraError, FrameError) as exc:
        return Row(row, "fail", str(exc), "see docs/cameras.md, and `edge-agent read` with its source")
    height, width = image.shape[:2]
    text = f"{width}x{height} px, the first picture after {took_s:.1f} s"
    if float(image.mean()) < DARK:
        return Row(row, "warn", f"{text}; it is black", "is the lens covered, is there light?")
    small = image[::8, ::8].astype(np.int16)
    spread = float(np.abs(small - small.mean(axis=2, keepdims=True)).mean())
    return Row(row, "ok", f"{text}, {'grey' if spread < GREY else 'in colour'}")


def first_picture(name: str, config: CameraConfig) -> tuple[Image, float]:
    """It, and the seconds it took. Raises what the camera raises; CameraError where none comes in time."""
    began = time.monotonic()
    camera = make_camera(name, config)
    try:
        camera.open()
        while time.monotonic() - began < config.open_timeout_s + config.read_timeout_s:
            try:
                image = camera.read()
            except NoFrameYet:
                continue
            if image is None:
                break
            return image, time.monotonic() - began
        raise CameraError("it opens and gives no picture")
    finally:
        camera.close()
