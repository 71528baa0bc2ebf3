"""Text error: by how many characters texts are wrong, and by how many more INT8's are.

Character error rate (CER) = edits / characters of the reference, where edits are the fewest insertions, deletions and
substitutions that turn one text into the other (Levenshtein, 1966); 1 - CER is the character accuracy of Rice,
"Measuring the Accuracy of Page-Reading Systems" (UNLV, 1996). A line that was not found counts as deletion of all its
characters, one that is not there as insertion of all of them; so CER can exceed 1.

Texts are compared in Unicode's form NFKC without white space: models disagree with themselves about spaces. What spaces
alone cost is counted apart (`changed_edits_spaced`).
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields, replace

from rapidfuzz.distance import Levenshtein

from edge_agent.calibrate.box_match import same_places
from edge_agent.records import Quad, TextLine
from edge_agent.stages.reading_order import reading_order

LABEL_LIKENESS = 0.5  # of the longer text: more edits, and a label is not that of this line


@dataclass(frozen=True)
class Place:
    """What stands in one place of a frame: the float engine's text, INT8's, and the true one where it is known.

    A text is "" where nothing was found or read.
    """

    quad: Quad | None
    float_text: str
    int8_text: str
    label: str | None = None

    @property
    def reference(self) -> str:
        """What both texts are measured against: the label; without one, what the float engine reads."""
        return self.float_text if self.label is None else self.label

    @property
    def changed(self) -> bool:
        """Whether INT8 reads otherwise than the float engine, white space left aside."""
        return comparable(self.float_text) != comparable(self.int8_text)


@dataclass(frozen=True)
class TextError:
    """Sums over places; `+` joins those of several frames. All in characters, but for the counts of places."""

    places: int = 0  # with any text
    changed: int = 0
    chars: int = 0  # of the references
    float_edits: int = 0  # to the references
    int8_edits: int = 0
    float_chars: int = 0  # of the float engine's texts
    changed_edits: int = 0  # between the two texts
    float_chars_spaced: int = 0
    changed_edits_spaced: int = 0
    labelled: int = 0  # places with a label, and labels without a place
    label_chars: int = 0
    label_float_edits: int = 0
    label_int8_edits: int = 0
    unplaced_labels: int = 0  # that neither engine's texts resemble

    def __add__(self, other: TextError) -> TextError:
        return TextError(*(getattr(self, f.name) + getattr(other, f.name) for f in fields(self)))

    @property
    def cer_increase(self) -> float | None:
        """CER of INT8 less that of the float engine, against the references; None without characters to compare.

        With labels everywhere this is the difference of two label CERs, without any the CER against the float text.
        """
        return (self.int8_edits - self.float_edits) / self.chars if self.chars else None

    @property
    def unlabelled_edits(self) -> int:
        """Edits between the two texts where no label says which is right."""
        return self.int8_edits - self.label_int8_edits

    @property
    def cer_to_float(self) -> float | None:
        """CER of INT8's texts against the float engine's."""
        return self.changed_edits / self.float_chars if self.float_chars else None

    @property
    def cer_to_float_spaced(self) -> float | None:
        """The same with white space, each run of it as one space."""
        return self.changed_edits_spaced / self.float_chars_spaced if self.float_chars_spaced else None

    @property
    def label_cer_float(self) -> float | None:
        """CER of the float engine's texts against the labels."""
        return self.label_float_edits / self.label_chars if self.label_chars else None

    @property
    def label_cer_int8(self) -> float | None:
        """CER of INT8's texts against the labels."""
        return self.label_int8_edits / self.label_chars if self.label_chars else None


def comparable(text: str) -> str:
    """The text in the form in which texts are compared."""
    return "".join(unicodedata.normalize("NFKC", text).split())


def spaced(text: str) -> str:
    """The text in NFKC with each run of white space as one space, none at its ends."""
    return " ".join(unicodedata.normalize("NFKC", text).split())


def edits(reference: str, text: str) -> int:
    """Fewest insertions, deletions and substitutions of characters between two texts, white space left aside."""
    return int(Levenshtein.distance(comparable(reference), comparable(text)))


