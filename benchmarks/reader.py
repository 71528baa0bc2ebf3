"""Reader: one OCR program in a process of its own, for against_rapidocr.py; speaks JSON lines.

    python benchmarks/reader.py PROGRAM --models v6|v4 --cpus 0,1 [--threads N] [--engines DIR]

Writes {"ready": seconds to load} once, then for each line in, a path of a picture, {"seconds", "cpu_seconds",
"lines", "peak_mb"}, lines as [[points, text, confidence], ...]. Decoding the picture is not part of the seconds. Runs
in RapidOCR's own environment too, so it imports nothing but the standard library, OpenCV and the program itself.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

Lines = list[tuple[list[list[float]], str, float]]
Read = Callable[[Any], Lines]

EDGE_AGENT = "edge_agent"
RAPIDOCR = "RapidOCR"
NO_CLASSIFIER = "RapidOCR without classifier"
CALIBRATED = "edge_agent calibrated"
TEXT_ALONE = "edge_agent without codes"
OURS = (EDGE_AGENT, CALIBRATED, TEXT_ALONE)
OUR_MODELS = {
    "v6": ("ppocrv6-small-det", "ppocrv6-small-rec"),
    "v4": ("ppocrv4-mobile-det", "ppocrv4-mobile-rec"),
}


def edge_agent(models: str, threads: int, engines: Path, calibration: Path | None, *, codes: bool) -> Read:
    """edge_agent's Pipeline with its default settings, without the encoder (RapidOCR extracts no fields).

    `calibration`: the folder whose promoted INT8 models serve; without one every model runs in float. `codes`: whether
    bar and 2D codes are looked for.
    """
    from edge_agent.config import Config
    from edge_agent.pipeline import load_pipeline
    from edge_agent.records import Frame
    from edge_agent.settings.backend import BackendConfig
    from edge_agent.settings.calibration import CalibrationConfig
    from edge_agent.settings.fields import FieldsConfig
    from edge_agent.settings.pipeline import PipelineConfig

    detector, recogniser = OUR_MODELS[models]
    config = Config(
        backend=BackendConfig(kind="onnxruntime", threads=threads),
        pipeline=PipelineConfig(detector=detector, recogniser=recogniser, encoder=None),
        calibration=CalibrationConfig(directory=calibration),
        fields=FieldsConfig() if codes else FieldsConfig(codes=()),
    )
    pipeline = load_pipeline(config, engines, float_only=calibration is None)
    if calibration is not None and not any(pipeline.artefacts.values()):
        raise SystemExit(f"{calibration} has no INT8 model that fits this machine; run: edge-agent calibrate")

    def read(image: Any) -> Lines:
        reading = pipeline.read(Frame("benchmark", 0, 0.0, 0.0, image))
        return [(line.box.quad.points.tolist(), line.text, line.confidence) for line in reading.lines]

    return read


def rapidocr(models: str, threads: int, classifier: bool) -> Read:
    """RapidOCR with its default settings except the number of threads and, if asked, no angle classifier."""
    return rapidocr_v6(threads, classifier) if models == "v6" else rapidocr_v4(threads, classifier)


def rapidocr_v6(threads: int, classifier: bool) -> Read:
    from rapidocr import RapidOCR

    program = RapidOCR(
        params={"EngineConfig.onnxruntime.intra_op_num_threads": threads, "Global.log_level": "critical"}
    )

    def read(image: Any) -> Lines:
        result = program(image, use_cls=classifier)
        if result.boxes is None or result.txts is None:
            return []
        rows = zip(result.boxes, result.txts, result.scores, strict=True)
        return [(box.tolist(), text, float(score)) for box, text, score in rows]

    return read


def rapidocr_v4(threads: int, classifier: bool) -> Read:
    from rapidocr_onnxruntime import RapidOCR

    program = RapidOCR(intra_op_num_threads=threads)

    def read(image: Any) -> Lines:
        result, _ = program(image, use_cls=classifier)
        return [(box, text, float(score)) for box, text, score in result or []]

    return read


def peak_mb() -> float:
    """The most memory this process has ever had resident, MB (2^20 bytes)."""
    for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) / 1024
    raise RuntimeError("/proc/self/status has no VmHWM; this benchmark needs Linux")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("program", choices=(*OURS, RAPIDOCR, NO_CLASSIFIER))
    parser.add_argument("--models", choices=sorted(OUR_MODELS), required=True)
    parser.add_argument("--cpus", required=True, help="the only CPUs to run on, such as 0,1")
    parser.add_argument("--threads", type=int, required=True)
    parser.add_argument("--engines", type=Path, default=Path("engines"))
    parser.add_argument("--calibration", type=Path, help="folder of promoted INT8 models")
    arguments = parser.parse_args()
    os.sched_setaffinity(0, {int(cpu) for cpu in arguments.cpus.split(",")})
    answers, sys.stdout = sys.stdout, sys.stderr  # what a program prints must not come between the answers

    began = time.perf_counter()
    import cv2

    if arguments.program in OURS:
        calibration = arguments.calibration if arguments.program == CALIBRATED else None
        codes = arguments.program != TEXT_ALONE
        read = edge_agent(arguments.models, arguments.threads, arguments.engines, calibration, codes=codes)
    else:
        read = rapidocr(arguments.models, arguments.threads, arguments.program == RAPIDOCR)
    print(json.dumps({"ready": time.perf_counter() - began}), file=answers, flush=True)
    for line in sys.stdin:
        image = cv2.imread(line.strip())
        began, cpu_began = time.perf_counter(), time.process_time()
        lines = read(image)
        spent = {"seconds": time.perf_counter() - began, "cpu_seconds": time.process_time() - cpu_began}
        print(json.dumps({**spent, "lines": lines, "peak_mb": peak_mb()}), file=answers, flush=True)


if __name__ == "__main__":
    main()
