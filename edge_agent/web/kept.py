"""Kept: small pictures of what was read not long ago, for crops of items and for rehearsals of other settings.

A thread of its own makes them, of frames with text alone; while it is busy what comes is passed over.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import cv2
import numpy as np

from edge_agent.background import Background
from edge_agent.records import Frame, Reading, TextLine

FRAMES = 50  # of each camera
EVERY_S = 1.0  # of each camera at most one frame in this time
MAX_SIDE_PX = 1280
QUALITY = 85
MAX_BYTES = 33_554_432  # of all cameras; the oldest go first
CROPS = 300  # of all cameras, of some 10 kB
CROP_SIDE_PX = 320
MARGIN_SHARE = 0.08


@dataclass(frozen=True)
class Kept:
    """A frame that was read, its `jpeg` made smaller where it was large, and what it said: lines without lattices."""

    reading: Reading
    jpeg: bytes


class KeptFrames:
    """`offer` is the main loop's, the others for any thread. A context manager: the thread ends with it."""

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._lock = threading.Lock()
        self._frames: deque[Kept] = deque()
        self._bytes = 0
        self._kept_mono: dict[str, float] = {}
        self._crops: OrderedDict[tuple[str, int], bytes] = OrderedDict()
        self._making: Background[tuple[Frame, Reading, bool]] = Background("door-pictures", self._make, 1)

    def offer(self, frame: Frame, reading: Reading) -> None:
        """A frame was read; costs nothing."""
        if not reading.lines:
            return
        now_mono = self._monotonic()
        whole = now_mono - self._kept_mono.get(frame.camera, float("-inf")) >= EVERY_S
        if self._making.offer((frame, reading, whole)) and whole:
            self._kept_mono[frame.camera] = now_mono

    def of(self, camera: str) -> Sequence[Kept]:
        """The frames of a camera, oldest first."""
        with self._lock:
            return [kept for kept in self._frames if kept.reading.camera == camera]

    def crop(self, camera: str, first_seq: int, last_seq: int) -> bytes | None:
        """What the newest of some frames shows of its text, a JPEG; None where none of them is kept."""
        with self._lock:
            found = [seq for name, seq in self._crops if name == camera and first_seq <= seq <= last_seq]
            return self._crops[camera, max(found)] if found else None

    def __enter__(self) -> KeptFrames:
        return self

    def __exit__(self, *_: object) -> None:
        """Ends the thread."""
        self._making.close()

    def _make(self, piece: tuple[Frame, Reading, bool]) -> None:
        frame, reading, whole = piece
        crop = small_jpeg(text_part(frame, reading), CROP_SIDE_PX)
        kept = Kept(without_lattices(reading), small_jpeg(frame.image, MAX_SIDE_PX)) if whole else None
        with self._lock:
            self._crops[frame.camera, frame.seq] = crop
            while len(self._crops) > CROPS:
                self._crops.popitem(last=False)
            if kept is not None:
                self._keep(kept)

    def _keep(self, kept: Kept) -> None:
        """With the lock held."""
        self._frames.append(kept)
        self._bytes += len(kept.jpeg)
        same = [each for each in self._frames if each.reading.camera == kept.reading.camera]
        surplus = same[: max(0, len(same) - FRAMES)]
        for each in surplus:
            self._frames.remove(each)
            self._bytes -= len(each.jpeg)
        while self._bytes > MAX_BYTES and len(self._frames) > 1:
            self._bytes -= len(self._frames.popleft().jpeg)


def small_jpeg(image: np.ndarray, max_side_px: int) -> bytes:
    """A picture, uint8 (H, W, 3) BGR, as a JPEG, its longer side at most `max_side_px`."""
    height_px, width_px = image.shape[:2]
    scale = max_side_px / max(width_px, height_px)
    if scale < 1.0:
        size = (max(1, round(width_px * scale)), max(1, round(height_px * scale)))
        image = cv2.resize(image, size, interpolation=cv2.INTER_AREA)
    _, content = cv2.imencode(".jpg", image, [cv2.IMWRITE_JPEG_QUALITY, QUALITY])
    return content.tobytes()


def text_part(frame: Frame, reading: Reading) -> np.ndarray:
    """The part of a frame in which its lines stand, with some margin."""
    points = np.concatenate([line.box.quad.points for line in reading.lines])
    low, high = points.min(axis=0), points.max(axis=0)
    margin = (high - low) * MARGIN_SHARE + 4
    size = np.array([frame.width_px, frame.height_px])
    left, top = np.clip(low - margin, 0, size - 1).astype(int)
    right, bottom = np.clip(high + margin, 1, size).astype(int)
    return frame.image[top : max(top + 1, bottom), left : max(left + 1, right)]


def without_lattices(reading: Reading) -> Reading:
    """The reading without what is large and nobody needs later."""
    lines: tuple[TextLine, ...] = tuple(replace(line, lattice=None) for line in reading.lines)
    return replace(reading, lines=lines, engines={}, timings_ms={})
