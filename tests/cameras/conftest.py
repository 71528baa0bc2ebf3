"""What camera tests share: waiting with a deadline, small configs and small clips."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import numpy.typing as npt
import pytest

from edge_agent.settings.cameras import CameraConfig
from tests.broker import DEADLINE_S


def eventually(condition: Callable[[], object], what: str, timeout_s: float = DEADLINE_S) -> None:
    """Polls until `condition` holds; fails, naming `what`, when it does not within `timeout_s`."""
    deadline = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline, f"not within {timeout_s} s: {what}"
        time.sleep(0.005)


def config(kind: str = "video", source: str = "unused", **settings: Any) -> CameraConfig:
    return CameraConfig.model_validate({"kind": kind, "source": source, **settings})


def numbered(number: int, width: int = 64, height: int = 48) -> npt.NDArray[np.uint8]:
    """A picture that carries `number` (0..15) in its brightness, in steps that survive lossy coding."""
    return np.full((height, width, 3), 8 + number * 16, np.uint8)


def number_of(image: npt.NDArray[np.uint8]) -> int:
    return round((float(image.mean()) - 8) / 16)


@pytest.fixture
def clip(tmp_path: Path) -> Callable[..., Path]:
    """Makes clips: clip("a.avi", frames=10, fps=25.0, first=0) has frames numbered from `first`."""

    def make(name: str = "clip.avi", frames: int = 10, fps: float = 25.0, first: int = 0) -> Path:
        path = tmp_path / name
        fourcc = cv2.VideoWriter.fourcc(*("mp4v" if path.suffix == ".mp4" else "MJPG"))
        writer = cv2.VideoWriter(str(path), fourcc, fps, (64, 48))
        assert writer.isOpened()
        for number in range(first, first + frames):
            writer.write(numbered(number % 16))
        writer.release()
        return path

    return make
