"""The verb `bench`, with real models for a moment."""

from __future__ import annotations

import json
from pathlib import Path

import cv2
import numpy as np
import pytest

from edge_agent.__main__ import main

LIGHT = "pipeline: {detector: ppocrv4-mobile-det, recogniser: ppocrv4-mobile-rec, encoder: null}\n"


@pytest.fixture
def config(tmp_path: Path) -> str:
    path = tmp_path / "config.yaml"
    path.write_text(LIGHT, encoding="utf-8")
    return str(path)


def test_pipeline_is_measured_on_rendered_labels(config: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "--config", config, "--seconds", "0.2", "--warm-up-s", "0", "--json"]) == 0
    figures = json.loads(capsys.readouterr().out)
    assert figures["fps"] > 0
    assert figures["lines_per_frame"] > 3
    assert set(figures["latency"]) == {"detect", "recognise", "extract", "total"}
    assert figures["peak_rss_mb"] >= figures["rss_mb"] * 0.9


def test_one_engine_is_measured_and_shown_as_a_table(config: str, capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--shape", "image=2x48x96x3", "--seconds", "0.1", "--warm-up-s", "0"]
    assert main(["bench", "ppocrv4-mobile-rec", "--config", config, *options]) == 0
    out = capsys.readouterr().out
    assert "runs_per_s" in out
    assert "output index" in out
    assert "[2, 12]" in out


def test_users_own_pictures_are_read(config: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "frames"
    folder.mkdir()
    cv2.imwrite(str(folder / "a.png"), np.full((64, 64, 3), 255, np.uint8))
    options = ["--frames", str(folder), "--seconds", "0.1", "--warm-up-s", "0", "--json"]
    assert main(["bench", "--config", config, *options]) == 0
    assert json.loads(capsys.readouterr().out)["frames"] == 1


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--frames", "/nowhere"], "/nowhere"),
        (["ppocrv4-mobile-rec", "--shape", "image:1x2"], "image:1x2"),
        (["no-such-model"], "no-such-model"),
    ],
)
def test_wrong_option_is_one_clear_line_and_78(
    config: str, options: list[str], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["bench", "--config", config, *options]) == 78
    assert says in capsys.readouterr().err
