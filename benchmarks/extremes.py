"""Extremes: what frames of extreme shapes and kinds of pixels cost, each in a process of its own.

    python benchmarks/extremes.py [--only WORD] [--threads 2] [--encoder]

A pipeline reads a label of 1280x720 first; what memory it has then is the usual. For `to BGR`, the pixels as a file or
a camera gives them become a frame; for `read`, Pipeline.read reads it. MB: peak of resident memory above the usual,
the pixels and the frame themselves not counted.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import numpy.typing as npt

from edge_agent.cameras.pixels import to_bgr
from edge_agent.config import Config
from edge_agent.models.spec import find_models_dir
from edge_agent.pipeline import load_pipeline
from edge_agent.records import Frame

Pixels = npt.NDArray[Any]

MAX_PIXELS = 1 << 30
MB = 1 << 20


def flat(wide: int, high: int) -> Pixels:
    return np.full((high, wide), 200, np.uint8)


def printed(wide: int, high: int, heights: tuple[float, ...] = (1.0, 2.0, 4.0)) -> Pixels:
    """Grey, with a dozen lines of text of these heights (1: capitals of 22 px)."""
    grey = flat(wide, high)
    for n in range(12):
        height = heights[n % len(heights)]
        x, y = int((n * 0.37 % 1) * max(0, wide - 1200)) + 10, int((n * 0.61 % 1) * max(0, high - 120)) + 70
        cv2.putText(grey, f"LOT {4711 + n} 2027-08-31", (x, y), cv2.FONT_HERSHEY_SIMPLEX, height, 20, round(2 * height))
    return grey


def faint(wide: int, high: int) -> Pixels:
    return np.asarray(200 - (200 - printed(wide, high)) // 15, np.uint8)


def noise(wide: int, high: int) -> Pixels:
    return np.random.default_rng(0).integers(0, 256, (high, wide), np.uint8)


def upright(grey: Pixels) -> Pixels:
    return np.ascontiguousarray(grey.T[::-1])


def colour(grey: Pixels) -> Pixels:
    return np.asarray(cv2.cvtColor(grey, cv2.COLOR_GRAY2BGR))


def see_through(grey: Pixels) -> Pixels:
    return np.dstack([np.zeros((*grey.shape, 3), np.uint8), 255 - grey])


CASES: dict[str, Callable[[], Pixels]] = {
    "12000x9000 flat": lambda: colour(flat(12000, 9000)),
    "12000x9000 text": lambda: colour(printed(12000, 9000)),
    "12000x9000 noise, grey": lambda: noise(12000, 9000),
    "12000x9000 text, faint": lambda: faint(12000, 9000),
    "12000x9000 text, 16 bit grey": lambda: printed(12000, 9000).astype(np.uint16) * 257,
    "12000x9000 text, float grey": lambda: printed(12000, 9000).astype(np.float32) / 255,
    "12000x9000 text, alpha": lambda: see_through(printed(12000, 9000)),
    "4000x3000 text, faint": lambda: colour(faint(4000, 3000)),
    "4000x3000 text, float64 BGR": lambda: colour(printed(4000, 3000)) / 255,
    "4000x3000 text, alpha": lambda: see_through(printed(4000, 3000)),
    "40000x100 text": lambda: colour(printed(40000, 100, (1.0, 1.4, 2.0))),
    "100x40000 text": lambda: colour(upright(printed(40000, 100, (1.0, 1.4, 2.0)))),
    "40000x100 noise": lambda: colour(noise(40000, 100)),
    "100x40000 noise": lambda: colour(noise(100, 40000)),
    "16384x16384 flat, grey": lambda: flat(16384, 16384),
    "16384x16384 text, grey": lambda: printed(16384, 16384),
}


def status_bytes(key: str) -> int:
    """A figure of this process: VmRSS, resident memory now; VmHWM, the most since `forget_peak`."""
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(f"{key}:"))


def forget_peak() -> None:
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")


def measured(work: Callable[[], Any], above: int) -> tuple[dict[str, float], Any]:
    """What the work cost, and its result; memory above so many bytes."""
    forget_peak()
    began, cpu_began = time.perf_counter(), time.process_time()
    result = work()
    spent = {"wall_s": time.perf_counter() - began, "cpu_s": time.process_time() - cpu_began}
    return {**spent, "mb": max(0.0, (status_bytes("VmHWM") - above) / MB)}, result


def one(name: str, threads: int, encoder: bool) -> dict[str, Any]:
    """The figures of one case, in this process."""
    config = Config.model_validate(
        {
            "backend": {"kind": "onnxruntime", "threads": threads},
            **({} if encoder else {"pipeline": {"encoder": None}}),
        }
    )
    with load_pipeline(config, find_models_dir()) as pipeline:
        pipeline.warm_up()
        pipeline.read(Frame("usual", 0, 0.0, 0.0, colour(printed(1280, 720))))
        usual = status_bytes("VmHWM")
        pixels = CASES[name]()
        resident = max(usual, status_bytes("VmRSS")) + 3 * pixels.shape[0] * pixels.shape[1]
        made, image = measured(partial(to_bgr, pixels, MAX_PIXELS), resident)
        del pixels
        read, reading = measured(lambda: pipeline.read(Frame("extreme", 0, 0.0, 0.0, image)), usual + image.nbytes)
    return {"made": made, "read": read, "lines": len(reading.lines)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="cases whose name holds this")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--encoder", action="store_true", help="load the encoder for fields too")
    parser.add_argument("--one", choices=CASES, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one is not None:
        print(json.dumps(one(given.one, given.threads, given.encoder)))
        return
    print(f"{'':32}{'to BGR: wall s':>15}{'CPU s':>7}{'MB':>6}{'read: wall s':>14}{'CPU s':>7}{'MB':>6}{'lines':>7}")
    options = ["--threads", str(given.threads), *(["--encoder"] if given.encoder else [])]
    for name in CASES:
        if given.only not in name:
            continue
        command = [sys.executable, __file__, "--one", name, *options]
        seen = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
        made, read = seen["made"], seen["read"]
        figures = f"{made['wall_s']:15.2f}{made['cpu_s']:7.2f}{made['mb']:6.0f}"
        figures += f"{read['wall_s']:14.2f}{read['cpu_s']:7.2f}{read['mb']:6.0f}{seen['lines']:7}"
        print(f"{name:32}{figures}", flush=True)


if __name__ == "__main__":
    main()
