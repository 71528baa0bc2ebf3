"""A real agent that reads labels we render, its page in a real Chromium: one of each for all tests of the page."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import cv2

from edge_agent.artefacts import Artefacts
from edge_agent.demo.labels import sample_labels
from edge_agent.demo.scene import Conveyor
from edge_agent.web.passwords import write_password
from tests.artefact_site import BINDING, numbered
from tests.broker import DEADLINE_S, Broker, free_port, wait_until
from tests.light import LIGHT

# `edge-agent ...` whose calibrations are a child that says how far it is, waits for a file and refuses; nothing else
CALIBRATING = """
import functools, sys
from edge_agent.calibrate.job import CalibrationJob
from edge_agent.remote import control

CHILD = '''
import json, pathlib, sys, time
from edge_agent.calibrate.progress import PROGRESS_FILE, ProgressFile
wish, end = json.load(sys.stdin), pathlib.Path(sys.argv[1])
with ProgressFile(end.with_name("calibration") / PROGRESS_FILE) as file:
    file.say("ranges", 0.42, wish["models"][0])
    print(json.dumps({"event": "progress", "step": "ranges", "share": 0.42}), flush=True)
    while not end.exists():
        time.sleep(0.01)
outcome = {"model": wish["models"][0], "verdict": "refused", "summary": "It would read worse.", "reasons": ["CER 3 %"]}
print(json.dumps({"event": "outcome", "outcome": outcome}), flush=True)
print(json.dumps({"event": "done"}), flush=True)
'''
command = [sys.executable, "-c", CHILD, sys.argv.pop(1)]
control.Desk = functools.partial(control.Desk, start_calibration=lambda wish: CalibrationJob(wish, command))
from edge_agent.__main__ import main

sys.exit(main())
"""
RECOGNISER = "ppocrv4-mobile-rec"
REPORT = "<!doctype html><title>Report</title><style>h1 {color: teal}</style><h1>Refused: it would read worse</h1>"
PASSWORD = "the line reads at night"
YEAR = 2031  # of what expires: far enough from today for as long as these tests live
LABELS = sample_labels(YEAR)
FRAMES_PER_CARTON = 60  # scene.PITCH_PX / scene.STEP_PX
EACH = 3  # frames in which a carton rests


def render_frames(folder: Path, labels: int) -> Path:
    """Frames of a belt on which each of some cartons rests for EACH frames, its label in full view."""
    folder.mkdir()
    conveyor = Conveyor(LABELS[:labels])
    for n in range(labels):
        image = conveyor.frame(n * FRAMES_PER_CARTON + 4).image
        for k in range(EACH):
            cv2.imwrite(str(folder / f"{n:02d}-{k}.jpg"), image, [cv2.IMWRITE_JPEG_QUALITY, 90])
    return folder


class PageSite:
    """A device `press7` with a camera `line1`, on a port of its own."""

    def __init__(self, folder: Path, broker: Broker, labels: int = 3) -> None:
        self.folder = folder
        self.broker = broker
        self.calibrated = folder / "calibrated"  # once it exists, a calibration ends
        self.port = free_port()
        self.address = f"http://127.0.0.1:{self.port}"
        self.config = folder / "config.yaml"
        calibrations = folder / "calibration"
        artefacts = Artefacts(calibrations, RECOGNISER)
        for number in (1, 2):
            artefacts.promote(artefacts.store(*numbered(number, replace(BINDING, model=RECOGNISER))).id)
        (calibrations / RECOGNISER / "report.html").write_text(REPORT, encoding="utf-8")
        password = folder / "web_password"
        write_password(password, PASSWORD)
        camera = {
            "kind": "folder",
            "source": str(render_frames(folder / "frames", labels)),
            "loop": True,
            "max_fps": 2,
        }
        settings = {
            "device_id": "press7",
            "mqtt": {"port": broker.port, "reconnect_min_s": 0.2},
            "backend": {"threads": 1},
            "pipeline": LIGHT,
            "cameras": {"line1": camera},
            "items": {"mode": "still", "decide_within_ms": 900},
            "telemetry": {"interval_s": 0.5},
            "calibration": {"directory": str(calibrations)},
            "outbox": {"path": str(folder / "outbox.db")},
            # the machine that tests run on is busy: the pace is judged elsewhere
            "remote": {"trial_s": 8.0, "min_fps_share": 0.0, "min_read_share": 0.0},
            "web": {"enabled": True, "port": self.port, "password_file": str(password), "stream_fps": 2.0},
        }
        self.config.write_text(json.dumps(settings), encoding="utf-8")  # JSON is YAML

    @contextmanager
    def running(self) -> Iterator[PageSite]:
        """The agent, from the moment on when it reads."""
        environ = {name: value for name, value in os.environ.items() if not name.startswith("EDGE_AGENT_")}
        command = [sys.executable, "-c", CALIBRATING, str(self.calibrated), "run", "--config", str(self.config)]
        with (
            (self.folder / "agent.log").open("wb") as log,
            subprocess.Popen(command, stderr=log, stdout=log, env=environ) as process,
        ):
            try:
                wait_until(lambda: self.is_ready(process), f"an agent that reads, see {log.name}", 60)
                yield self
            finally:
                process.terminate()
                try:
                    process.wait(DEADLINE_S)
                except subprocess.TimeoutExpired:
                    process.kill()

    def is_ready(self, process: subprocess.Popen[bytes]) -> bool:
        """Whether frames are read. Fails where the agent has ended."""
        assert process.poll() is None, (self.folder / "agent.log").read_text(encoding="utf-8")[-3000:]
        try:
            with urllib.request.urlopen(f"{self.address}/v1/ready", timeout=2) as answer:
                return bool(answer.status == 200)
        except (urllib.error.URLError, OSError):
            return False
