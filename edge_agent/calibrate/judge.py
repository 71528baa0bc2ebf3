"""Judge: is INT8 as good as float? By what text becomes, on frames that were not calibrated on.

A judge runs the float engine once over its frames, when it is made, and keeps what it found: boxes, masks as bits,
texts, vectors (0.2 MB a frame), no pictures. Then it judges as many INT8 engines as are brought, one at a time, through
the same stages as the product; so it serves every backend, and only one engine of a model need be open. The thread that
owns the engines calls it.

Without labels INT8 is measured against the float engine, which is undecided itself about blurred or tiny text: it reads
such text otherwise when a frame is taken twice. So the float engine looks at each frame again with a little noise on it
(`Exposures`), and only what INT8 changes beyond that counts. With noise of one grey level PP-OCRv6 changes 5 to 11 % of
its own characters on street scenes and loses 3 to 5 % of its own boxes; on printed labels next to none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from edge_agent.backends.base import Engine
from edge_agent.calibrate.collection import Collection, Part
from edge_agent.calibrate.judgement import (
    ChangedLine,
    GateResult,
    Judgement,
    at_least,
    no_evidence,
    nonsense,
    remedies,
)
from edge_agent.calibrate.output_watch import OutputWatch
from edge_agent.calibrate.recipe import Gates
from edge_agent.calibrate.tally import LEAST_CHARS, BoxTally, FieldTally, TextTally, too_little_text
from edge_agent.calibrate.text_error import Place, places_of
from edge_agent.errors import CalibrationRefused
from edge_agent.pipeline import Pipeline
from edge_agent.records import Frame, Quad, Reading, TextBox, TextLine
from edge_agent.stages.field_prototypes import PROTOTYPES
from edge_agent.stages.images import Image
from edge_agent.stages.nearest import NearestPrototypes
from edge_agent.stages.text_detector import TextDetector
from edge_agent.stages.text_encoder import TextEncoder, Vectors
from edge_agent.stages.text_recogniser import TextRecogniser

LEAST_TEXTS = 10  # that a verdict may rest on


@dataclass(frozen=True, eq=False)
class JudgedFrame:
    """One frame: its name, `image` uint8 (H, W, 3) BGR, and the texts that stand in it where they are known."""

    name: str
    image: Image
    labels: tuple[str, ...] = ()


@dataclass(frozen=True)
class Exposures:
    """How often the float engine looks again at each frame, with how much noise (standard deviation, grey levels)."""

    count: int = 1
    noise: float = 1.0

    def of(self, image: Image, number: int) -> Iterator[Image]:
        """The same picture taken again; the same each time for the same `number` of a frame."""
        for again in range(self.count):
            rng = np.random.default_rng((number, again))
            noisy = image + self.noise * rng.standard_normal(image.shape, np.float32)
            yield np.clip(np.rint(noisy), 0, 255).astype(np.uint8)


USUAL_EXPOSURES = Exposures()
Frames = Callable[[], Iterable[JudgedFrame]]  # each call gives the same frames again, one at a time


def frames_of(collection: Collection, part: Part) -> Frames:
    """The frames of one part of a collection, with their labels."""

    def frames() -> Iterator[JudgedFrame]:
        for kept, image in collection.images(part):
            yield JudgedFrame(kept.name, image, tuple(collection.labels.get(kept.source, ())))

    return frames


@dataclass(frozen=True, eq=False)
class DetectedFrame:
    """What the float detector found in one frame, and what stands there; `mask` as bits, of a map of `shape`."""

    quads: tuple[Quad, ...]
    lines: tuple[TextLine, ...]
    mask: npt.NDArray[np.uint8]
    shape: tuple[int, ...]


class DetectorJudge:
    """Judges detectors by their boxes and by what a float recogniser reads in them; masks are told, not judged."""

    def __init__(
        self,
        frames: Frames,
        float_engine: Engine,
        make: Callable[[Engine], TextDetector],
        recogniser: TextRecogniser,
        gates: Gates,
        exposures: Exposures = USUAL_EXPOSURES,
    ) -> None:
        """Runs the float engine; `make` puts the stage around an engine. CalibrationRefused for NaN from float."""
        self.frames, self.make, self.recogniser, self.gates = frames, make, recogniser, gates
        self._watch = OutputWatch(float_engine)
        watched, plain = make(self._watch), make(float_engine)
        self.found: list[DetectedFrame] = []
        self.repeat, texts = BoxTally(), TextTally()
        for number, frame in enumerate(frames()):
            found = self._look(watched, frame.image)
            self.found.append(found)
            for image in exposures.of(frame.image, number):
                again = self._look(plain, image)
                self.repeat.add(found.quads, again.quads, _mask_iou(found, again))
                texts.add(frame.name, places_of(found.lines, again.lines), frame.labels)
        self.repeat_edits = texts.error.unlabelled_edits / max(1, exposures.count)
        _refuse_broken_float(self._watch)

    def _look(self, detector: TextDetector, image: Image) -> DetectedFrame:
        probability = detector.probability(image)
        boxes = detector.boxes(probability, image)
        mask = probability > round(detector.settings.pixel_threshold * 255)
        lines = self.recogniser.recognise(image, boxes)
        return DetectedFrame(tuple(box.quad for box in boxes), lines, np.packbits(mask), mask.shape)

    def judge(self, engine: Engine, worst: Sequence[str] = ()) -> Judgement:
        """Judges one engine, which stays open. `worst`: the most damaging groups if known, for the advice."""
        watch = OutputWatch(engine)
        detector = self.make(watch)
        texts, boxes = TextTally(), BoxTally()
        for number, (frame, found) in enumerate(zip(self.frames(), self.found, strict=True), 1):
            seen = self._look(detector, frame.image)
            if fault := watch.fault(self._watch, at_end=False):
                return Judgement((nonsense(fault, number),))
            boxes.add(found.quads, seen.quads, _mask_iou(found, seen))
            texts.add(frame.name, places_of(found.lines, seen.lines), frame.labels)
        if fault := watch.fault(self._watch):
            return Judgement((nonsense(fault, len(self.found)),))
        gates = (
            *boxes.gates(self.gates, worst, self.repeat),
            texts.gate(self.gates, worst, self.repeat_edits),
        )
        figures = {**boxes.figures(self.repeat), **texts.figures(self.repeat_edits)}
        return Judgement(gates, figures, tuple(texts.changed))


def _mask_iou(found: DetectedFrame, seen: DetectedFrame) -> float:
    """IoU of the text masks, 1 where neither holds any."""
    if found.shape != seen.shape:
        return 0.0
    union = int(np.unpackbits(found.mask | seen.mask).sum())
    return int(np.unpackbits(found.mask & seen.mask).sum()) / union if union else 1.0


@dataclass(frozen=True)
class ReadCrops:
    """One frame's boxes and what is read in each: None where nothing was read with enough confidence."""

    boxes: tuple[TextBox, ...]
    lines: tuple[TextLine | None, ...]


