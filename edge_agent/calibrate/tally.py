"""Tally: what text, boxes and field values became under INT8, summed up over frames, with the gates on them.

`repeat` is the same tally of the float engine against itself, looking again at each frame with a camera's noise on it:
what it then finds otherwise was undecided, and says nothing against INT8.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from edge_agent.calibrate.box_match import matched
from edge_agent.calibrate.judgement import ChangedLine, GateResult, at_least, at_most, no_evidence, remedies
from edge_agent.calibrate.recipe import Gates
from edge_agent.calibrate.text_error import Place, TextError, comparable, error_of, with_labels
from edge_agent.records import Quad, Reading

LEAST_CHARS = 50  # of text that a verdict may rest on
MOST_CHANGED = 1000  # changed lines that are kept of one judgement


@dataclass
class TextTally:
    """What text became over the frames so far."""

    error: TextError = field(default_factory=TextError)
    changed: list[ChangedLine] = field(default_factory=list)

    def add(self, frame: str, places: Sequence[Place], labels: Sequence[str]) -> None:
        """Counts one frame's places."""
        labelled, unplaced = with_labels(places, labels)
        self.error += error_of(labelled, unplaced)
        room = MOST_CHANGED - len(self.changed)
        self.changed += [_changed_line(frame, place) for place in labelled if place.changed][:room]

    def increase(self, repeat_edits: float) -> float | None:
        """CER of INT8 less that of float, and less `repeat_edits`: those of the float engine looking again at what no
        label is known of. None without characters."""
        error = self.error
        return (error.int8_edits - error.float_edits - repeat_edits) / error.chars if error.chars else None

    def gate(self, gates: Gates, worst: Sequence[str], repeat_edits: float = 0.0) -> GateResult:
        """The gate on the character error rate, or that there is too little text to judge by."""
        error, increase = self.error, self.increase(repeat_edits)
        if increase is None or error.chars < LEAST_CHARS:
            return no_evidence(error.chars, LEAST_CHARS, "characters", too_little_text(error.chars))
        against = "labels" if error.label_chars else "the float engine's text"
        own = f" beyond the {100 * repeat_edits / error.chars:.2f} % of float looking again" if repeat_edits else ""
        advice = (
            f"of {error.chars} characters {100 * increase:.2f} % more are wrong than by float, against {against}{own} "
            f"({100 * gates.max_cer_increase:.2f} % allowed; {error.changed} of {error.places} lines changed): "
            f"{remedies(worst, labels=not error.label_chars)}"
        )
        return at_most("cer_increase", increase, gates.max_cer_increase, "share", advice)

    def figures(self, repeat_edits: float = 0.0) -> dict[str, float]:
        """Counts and rates as shares, 0..1; those that could not be measured are left out."""
        error = self.error
        figures = {
            "lines": error.places,
            "changed_lines": error.changed,
            "chars": error.chars,
            "labelled_lines": error.labelled,
            "labels_not_found": error.unplaced_labels,
            "cer_increase": self.increase(repeat_edits),
            "repeat_cer": repeat_edits / error.chars if error.chars else None,
            "cer_to_float": error.cer_to_float,
            "cer_to_float_with_spaces": error.cer_to_float_spaced,
            "label_cer_float": error.label_cer_float,
            "label_cer_int8": error.label_cer_int8,
        }
        return {name: float(value) for name, value in figures.items() if value is not None}


def _changed_line(frame: str, place: Place) -> ChangedLine:
    quad = [[round(float(x), 1), round(float(y), 1)] for x, y in place.quad.points] if place.quad else []
    return ChangedLine(frame, quad, place.float_text, place.int8_text, place.label)


def too_little_text(chars: int) -> str:
    return (
        f"there are {chars} characters of text on the held-out frames; a verdict wants {LEAST_CHARS}. Collect more "
        "frames, and such that show text: the float engine must be able to read them"
    )


