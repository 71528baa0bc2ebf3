"""The verb `bench`, with real models for a moment; TensorRT's part over the fakes of TensorRT and CUDA."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest

from edge_agent.__main__ import main
from edge_agent.backends.trt_settings import TrtSettings
from edge_agent.commands.bench_table import table
from tests.backends import fake_trt
from tests.backends.fake_cuda import fake_gpu

LIGHT = "pipeline: {detector: ppocrv4-mobile-det, recogniser: ppocrv4-mobile-rec, encoder: null}\n"


@pytest.fixture
def config(tmp_path: Path) -> str:
    path = tmp_path / "config.yaml"
    path.write_text(LIGHT, encoding="utf-8")
    return str(path)


@pytest.fixture
def tensorrt(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    """A fake TensorRT, which the verb finds wherever it asks for a backend; builds are real child processes."""
    fake = fake_trt.install(monkeypatch, "10.3.0")
    settings = TrtSettings(tmp_path / "plans", builder=fake_trt.fake_child("well"))

    def load_backend(*_: Any) -> Any:
        return fake.backend.TrtBackend(settings, gpu=fake_gpu(fake.cuda))

    monkeypatch.setattr("edge_agent.pipeline.load_backend", load_backend)
    return fake


def test_pipeline_is_measured_on_rendered_labels(config: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "--config", config, "--seconds", "0.2", "--warm-up-s", "0", "--json"]) == 0
    figures = json.loads(capsys.readouterr().out)
    assert figures["fps"] > 0
    assert figures["lines_per_frame"] > 3
    assert set(figures["latency"]) == {"detect", "recognise", "decode", "extract", "total"}
    assert figures["peak_rss_mb"] >= figures["rss_mb"] * 0.9
    assert figures["backend"] == "onnxruntime"
    assert figures["gpu_memory"] is None
    assert "by_engine" not in figures


def test_engines_of_the_pipeline_follow_it_with_their_layers(config: str, capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--layers", "--seconds", "0", "--warm-up-s", "0"]
    assert main(["bench", "--config", config, *options]) == 0
    pipeline, detect, recognise = re.split(r"^== \w+$", capsys.readouterr().out, flags=re.MULTILINE)
    assert "fps " in pipeline
    for engine in (detect, recognise):
        assert "runs_per_s" in engine
        assert re.search(r"^ +\d+\.\d{4} +\d+\.\d%  Conv ", engine, re.MULTILINE), engine
        assert "others; all of them" in engine


def test_one_engine_is_measured_and_shown_as_a_table(config: str, capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--shape", "image=2x48x96x3", "--seconds", "0.1", "--warm-up-s", "0"]
    assert main(["bench", "ppocrv4-mobile-rec", "--config", config, *options]) == 0
    out = capsys.readouterr().out
    assert "runs_per_s" in out
    assert "output index" in out
    assert "2x12" in out


def test_batch_and_threads_shape_the_run_of_an_engine(config: str, capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--batch", "3", "--threads", "1", "--layers", "--seconds", "0.1", "--warm-up-s", "0", "--json"]
    assert main(["bench", "ppocrv4-mobile-rec", "--config", config, *options]) == 0
    figures = json.loads(capsys.readouterr().out)
    assert figures["shapes"]["image"][0] == figures["outputs"]["index"][0] == 3
    assert figures["items_per_s"] == pytest.approx(3 * figures["runs_per_s"], rel=1e-2)
    assert figures["load_s"] > 0
    assert figures["threads"] == 1
    assert all(layer["ms"] >= 0 for layer in figures["layers"])
    assert sum(layer["ms"] for layer in figures["layers"]) > 0  # how it compares with the runs, a busy machine decides
    assert {"Conv", "MatMul"} <= {layer["kind"] for layer in figures["layers"]}


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
        (["--batch", "2"], "edge-agent bench MODEL --batch"),
        (["--shape", "image=1x2"], "edge-agent bench MODEL --shape"),
        (["ppocrv4-mobile-rec", "--engines"], "--engines is for the pipeline"),
        (["ppocrv4-mobile-rec", "--streams", "2"], "use --threads"),
        (["ppocrv4-mobile-rec", "--batch", "2", "--shape", "image=2x32x96x3"], "does not fit"),
    ],
)
def test_wrong_option_is_one_clear_line_and_78(
    config: str, options: list[str], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["bench", "--config", config, *options]) == 78
    assert says in capsys.readouterr().err


@pytest.mark.parametrize("options", [["--streams", "0"], ["--batch", "two"], ["--seconds", "nan"], ["--threads", "-1"]])
def test_number_that_makes_no_sense_is_a_usage_error(options: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["bench", "ppocrv4-mobile-rec", *options])
    assert ended.value.code == 2
    assert options[0] in capsys.readouterr().err


def test_tensorrt_engine_is_built_loaded_again_and_measured_on_its_streams(
    tensorrt: Any, config: str, capsys: pytest.CaptureFixture[str]
) -> None:
    options = ["--streams", "2", "--layers", "--seconds", "0.1", "--warm-up-s", "0", "--json"]
    assert main(["bench", "ppocrv4-mobile-rec", "--config", config, *options]) == 0
    figures = json.loads(capsys.readouterr().out)
    assert (figures["backend"], figures["streams"], figures["shapes"]) == ("tensorrt", 2, {"image": [8, 48, 320, 3]})
    assert figures["build_s"] > 0
    assert [layer["name"] for layer in figures["layers"]] == ["sum", "add"]
    first_context = {id(context.engine): context for context in tensorrt.seen["contexts"]}
    assert len(first_context) == 3, "the engine that was just built is loaded once more, so that loading is timed alone"
    assert tensorrt.cuda.stack == []


def test_table_of_a_tensorrt_engine_has_gpu_times_and_pools(
    tensorrt: Any, config: str, capsys: pytest.CaptureFixture[str]
) -> None:
    options = ["--batch", "2", "--seconds", "0", "--warm-up-s", "0"]
    assert main(["bench", "ppocrv4-mobile-rec", "--config", config, *options]) == 0
    out = capsys.readouterr().out
    for row in ("gpu h2d", "gpu compute", "gpu d2h", "gpu used_mb", "gpu scratch_mb", "plan_mb", "pool device"):
        assert re.search(rf"^{row} ", out, re.MULTILINE), row
    assert re.search(r"^gpu compute +2\.000 +2\.000 +2\.000 +2\.000 +50$", out, re.MULTILINE)


@pytest.mark.parametrize(
    ("options", "says"), [(["--threads", "2"], "use --streams"), (["--batch", "17"], "fits no profile")]
)
def test_option_that_tensorrt_has_no_use_for_is_refused(
    tensorrt: Any, config: str, options: list[str], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["bench", "ppocrv4-mobile-rec", "--config", config, "--warm-up-s", "0", *options]) == 78
    assert says in capsys.readouterr().err
    assert tensorrt.cuda.stack == []


def test_table_shows_watts_where_there_are_counters() -> None:
    latency = {"mean_ms": 1.0, "p50_ms": 1.0, "p95_ms": 1.0, "p99_ms": 1.0, "count": 3}
    power = {"package-0": {"power_w": 7.5, "j_per_frame": 2.5}, "absent": ["NVML is not asked"]}
    shown = table({"fps": 3.0, "latency": {"total": latency}, "power": power})
    assert "power package-0    power_w 7.5, j_per_frame 2.5" in shown
    assert "power absent       NVML is not asked" in shown
