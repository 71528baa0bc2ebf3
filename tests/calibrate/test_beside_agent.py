"""A calibration beside an agent that reads: real processes, a real broker, and the collection of a sister device.

The device before exports what it collected; this one imports it by the command line, while its agent reads on.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from datetime import datetime
from pathlib import Path
from typing import Any

from edge_agent.artefacts import Artefacts
from edge_agent.calibrate import collection
from tests.broker import Broker, Observer, wait_until
from tests.calibrate.calibration_site import MODEL, Heard, Site
from tests.conftest import ROOT
from tests.test_agent import agent_process, label_folder, last

RESULTS = "edge/press7/left/result"
DEADLINE_S = 600.0  # it takes ten seconds; beside other work it comes last, as it should


def said_by(*words: str) -> str:
    """What a command that must end well prints."""
    environ = {name: value for name, value in os.environ.items() if not name.startswith("EDGE_AGENT_")}
    command = [sys.executable, "-m", "edge_agent", *words]
    ran = subprocess.run(
        command, capture_output=True, text=True, cwd=ROOT, env=environ, timeout=DEADLINE_S, check=False
    )
    assert (ran.returncode, ran.stderr) == (0, ""), ran.stdout
    return ran.stdout


def with_agent(site: Site, broker: Broker) -> Site:
    """The site's settings with a camera, every frame of which counts, and the broker."""
    labels = label_folder(site.folder / "left", 2)
    left = {"kind": "folder", "source": str(labels), "pace": "every_frame", "loop": True, "max_fps": 2}
    site.write_settings(
        device_id="press7",
        mqtt={"port": broker.port},
        cameras={"left": left},
        telemetry={"interval_s": 0.5},
        outbox={"path": "outbox.db"},
    )
    return site


def readings(observer: Observer) -> list[dict[str, Any]]:
    """In the order of capture, each once."""
    said = {reading["seq"]: reading for reading in map(json.loads, observer.payloads(RESULTS))}
    return [said[seq] for seq in sorted(said)]


def precision(reading: dict[str, Any]) -> str:
    return str(reading["engines"]["recognise"]).rpartition(":")[2]


def captured_at(reading: dict[str, Any]) -> float:
    """Unix s."""
    return datetime.fromisoformat(reading["captured_at"].replace("Z", "+00:00")).timestamp()


def gapless(said: list[dict[str, Any]]) -> bool:
    return [reading["seq"] for reading in said] == list(range(len(said)))


def test_agent_reads_on_while_a_sister_devices_frames_calibrate_and_takes_the_result_up_without_a_lost_frame(
    promoted: tuple[Site, Heard], broker: Broker, tmp_path: Path
) -> None:
    archive = tmp_path / "site.zip"
    exported = said_by("calibrate", "--export", str(archive), "--config", str(promoted[0].config_file))
    assert exported.startswith(f"{archive}: 8 frames, ")
    site = with_agent(Site.made(tmp_path / "sister", frames=()), broker)

    with Observer(broker.port, "edge/#") as observer, agent_process(site.config_file) as process:
        wait_until(lambda: len(readings(observer)) > 2, "readings", DEADLINE_S)
        began = time.time()
        told = said_by("calibrate", MODEL, "--import", str(archive), "--config", str(site.config_file))
        ended = time.time()
        wait_until(lambda: precision(readings(observer)[-1]) == "int8", "readings in INT8", DEADLINE_S)
        wait_until(lambda: last(observer, "health").get("pipeline") == "running", "health after it", DEADLINE_S)
        wait_until(lambda: gapless(readings(observer)), "readings without a gap", DEADLINE_S)
        said = readings(observer)
        health = [json.loads(payload) for payload in observer.payloads("edge/press7/health")]
        process.send_signal(signal.SIGTERM)
        assert process.wait(DEADLINE_S) == 0

    assert "8 frames of 8 from folder" in told
    assert f"{MODEL}: promoted: INT8 reads as well" in told
    kept, brought = (collection.load(each.calibration / "collection") for each in (promoted[0], site))
    assert kept is not None
    assert brought is not None
    assert brought.digest == kept.digest, "the frames travelled"
    assert Artefacts(site.calibration, MODEL).promotion().active is not None, "and earned it here"

    reasons = [one["reason"] for one in health if one["pipeline"] == "calibrating"]
    assert reasons, "it was shown"
    percents = [int(found[1]) for reason in reasons if (found := re.fullmatch(r".+, (\d+) %", reason))]
    assert len(percents) == len(reasons)
    assert percents == sorted(percents)
    assert {one["pipeline"] for one in health} <= {"starting", "running", "calibrating"}

    meanwhile = [reading for reading in said if began < captured_at(reading) < ended]
    assert len(meanwhile) > 3, "readings went on"
    precisions = [precision(reading) for reading in said]
    changes = [at for at in range(1, len(said)) if precisions[at] != precisions[at - 1]]
    assert [precisions[at] for at in (0, *changes)] == ["fp32", "int8"]
    lots = [{field["name"]: field["value"] for field in reading["fields"]}["lot"] for reading in said]
    assert lots == [lots[at % 2] for at in range(len(lots))], "and was right all along"
