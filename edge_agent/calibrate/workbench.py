"""Workbench: a float pipeline with what is needed to judge and time another engine in the place of one of its own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from edge_agent.backends.base import Engine
from edge_agent.calibrate.collection import Collection, Part
from edge_agent.calibrate.judge import DetectorJudge, EncoderJudge, Exposures, ReadingJudge, RecogniserJudge, frames_of
from edge_agent.calibrate.judgement import Judgement
from edge_agent.calibrate.recipe import Gates
from edge_agent.calibrate.timing import Timing, TimingLimits, WeightedFeed, compare_speed
from edge_agent.errors import ModelError
from edge_agent.models.spec import ModelSpec, Task, require_files
from edge_agent.pipeline import Pipeline
from edge_agent.stages.text_detector import TextDetector
from edge_agent.stages.text_encoder import TextEncoder
from edge_agent.stages.text_recogniser import TextRecogniser
from edge_agent.telemetry.energy import EnergySources

TASKS: dict[str, Task] = {
    "detect": "text_detection",
    "recognise": "text_recognition",
    "encode": "text_embedding",
}


class Judge(Protocol):
    """Judges engines of one model on the frames of one part of a collection."""

    def judge(self, engine: Engine, worst: Sequence[str] = ()) -> Judgement: ...


@dataclass(frozen=True)
class Workbench:
    """One stage's model, at work. `pipeline`: float engines, open. One thread owns it, the engines'. `threads`: of
    onnxruntime, as the settings have them."""

    stage: str
    pipeline: Pipeline
    collection: Collection
    models_dir: Path
    energy: EnergySources
    threads: int

    @property
    def float_engine(self) -> Engine:
        """The stage's own."""
        return self.pipeline.engines[self.stage]

    def judge(self, part: Part, gates: Gates) -> Judge:
        """The judge of the stage's model; the float engines run over the frames of the part."""
        frames, engine = frames_of(self.collection, part), self.float_engine
        if self.stage == "detect":
            return DetectorJudge(frames, engine, self.detector, self.pipeline.recogniser, gates)
        if self.stage == "recognise":
            return RecogniserJudge(frames, engine, self.recogniser, self.pipeline.detector, gates)
        texts = ReadingJudge(frames, self.pipeline, gates, Exposures(count=0)).texts
        return EncoderJudge(texts, engine, self.encoder, gates)

    def timing(
        self, engine: Engine, feeds: Sequence[WeightedFeed], limits: TimingLimits, *, energy: bool = False
    ) -> Timing:
        """The float engine and another by turns; joules too with `energy`, where this machine counts them."""
        sources = self.energy if energy else EnergySources((), ())
        return compare_speed(self.float_engine, engine, feeds, limits, sources)

    def detector(self, engine: Engine) -> TextDetector:
        """The pipeline's detector around another engine."""
        return TextDetector(engine, self.pipeline.detector.settings)

    def recogniser(self, engine: Engine) -> TextRecogniser:
        """The pipeline's recogniser around another engine."""
        return TextRecogniser(engine, self.pipeline.recogniser.charset, self.pipeline.recogniser.settings)

    def encoder(self, engine: Engine) -> TextEncoder:
        """The pipeline's encoder around another engine."""
        spec = ModelSpec.load(self.models_dir, self.pipeline.models["encode"].binding.model)
        tokenizer = require_files(spec, self.models_dir).tokenizer
        if spec.encoder is None or tokenizer is None:
            raise ModelError(f"{spec.name} has no tokenizer; name one under source.files.tokenizer in its model.yaml")
        return TextEncoder(engine, tokenizer, spec.encoder.max_tokens, spec.encoder.prefix)