def error_of(places: Iterable[Place], unplaced_labels: Sequence[str] = ()) -> TextError:
    """The sums over one frame's places; a label without a place was missed by both engines."""
    total = TextError()
    for place in places:
        total += _error_of_one(place)
    missed = sum(len(comparable(label)) for label in unplaced_labels)
    return total + TextError(
        chars=missed,
        float_edits=missed,
        int8_edits=missed,
        labelled=len(unplaced_labels),
        label_chars=missed,
        label_float_edits=missed,
        label_int8_edits=missed,
        unplaced_labels=len(unplaced_labels),
    )


def _error_of_one(place: Place) -> TextError:
    reference = place.reference
    if not (comparable(place.float_text) or comparable(place.int8_text) or comparable(reference)):
        return TextError()
    chars = len(comparable(reference))
    float_edits, int8_edits = edits(reference, place.float_text), edits(reference, place.int8_text)
    labelled = place.label is not None
    return TextError(
        places=1,
        changed=int(place.changed),
        chars=chars,
        float_edits=float_edits,
        int8_edits=int8_edits,
        float_chars=len(comparable(place.float_text)),
        changed_edits=edits(place.float_text, place.int8_text),
        float_chars_spaced=len(spaced(place.float_text)),
        changed_edits_spaced=int(Levenshtein.distance(spaced(place.float_text), spaced(place.int8_text))),
        labelled=int(labelled),
        label_chars=chars * labelled,
        label_float_edits=float_edits * labelled,
        label_int8_edits=int8_edits * labelled,
    )


def places_of(float_lines: Sequence[TextLine], int8_lines: Sequence[TextLine]) -> list[Place]:
    """The places of one frame where either engine found text; several boxes of one place are read as one line."""
    float_quads, int8_quads = ([line.box.quad for line in lines] for lines in (float_lines, int8_lines))
    return [
        Place(
            float_quads[ours[0]] if ours else int8_quads[theirs[0]],
            _joined([float_lines[n] for n in ours]),
            _joined([int8_lines[n] for n in theirs]),
        )
        for ours, theirs in same_places(float_quads, int8_quads)
    ]


def _joined(lines: Sequence[TextLine]) -> str:
    return " ".join(lines[n].text for n in reading_order([line.box.quad for line in lines]))


def with_labels(places: Sequence[Place], labels: Sequence[str]) -> tuple[list[Place], list[str]]:
    """The places with their labels, and the labels that belong to none; labels say what a frame holds, not where.

    The most alike pairs of label and place come first, whichever engine's text is more alike, so that neither is
    favoured; beyond LABEL_LIKENESS of the longer text they are strangers. A label that is left is put before or behind
    the text of a place, where both engines' texts together come nearer to it: one box can hold two labelled lines.
    """
    labelled = list(places)
    pairs = sorted(
        (share, n, p)
        for n, label in enumerate(labels)
        for p, place in enumerate(places)
        if (share := min(_unlikeness(label, place.float_text), _unlikeness(label, place.int8_text))) <= LABEL_LIKENESS
    )
    placed: set[int] = set()
    for _, n, p in pairs:
        if n not in placed and labelled[p].label is None:
            labelled[p] = replace(labelled[p], label=labels[n])
            placed.add(n)
    unplaced = []
    for label in (label for n, label in enumerate(labels) if n not in placed):
        if not _put_beside(labelled, label):
            unplaced.append(label)
    return labelled, unplaced


def _unlikeness(label: str, text: str) -> float:
    """Edits as a share of the longer text, 0..1; 1 where there is no text."""
    a, b = comparable(label), comparable(text)
    return float(Levenshtein.normalized_distance(a, b)) if a and b else 1.0


def _put_beside(places: list[Place], label: str) -> bool:
    """Joins the label to that of the place that it brings nearest to what was read there; False where none is."""
    best: tuple[int, int, str] | None = None
    for p, place in enumerate(places):
        if place.label is None:
            continue
        before = _edits_to(place, place.label)
        for whole in (f"{label} {place.label}", f"{place.label} {label}"):
            gain = before - _edits_to(place, whole)
            if gain > (best[0] if best else 0):
                best = gain, p, whole
    if best is None:
        return False
    places[best[1]] = replace(places[best[1]], label=best[2])
    return True


def _edits_to(place: Place, reference: str) -> int:
    return edits(reference, place.float_text) + edits(reference, place.int8_text)
