"""Made readings: labels of lines that stand somewhere, as a pipeline would give them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from edge_agent.items.draft import Draft
from edge_agent.items.lane import Lane
from edge_agent.records import Code, Field, Frame, Item, Quad, Reading, TextBox, TextLine, Verdict
from edge_agent.settings.items import ItemsConfig

SIZE = (640, 360)
IMAGE = np.zeros((SIZE[1], SIZE[0], 3), np.uint8)
STEP_S = 0.1


def quad(x: float, y: float, width: float, height: float = 20.0) -> Quad:
    return Quad(np.array([[x, y], [x + width, y], [x + width, y + height], [x, y + height]], np.float32))


def line(text: str, x: float = 100.0, y: float = 100.0, **more: Any) -> TextLine:
    """A line of `text`, 12 px a character, its left end at (x, y); cut where it leaves the picture."""
    full = 12.0 * len(text)
    left, right = max(0.0, x), min(float(SIZE[0]), x + full)
    first, last = round((left - x) / 12), round((right - x) / 12)
    flags = ("cut",) if (first, last) != (0, len(text)) else ()
    values = {"confidence": 0.95, "flags": flags, **more}
    return TextLine(text=text[first:last], box=TextBox(quad(left, y, max(1.0, right - left)), 0.9), **values)


def label(*texts: str, x: float = 100.0, y: float = 100.0, **more: Any) -> list[TextLine]:
    """Lines one below the other; those that are out of the picture left out."""
    made = [line(text, x, y + 30 * n, **more) for n, text in enumerate(texts)]
    return [each for each in made if each.text]


def lot(of: int, value: str, **more: Any) -> Field:
    return Field(**{"name": "lot", "value": value, "text": value, "confidence": 0.9, "lines": (of,), **more})


@dataclass
class Film:
    """A lane that is shown frames, one every STEP_S, and what it decided."""

    settings: ItemsConfig
    triggered: bool = False
    verdict: Verdict | None = None
    region: str | None = None
    items: list[Item] = field(default_factory=list)
    drafts: list[Draft] = field(default_factory=list)
    seq: int = 0
    now: float = 100.0
    unix_s: float = 1_000.0  # at which `now` is 0

    def __post_init__(self) -> None:
        self.lane = Lane(
            "line1",
            self.region,
            self.settings,
            triggered=self.triggered,
            expects=lambda: self.verdict is not None,
            judge=lambda item: self.verdict,
            decided=self._take,
        )

    def _take(self, draft: Draft, item: Item) -> None:
        self.drafts.append(draft)
        self.items.append(item)

    def show(self, lines: Sequence[TextLine] = (), fields: Iterable[Field] = (), codes: Iterable[Code] = ()) -> None:
        """The next frame."""
        self.now += STEP_S
        self.seq += 1
        frame = Frame("line1", self.seq, self.unix_s + self.now, self.now, IMAGE)
        reading = Reading("line1", self.seq, frame.captured_at, *SIZE, tuple(lines), tuple(fields), codes=tuple(codes))
        self.lane.see(frame, reading, self.now)

    def texts(self) -> list[list[str]]:
        """The lines of each item that was decided."""
        return [[each.line.text for each in item.lines] for item in self.items]
