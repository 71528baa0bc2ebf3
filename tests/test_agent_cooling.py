"""The agent on a board that gets hot: a tree of files as an Orin Nano has them, everything else is real."""

from __future__ import annotations

import json
import signal
import socket
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from edge_agent.telemetry.history import read_history
from tests.broker import DEADLINE_S, Broker, Observer, wait_until
from tests.telemetry import boards
from tests.test_agent import agent_process, config_file, label_folder, last


@pytest.fixture
def port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def with_settings(path: Path, **sections: dict[str, Any]) -> Path:
    settings = json.loads(path.read_text(encoding="utf-8"))
    for section, values in sections.items():
        settings[section] = {**settings.get(section, {}), **values}
    path.write_text(json.dumps(settings), encoding="utf-8")
    return path


def test_hot_board_reads_fewer_frames_says_so_and_goes_back(broker: Broker, tmp_path: Path, port: int) -> None:
    pytest.importorskip("prometheus_client", reason="needs prometheus-client: pip install 'edge-agent[metrics]'")
    root = boards.orin_nano(tmp_path)
    gpu = root / "sys/class/thermal/thermal_zone1/temp"
    source = str(label_folder(tmp_path / "left", 2))
    left = {"kind": "folder", "source": source, "loop": True, "max_fps": 4.0}
    config = with_settings(
        config_file(tmp_path, broker.port, {"left": left}),
        telemetry={"interval_s": 1.0, "system_root": str(root)},
        thermal={"dwell_s": 0.5},
        metrics={"port": port},
    )
    with Observer(broker.port, "edge/#") as observer, agent_process(config) as process:

        def told() -> dict[str, Any]:
            return last(observer, "telemetry")

        wait_until(lambda: bool(told().get("j_per_reading")), "the cost of a reading", 60)
        body = told()
        assert body["power_w"]["total"] == 15.2
        assert body["power_mode"] == "MAXN_SUPER"
        assert body["throttled"] is False
        assert body["cooling"] == {"share": 1.0, "reason": None}
        assert 15.2 / 20 < body["j_per_frame"] < 15.2 * 10
        assert last(observer, "health")["pipeline"] == "running"

        boards.write(gpu, 98_500)
        wait_until(lambda: last(observer, "health")["pipeline"] == "degraded", "degraded")
        assert last(observer, "health")["reason"] == "hot: gpu 98 C; reading every fourth frame"
        wait_until(lambda: told()["cooling"]["share"] == 0.25, "a quarter")
        wait_until(lambda: told()["cameras"]["left"]["fps"] < 1.5, "fewer frames", 60)

        boards.write(gpu, 60_000)
        wait_until(lambda: last(observer, "health")["pipeline"] == "running", "running again")
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=DEADLINE_S) as answer:
            assert 'edge_agent_power_w{rail="total"} 15.2' in answer.read().decode()
        process.send_signal(signal.SIGTERM)
        assert process.wait(DEADLINE_S) == 0
    kept = list(read_history(tmp_path / "telemetry"))
    assert {body["cooling"]["share"] for body in kept} >= {1.0, 0.25}
    assert all(len(payload) < 6_000 for payload in observer.payloads("edge/press7/telemetry"))