class RecogniserJudge:
    """Judges recognisers by what they read in the boxes that the float detector found."""

    def __init__(
        self,
        frames: Frames,
        float_engine: Engine,
        make: Callable[[Engine], TextRecogniser],
        detector: TextDetector,
        gates: Gates,
        exposures: Exposures = USUAL_EXPOSURES,
    ) -> None:
        """Runs detector and float engine; `make` puts the stage around an engine. CalibrationRefused for NaN."""
        self.frames, self.make, self.gates = frames, make, gates
        self._watch = OutputWatch(float_engine)
        watched, plain = make(self._watch), make(float_engine)
        self.read: list[ReadCrops] = []
        texts = TextTally()
        for number, frame in enumerate(frames()):
            read = _read(watched, frame.image, detector.detect(frame.image))
            self.read.append(read)
            for image in exposures.of(frame.image, number):
                texts.add(frame.name, _places(read, _read(plain, image, read.boxes)), frame.labels)
        self.repeat_edits = texts.error.unlabelled_edits / max(1, exposures.count)
        _refuse_broken_float(self._watch)

    @property
    def texts(self) -> list[str]:
        """All lines as the float engine reads them, each once, in the order of the frames: an encoder's inputs."""
        return list(dict.fromkeys(line.text for read in self.read for line in read.lines if line is not None))

    def judge(self, engine: Engine, worst: Sequence[str] = ()) -> Judgement:
        """Judges one engine, which stays open. `worst`: the most damaging groups if known, for the advice."""
        watch = OutputWatch(engine)
        recogniser = self.make(watch)
        texts = TextTally()
        for number, (frame, read) in enumerate(zip(self.frames(), self.read, strict=True), 1):
            seen = _read(recogniser, frame.image, read.boxes)
            if fault := watch.fault(self._watch, at_end=False):
                return Judgement((nonsense(fault, number),))
            texts.add(frame.name, _places(read, seen), frame.labels)
        if fault := watch.fault(self._watch):
            return Judgement((nonsense(fault, len(self.read)),))
        figures = {"frames": float(len(self.read)), **texts.figures(self.repeat_edits)}
        return Judgement((texts.gate(self.gates, worst, self.repeat_edits),), figures, tuple(texts.changed))


