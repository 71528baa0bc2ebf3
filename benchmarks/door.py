"""What the page costs the reading, and how fast pictures that programs hand in are read.

    python benchmarks/door.py viewers   frames/s with three viewers of the page, against none, by turns
    python benchmarks/door.py cost      the CPU time that three viewers take, at five pictures a second
    python benchmarks/door.py uploads   POST /v1/read: requests/s and latency against Pipeline.read alone, by turns

A viewer holds what the page holds: the stream of pictures and the connection of news, and asks for the charts every
five seconds; viewers are a process of their own, on the same machine. CPU time is the agent's own: other work on the
machine changes it little, where it changes frames/s a lot. --light reads with PP-OCRv4 mobile on small pictures: more
frames a second. Prints one JSON object.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import socket
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # as the product has it; numpy reads it when it is imported

import psutil

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from benchmarks.agent import pictures, rendered
from edge_agent.config import Config
from edge_agent.demo.broker import free_port
from edge_agent.demo.child import Child, started
from edge_agent.models.spec import find_models_dir
from edge_agent.pipeline import load_pipeline
from edge_agent.records import Frame
from tests.light import LIGHT

VIEWERS = 3
SETTLE_S = 2.0  # of a turn, before it is measured
CHARTS_EVERY_S = 5.0
PACE_FPS = 5.0
START_S = 120.0
WARM_UP = 4  # pictures


def main() -> int:
    """Runs the benchmark that the command line names."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("viewers", "cost", "uploads"))
    parser.add_argument("--rounds", type=int, default=5, help="turns of each side (default: %(default)s)")
    parser.add_argument("--seconds", type=float, default=10.0, help="of a turn (default: %(default)s)")
    parser.add_argument("--clients", type=int, default=2, help="that hand in pictures at once (default: %(default)s)")
    parser.add_argument("--threads", type=int, default=0, help="of the engines, 0: one a core (default: %(default)s)")
    parser.add_argument("--light", action="store_true", help="with the light models, on small pictures")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="edge-agent-bench-") as folder:
        frames = rendered(Path(folder) / "frames", 12)
        benchmark = {"viewers": viewers, "cost": cost, "uploads": uploads}[args.what]
        figures = benchmark(Path(folder), frames, args)
    print(json.dumps(figures, indent=2))
    return 0


@dataclass(frozen=True)
class Agent:
    """A running agent with its door open."""

    port: int
    child: Child

    def get(self, path: str) -> Any:
        """The JSON of an answer."""
        with urlopen(f"http://127.0.0.1:{self.port}{path}", timeout=30) as answer:
            return json.load(answer)

    def frames_read(self) -> int:
        """So far, of all cameras."""
        return int(sum(camera["processed"] for camera in self.get("/v1/telemetry")["frames"].values()))

    def cpu_s(self) -> float:
        """CPU time so far."""
        times = psutil.Process(self.child.pid).cpu_times()
        return float(times.user + times.system)


def reading(args: argparse.Namespace) -> dict[str, Any]:
    """The sections of the settings that say how frames are read."""
    if args.what == "cost":  # hardly anything is read: what is left is the page
        return {
            "backend": {"threads": 1},
            "pipeline": {**LIGHT, "detector_min_side_px": 64, "detector_max_side_px": 64},
        }
    return {"backend": {"threads": args.threads}, "pipeline": LIGHT if args.light else {}}


@contextmanager
def agent(folder: Path, cameras: Mapping[str, Any], args: argparse.Namespace) -> Iterator[Agent]:
    """An agent that reads, with the settings of the product but no broker."""
    port = free_port()
    config = folder / "config.yaml"
    settings = {
        "device_id": "bench",
        "transport": "jsonl",
        "cameras": dict(cameras),
        "outbox": {"kind": "memory"},
        "telemetry": {"interval_s": 0.5},
        **reading(args),
        "web": {"enabled": True, "port": port},
    }
    config.write_text(json.dumps(settings), encoding="utf-8")
    command = [sys.executable, "-m", "edge_agent", "run", "--config", str(config)]
    with started("agent", command, folder / "agent.log") as child:
        running = Agent(port, child)
        wait_for(lambda: bool(running.get("/v1/ready")["ready"]) and bool(running.get("/v1/telemetry")))
        yield running


