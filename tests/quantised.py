"""INT8 models for tests: real ones, made by the product's own quantiser from a few frames."""

from __future__ import annotations

import functools
from collections.abc import Iterable
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import onnx

from edge_agent.artefacts import Artefact, Artefacts, Binding
from edge_agent.backends.base import Feed
from edge_agent.calibrate.groups import chosen_nodes, groups_of
from edge_agent.calibrate.quantise import quantise, tensors_to_measure
from edge_agent.calibrate.ranges import measure
from edge_agent.calibrate.recipe import Recipe
from edge_agent.config import Config
from edge_agent.demo.labels import render_label, sample_labels
from edge_agent.models.spec import Task, find_models_dir
from edge_agent.pipeline import load_pipeline
from edge_agent.records import Frame
from edge_agent.settings.pipeline import PipelineConfig
from tests import light

LIGHT = PipelineConfig.model_validate(light.LIGHT)
TASKS: dict[str, Task] = {"detect": "text_detection", "recognise": "text_recognition", "encode": "text_embedding"}


class Int8:
    """The INT8 file of one stage's model for onnxruntime, and what an artefact of it says."""

    def __init__(self, stage: str, frames: Iterable[Frame], models_dir: Path, settings: PipelineConfig = LIGHT) -> None:
        feeds: list[Feed] = []
        with load_pipeline(Config(pipeline=settings), models_dir, float_only=True) as pipeline:
            engine: Any = pipeline.engines[stage]
            enqueue = engine.enqueue

            def recorded(feed: Feed) -> None:
                feeds.append({name: array.copy() for name, array in feed.items()})
                enqueue(feed)

            engine.enqueue = recorded
            for frame in frames:
                pipeline.read(frame)
            served = pipeline.models[stage]
        model = onnx.load(served.onnx_path)
        nodes = chosen_nodes(groups_of(model, TASKS[stage], Recipe()))
        tensors = tensors_to_measure(model, nodes, "onnxruntime")
        ranges = measure(served.onnx_path, tensors, feeds, len(feeds), ("minmax",), threads=1, report=lambda _: None)
        self.binding: Binding = served.binding
        self.content: bytes = quantise(model, ranges.by_method["minmax"], nodes, "onnxruntime").SerializeToString()
        self.batches = ranges.batches

    def store(self, calibration_dir: Path, made_at: float = 1_800_000_000.0, **changes: Any) -> Artefact:
        """As an artefact that earned it; `changes` to its manifest."""
        manifest = {
            **self.binding.to_json(),
            "collection": "ab" * 32,
            "method": "minmax",
            "batches": self.batches,
            "made_at": made_at,
            "judgement": {"passed": True},
            **changes,
        }
        return self.artefacts(calibration_dir).store(self.content, manifest)

    def promote(self, calibration_dir: Path, **changes: Any) -> str:
        """Stores and promotes it; its id."""
        artefact = self.store(calibration_dir, **changes)
        self.artefacts(calibration_dir).promote(artefact.id)
        return artefact.id

    def artefacts(self, calibration_dir: Path) -> Artefacts:
        return Artefacts(calibration_dir, self.binding.model)


def label_frame(seq: int = 0) -> Frame:
    """A label on grey, 1280x720."""
    image = np.full((720, 1280, 3), 90, np.uint8)
    rendered = render_label(sample_labels(date.today().year + 1)[0], 700).image[:620]
    image[100 : 100 + rendered.shape[0], 250 : 250 + rendered.shape[1]] = rendered
    return Frame("line1", seq, 1000.0, 10.0, image)


@functools.cache
def int8_of(stage: str, settings: PipelineConfig = LIGHT) -> Int8:
    """The INT8 file of a stage's model, made once, on a label."""
    return Int8(stage, [label_frame()], find_models_dir(), settings)
