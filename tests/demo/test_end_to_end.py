"""End to end: the demo with the real models, agent and broker reads the sample labels right."""

from __future__ import annotations

import dataclasses
import importlib.util
from pathlib import Path

import pytest

from edge_agent.demo import broker, video
from edge_agent.demo import run as demo
from edge_agent.demo.broker import Kind, mosquitto
from edge_agent.demo.labels import sample_labels
from edge_agent.demo.run import DemoOptions, run_demo
from edge_agent.demo.scorecard import Scorecard
from edge_agent.demo.video import SampleVideo
from edge_agent.models.spec import DEFAULT_MODELS_DIR, find_models_dir
from tests.conftest import ROOT

MODELS = ROOT / DEFAULT_MODELS_DIR
FRAMES = 12  # the label moves by a fifth of the picture and stays in full view

pytestmark = pytest.mark.skipif(
    not (MODELS / "ppocrv6-small-det" / "model.onnx").is_file(), reason="models are missing: edge-agent models fetch"
)


@pytest.mark.parametrize(("kind", "label"), [("mosquitto", 0), ("amqtt", 4)])
def test_the_demo_reads_lot_expiry_and_serial_right(
    kind: Kind, label: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    if not (mosquitto() if kind == "mosquitto" else importlib.util.find_spec("amqtt")):
        pytest.skip(f"{kind} is not installed")
    path, truth = tmp_path / "labels.avi", tmp_path / "labels.json"
    video.render_video(path, truth, (sample_labels(2026)[label],), lambda done, total: None, FRAMES)
    sample = video.load(path, truth)
    cards: list[Scorecard] = []

    def keep_card(of: SampleVideo) -> Scorecard:
        cards.append(Scorecard(of))
        return cards[0]

    monkeypatch.setattr(demo, "prepare_sample", lambda out: sample)
    monkeypatch.setattr(demo, "Scorecard", keep_card)
    monkeypatch.setattr(broker, "choose", lambda: kind)
    assert run_demo(DemoOptions(frames=4, models_dir=find_models_dir(MODELS), out=tmp_path)) == 0
    for name, tally in cards[0].tallies.items():
        assert dataclasses.astuple(tally) == (4, 4, 0), f"{name}: {cards[0].mistakes}"
    shown = capsys.readouterr().out
    for value in (sample.labels[0][name] for name in ("lot", "expiry", "serial")):
        assert shown.count(value) == 4
