"""Footprint: the memory that an engine takes, measured in a process that holds it alone.

`python -m edge_agent.calibrate.footprint` reads one JSON request from standard input, loads the engine, runs it, and
writes `{"memory_bytes": ...}`: the most that was resident of the process, less what was before it loaded the engine.
What a GPU keeps in memory of its own is not in it.
"""

from __future__ import annotations

import json
import logging
import os
import re
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from edge_agent import config as configuration
from edge_agent.backends.base import Feed, Profile
from edge_agent.child_process import Child, be_the_first_to_go, own_standard_output
from edge_agent.config import Config
from edge_agent.errors import EdgeAgentError
from edge_agent.pipeline import load_backend

CHILD_COMMAND = (sys.executable, "-m", "edge_agent.calibrate.footprint")
MOST_S = 120.0  # for a child to load and run an engine; no figure is worth more
RUNS = 3  # the first run of a shape makes its buffers, later ones show that they stay

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Scale:
    """Weighs engines as the settings run them. `shapes`: dtype and shape of each input of the run that is measured."""

    settings: Config
    models_dir: Path
    profiles: tuple[Profile, ...]
    shapes: Mapping[str, tuple[str, tuple[int, ...]]]

    @classmethod
    def of(cls, settings: Config, models_dir: Path, profiles: tuple[Profile, ...], feed: Feed) -> Scale:
        """For runs of the feed's shapes; what is in it does not matter to memory."""
        shapes = {name: (array.dtype.name, array.shape) for name, array in feed.items()}
        return cls(settings, models_dir, profiles, shapes)

    def memory_bytes(
        self, onnx_path: Path, command: Sequence[str] = CHILD_COMMAND, most_s: float = MOST_S
    ) -> int | None:
        """What the engine of a model file takes at most; None, and a line in the log, where that cannot be told."""
        request = {
            "settings": configuration.plain(self.settings),
            "models_dir": str(self.models_dir),
            "onnx_path": str(onnx_path),
            "profiles": [asdict(profile) for profile in self.profiles],
            "shapes": self.shapes,
        }
        try:
            child = Child(command, request, "footprint")
        except OSError as exc:
            logger.warning("the memory of %s is not known: %s", onnx_path.name, exc.strerror)
            return None
        try:
            return heard(child, onnx_path, most_s)
        finally:
            child.close()


def heard(child: Child, onnx_path: Path, most_s: float) -> int | None:
    """What the child says, until it has ended or its time is up."""
    deadline_mono = time.monotonic() + most_s
    while time.monotonic() < deadline_mono and not child.ended:
        for event in child.events(0.2):
            if isinstance(event.get("memory_bytes"), int):
                return int(event["memory_bytes"])
    why = child.stderr_tail() if child.ended else f"no answer within {most_s:g} s"
    logger.warning("the memory of %s is not known: %s", onnx_path.name, why)
    return None


def main() -> int:
    """The child. 0 once the figure is said, 1 with the reason on standard error."""
    be_the_first_to_go()
    request: dict[str, Any] = json.load(sys.stdin)
    with own_standard_output() as out:
        try:
            memory_bytes = taken(request)
        except (EdgeAgentError, OSError, MemoryError) as exc:
            print(exc, file=sys.stderr)
            return 1
        out.write(json.dumps({"memory_bytes": memory_bytes}) + "\n")
    return 0


def taken(request: Mapping[str, Any]) -> int:
    """Loads and runs the engine in this process; bytes that it took at most."""
    settings = configuration.rebuilt(Config(), request["settings"], "the settings that are in force")
    backend = load_backend(settings.backend, Path(request["models_dir"]))
    profiles = tuple(
        Profile(**{key: as_shapes(one[key]) for key in ("min", "opt", "max")}) for one in request["profiles"]
    )
    feed = {name: np.ones(shape, dtype) for name, (dtype, shape) in request["shapes"].items()}
    before_bytes = resident_bytes("VmRSS")
    engine = backend.load(Path(request["onnx_path"]), profiles)
    for _ in range(RUNS):
        engine.infer(feed)
    most_bytes = resident_bytes("VmHWM")
    engine.close()
    backend.close()
    return max(0, most_bytes - before_bytes)


def as_shapes(values: Mapping[str, Sequence[int]]) -> dict[str, tuple[int, ...]]:
    """JSON's lists as shapes."""
    return {name: tuple(shape) for name, shape in values.items()}


def resident_bytes(name: str) -> int:
    """VmRSS, what is resident of this process now, or VmHWM, the most that ever was: proc(5)."""
    status = Path("/proc/self/status").read_text(encoding="ascii", errors="replace")
    found = re.search(rf"^{name}:\s+(\d+) kB$", status, re.MULTILINE)
    if found is None:
        raise OSError(0, f"/proc/self/status of process {os.getpid()} has no {name}")
    return int(found[1]) * 1024


if __name__ == "__main__":
    sys.exit(main())
