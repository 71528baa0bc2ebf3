"""The benchmark against RapidOCR: its figures, and our side's reader process on a made picture."""

from __future__ import annotations

import importlib.util
import json
import os
import sys
from pathlib import Path
from types import ModuleType

import cv2
import numpy as np
import pytest

from tests.conftest import ROOT


@pytest.fixture(scope="module")
def against() -> ModuleType:
    spec = importlib.util.spec_from_file_location("against_rapidocr", ROOT / "benchmarks" / "against_rapidocr.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


def test_each_frame_counts_with_its_fastest_round(against: ModuleType) -> None:
    # round 1: frames 1, 2, 3; round 2; round 3
    seconds = [1.0, 5.0, 3.0, 2.0, 4.0, 9.0, 1.5, 6.0, 2.5]
    assert against.best(seconds, rounds=3) == [1.0, 4.0, 2.5]


def test_table_compares_each_row_with_ours_of_the_same_kind(against: ModuleType) -> None:
    def row(program: str, frames_per_s: float, peak_mb: float) -> object:
        return against.Figures(program, frames_per_s=frames_per_s, peak_mb=peak_mb, score={"cer": 0.5})

    rows = [
        row("edge_agent", 9, 300),
        row("RapidOCR", 3, 600),
        row("RapidOCR without classifier", 4.5, 500),
        row("edge_agent, 2 processes of 1 thread", 10, 600),
        row("RapidOCR, 2 processes of 1 thread", 4, 1000),
    ]
    ratios = [line[49:56].strip() for line in against.table("title", rows).splitlines()[2:]]
    assert ratios == ["", "3.00", "2.00", "", "2.50"]
    memory = [line[72:79].strip() for line in against.table("title", rows).splitlines()[2:]]
    assert memory == ["", "0.50", "0.60", "", "0.60"]


@pytest.mark.skipif(
    not (ROOT / "engines" / "ppocrv6-small-det" / "model.cpu.onnx").is_file(),
    reason="the models are not made; run: edge-agent models fetch",
)
def test_reader_answers_with_lines_seconds_and_memory(against: ModuleType, tmp_path: Path) -> None:
    picture = np.full((200, 600, 3), 235, np.uint8)
    cv2.putText(picture, "LOT 4711", (60, 120), cv2.FONT_HERSHEY_SIMPLEX, 2.5, (20, 20, 20), 5)
    cv2.imwrite(str(tmp_path / "label.png"), picture)
    cpu = min(os.sched_getaffinity(0))
    reader = against.Reader(
        Path(sys.executable), "edge_agent", ["--models", "v6", "--cpus", str(cpu), "--threads", "1"]
    )
    try:
        reader.start(tmp_path / "label.png")
        answer = json.loads(json.dumps(reader.finish()))
    finally:
        reader.close()
    assert "".join(text.replace(" ", "") for _, text, _ in answer["lines"]) == "LOT4711"
    assert answer["seconds"] > 0
    assert answer["peak_mb"] > 50