def wait_for(true: Callable[[], bool]) -> None:
    """Polls until it is so."""
    deadline = time.monotonic() + START_S
    while time.monotonic() < deadline:
        try:
            if true():
                return
        except OSError:  # HTTPError is one
            pass
        time.sleep(0.2)
    raise SystemExit(f"the agent did not read within {START_S:g} s")


# Viewers


def viewers(folder: Path, frames: Path, args: argparse.Namespace) -> Mapping[str, Any]:
    """Frames/s with viewers and without, by turns."""
    camera = {"kind": "folder", "source": str(frames), "loop": True, "max_fps": 20}
    turns: dict[str, list[dict[str, float]]] = {"without": [], "with": []}
    with agent(folder, {"line1": camera}, args) as running:
        for _ in range(args.rounds):
            turns["without"].append(measured(running, args.seconds))
            with watching(running.port):
                turns["with"].append(measured(running, args.seconds))
    fps = {name: [turn["frames"] / turn["seconds"] for turn in turns[name]] for name in turns}
    return {
        "viewers": VIEWERS,
        "fps_without": [round(rate, 2) for rate in fps["without"]],
        "fps_with": [round(rate, 2) for rate in fps["with"]],
        "ratio_of_sums": round(sum(fps["with"]) / sum(fps["without"]), 3),
    }


