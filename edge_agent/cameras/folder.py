"""Folder: image files, in the order a person would put them, as frames; new ones while running."""

from __future__ import annotations

import os
import re
from collections import deque
from pathlib import Path

from edge_agent.cameras.base import Clock, Image, NoFrameYet
from edge_agent.cameras.image_file import SUFFIXES, read_image_file
from edge_agent.cameras.pace import Pace, Paced
from edge_agent.errors import CameraError, FrameError
from edge_agent.settings.cameras import CameraConfig

DEFAULT_FPS = 10.0  # a folder has no pace of its own; live without max_fps goes at this one
LOOK_EVERY_S = 0.5
SETTLE_S = 2.0  # a damaged file younger than this may still be being written: try it again before it counts

Stamp = tuple[int, int]  # mtime in ns and size: a file written again is a new picture


class FolderCamera(Paced):
    """The image files directly in a folder (or one image file): img2 before img10, hidden ones left out.

    pace every_frame: those there at `open`, once (`loop`: again and again), as fast as `read` is called. pace
    live: at max_fps, and for ever: files that appear or are written again while running follow.
    """

    def __init__(self, name: str, config: CameraConfig, *, clock: Clock | None = None) -> None:
        self.name = name
        self._config = config
        self._folder = Path(config.source)
        self._live = config.pace == "live"
        self._clock = clock or Clock()
        self._pace = Pace(0.0, self._clock)
        self.limit(config.max_fps)
        self._queue: deque[Path] = deque()
        self._seen: dict[Path, Stamp] = {}
        self._good = 0  # pictures since the last time round
        self._lost = False  # the folder vanished: its return goes on where it broke off

    def limit(self, max_fps: float | None) -> None:
        """As Paced has it: without a limit, at DEFAULT_FPS. With pace every_frame the reader's asking is the pace."""
        self._pace.interval_s = 1.0 / (max_fps or DEFAULT_FPS) if self._live else 0.0

    def open(self) -> None:
        """Lists the folder; CameraError when it cannot be listed."""
        if not self._lost:
            self.close()
        self._look()
        self._lost = False

    def read(self) -> Image | None:
        """The next picture; None after the last (every_frame), NoFrameYet while nothing is new (live).

        Raises FrameError for a file that is damaged, cut short or too large; the next read gives the next file.
        """
        self._pace.wait()
        if not self._queue and not self._refill():
            return None
        path = self._queue.popleft()
        try:
            image = read_image_file(path, self._config.max_pixels, self._config.bit_depth)
        except FrameError as exc:
            self._judge_failure(path, exc)
            raise
        self._good += 1
        self._pace.given()
        return image

    def close(self) -> None:
        """Forgets what was read, unless the folder was lost and may come back."""
        self._pace.restart()
        self._good = 0
        if not self._lost:
            self._queue.clear()
            self._seen.clear()

    def _refill(self) -> bool:
        """Queues what is new, or everything again when looping; False at the end of a source that ends."""
        if self._config.loop:
            if self._seen and not self._good:
                self._clock.sleep(LOOK_EVERY_S)  # nothing but damaged files: no reason to spin
            self._seen.clear()
            self._good = 0
        elif not self._live:
            return False
        self._look()
        if not self._queue:
            self._clock.sleep(LOOK_EVERY_S)
            raise NoFrameYet(f"waiting for new images in {self._folder}")
        return True

    def _look(self) -> None:
        """Queues the files not seen as they are now, in natural order."""
        try:
            found = self._list()
        except OSError as exc:
            self._lost = True
            raise CameraError(f"folder {self._folder} cannot be listed: {exc.strerror}") from exc
        self._queue.extend(sorted((path for path in found if self._seen.get(path) != found[path]), key=natural_key))
        self._seen = found

    def _list(self) -> dict[Path, Stamp]:
        if self._folder.is_file():
            status = self._folder.stat()
            return {self._folder: (status.st_mtime_ns, status.st_size)}
        found: dict[Path, Stamp] = {}
        with os.scandir(self._folder) as entries:
            for entry in entries:
                if entry.name.startswith(".") or Path(entry.name).suffix.lower() not in SUFFIXES:
                    continue
                try:
                    if entry.is_file():
                        status = entry.stat()
                        found[Path(entry.path)] = (status.st_mtime_ns, status.st_size)
                except OSError:
                    continue  # deleted between listing and looking, or a link that leads nowhere
        return found

    def _judge_failure(self, path: Path, failure: FrameError) -> None:
        """Raises CameraError where the whole folder is gone, NoFrameYet where the file may not be finished."""
        if not self._folder.exists():
            self._queue.appendleft(path)
            self._lost = True
            raise CameraError(f"folder {self._folder} is gone; it goes on at {path.name!r} when it returns")
        if self._live and self._is_fresh(path):
            self._seen.pop(path, None)
            self._clock.sleep(SETTLE_S / 10)
            raise NoFrameYet(f"{path.name!r} seems to be being written: {failure}")

    def _is_fresh(self, path: Path) -> bool:
        try:
            return abs(self._clock.unix() - path.stat().st_mtime) < SETTLE_S
        except OSError:
            return False


def natural_key(path: Path) -> tuple[list[tuple[str, int]], str]:
    """Sorts digits by their number and letters without case: img2, IMG10, img11."""
    parts = re.split(r"(\d+)", path.stem.casefold())
    pairs = [(text, int(digits or 0)) for text, digits in zip(parts[::2], [*parts[1::2], ""], strict=True)]
    return pairs, path.name
