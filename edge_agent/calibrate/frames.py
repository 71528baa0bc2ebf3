"""Frames: where a calibration's pictures come from: a folder, a configured camera, or what the running agent kept.

A source gives one picture at a time and says of each file that it cannot use why not; it never holds them all.
"""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from edge_agent.calibrate.labels import LABELS_FILE, read_labels
from edge_agent.cameras.base import Clock, Image
from edge_agent.cameras.capture import CaptureThread
from edge_agent.cameras.folder import natural_key
from edge_agent.cameras.image_file import is_image, read_image_file
from edge_agent.config import Config
from edge_agent.errors import CalibrationRefused, ConfigError, FrameError
from edge_agent.records import Frame
from edge_agent.settings.cameras import MAX_PIXELS

MOST_FILES = 2_000  # that are looked at; of more, evenly spaced ones
POLL_S = 0.1
CAPTURED_MS = re.compile(r"(?<!\d)(\d{13})(?!\d)")  # unix ms in the name of a recorded frame


@dataclass(frozen=True)
class Skipped:
    """Something offered that cannot be used, and why."""

    name: str
    reason: str


@dataclass(frozen=True, eq=False)
class OfferedFrame:
    """One picture: `image` uint8 (H, W, 3) BGR; `captured_at` unix s where known; `path` where it is a file."""

    name: str
    image: Image
    captured_at: float | None
    path: Path | None = None


class FrameSource(Protocol):
    """Gives frames, once. `described` names it in messages."""

    described: str
    endless: bool
    """Whether it gives frames for as long as they are taken; else all that it has are offered."""
    left_out: int
    """Files that were not looked at because there are too many."""
    note: str
    """Once `offered` has ended: why it ended before its time; else empty."""

    def __len__(self) -> int:
        """How many will be offered at most, by what is known now; 0 where it is not known."""
        ...

    def offered(self) -> Generator[OfferedFrame | Skipped, None, None]:
        """What there is, in order; close it when enough was taken."""
        ...

    def labels(self) -> Mapping[str, tuple[str, ...]]:
        """True texts by frame name, where they are known."""
        ...


class FolderSource:
    """The image files directly in a folder, known by their content and not by their ending, in natural order."""

    def __init__(self, folder: Path, *, max_pixels: int = MAX_PIXELS, most_files: int = MOST_FILES) -> None:
        """Lists the folder; CalibrationRefused where it cannot be listed."""
        self.folder = folder
        self.described = f"folder {folder}"
        self.endless = False
        self.note = ""
        self._max_pixels = max_pixels
        try:
            paths = sorted((Path(entry.path) for entry in os.scandir(folder)), key=natural_key)
        except OSError as exc:
            raise CalibrationRefused(f"folder {folder} cannot be listed: {exc.strerror}") from exc
        paths = [path for path in paths if path.name != LABELS_FILE]
        self._paths = evenly_spaced(paths, most_files)
        self.left_out = len(paths) - len(self._paths)

    def __len__(self) -> int:
        return len(self._paths)

    def offered(self) -> Generator[OfferedFrame | Skipped, None, None]:
        """Each file as a frame, or what is wrong with it."""
        for path in self._paths:
            yield self._look_at(path)

    def labels(self) -> Mapping[str, tuple[str, ...]]:
        """What labels.jsonl says; CalibrationRefused for one that cannot be read."""
        return read_labels(self.folder / LABELS_FILE)

    def captured_at(self, path: Path) -> float | None:
        """None: the files' order stands for time, for copying a folder changes the files' own times."""
        return None

    def _look_at(self, path: Path) -> OfferedFrame | Skipped:
        name = printable(path.name)
        try:
            if not path.is_file():
                return Skipped(name, "is a folder: not looked into" if path.is_dir() else "is no regular file")
            if path.stat().st_size == 0:
                return Skipped(name, "file is empty (0 bytes)")
            if not is_image(path):
                return Skipped(name, "is no image that this program reads")
            image = read_image_file(path, self._max_pixels)
            return OfferedFrame(name, image, self.captured_at(path), path)
        except FrameError as exc:
            return Skipped(name, str(exc).removeprefix(f"{path.name!r}: "))
        except OSError as exc:
            return Skipped(name, f"cannot be read: {exc.strerror}")


