"""Evidence: a picture of an item that was not passed, with what was read of it, kept by the item's id.

Two files of one name, `<time in ms>-<id>.jpg` and `.json`, in one folder; a thread writes them, the oldest go first.
"""

from __future__ import annotations

import errno
import json
import logging
import re
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

import cv2
import numpy as np
import numpy.typing as npt

from edge_agent.background import Background
from edge_agent.cameras.image_file import decode_image
from edge_agent.config import Config
from edge_agent.errors import FrameError, in_one_line
from edge_agent.files import make_room, write_atomically
from edge_agent.outbox.opening import find_database
from edge_agent.records import Frame, Quad, Reading, json_bytes
from edge_agent.settings.evidence import EvidenceConfig
from edge_agent.verify.expectation import Expectation

EVENT_KIND = "evidence_lost"
MOST_WAITING = 8
MAX_FILE_BYTES = 16_777_216  # of one that is read back: it may be anybody's
MAX_PIXELS = 200_000_000  # of the frame that it is a part of
MARGIN_SHARE = 0.1  # of the label's sides, kept around it: the detector wants to see where text ends
MARGIN_PX = 24
ID = re.compile(r"[0-9a-f]{24}")
KEPT = re.compile(r"[0-9]{13}-[0-9a-f]{24}\.(?:jpg|json)")

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Crop:
    """A part of a frame, px."""

    x: int
    y: int
    width: int
    height: int


@dataclass(frozen=True, eq=False)
class Evidence:
    """What is kept under `id`: `said` the published message, `reading` what the `frame` alone says, both as JSON.

    `today` is the day (ISO 8601) that dates were compared with.
    """

    id: str
    frame: Frame
    crop: Crop
    said: Mapping[str, Any]
    reading: Mapping[str, Any]
    expectation: Expectation | None
    today: str
    clock_trusted: bool

    def to_json(self) -> dict[str, Any]:
        """All of it but the picture."""
        crop, expectation = self.crop, self.expectation
        return {
            "v": 1,
            "id": self.id,
            "item": dict(self.said),
            "reading": dict(self.reading),
            "crop": {"x": crop.x, "y": crop.y, "width": crop.width, "height": crop.height},
            "expectation": None if expectation is None else expectation.to_json(),
            "today": self.today,
            "clock_trusted": self.clock_trusted,
        }


def crop_around(reading: Reading, quads: list[Quad]) -> Crop:
    """The part of the frame that holds the quads with some margin; the whole frame where there are none."""
    if not quads:
        return Crop(0, 0, reading.width_px, reading.height_px)
    points = np.concatenate([quad.points for quad in quads])
    low, high = points.min(axis=0), points.max(axis=0)
    margin = np.maximum((high - low) * MARGIN_SHARE, MARGIN_PX)
    left, top = (int(value) for value in np.maximum(np.floor(low - margin), 0))
    right, bottom = np.minimum(np.ceil(high + margin), (reading.width_px, reading.height_px))
    return Crop(left, top, max(1, int(right) - left), max(1, int(bottom) - top))


