"""FrameRecorder: keeps a frame with text now and then, for `edge-agent calibrate --recorded`.

The frames lie in `recorded` of the folder of calibrations, each named <captured_at in ms>-<camera>-<seq>.jpg.
"""

from __future__ import annotations

import logging
import os
import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

import cv2
import numpy as np
import numpy.typing as npt

from edge_agent.background import Background
from edge_agent.errors import in_one_line
from edge_agent.files import make_room, write_atomically
from edge_agent.records import Frame

RECORDED_DIRECTORY = "recorded"
JPEG_QUALITY = 95  # an eighth of a PNG's bytes and time; most cameras compress harder before
LOOK_S = 1.0  # how long at least until a frame is compared again while none differs; twice that at most
GOLDEN = (5**0.5 - 1) / 2  # the parts of its multiples spread evenly: no pace of the line keeps step with the looks
THUMB_PX = 32
DIFFERS_BY = 12.0  # grey levels of 255, of one of THUMB_PX x THUMB_PX cells; noise averages to less than one
KEPT = re.compile(r"[0-9]{13}-[A-Za-z0-9][A-Za-z0-9._-]*-[0-9]+\.jpg")

log = logging.getLogger(__name__)


@dataclass
class _Camera:
    """What was kept of a camera last, when it is compared next at the earliest, and how often it was in vain."""

    thumb: npt.NDArray[np.float32]
    due_mono: float
    looks: int = 0

    def put_off(self, now_mono: float) -> None:
        self.looks += 1
        self.due_mono = now_mono + LOOK_S * (1 + self.looks * GOLDEN % 1)


class FrameRecorder:
    """Keeps at most one frame of each camera in `interval_s`, the newest `max_frames` and `max_bytes` of them.

    `offer` costs next to nothing, under a millisecond when a frame is due: a thread encodes and writes, so that a slow
    disk holds nobody up. A context manager. A disk that takes no more ends the recording with one warning; `stopped`
    says why.
    """

    def __init__(
        self,
        directory: Path,
        interval_s: float,
        max_frames: int,
        max_bytes: int,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self.kept = 0
        self.stopped: str | None = None
        self._directory = directory
        self._interval_s = interval_s
        self._max_frames = max_frames
        self._max_bytes = max_bytes
        self._monotonic = monotonic
        self._cameras: dict[str, _Camera] = {}
        self._background = Background("frame-recorder", self._keep, most_waiting=1)

    def offer(self, frame: Frame) -> None:
        """Keeps the frame, which has text, if its camera's time has come and it differs from the last one kept."""
        if self.stopped is not None:
            return
        now_mono = self._monotonic()
        camera = self._cameras.get(frame.camera)
        if camera is not None and now_mono < camera.due_mono:
            return
        thumb = thumb_of(frame.image)
        if camera is not None:
            camera.put_off(now_mono)
            if float(np.abs(thumb - camera.thumb).max()) < DIFFERS_BY:
                return
        if not self._background.offer(frame):
            return  # the one before is still being written: this camera's next frame will do
        self._cameras[frame.camera] = _Camera(thumb, now_mono + max(self._interval_s, LOOK_S))

    def close(self) -> None:
        """Writes what was taken and ends; does not wait for a disk that hangs."""
        self._background.close()

    def __enter__(self) -> FrameRecorder:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _keep(self, frame: Frame) -> None:
        if self.stopped is not None:
            return
        try:
            self._write(frame)
        except (OSError, ValueError, cv2.error) as exc:
            self.stopped = in_one_line(exc)
            log.warning(
                "frames for calibrating are no longer kept in %s: %s; reading goes on", self._directory, self.stopped
            )

    def _write(self, frame: Frame) -> None:
        encoded, jpeg = cv2.imencode(".jpg", frame.image, (cv2.IMWRITE_JPEG_QUALITY, JPEG_QUALITY))
        if not encoded or len(jpeg) > self._max_bytes:
            raise ValueError(
                f"a frame of {frame.width_px}x{frame.height_px} px makes {len(jpeg)} bytes of JPEG; "
                f"calibration.record_max_bytes is {self._max_bytes}"
            )
        self._directory.mkdir(mode=0o750, parents=True, exist_ok=True)
        make_room(self._directory, KEPT, len(jpeg), max_bytes=self._max_bytes, max_count=self._max_frames)
        path = self._directory / f"{int(frame.captured_at * 1e3):013d}-{frame.camera}-{frame.seq}.jpg"
        # not durable: a frame that a power cut takes is no loss, and waiting for an SD card is
        write_atomically(path, jpeg.tobytes(), mode=0o640, durable=False)
        os.utime(path, (frame.captured_at, frame.captured_at))
        self.kept += 1


def thumb_of(image: npt.NDArray[np.uint8]) -> npt.NDArray[np.float32]:
    """A frame (uint8 (H, W, 3) BGR) as THUMB_PX x THUMB_PX mean grey levels about zero: brighter light moves none."""
    step = max(1, min(image.shape[:2]) // (THUMB_PX * 5))  # the rest adds nothing but time: 8 ms at 1080p
    small = cv2.resize(np.ascontiguousarray(image[::step, ::step]), (THUMB_PX, THUMB_PX), interpolation=cv2.INTER_AREA)
    grey = np.asarray(small, np.float32).mean(axis=2)
    return np.asarray(grey - grey.mean(), np.float32)
