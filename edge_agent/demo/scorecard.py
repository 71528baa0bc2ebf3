"""Scorecard: the fields that were read, held against what the renderer drew."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from edge_agent.demo.scene import SceneText
from edge_agent.demo.table import CUT, safe
from edge_agent.demo.video import SampleVideo

# field of the reading -> what the truth calls it
JUDGED = {"lot": "lot", "expiry_date": "expiry", "serial_number": "serial"}
MISTAKES_KEPT = 5


@dataclass
class Tally:
    """Of one field: labels that were in full view, of these read right; and values that no label in view has.

    A value that the reading itself flags as cut by the edge of the picture is not stray: it says that it is in doubt.
    """

    drawn: int = 0
    right: int = 0
    stray: int = 0


@dataclass
class Scorecard:
    """Counts over the readings of the sample video. A frame is known by its reading's `seq`: the video loops."""

    sample: SampleVideo
    tallies: dict[str, Tally] = field(default_factory=lambda: {name: Tally() for name in JUDGED})
    mistakes: list[str] = field(default_factory=list)
    line_counts: dict[int, int] = field(init=False)

    def __post_init__(self) -> None:
        counts = [Counter(text.item for text in texts) for texts in self.sample.frames]
        self.line_counts = {item: max(count[item] for count in counts) for item in set().union(*counts)}

    def add(self, reading: Mapping[str, Any]) -> None:
        """Judges one message of the MQTT result schema."""
        seq = int(reading["seq"])
        texts = self.sample.frames[seq % len(self.sample.frames)]
        in_view = {text.item for text in texts}
        whole = {item for item in in_view if self._in_full_view(item, texts)}
        for name, truth in JUDGED.items():
            found = [field for field in reading["fields"] if field["name"] == name]
            values = [str(field["value"]) for field in found]
            tally = self.tallies[name]
            for item in sorted(whole):
                expected = self.sample.labels[item][truth]
                tally.drawn += 1
                tally.right += expected in values
                if expected not in values:
                    got = " / ".join(map(safe, values)) or "nothing"
                    self._remember(f"#{seq}: {name} is {expected}, read {got}")
            known = {self.sample.labels[item][truth] for item in in_view}
            tally.stray += sum(str(f["value"]) not in known for f in found if CUT not in f["flags"])

    def _in_full_view(self, item: int, texts: tuple[SceneText, ...]) -> bool:
        """Whether every text of the label is in the picture, none of them cut."""
        mine = [text for text in texts if text.item == item]
        return len(mine) == self.line_counts[item] and not any(text.cut for text in mine)

    def _remember(self, mistake: str) -> None:
        if len(self.mistakes) < MISTAKES_KEPT:
            self.mistakes.append(mistake)

    def summary(self) -> list[str]:
        """The count in words, one field a line, then the first mistakes."""
        lines = []
        for name, tally in self.tallies.items():
            stray = f", and {tally.stray} that no label in view carries" if tally.stray else ""
            lines.append(f"{name}: {tally.right} of {tally.drawn} right{stray}")
        return lines + [f"mistake {mistake}" for mistake in self.mistakes]