@dataclass
class BoxTally:
    """Boxes of both detectors so far."""

    float_boxes: int = 0
    int8_boxes: int = 0
    matched: int = 0
    mask_ious: list[float] = field(default_factory=list)

    def add(self, found: Sequence[Quad], seen: Sequence[Quad], mask_iou: float) -> None:
        """Counts one frame: the float engine's boxes, INT8's, and the IoU of the masks that they come from."""
        self.float_boxes += len(found)
        self.int8_boxes += len(seen)
        self.matched += len(matched(found, seen))
        self.mask_ious.append(mask_iou)

    @property
    def recall(self) -> float:
        """Share of the float engine's boxes that INT8 found too; 1 where there is none."""
        return self.matched / self.float_boxes if self.float_boxes else 1.0

    @property
    def precision(self) -> float:
        """Share of INT8's boxes that the float engine found too; where there is none, 0 if there should be."""
        return self.matched / self.int8_boxes if self.int8_boxes else float(not self.float_boxes)

    def gates(self, gates: Gates, worst: Sequence[str], repeat: BoxTally) -> tuple[GateResult, ...]:
        """Recall and precision, beyond what the float engine's second look (`repeat`) loses and invents itself; none
        where there is no box to find."""
        if not self.float_boxes:
            return ()
        lost, new = self.float_boxes - self.matched, self.int8_boxes - self.matched
        return (
            at_least(
                "box_recall",
                min(1.0, self.recall + 1 - repeat.recall),
                gates.min_box_recall,
                "share",
                f"{lost} of {self.float_boxes} boxes of the float engine are not found "
                f"({100 * (1 - repeat.recall):.1f} % by float looking again): {remedies(worst, labels=False)}",
            ),
            at_least(
                "box_precision",
                min(1.0, self.precision + 1 - repeat.precision),
                gates.min_box_precision,
                "share",
                f"{new} of {self.int8_boxes} boxes are none of the float engine's "
                f"({100 * (1 - repeat.precision):.1f} % with float looking again): {remedies(worst, labels=False)}",
            ),
        )

    def figures(self, repeat: BoxTally) -> dict[str, float]:
        """Counts and shares."""
        return {
            "frames": float(len(self.mask_ious)),
            "float_boxes": float(self.float_boxes),
            "int8_boxes": float(self.int8_boxes),
            "box_recall": self.recall,
            "box_precision": self.precision,
            "repeat_box_recall": repeat.recall,
            "repeat_box_precision": repeat.precision,
            "mask_iou": float(np.mean(self.mask_ious)) if self.mask_ious else 1.0,
        }


@dataclass
class FieldTally:
    """Field values of both pipelines so far; a value that became another counts once, one lost or invented too."""

    readings: int = 0
    changed_readings: int = 0
    values: int = 0
    changed_values: int = 0

    def add(self, reading: Reading, seen: Reading) -> None:
        """Counts one frame."""
        before, after = (Counter((f.name, comparable(f.value)) for f in one.fields) for one in (reading, seen))
        changed = max((before - after).total(), (after - before).total())
        self.values += (before & after).total() + changed
        self.changed_values += changed
        self.readings += 1
        texts = ([comparable(line.text) for line in one.lines] for one in (reading, seen))
        self.changed_readings += changed > 0 or next(texts) != next(texts)

    @property
    def changed(self) -> float:
        """Share of values that come out otherwise; 0 where there is none."""
        return self.changed_values / max(1, self.values)

    def gate(self, gates: Gates, worst: Sequence[str], repeat: FieldTally) -> GateResult:
        """The gate on field values, beyond what changes between two looks of the float engines (`repeat`)."""
        advice = (
            f"{self.changed_values} of {self.values} field values of whole readings come out otherwise "
            f"({repeat.changed_values} of {repeat.values} with float looking again): {remedies(worst, labels=False)}"
        )
        value = max(0.0, self.changed - repeat.changed)
        return at_most("changed_fields", value, gates.max_changed_fields, "share", advice)

    def figures(self, repeat: FieldTally) -> dict[str, float]:
        """Counts and shares."""
        return {
            "readings": float(self.readings),
            "changed_readings": float(self.changed_readings),
            "field_values": float(self.values),
            "changed_field_values": float(self.changed_values),
            "changed_fields": self.changed,
            "repeat_changed_fields": repeat.changed,
        }
