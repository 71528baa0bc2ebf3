"""The agent, blocked or failing at one place for ever: `python -m tests.blocked WHERE MARK run ...`.

WHERE is `warm-up`, `inference` (after the first frame) or `camera` (in its first read). The file MARK is there once it
is blocked; it goes on when `<MARK>.go` is there. `failing`: a camera that fails 5 ms after each opening; MARK is there
after the 300th time.
"""

from __future__ import annotations

import itertools
import sys
import time
from pathlib import Path
from typing import Any

from edge_agent.cameras import CAMERAS
from edge_agent.errors import CameraError
from edge_agent.pipeline import Pipeline
from edge_agent.settings.cameras import CameraConfig

MARK = Path("unset")


def block() -> None:
    MARK.touch()
    while not MARK.with_suffix(".go").exists():
        time.sleep(0.02)


class BlockedCamera:
    """Opens, and never reads."""

    def __init__(self, _name: str, _config: CameraConfig) -> None:
        pass

    def open(self) -> None:
        pass

    def read(self) -> Any:
        block()

    def close(self) -> None:
        pass


class FailingCamera(BlockedCamera):
    """Opens, and fails at once."""

    failures = itertools.count(1)

    def read(self) -> Any:
        time.sleep(0.005)
        if next(self.failures) == 300:
            MARK.touch()
        raise CameraError("the cable is loose")


def block_warm_up() -> None:
    before = Pipeline.warm_up

    def warm_up(self: Pipeline) -> None:
        block()
        before(self)

    Pipeline.warm_up = warm_up  # type: ignore[method-assign]


def block_inference() -> None:
    before = Pipeline.read
    frames = [0]

    def read(self: Pipeline, *arguments: Any) -> Any:
        frames[0] += 1
        if frames[0] > 1:
            block()
        return before(self, *arguments)

    Pipeline.read = read  # type: ignore[method-assign, assignment]


def block_camera() -> None:
    CAMERAS["folder"] = "tests.blocked:BlockedCamera"


def fail_camera() -> None:
    CAMERAS["folder"] = "tests.blocked:FailingCamera"


PLACES = {"warm-up": block_warm_up, "inference": block_inference, "camera": block_camera, "failing": fail_camera}


def main(where: str, mark: str, *arguments: str) -> int:
    from edge_agent.__main__ import main as edge_agent

    sys.modules["tests.blocked"] = sys.modules["__main__"]  # where the camera is found
    globals()["MARK"] = Path(mark)
    PLACES[where]()
    return edge_agent(arguments)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
