"""What the agent costs around the pipeline, how fast it starts, and whether its memory stays flat.

    python benchmarks/agent.py overhead   whole agent, camera to MQTT, against Pipeline.read alone, by turns
    python benchmarks/agent.py cold       seconds from starting the process to its first reading at a subscriber
    python benchmarks/agent.py memory     resident memory over 2,000 frames of changing size and content

Needs Mosquitto. Frames: --frames DIR, else sample labels on a belt, rendered. Prints one JSON object.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # as the product has it; numpy reads it when it is imported

import cv2
import numpy as np
import numpy.typing as npt
import psutil

from edge_agent.backends.plan_store import find_plans_dir
from edge_agent.config import Config
from edge_agent.demo.broker import open_broker
from edge_agent.demo.child import started
from edge_agent.demo.labels import sample_labels
from edge_agent.demo.scene import Conveyor
from edge_agent.demo.subscriber import Subscriber
from edge_agent.models.spec import find_models_dir
from edge_agent.pipeline import PROTOTYPES_FILE, load_pipeline
from edge_agent.records import Frame

Picture = npt.NDArray[np.uint8]
SETTLED_AFTER = 200  # frames after which memory counts as warmed up
SAMPLE_EVERY = 50


def main() -> int:
    """Runs the benchmark that the command line names."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("overhead", "cold", "memory"))
    parser.add_argument("--frames", type=Path, metavar="DIR", help="pictures to read; default: rendered labels")
    parser.add_argument("--rounds", type=int, default=5, help="turns of each side (default: %(default)s)")
    parser.add_argument("--count", type=int, default=2000, help="frames for memory (default: %(default)s)")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="edge-agent-bench-") as folder:
        frames = args.frames or rendered(Path(folder) / "frames", 24)
        if args.what == "memory":
            figures = memory(frames, args.count)
        else:
            with open_broker(Path(folder)) as broker:
                agent = AgentRun(Path(folder), frames, broker.host, broker.port)
                figures = overhead(agent, args.rounds) if args.what == "overhead" else cold(agent, args.rounds)
    print(json.dumps(figures, indent=2))
    return 0


def rendered(folder: Path, count: int) -> Path:
    """A folder with `count` frames of the conveyor, evenly spread over its run."""
    folder.mkdir()
    conveyor = Conveyor(sample_labels(time.gmtime().tm_year + 1))
    for n in range(count):
        cv2.imwrite(str(folder / f"{n:03}.jpg"), conveyor.frame(n * conveyor.frames // count).image)
    return folder


def pictures(frames: Path) -> list[Picture]:
    """Every picture of the folder, decoded, in the order in which the folder camera reads them."""
    paths = sorted(path for path in frames.iterdir() if path.suffix.lower() in (".jpg", ".jpeg", ".png"))
    return [np.asarray(cv2.imread(str(path)), np.uint8) for path in paths]


@dataclass(frozen=True)
class AgentRun:
    """Starts the real agent on a folder, against a real broker."""

    folder: Path
    frames: Path
    host: str
    port: int

    @contextmanager
    def started(self) -> Iterator[Subscriber]:
        """The subscriber listens before the agent starts."""
        config = self.folder / "config.yaml"
        camera = {"kind": "folder", "source": str(self.frames), "pace": "every_frame", "loop": True}
        config.write_text(
            json.dumps(
                {
                    "device_id": "bench",
                    "mqtt": {"host": self.host, "port": self.port},
                    "outbox": {"path": "outbox.db"},
                    "pipeline": {"no_text_interval_s": 0.001},
                    "cameras": {"line1": camera},
                }
            )
        )
        command = [sys.executable, "-m", "edge_agent", "run", "--config", str(config)]
        with (
            Subscriber(self.host, self.port, "edge/bench") as subscriber,
            started("agent", command, self.folder / "agent.log"),
        ):
            yield subscriber


def next_result(subscriber: Subscriber) -> float:
    """When the next reading came, monotonic seconds."""
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        arrival = subscriber.take(1.0)
        if arrival is not None and arrival.topic.endswith("/result"):
            return arrival.arrived_mono
    raise SystemExit("the agent gave no reading within 120 s")


def overhead(agent: AgentRun, rounds: int) -> Mapping[str, Any]:
    """Frames/s of both, round by round, and the ratio of the medians."""
    images = pictures(agent.frames)
    alone, whole = [], []
    with load_pipeline(Config(), find_models_dir()) as pipeline:
        for image in images:  # warms up
            pipeline.read(Frame("line1", 0, 0.0, 0.0, image))
        for _ in range(rounds):
            began = time.perf_counter()
            for image in images:
                pipeline.read(Frame("line1", 0, 0.0, 0.0, image))
            alone.append(len(images) / (time.perf_counter() - began))
            with agent.started() as subscriber:
                for _ in images:  # warms up too
                    first = next_result(subscriber)
                for _ in images:
                    last = next_result(subscriber)
            whole.append(len(images) / (last - first))
    ratio = statistics.median(whole) / statistics.median(alone)
    return {
        "frames": len(images),
        "pipeline_fps": [round(fps, 2) for fps in alone],
        "agent_fps": [round(fps, 2) for fps in whole],
        "ratio_of_medians": round(ratio, 3),
    }


def cold(agent: AgentRun, rounds: int) -> Mapping[str, Any]:
    """Seconds from starting the process to its first reading at the subscriber: of a start that must learn the example
    phrases, and of the starts after it."""
    (find_plans_dir(find_models_dir()) / PROTOTYPES_FILE).unlink(missing_ok=True)
    seconds = []
    for _ in range(rounds + 1):
        began = time.monotonic()
        with agent.started() as subscriber:
            seconds.append(round(next_result(subscriber) - began, 2))
    first, *others = seconds
    return {"first_start": first, "seconds_to_first_reading": others, "median": statistics.median(others)}


def memory(frames: Path, count: int) -> Mapping[str, Any]:
    """Resident memory in MB over `count` frames, each a differently cut and sized part of a picture."""
    images, process, rng = pictures(frames), psutil.Process(), np.random.default_rng(1)
    samples = []
    with load_pipeline(Config(), find_models_dir()) as pipeline:
        for n in range(count):
            pipeline.read(Frame("line1", n, 0.0, 0.0, part_of(images[n % len(images)], rng)))
            if n % SAMPLE_EVERY == SAMPLE_EVERY - 1:
                samples.append(round(process.memory_info().rss / 1e6, 1))
                print(f"\r{n + 1} of {count} frames, {samples[-1]} MB", end="", file=sys.stderr, flush=True)
    settled = max(samples[: max(1, SETTLED_AFTER // SAMPLE_EVERY)])
    return {
        "frames": count,
        "mb_after_warm_up": settled,
        "mb_at_the_end": samples[-1],
        "mb_peak": max(samples),
        "growth_percent": round(100 * (samples[-1] / settled - 1), 2),
    }


def part_of(image: Picture, rng: np.random.Generator) -> Picture:
    """A part of the picture, at most a third cut off on each axis, so that widths and counts of lines change."""
    height, width = image.shape[:2]
    top, left = rng.integers(0, height // 3), rng.integers(0, width // 3)
    bottom, right = rng.integers(height * 2 // 3, height + 1), rng.integers(width * 2 // 3, width + 1)
    return np.ascontiguousarray(image[top:bottom, left:right])


if __name__ == "__main__":
    sys.exit(main())
