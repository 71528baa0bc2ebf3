"""Camera: the seam to the outside world of light; the clock that cameras and their threads go by."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from edge_agent.cameras import CAMERAS
from edge_agent.errors import CameraError
from edge_agent.registry import load
from edge_agent.settings.cameras import CameraConfig

Image = npt.NDArray[np.uint8]
Array = npt.NDArray[Any]


class NoFrameYet(CameraError):
    """The source is in order and has nothing new: a watched folder, a picture not yet due. Read again."""


class Camera(Protocol):
    """One source. Every method may block up to its configured time-out; a camera knows no threads.

    Its constructor takes (name, config) and raises ConfigError for settings that no retry can mend.
    """

    def open(self) -> None:
        """Opens the source; raises CameraError (message without secrets) when it cannot be opened."""
        ...

    def read(self) -> Image | None:
        """The next picture, uint8 (H, W, 3) BGR, owned by the caller; None at the end of a source that ends.

        Raises CameraError when no picture came within the read time-out (open again), its subclass NoFrameYet
        when none was due (read again), FrameError when this one picture is damaged (the next may be good).
        """
        ...

    def close(self) -> None:
        """Releases the source; calling it again does nothing."""
        ...


@dataclass(frozen=True)
class Clock:
    """Where time comes from: unix seconds, monotonic seconds, and the two ways to let time pass."""

    unix: Callable[[], float] = time.time
    monotonic: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep
    wait: Callable[[threading.Event, float], bool] = threading.Event.wait


def make_camera(name: str, config: CameraConfig) -> Camera:
    """The camera that `config.kind` names, not yet open; raises ConfigError for settings that cannot work."""
    camera: Camera = load(CAMERAS, config.kind, "camera kind")(name, config)
    return camera
