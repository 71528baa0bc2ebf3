"""Feeds: what each model's engine is really given when this device reads its own frames, recorded for calibration.

The float pipeline reads the frames of one part of a collection; every feed that reaches an engine is kept. So the
recogniser's feeds are true crops, and the encoder's true lines.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping
from collections.abc import Collection as Names
from dataclasses import asdict
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import onnxruntime

from edge_agent import __version__
from edge_agent.backends.base import Engine, Feed
from edge_agent.backends.recording import RecordingEngine
from edge_agent.calibrate.collection import Collection, Part
from edge_agent.calibrate.feed_store import MOST_FEEDS, FeedBinding, FeedStore
from edge_agent.config import Config
from edge_agent.errors import CalibrationRefused, FrameError
from edge_agent.models.digest import sha256_of
from edge_agent.models.spec import expected_files
from edge_agent.pipeline import Pipeline, load_pipeline
from edge_agent.records import Frame

log = logging.getLogger(__name__)

FEEDS_FOLDER = "feeds"
STAGES = ("detect", "recognise", "encode")  # in the order in which each depends on those before
ROWS = {"detect": "frames", "recognise": "crops", "encode": "lines"}
LEAST_ROWS: Mapping[Part, int] = {"calibration": 3, "search": 1, "held_out": 1}


class Tap:
    """Lets the feeds of one engine pass into a store, once it has one; the encoder meets feeds while it loads."""

    def __init__(self) -> None:
        self.engine: RecordingEngine | None = None
        self.store: FeedStore | None = None
        self._runs_before = 0

    def wrap(self, engine: Engine) -> Engine:
        """The engine to use in place of `engine`."""
        self.engine = RecordingEngine(engine, self._sink)
        return self.engine

    def open(self, store: FeedStore) -> None:
        """From now on feeds go into `store`, from its beginning."""
        assert self.engine is not None
        store.begin()
        self.store, self._runs_before = store, self.engine.runs

    def close(self) -> None:
        """Ends the recording, which must hold as many feeds as the engine ran."""
        assert self.engine is not None
        if self.store is not None:
            self.store.finish(self.engine.runs - self._runs_before)

    def _sink(self, feed: Feed) -> None:
        if self.store is not None:
            self.store.sink(feed)


def record_feeds(
    collection: Collection,
    part: Part,
    config: Config,
    models_dir: Path,
    calibration_dir: Path,
    most_feeds: Mapping[str, int] | None = None,
    models: Names[str] | None = None,
    report: Callable[[float], None] = lambda share: None,
) -> dict[str, FeedStore]:
    """The feeds by model, of `models` only (None: of every one that `config` uses), at most `most_feeds` of each.

    Feeds that were recorded before are used again where nothing differs that they depend on; otherwise frames are read
    once, for all models whose feeds are wanting, and it is logged why. Progress 0..1 goes to `report`.
    Raises CalibrationRefused with counts where a model got too few; the others' feeds are kept then, and asking for
    those models alone costs no reading.
    """
    taps: dict[str, Tap] = {stage: Tap() for stage in STAGES}
    with load_pipeline(
        config, models_dir, float_only=True, wrap=lambda stage, engine: taps[stage].wrap(engine)
    ) as pipeline:
        stores: dict[str, FeedStore] = {}
        for stage in pipeline.models:
            model = pipeline.models[stage].binding.model
            if models is None or model in models:
                most = (most_feeds or {}).get(model, MOST_FEEDS)
                binding = binding_of(pipeline, stage, config, collection, part, most)
                stores[stage] = FeedStore.open(calibration_dir / model / FEEDS_FOLDER / part, binding, most)
        wanting = {stage: store for stage, store in stores.items() if not store.whole}
        for stage, store in wanting.items():
            log.info("feeds of %s are recorded: %s", pipeline.models[stage].binding.model, store.reason)
            taps[stage].open(store)
        if wanting:
            read_frames(pipeline, collection, part, report)
            for stage in wanting:
                taps[stage].close()
        named = {pipeline.models[stage].binding.model: store for stage, store in stores.items()}
        for stage, store in stores.items():
            require_rows(pipeline.models[stage].binding.model, stage, store, part, len(collection.of(part)))
    report(1.0)
    return named


def read_frames(pipeline: Pipeline, collection: Collection, part: Part, report: Callable[[float], None]) -> None:
    """Reads each frame of the part once; one that cannot be read is logged and left out."""
    total = len(collection.of(part))
    for number, (frame, image) in enumerate(collection.images(part)):
        try:
            pipeline.read(Frame("calibration", number, frame.captured_at or 0.0, 0.0, image))
        except FrameError as exc:
            log.warning("%s (from %s) is left out: %s", frame.name, frame.source, exc)
        report((number + 1) / total)


def require_rows(model: str, stage: str, store: FeedStore, part: Part, frames: int) -> None:
    """Raises CalibrationRefused where so few inputs came that nothing can be learnt from them."""
    if store.rows < LEAST_ROWS[part]:
        raise CalibrationRefused(
            f"{model}: {store.rows} {ROWS[stage]} of {frames} frames (part {part}), at least {LEAST_ROWS[part]} are "
            "needed; give frames that show labels as the camera sees them, and more of them"
        )


def binding_of(
    pipeline: Pipeline,
    stage: str,
    config: Config,
    collection: Collection,
    part: Part,
    most_feeds: int,
) -> FeedBinding:
    """All that the feeds of a stage depend on: its own model and settings, and those of every stage before it."""
    facts = {
        "collection": collection.digest,
        "part": part,
        "most feeds": str(most_feeds),
        "edge_agent": __version__,
        "numpy": np.__version__,
        "opencv": str(cv2.__version__),
        "onnxruntime": str(onnxruntime.__version__),
        "backend": pipeline.backend.name,
        "device": as_text(pipeline.backend.device),
    }
    for each in STAGES[: STAGES.index(stage) + 1]:
        if each in pipeline.models:
            served = pipeline.models[each]
            facts[f"model ({each})"] = as_text({"model": served.binding.model, **files_of(served.onnx_path)})
            facts[f"engine ({each})"] = pipeline.fingerprints[each]
            facts[f"settings ({each})"] = as_text(settings_of(pipeline, each, config))
    return FeedBinding(facts)


def files_of(onnx_path: Path) -> dict[str, str]:
    """sha256 of the model file, and of the charset or tokenizer beside it as the model's manifest has them."""
    beside = expected_files(onnx_path.parent)
    return {
        onnx_path.name: sha256_of(onnx_path),
        **{name: entry[0] for name, entry in beside.items() if not name.endswith(".onnx")},
    }


def settings_of(pipeline: Pipeline, stage: str, config: Config) -> dict[str, Any]:
    """What shapes a stage's feeds besides its model's bytes."""
    if stage == "detect":
        return asdict(pipeline.detector.settings)
    if stage == "recognise":
        return asdict(pipeline.recogniser.settings)
    return {**pipeline.models[stage].binding.preprocessing, "fields": config.fields.model_dump(mode="json")}


def as_text(value: Mapping[str, Any]) -> str:
    """As JSON, the same for equal values."""
    return json.dumps(value, sort_keys=True)