class RecordedSource(FolderSource):
    """Frames that the running agent kept: their time stands in their name (unix ms, 13 digits), else it is the file's.

    The agent may go on recording: a file that vanishes meanwhile is skipped.
    """

    def __init__(self, folder: Path, *, max_pixels: int = MAX_PIXELS, most_files: int = MOST_FILES) -> None:
        if not folder.is_dir():
            raise CalibrationRefused(
                f"nothing was recorded in {folder}; set calibration.record_interval_s, let the agent read for a while "
                "and calibrate then, or give frames by --frames or --camera"
            )
        super().__init__(folder, max_pixels=max_pixels, most_files=most_files)
        self.described = f"recorded frames in {folder}"

    def captured_at(self, path: Path) -> float | None:
        """When the frame was captured, unix s."""
        found = CAPTURED_MS.search(path.stem)
        return int(found[1]) / 1e3 if found else path.stat().st_mtime


class CameraSource:
    """A configured camera, live, at most one frame per `interval_s`, until enough are taken or `timeout_s` is over.

    A folder or video whose frames are all to be read (pace every_frame) gives them without pause, to its end.
    """

    def __init__(
        self,
        name: str,
        config: Config,
        *,
        interval_s: float = 1.0,
        timeout_s: float = 300.0,
        clock: Clock | None = None,
    ) -> None:
        """ConfigError where no camera has that name. One that is disabled is opened all the same: it was asked for."""
        if name not in config.cameras:
            known = ", ".join(sorted(config.cameras)) or "none"
            raise ConfigError(f"no camera is called {name!r}; the settings have {known}")
        self.name = name
        self.described = f"camera {name}"
        self.endless = True
        self.left_out = 0
        self.note = ""
        self._config = config.cameras[name].model_copy(update={"enabled": True})
        self._interval_s = interval_s if self._config.pace == "live" else 0.0
        self._timeout_s = timeout_s
        self._clock = clock or Clock()

    def __len__(self) -> int:
        return 0

    def offered(self) -> Generator[OfferedFrame | Skipped, None, None]:
        """Frames as they come; raises ConfigError where no retry can mend the camera's settings."""
        slot = Slot(newest=self._config.pace == "live")
        over = due = self._clock.monotonic()
        over += self._timeout_s
        came = 0
        with CaptureThread(self.name, self._config, slot.put, clock=self._clock) as capture:
            while self._clock.monotonic() < over:
                early_s = due - self._clock.monotonic()
                if early_s > 0:
                    self._clock.sleep(min(POLL_S, early_s))
                    continue
                ended = capture.status().state == "ended"  # asked before the slot: its last frame is there by then
                frame = slot.take(POLL_S)
                if frame is not None:
                    came += 1
                    due = self._clock.monotonic() + self._interval_s
                    yield OfferedFrame(f"{self.name}-{frame.seq:06d}", frame.image, frame.captured_at)
                elif capture.config_error is not None:
                    raise capture.config_error
                elif ended:
                    self.note = f"it came to its end after {came} frames"
                    return
            self.note = f"{came} frames came within {self._timeout_s:g} s ({state_of(capture)})"

    def labels(self) -> Mapping[str, tuple[str, ...]]:
        """None are known."""
        return {}


class Slot:
    """Room for one frame between the camera's thread and whoever takes it; a live camera's newest takes the place."""

    def __init__(self, *, newest: bool) -> None:
        self._newest = newest
        self._frame: Frame | None = None
        self._changed = threading.Condition()

    def put(self, frame: Frame) -> bool:
        """From the camera's thread. False where the frame must wait for its turn."""
        with self._changed:
            if self._frame is not None and not self._newest:
                return False
            self._frame = frame
            self._changed.notify()
            return True

    def take(self, wait_s: float) -> Frame | None:
        """The frame, once; None where none came within `wait_s`."""
        with self._changed:
            self._changed.wait_for(lambda: self._frame is not None, wait_s)
            frame, self._frame = self._frame, None
            return frame


def state_of(capture: CaptureThread) -> str:
    """What the camera says of itself."""
    status = capture.status()
    return f"{status.state}: {status.reason}" if status.reason else status.state


def evenly_spaced(paths: Sequence[Path], most: int) -> list[Path]:
    """At most `most` of the paths, spread over all of them."""
    if len(paths) <= most:
        return list(paths)
    return [paths[n * len(paths) // most] for n in range(most)]


def printable(name: str) -> str:
    """A file's name as text that every output takes, also where it is not UTF-8."""
    return name.encode("utf-8", "backslashreplace").decode()