def _read(recogniser: TextRecogniser, image: Image, boxes: tuple[TextBox, ...]) -> ReadCrops:
    """The lines beside their boxes; a line's quad is its box's, turned to the direction that the text runs in."""
    following = iter(recogniser.recognise(image, boxes))
    line = next(following, None)
    lines: list[TextLine | None] = []
    for box in boxes:
        mine = line if line is not None and _corners(line.box.quad) == _corners(box.quad) else None
        lines.append(mine)
        if mine is not None:
            line = next(following, None)
    return ReadCrops(boxes, tuple(lines))


def _corners(quad: Quad) -> frozenset[tuple[float, float]]:
    return frozenset((float(x), float(y)) for x, y in quad.points)


def _places(read: ReadCrops, seen: ReadCrops) -> list[Place]:
    places = []
    for box, ours, theirs in zip(read.boxes, read.lines, seen.lines, strict=True):
        line = ours or theirs
        places.append(Place(line.box.quad if line else box.quad, _text(ours), _text(theirs)))
    return places


def _text(line: TextLine | None) -> str:
    return "" if line is None else line.text


class EncoderJudge:
    """Judges text encoders by their vectors, and by the class of meaning that a line is nearest to."""

    def __init__(
        self, texts: Sequence[str], float_engine: Engine, make: Callable[[Engine], TextEncoder], gates: Gates
    ) -> None:
        """Runs the float engine over `texts`; `make` puts the stage around an engine. CalibrationRefused for NaN."""
        self.texts, self.make, self.gates = tuple(dict.fromkeys(texts)), make, gates
        self._watch = OutputWatch(float_engine)
        encoder = make(self._watch)
        self.nearest, self.vectors = self._look(encoder)
        _refuse_broken_float(self._watch)

    def _look(self, encoder: TextEncoder) -> tuple[dict[str, str], Vectors]:
        """The nearest class of each text that the vocabulary knows, and the vectors of all."""
        classes = NearestPrototypes(encoder, PROTOTYPES)
        known = [text for text in self.texts if classes.understands(text)]
        answers = classes.nearest(known, [dict.fromkeys(PROTOTYPES, 0.0)] * len(known))
        vectors = encoder.encode(self.texts)
        return {text: answer.name for text, answer in zip(known, answers, strict=True)}, vectors

    def judge(self, engine: Engine, worst: Sequence[str] = ()) -> Judgement:
        """Judges one engine, which stays open. `worst`: the most damaging groups if known, for the advice."""
        if len(self.nearest) < LEAST_TEXTS:
            words = (
                f"there are {len(self.nearest)} different lines that the encoder understands on the held-out frames; a "
                f"verdict wants {LEAST_TEXTS}. Collect more frames, and such that show more text"
            )
            return Judgement((no_evidence(len(self.nearest), LEAST_TEXTS, "lines", words),))
        watch = OutputWatch(engine)
        nearest, vectors = self._look(self.make(watch))
        if fault := watch.fault(self._watch):
            return Judgement((nonsense(fault, len(next(iter(watch.seen.values())))),))
        cosines = np.sum(self.vectors.astype(np.float64) * vectors, axis=1)
        changed = [text for text, name in self.nearest.items() if nearest[text] != name]
        agreement = 1 - len(changed) / len(self.nearest)
        lines = tuple(ChangedLine(text, [], self.nearest[text], nearest[text], None) for text in changed)
        figures = {
            "texts": float(len(self.texts)),
            "texts_with_class": float(len(self.nearest)),
            "changed_classes": float(len(changed)),
            "class_agreement": agreement,
            "cosine": float(cosines.mean()),
            "worst_cosine": float(cosines.min()),
        }
        return Judgement(self._gates(agreement, float(cosines.mean()), len(changed), worst), figures, lines)

    def _gates(self, agreement: float, cosine: float, changed: int, worst: Sequence[str]) -> tuple[GateResult, ...]:
        cure = remedies(worst, labels=False)
        share = 1 / len(self.nearest)
        coarse = "" if share <= 1 - self.gates.min_class_agreement else f" (one line is {100 * share:.1f} %)"
        return (
            at_least(
                "class_agreement",
                agreement,
                self.gates.min_class_agreement,
                "share",
                f"{changed} of {len(self.nearest)} lines{coarse} come nearest to another class of meaning: {cure}",
            ),
            at_least(
                "cosine",
                cosine,
                self.gates.min_cosine,
                "cosine",
                f"sentence vectors point elsewhere, mean cosine {cosine:.3f}: {cure}",
            ),
        )


