"""Lines as one engine reads them against the same lines read by another: those the product publishes, and all crops.

Some published lines, blurred ones of street scenes above all, hold a character between which and another the network is
undecided; there the last bit decides, and so does a wider margin. They are counted, and told apart from decided ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from edge_agent.backends.base import Array, Engine, Feed
from edge_agent.models import charset
from edge_agent.records import Quad, TextBox
from edge_agent.stages.text_detector import DetectorSettings, TextDetector
from edge_agent.stages.text_recogniser import RecogniserSettings, TextRecogniser
from tests.gpu import support

DECIDED = 0.55  # a character this probable is 0.1 ahead of any other

Difference = tuple[str, float, str, float]  # text and confidence of either engine


@dataclass
class LineParity:
    """Counts and differences. `published`: lines with confidence enough on both; `one_sided`: on one of them alone.

    `decided`: published lines of which the reference is sure in every character, and that it reads alike by themselves.
    """

    published: int = 0
    published_same: int = 0
    decided: int = 0
    decided_same: int = 0
    crops: int = 0
    crops_same: int = 0
    differing: list[Difference] = field(default_factory=list)
    one_sided: list[Difference] = field(default_factory=list)
    differing_crops: list[Difference] = field(default_factory=list)

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return asdict(self)


def found_boxes(frames: Sequence[support.Image], ort: Any) -> list[tuple[TextBox, ...]]:
    """What the first detector finds in each frame on ONNX Runtime, so that engines are given the same lines."""
    engine = ort.load(support.ocr_models()[0].onnx_path)
    detector = TextDetector(engine, DetectorSettings())
    boxes = [detector.detect(frame) for frame in frames]
    engine.close()
    return boxes


def compare(
    frames: Sequence[support.Image],
    boxes: Sequence[tuple[TextBox, ...]],
    engine: Engine,
    reference: Engine,
    model: support.Model,
) -> LineParity:
    """Reads the boxes of every frame with both engines."""
    characters = charset.read(model.onnx_path.resolve().parent / "charset.latin.json")
    settings = RecogniserSettings(widths_px=support.RECOGNISER_WIDTHS_PX)
    readers = [TextRecogniser(one, characters, settings) for one in (engine, reference)]
    watched = Watched(reference)
    alone = TextRecogniser(watched, characters, settings)
    parity = LineParity()
    for frame, found in zip(frames, boxes, strict=True):
        quads = [box.quad for box in found]
        crops = [reader.read_quads(frame, quads) for reader in readers]
        for a, b in zip(*crops, strict=True):
            parity.crops += 1
            parity.crops_same += a.text == b.text
            if a.text != b.text:
                parity.differing_crops.append((a.text, round(a.confidence, 3), b.text, round(b.confidence, 3)))
        ours, theirs = ({place(line.box.quad): line for line in reader.recognise(frame, found)} for reader in readers)
        for at in ours.keys() | theirs.keys():
            a, b = ours.get(at), theirs.get(at)
            count(parity, a, b)
            if a is not None and b is not None:
                watched.least = 1.0
                text = alone.read_quads(frame, [b.box.quad])[0].text
                if text == b.text and watched.least >= DECIDED:
                    parity.decided += 1
                    parity.decided_same += a.text == b.text
    return parity


class Watched:
    """A recogniser's engine that keeps the least probability that it gave a step since `least` was set."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.inputs, self.outputs, self.fingerprint = engine.inputs, engine.outputs, engine.fingerprint
        self.least = 1.0

    def infer(self, feed: Feed) -> dict[str, Array]:
        outputs = self.engine.infer(feed)
        self.least = min(self.least, float(outputs["probability"].min()))
        return outputs

    def enqueue(self, feed: Feed) -> None:
        self.engine.enqueue(feed)

    def collect(self) -> dict[str, Array]:
        return self.engine.collect()

    def close(self) -> None:
        self.engine.close()


def count(parity: LineParity, a: Any, b: Any) -> None:
    """Counts one line that at least one engine publishes."""
    difference = tuple(x for line in (a, b) for x in ((line.text, round(line.confidence, 3)) if line else ("", 0.0)))
    if a is None or b is None:
        parity.one_sided.append(difference)  # type: ignore[arg-type]
        return
    parity.published += 1
    parity.published_same += a.text == b.text
    if a.text != b.text:
        parity.differing.append(difference)  # type: ignore[arg-type]


def place(quad: Quad) -> tuple[tuple[float, ...], ...]:
    """The same for a quad whichever corner comes first."""
    return tuple(sorted(tuple(point) for point in quad.points.tolist()))