class EvidenceStore:
    """Keeps evidence within the settings' bounds. A thread encodes and writes: `offer` costs nothing. Context manager.

    What cannot be kept is counted in `lost`, and `tell` (kind, text) says so; the next piece is tried all the same.
    `clock` gives unix s.
    """

    def __init__(
        self,
        directory: Path,
        settings: EvidenceConfig,
        tell: Callable[[str, str], None],
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.directory = directory
        self.settings = settings
        self.kept = 0
        self.lost = 0
        self.fault: str | None = None
        self._tell = tell
        self._clock = clock
        self._background: Background[Evidence] = Background("evidence", self._keep, MOST_WAITING)

    def offer(self, evidence: Evidence) -> bool:
        """Whether its id may be told. False where too much waits for the disk already, or the piece before could not be
        written: this one is tried all the same."""
        if not self._background.offer(evidence):
            self._lose(f"more than {MOST_WAITING} pieces wait for the disk")
            return False
        return self.fault is None

    def section(self) -> dict[str, Any]:
        """What telemetry tells of it."""
        return {"kept": self.kept, "lost": self.lost, "fault": self.fault}

    def close(self) -> None:
        """Writes what was taken and ends."""
        self._background.close()

    def __enter__(self) -> EvidenceStore:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _keep(self, evidence: Evidence) -> None:
        try:
            self._write(evidence)
        except (OSError, ValueError, cv2.error) as exc:
            self.fault = in_one_line(exc)
            self._lose(self.fault)
        else:
            self.kept += 1
            self.fault = None

    def _lose(self, why: str) -> None:
        self.lost += 1
        self._tell(EVENT_KIND, f"evidence of an item is not kept in {self.directory}: {why}; reading goes on")

    def _write(self, evidence: Evidence) -> None:
        crop = evidence.crop
        part = evidence.frame.image[crop.y : crop.y + crop.height, crop.x : crop.x + crop.width]
        quality = (cv2.IMWRITE_JPEG_QUALITY, self.settings.jpeg_quality)
        encoded, jpeg = cv2.imencode(".jpg", np.ascontiguousarray(part), quality)
        text = json_bytes(evidence.to_json())
        wanted_bytes = len(jpeg) + len(text)
        if not encoded or wanted_bytes > self.settings.max_bytes:
            raise ValueError(f"{wanted_bytes} bytes are more than evidence.max_bytes, {self.settings.max_bytes}")
        now = self._clock()
        self.directory.mkdir(mode=0o750, parents=True, exist_ok=True)
        oldest = f"{max(0, int((now - self.settings.keep_s) * 1e3)):013d}"
        make_room(self.directory, KEPT, wanted_bytes, max_bytes=self.settings.max_bytes, before=oldest)
        path = self.directory / f"{int(now * 1e3):013d}-{evidence.id}"
        # the text last: where it is, the picture is; not durable, for waiting for an SD card holds up the next one
        write_atomically(path.with_suffix(".jpg"), jpeg.tobytes(), mode=0o640, durable=False)
        try:
            write_atomically(path.with_suffix(".json"), text, mode=0o640, durable=False)
        except OSError:
            with suppress(OSError):
                path.with_suffix(".jpg").unlink()
            raise


def find_evidence_dir(config: Config) -> Path | None:
    """The folder of evidence; None where none is kept."""
    if not config.evidence.keep:
        return None
    if config.evidence.directory is not None:
        return config.evidence.directory
    return None if config.outbox.kind == "memory" else (config.outbox.path or find_database()).parent / "evidence"


def find_evidence(directory: Path, evidence_id: str) -> Path | None:
    """The JSON file of an item's evidence, beside which its picture lies; None where nothing is kept under the id."""
    if not ID.fullmatch(evidence_id) or not directory.is_dir():
        return None
    return max(directory.glob(f"*-{evidence_id}.json"), default=None)


def list_evidence(directory: Path) -> Iterator[Path]:
    """The JSON files of all evidence in a folder, the oldest first. Raises OSError."""
    yield from sorted(path for path in directory.iterdir() if path.suffix == ".json" and KEPT.fullmatch(path.name))


@dataclass(frozen=True, eq=False)
class Kept:
    """Evidence that was read back: `picture` uint8 (H, W, 3) BGR is the crop."""

    content: Mapping[str, Any]
    picture: npt.NDArray[np.uint8]

    @property
    def canvas(self) -> npt.NDArray[np.uint8]:
        """A picture of the frame's size with the crop in its place, in the crop's mean colour around it."""
        size, crop = self.content["reading"]["frame"], self.content["crop"]
        shape = (size["height_px"], size["width_px"], 3)
        whole = np.empty(shape, np.uint8)
        whole[:] = self.picture.reshape(-1, 3).mean(axis=0).astype(np.uint8)
        height, width = self.picture.shape[:2]
        whole[crop["y"] : crop["y"] + height, crop["x"] : crop["x"] + width] = self.picture
        return whole


def read_evidence(path: Path) -> Kept:
    """What `path`, a JSON file of evidence, and the picture beside it hold. Raises OSError, or ValueError where they
    are no evidence."""
    try:
        content = json.loads(_bounded(path))
        crop, size = content["crop"], content["reading"]["frame"]
        x, y, width, height = (int(crop[name]) for name in ("x", "y", "width", "height"))
        width_px, height_px = int(size["width_px"]), int(size["height_px"])
    except (KeyError, TypeError, ValueError, OverflowError, RecursionError) as exc:  # empty, as a power cut leaves it
        raise ValueError(f"{path} is no evidence: {in_one_line(exc)}") from exc
    inside = 0 <= x < x + width <= width_px and 0 <= y < y + height <= height_px
    if not inside or width_px * height_px > MAX_PIXELS:
        raise ValueError(f"{path} is no evidence: it tells of {width}x{height} px at {x},{y} of {width_px}x{height_px}")
    try:
        picture = decode_image(_bounded(path.with_suffix(".jpg")), width * height)
    except FrameError as exc:
        raise ValueError(f"{path.with_suffix('.jpg')} is no picture of it: {exc}") from exc
    if picture.shape[:2] != (height, width):
        raise ValueError(f"{path}: the picture beside it is not the part of the frame that it tells of")
    return Kept(content, picture)


def _bounded(path: Path) -> bytes:
    if not path.is_file():  # a pipe of that name would be waited for
        raise FileNotFoundError(errno.ENOENT, "there is no such file", str(path))
    if path.stat().st_size > MAX_FILE_BYTES:
        raise ValueError(f"{path} is larger than {MAX_FILE_BYTES} bytes: it is no evidence")
    return path.read_bytes()