class ReadingJudge:
    """Judges whole pipelines by the readings that leave the device."""

    def __init__(
        self, frames: Frames, float_pipeline: Pipeline, gates: Gates, exposures: Exposures = USUAL_EXPOSURES
    ) -> None:
        """Reads all frames with the float engines; FrameError and EngineError pass through."""
        self.frames, self.gates = frames, gates
        self.readings: list[Reading] = []
        self.repeat, texts = FieldTally(), TextTally()
        for number, frame in enumerate(frames()):
            reading = _reading(float_pipeline, frame.image, number)
            self.readings.append(reading)
            for image in exposures.of(frame.image, number):
                again = _reading(float_pipeline, image, number)
                self.repeat.add(reading, again)
                texts.add(frame.name, places_of(reading.lines, again.lines), frame.labels)
        self.repeat_edits = texts.error.unlabelled_edits / max(1, exposures.count)

    @property
    def texts(self) -> list[str]:
        """All lines as the float engines read them, each once, in their order: an encoder's inputs."""
        return list(dict.fromkeys(line.text for reading in self.readings for line in reading.lines))

    def judge(self, pipeline: Pipeline, worst: Sequence[str] = ()) -> Judgement:
        """Judges a pipeline with INT8 engines, which stays open."""
        texts, fields = TextTally(), FieldTally()
        for number, (frame, reading) in enumerate(zip(self.frames(), self.readings, strict=True)):
            seen = _reading(pipeline, frame.image, number)
            texts.add(frame.name, places_of(reading.lines, seen.lines), frame.labels)
            fields.add(reading, seen)
        figures = {**fields.figures(self.repeat), **texts.figures(self.repeat_edits)}
        chars = texts.error.float_chars
        gate = fields.gate(self.gates, worst, self.repeat)
        if chars < LEAST_CHARS:
            gate = no_evidence(chars, LEAST_CHARS, "characters", too_little_text(chars))
        return Judgement((gate,), figures, tuple(texts.changed))


def _reading(pipeline: Pipeline, image: Image, seq: int) -> Reading:
    return pipeline.read(Frame("calibration", seq, 0.0, 0.0, image))


def _refuse_broken_float(watch: OutputWatch) -> None:
    """A float engine that gives NaN is no measure for another."""
    for name, runs in watch.seen.items():
        bad = sum(run.not_finite > 0 for run in runs)
        if bad:
            raise CalibrationRefused(
                f"output `{name}` of the float engine {watch.fingerprint} holds NaN or infinity on {bad} of "
                f"{len(runs)} runs: there is nothing to measure INT8 against; `edge-agent models fetch` brings it anew"
            )
