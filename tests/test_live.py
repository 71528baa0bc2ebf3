"""Live: each setting that is said to need no restart is taken up by what runs."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from edge_agent.cameras.capture import CaptureThread
from edge_agent.clock import DeviceClock
from edge_agent.config import LIVE, Config, changed_keys, is_live, rebuilt
from edge_agent.demo.line_labels import data_matrix
from edge_agent.expectations import Expectations
from edge_agent.inspection import Inspection
from edge_agent.live import take_up
from edge_agent.no_text import NoTextLimit
from edge_agent.pipeline import Pipeline
from edge_agent.records import Frame, Message, Quad, TextBox, TextLine
from edge_agent.results import Results
from edge_agent.telemetry.sampler import Sampler
from tests.test_agent import made_pipeline, no_text

BASE = rebuilt(Config(), {"cameras": {"a": {"kind": "rtsp", "source": "rtsp://192.0.2.10/x"}}}, "base")


@dataclass
class Running:
    """What runs, under BASE."""

    pipeline: Pipeline
    results: Results
    camera: CaptureThread
    sampler: Sampler

    @property
    def inspection(self) -> Inspection:
        assert self.results.inspection is not None
        return self.results.inspection

    def says(self, text: str) -> list[tuple[str, str]]:
        """The fields of a line, each with its value."""
        box = TextBox(Quad(np.array([[0, 0], [9, 0], [9, 9], [0, 9]], np.float32)), 1.0)
        return [(f.name, f.value) for f in self.pipeline.extractor.extract([TextLine(text, 1.0, box)])]

    def codes(self) -> list[str]:
        """The codes in a picture that has one."""
        picture = np.full((300, 300, 3), 255, np.uint8)
        symbol = data_matrix("(01)09521234567011")
        picture[60 : 60 + symbol.shape[0], 60 : 60 + symbol.shape[1]] = symbol
        return [code.symbology for code in self.pipeline.read(Frame("a", 1, 0.0, 0.0, picture)).codes]

    def fields(self) -> dict[str, Any]:
        """What the extractor says of a line, which depends on every setting of it but the encoder's."""
        box = TextBox(Quad(np.array([[0, 0], [9, 0], [9, 9], [0, 9]], np.float32)), 1.0)
        texts = ["EXP 03/04/2066", "LOT A1 " + "x" * 3000, "03/04/2026"]
        found = self.pipeline.extractor.extract([TextLine(text, 1.0, box) for text in texts])
        return {"count": len(found), "values": [f.value for f in found], "flags": [f.flags for f in found]}


@pytest.fixture
def running() -> Iterator[Running]:
    level = logging.getLogger().level
    camera = CaptureThread("a", BASE.cameras["a"], lambda frame: True)
    clock, messages = DeviceClock(), list[Message]()
    inspection = Inspection(BASE, messages.append, clock, Expectations(BASE, messages.append))
    results = Results(messages.append, clock, NoTextLimit(10.0), inspection=inspection)
    yield Running(made_pipeline(no_text), results, camera, Sampler([], {}, 10.0, lambda message: None))
    logging.getLogger().setLevel(level)


# key -> a new value, and how it shows
CHANGES: dict[str, tuple[Any, Callable[[Running], Any]]] = {
    "cameras.*.expected": ([{"field": "lot"}], lambda running: running.inspection.expectations.of("a")),
    "cameras.*.items": ("still", lambda running: running.inspection.joins("a")),
    "cameras.*.max_fps": (3.0, lambda running: running.camera.config.max_fps),
    "cameras.*.rois.*": ({"x": 0.5, "width": 0.5}, lambda running: running.pipeline.rois),
    "catalogue.names": (["Seeded Rye Bread"], lambda running: running.says("Seeded Rye Breed")),
    "fields.codes": (["QRCode"], lambda running: running.codes()),
    "fields.custom.*": ({"keys": ["PARTNO"]}, lambda running: running.says("PARTNO 77-A1")),
    "fields.date_order": ("MDY", lambda running: running.fields()["values"]),
    "fields.date_window_years": (100, lambda running: running.fields()["flags"]),
    "fields.max_fields": (1, lambda running: running.fields()["count"]),
    "fields.max_line_chars": (256, lambda running: running.fields()["flags"]),
    "fields.min_similarity": (0.9, lambda running: running.pipeline.extractor.min_similarity),
    "fields.region": ("DE", lambda running: running.says("Tel. 030 12345678")),
    "fields.trust_date_order": (True, lambda running: running.fields()["flags"]),
    "items.decide_within_ms": (100, lambda running: running.inspection.settings("a").decide_within_ms),
    "items.direction": ("left", lambda running: running.inspection.settings("a").direction),
    "items.gone_after_ms": (100, lambda running: running.inspection.settings("a").gone_after_ms),
    "items.max_gap_share": (0.2, lambda running: running.inspection.settings("a").max_gap_share),
    "items.max_open": (3, lambda running: running.inspection.settings("a").max_open),
    "items.min_reads": (5, lambda running: running.inspection.settings("a").min_reads),
    "items.mode": ("conveyor", lambda running: running.inspection.joins("a")),
    "items.per": ("region", lambda running: running.inspection.settings("a").per),
    "items.publish_readings": (True, lambda running: running.inspection.settings("a").publish_readings),
    "items.trust_clock": (True, lambda running: running.inspection.settings("a").trust_clock),
    "log.level": ("error", lambda running: logging.getLogger().level),
    "pipeline.box_threshold": (0.9, lambda running: running.pipeline.detector.settings.box_threshold),
    "pipeline.detector_max_windows": (9, lambda running: running.pipeline.detector.settings.max_windows),
    "pipeline.doubt_margin": (4.0, lambda running: running.pipeline.recogniser.settings.doubt_margin),
    "pipeline.max_boxes": (3, lambda running: running.pipeline.detector.settings.max_boxes),
    "pipeline.min_confidence": (0.9, lambda running: running.pipeline.recogniser.settings.min_confidence),
    "pipeline.no_text_interval_s": (1.0, lambda running: running.results.no_text.interval_s),
    "pipeline.pixel_threshold": (0.9, lambda running: running.pipeline.detector.settings.pixel_threshold),
    "pipeline.unclip_ratio": (2.0, lambda running: running.pipeline.detector.settings.unclip_ratio),
    "telemetry.interval_s": (1.0, lambda running: running.sampler.interval_s),
}


def changed(key: str, value: Any) -> Config:
    section, *rest = key.replace("*", "a").split(".")
    values = BASE.model_dump(mode="json", exclude={"mqtt"})
    below = values[section]
    for part in rest[:-1]:
        below = below[part]
    below[rest[-1]] = value
    return rebuilt(Config(), values, "changed")


def test_every_live_key_is_tried_here() -> None:
    assert set(CHANGES) == LIVE


@pytest.mark.parametrize("key", sorted(CHANGES))
def test_live_key_is_taken_up(key: str, running: Running) -> None:
    value, seen = CHANGES[key]
    config = changed(key, value)
    assert changed_keys(BASE, config) and all(is_live(dotted) for dotted in changed_keys(BASE, config))
    take_up(BASE, running.pipeline, running.results, [running.camera], running.sampler)
    before = seen(running)
    take_up(config, running.pipeline, running.results, [running.camera], running.sampler)
    after = seen(running)
    assert after != before
    take_up(BASE, running.pipeline, running.results, [running.camera], running.sampler)
    assert seen(running) == before


def test_camera_that_the_settings_do_not_name_goes_on(running: Running) -> None:
    take_up(Config(), running.pipeline, running.results, [running.camera], None)
    assert running.camera.config == BASE.cameras["a"]