def cost(folder: Path, frames: Path, args: argparse.Namespace) -> Mapping[str, Any]:
    """CPU time a second with viewers and without, by turns, of an agent that reads five frames a second."""
    camera = {"kind": "folder", "source": str(frames), "loop": True, "max_fps": PACE_FPS}
    with agent(folder, {"line1": camera}, args) as running:
        turns = []
        for _ in range(args.rounds):
            without = measured(running, args.seconds)
            with watching(running.port):
                turns.append((without, measured(running, args.seconds)))
    spent = [tuple(turn["cpu_ms"] / turn["seconds"] for turn in pair) for pair in turns]
    more = sorted(watched - alone for alone, watched in spent)
    median_ms = more[len(more) // 2]
    return {
        "viewers": VIEWERS,
        "fps_with": [round(watched["frames"] / watched["seconds"], 2) for _, watched in turns],
        "cpu_ms_per_s_without": [round(alone, 1) for alone, _ in spent],
        "cpu_ms_per_s_with": [round(watched, 1) for _, watched in spent],
        "cpu_ms_per_s_for_viewers": round(median_ms, 1),
        "share_of_two_cores": round(median_ms / 2000, 4),
    }


def measured(running: Agent, seconds: float) -> dict[str, float]:
    """Frames read in so many seconds, and the agent's CPU time meanwhile."""
    time.sleep(SETTLE_S)
    frames, cpu_s, began = running.frames_read(), running.cpu_s(), time.monotonic()
    time.sleep(seconds)
    frames, cpu_s = running.frames_read() - frames, running.cpu_s() - cpu_s
    return {"frames": frames, "seconds": time.monotonic() - began, "cpu_ms": 1e3 * cpu_s}


@contextmanager
def watching(port: int) -> Iterator[None]:
    """Viewers look on, inside, from a process of their own."""
    process = multiprocessing.Process(target=look_on, args=(port,), daemon=True)
    process.start()
    try:
        yield
    finally:
        process.terminate()
        process.join()


def look_on(port: int) -> None:
    """What the page of VIEWERS browsers holds open, and asks for."""
    for path in ("/v1/live", "/v1/cameras/line1/stream") * VIEWERS:
        threading.Thread(target=take_all, args=(port, path), daemon=True).start()
    while True:
        for _ in range(VIEWERS):
            with urlopen(f"http://127.0.0.1:{port}/v1/telemetry/history?names=fps,latency_ms,temp_c") as answer:
                answer.read()
        time.sleep(CHARTS_EVERY_S)


def take_all(port: int, path: str) -> None:
    """Takes what comes and throws it away, as cheaply as can be."""
    with socket.create_connection(("127.0.0.1", port)) as connection:
        connection.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        while connection.recv(1 << 20):
            pass


# Uploads


def uploads(folder: Path, frames: Path, args: argparse.Namespace) -> Mapping[str, Any]:
    """Requests/s of clients that hand in pictures, and readings/s of the pipeline alone, by turns."""
    contents = [path.read_bytes() for path in sorted(frames.iterdir())]
    alone: list[tuple[float, float]] = []
    whole: list[tuple[float, float]] = []
    latencies_ms: list[float] = []
    with agent(folder, {}, args) as running, pipeline_alone(frames, reading(args)) as ask:
        handed_in(running.port, contents, WARM_UP, None, 1)
        for _ in range(args.rounds):
            ask.send(args.seconds)
            alone.append(ask.recv())
            began, cpu_s = time.monotonic(), running.cpu_s()
            count = len(handed_in(running.port, contents, None, args.seconds, args.clients))
            whole.append((count / (time.monotonic() - began), 1e3 * (running.cpu_s() - cpu_s) / count))
            latencies_ms += handed_in(running.port, contents, None, args.seconds / 2, 1)
    latencies_ms.sort()
    return {
        "clients": args.clients,
        "pipeline_per_s": [round(rate, 2) for rate, _ in alone],
        "requests_per_s": [round(rate, 2) for rate, _ in whole],
        "ratio_of_sums": round(sum(rate for rate, _ in whole) / sum(rate for rate, _ in alone), 3),
        "pipeline_cpu_ms": [round(cpu_ms, 1) for _, cpu_ms in alone],
        "request_cpu_ms": [round(cpu_ms, 1) for _, cpu_ms in whole],
        "by_cpu_time": round(sum(cpu_ms for _, cpu_ms in alone) / sum(cpu_ms for _, cpu_ms in whole), 3),
        "one_client_requests": len(latencies_ms),
        "one_client_p50_ms": round(latencies_ms[len(latencies_ms) // 2], 1),
        "one_client_p99_ms": round(latencies_ms[min(len(latencies_ms) - 1, len(latencies_ms) * 99 // 100)], 1),
    }


def handed_in(port: int, contents: list[bytes], count: int | None, seconds: float | None, clients: int) -> list[float]:
    """How long each request took, ms, of clients that hand in one picture after the other."""
    spent_ms: list[float] = []
    until = None if seconds is None else time.monotonic() + seconds

    def client(first: int) -> None:
        number = first
        while (count is None or number < count) and (until is None or time.monotonic() < until):
            began = time.monotonic()
            content = contents[number % len(contents)]
            request = Request(f"http://127.0.0.1:{port}/v1/read", content, {"Content-Type": "image/jpeg"})
            with urlopen(request, timeout=60) as answer:
                answer.read()
            spent_ms.append(1e3 * (time.monotonic() - began))
            number += clients

    threads = [threading.Thread(target=client, args=(n,)) for n in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return spent_ms


@contextmanager
def pipeline_alone(frames: Path, settings: dict[str, Any]) -> Iterator[Connection]:
    """A process with nothing but the pipeline: sent seconds, it reads for so long and sends readings/s and the CPU time
    of each, ms."""
    here, there = multiprocessing.Pipe()
    process = multiprocessing.Process(target=read_on_demand, args=(there, frames, settings), daemon=True)
    process.start()
    try:
        yield here
    finally:
        process.terminate()
        process.join()


def read_on_demand(connection: Any, frames: Path, settings: dict[str, Any]) -> None:
    """The pipeline's process."""
    images = pictures(frames)
    config = Config.model_validate_json(json.dumps(settings))
    with load_pipeline(config, find_models_dir()) as pipeline:
        for image in images[:WARM_UP]:
            pipeline.read(Frame("line1", 0, 0.0, 0.0, image))
        while True:
            seconds = connection.recv()
            began, count, cpu_s = time.monotonic(), 0, time.process_time()
            while time.monotonic() < began + seconds:
                pipeline.read(Frame("line1", count, 0.0, 0.0, images[count % len(images)]))
                count += 1
            connection.send((count / (time.monotonic() - began), 1e3 * (time.process_time() - cpu_s) / count))


if __name__ == "__main__":
    multiprocessing.set_start_method("spawn")
    sys.exit(main())
