"""The agent beside a calibration: the whole process against a real broker, with real models in float and in INT8."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import cv2
import numpy as np

from edge_agent.artefacts import Artefacts
from edge_agent.calibrate.progress import ProgressFile
from tests.broker import Broker, Observer, wait_until
from tests.conftest import ROOT
from tests.quantised import Int8, int8_of
from tests.test_agent import agent_process, config_file, label_folder, last

MODEL = "ppocrv4-mobile-det"
DEADLINE_S = 60.0


def settings(folder: Path, broker: Broker, **calibration: Any) -> Path:
    """An agent that reads the same two labels for ever, every one of them."""
    left = {
        "kind": "folder",
        "source": str(label_folder(folder / "left", 2)),
        "pace": "every_frame",
        "loop": True,
        "max_fps": 5,  # each frame counts, and the tests share the processor
    }
    calibration["directory"] = str(folder / "calibration")
    return config_file(folder, broker.port, {"left": left}, calibration=calibration)


def readings(observer: Observer) -> list[dict[str, Any]]:
    """In the order of capture, each once: those of the first moments may come after later ones."""
    said = [json.loads(payload) for payload in observer.payloads("edge/press7/left/result")]
    return sorted({reading["seq"]: reading for reading in said}.values(), key=lambda reading: int(reading["seq"]))


def whole_readings(observer: Observer) -> list[dict[str, Any]]:
    """Once there is no gap: every frame counts for this source."""

    def gapless() -> bool:
        return [reading["seq"] for reading in readings(observer)] == list(range(len(readings(observer))))

    wait_until(gapless, "readings without a gap", DEADLINE_S)
    return readings(observer)


def wait_for_precision(observer: Observer, precision: str) -> None:
    def reads_in_it() -> bool:
        said = readings(observer)
        return bool(said) and said[-1]["engines"]["detect"].endswith(f":{precision}")

    wait_until(reads_in_it, f"readings in {precision}", DEADLINE_S)


def wait_for_health(observer: Observer, state: str) -> str:
    wait_until(lambda: last(observer, "health").get("pipeline") == state, state, DEADLINE_S)
    return str(last(observer, "health")["reason"])


def rollback(config: Path) -> str:
    command = [sys.executable, "-m", "edge_agent", "rollback", MODEL, "--config", str(config)]
    return subprocess.run(command, capture_output=True, text=True, cwd=ROOT, timeout=60, check=True).stdout


def test_promotion_and_rollback_lose_no_frame(broker: Broker, tmp_path: Path) -> None:
    config = settings(tmp_path, broker)
    int8 = int8_of("detect")
    with Observer(broker.port, "edge/#") as observer, agent_process(config) as process:
        wait_for_precision(observer, "fp32")
        promoted = int8.promote(tmp_path / "calibration")
        wait_for_precision(observer, "int8")
        wait_until(
            lambda: last(observer, "telemetry").get("calibration", {}).get("artefacts", {}).get("detect") == promoted,
            "telemetry that names the artefact",
        )
        assert last(observer, "health")["precision"] == "fp32+int8"
        assert "now in use: the float model" in rollback(config)
        wait_for_precision(observer, "fp32")
        count = len(readings(observer))
        wait_until(lambda: len(readings(observer)) > count + 3, "readings after it")
        said = whole_readings(observer)
        process.send_signal(signal.SIGTERM)
        assert process.wait(DEADLINE_S) == 0
    precisions = [reading["engines"]["detect"].rpartition(":")[2] for reading in said]
    changes = [at for at in range(1, len(said)) if precisions[at] != precisions[at - 1]]
    assert [precisions[at] for at in (0, *changes)] == ["fp32", "int8", "fp32"]
    assert {reading["engines"]["recognise"].rpartition(":")[2] for reading in said} == {"fp32"}
    lots = [{field["name"]: field["value"] for field in reading["fields"]}["lot"] for reading in said]
    assert lots == [lots[at % 2] for at in range(len(lots))], "read alike by both"
    assert {payload["pipeline"] for payload in health(observer)} <= {"starting", "running"}


def health(observer: Observer) -> list[dict[str, Any]]:
    return [json.loads(payload) for payload in observer.payloads("edge/press7/health")]


def test_artefact_that_does_not_load_degrades_until_it_is_rolled_back(broker: Broker, tmp_path: Path) -> None:
    config = settings(tmp_path, broker)
    broken = Int8.__new__(Int8)
    broken.binding, broken.batches = int8_of("detect").binding, 1
    broken.content = b"no model" + int8_of("detect").content
    with Observer(broker.port, "edge/#") as observer, agent_process(config) as process:
        wait_for_precision(observer, "fp32")
        broken.promote(tmp_path / "calibration")
        reason = wait_for_health(observer, "degraded")
        assert "cannot be loaded by onnxruntime" in reason
        assert f"run: edge-agent rollback {MODEL}" in reason
        count = len(readings(observer))
        wait_until(lambda: len(readings(observer)) > count + 3, "readings all the same")
        rollback(config)
        assert wait_for_health(observer, "running") == "None"
        assert whole_readings(observer)
        process.send_signal(signal.SIGTERM)
        assert process.wait(DEADLINE_S) == 0


def test_calibration_beside_it_is_shown_while_it_lives(broker: Broker, tmp_path: Path) -> None:
    config = settings(tmp_path, broker)
    with Observer(broker.port, "edge/#") as observer, agent_process(config) as process:
        wait_for_precision(observer, "fp32")
        with ProgressFile(tmp_path / "calibration" / "progress.json") as progress:
            progress.say("ranges", 0.42, "ppocrv6-small-det")
            assert wait_for_health(observer, "calibrating") == "ppocrv6-small-det: ranges, 42 %"
            count = len(readings(observer))
            wait_until(lambda: len(readings(observer)) > count + 3, "readings meanwhile")
        assert wait_for_health(observer, "running") == "None"
        process.send_signal(signal.SIGTERM)
        assert process.wait(DEADLINE_S) == 0


def test_frames_with_text_are_kept_within_bounds(broker: Broker, tmp_path: Path) -> None:
    config = settings(tmp_path, broker, record_interval_s=0.01, record_max_frames=2)
    kept = tmp_path / "calibration" / "recorded"
    with Observer(broker.port, "edge/#") as observer, agent_process(config) as process:
        wait_until(
            lambda: last(observer, "telemetry").get("calibration", {}).get("recorded", {}).get("kept", 0) >= 3,
            "frames kept",
            DEADLINE_S,
        )
        process.send_signal(signal.SIGTERM)
        assert process.wait(DEADLINE_S) == 0
    names = [path.name for path in kept.iterdir()]
    assert len(names) == 2
    originals = [cv2.imread(str(path)) for path in sorted((tmp_path / "left").iterdir())]
    for name in names:
        image = cv2.imread(str(kept / name))
        assert any(
            image.shape == original.shape and np.abs(image.astype(int) - original).mean() < 3 for original in originals
        )


def test_folder_that_cannot_be_written_stops_the_keeping_alone(broker: Broker, tmp_path: Path) -> None:
    config = settings(tmp_path, broker, record_interval_s=0.01)
    (tmp_path / "calibration").write_text("a file in the folder's place")
    with Observer(broker.port, "edge/#") as observer, agent_process(config) as process:
        wait_until(
            lambda: (
                (last(observer, "telemetry").get("calibration", {}).get("recorded") or {}).get("stopped") is not None
            ),
            "the end of the keeping",
            DEADLINE_S,
        )
        count = len(readings(observer))
        wait_until(lambda: len(readings(observer)) > count + 3, "readings all the same")
        process.send_signal(signal.SIGTERM)
        assert process.wait(DEADLINE_S) == 0
        assert process.stderr is not None
        assert process.stderr.read().count("no longer kept") == 1


def test_promotion_before_the_start_is_in_use_from_the_first_frame(broker: Broker, tmp_path: Path) -> None:
    config = settings(tmp_path, broker)
    promoted = int8_of("detect").promote(tmp_path / "calibration")
    assert Artefacts(tmp_path / "calibration", MODEL).promotion().active == promoted
    environ = {**os.environ, "EDGE_AGENT_CAMERAS__LEFT__LOOP": "false", "EDGE_AGENT_TRANSPORT": "jsonl"}
    command = [sys.executable, "-m", "edge_agent", "run", "--until-end", "--config", str(config)]
    ran = subprocess.run(command, capture_output=True, text=True, env=environ, cwd=ROOT, timeout=60, check=True)
    results = [
        line["payload"] for line in map(json.loads, ran.stdout.splitlines()) if line["topic"].endswith("/result")
    ]
    assert [reading["engines"]["detect"].rpartition(":")[2] for reading in results] == ["int8", "int8"]
