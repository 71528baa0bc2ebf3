"""MotionTrigger: an item comes in when the picture moves after it has stood still."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from edge_agent.frame_recorder import thumb_of
from edge_agent.items.triggers import Fire, Trigger
from edge_agent.records import Frame
from edge_agent.settings.trigger import TriggerConfig


class MotionTrigger(Trigger):
    """Compares each frame with the one before, both made small: noise and brighter light move nothing."""

    def __init__(self, camera: str, config: TriggerConfig, fire: Fire) -> None:
        super().__init__(camera, config, fire)
        self._before: npt.NDArray[np.float32] | None = None
        self._moved_mono = float("-inf")  # the last time that it moved

    def look(self, frame: Frame) -> None:
        thumb, before = thumb_of(frame.image), self._before
        self._before = thumb
        if before is None or float(np.abs(thumb - before).max()) < self.config.motion_threshold:
            return
        rested_s = frame.captured_mono - self._moved_mono
        self._moved_mono = frame.captured_mono
        if rested_s * 1e3 >= self.config.motion_rest_ms:
            self.fire(frame.captured_mono)
