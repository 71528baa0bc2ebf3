"""Path identity: what a path led to when it was opened, so that a swap or a loss behind it is noticed."""

from __future__ import annotations

import os
from pathlib import Path

from edge_agent.errors import CameraError


class PathIdentity:
    """The device or file behind a path, links followed, at the time this was made.

    A node /dev/video0 that was unplugged and taken by another camera, or a link that points elsewhere now, is
    another identity under the same path.
    """

    def __init__(self, path: Path) -> None:
        """Raises CameraError when nothing is there."""
        self.path = path
        self._seen = self._look()
        self.target = Path(os.path.realpath(path))

    def check(self) -> None:
        """Raises CameraError when the path leads nowhere or elsewhere now."""
        if self._look() != self._seen:
            raise CameraError(f"{self.path} leads to another device or file now; it was {self.target}")

    def _look(self) -> tuple[int, int, int]:
        try:
            found = self.path.stat()
        except OSError as exc:
            raise CameraError(f"{self.path} is gone: {exc.strerror}; is it plugged in?") from exc
        return found.st_dev, found.st_ino, found.st_rdev
