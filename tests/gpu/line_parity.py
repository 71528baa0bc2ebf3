"""Lines as one engine reads them against the same lines read by another: those the product publishes, and all crops."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from edge_agent.backends.base import Engine
from edge_agent.models import charset
from edge_agent.records import Quad, TextBox
from edge_agent.stages.text_detector import DetectorSettings, TextDetector
from edge_agent.stages.text_recogniser import RecogniserSettings, TextRecogniser
from tests.gpu import support

Difference = tuple[str, float, str, float]  # text and confidence of either engine


@dataclass
class LineParity:
    """Counts and differences. `published`: lines with confidence enough on both; `one_sided`: on one of them alone."""

    published: int = 0
    published_same: int = 0
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
    parity = LineParity()
    for frame, found in zip(frames, boxes, strict=True):
        quads = [box.quad for box in found]
        crops = [reader.read_quads(frame, quads) for reader in readers]
        for a, b in zip(*crops, strict=True):
            parity.crops += 1
            parity.crops_same += a[0] == b[0]
            if a[0] != b[0]:
                parity.differing_crops.append((a[0], round(a[1], 3), b[0], round(b[1], 3)))
        ours, theirs = ({place(line.box.quad): line for line in reader.recognise(frame, found)} for reader in readers)
        for at in ours.keys() | theirs.keys():
            count(parity, ours.get(at), theirs.get(at))
    return parity


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
