"""Lattice: from a CTC network's steps to text, how sure each character is, and what else it could be.

Greedy decoding (Graves et al., 2006): the likeliest class of each step, repeated ones merged, blanks dropped.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from edge_agent.errors import ModelError
from edge_agent.records import Character, Lattice, TextLine

BLANK = 0  # the CTC class that stands for "no character here"
CERTAIN = 99.0  # margin of a character that has no rival

Floats = npt.NDArray[np.float32]


@dataclass(frozen=True)
class Spelling:
    """What one line says: `characters` and `lattice` where the recogniser gives margins, in step with `text`."""

    text: str
    confidence: float
    characters: tuple[Character, ...] = ()
    lattice: Lattice | None = None


NOTHING = Spelling("", 0.0)


class Alphabet:
    """What the classes of a recogniser stand for: `charset[i]` is the text of class i, class 0 the blank; `codes` are
    the classes of the code characters, in the order of the margins' columns, the blank first."""

    def __init__(self, charset: Sequence[str], codes: Sequence[int] = ()) -> None:
        if not charset or charset[BLANK] != "":
            raise ModelError(f"charset has {len(charset)} classes; expected class {BLANK} (blank) to be ''")
        if codes and codes[0] != BLANK:
            raise ModelError(f"the code characters begin with class {codes[0]}; expected the blank, {BLANK}")
        self.charset = tuple(charset)
        self.codes = tuple(self.charset[n] for n in codes)
        self._rivals = np.stack([self._rivals_of(character) for character in (*self.codes, None)]) if codes else None
        self._row = {character: n for n, character in enumerate(self.codes)}

    def _rivals_of(self, character: str | None) -> npt.NDArray[np.bool_]:
        """Which columns may be the rival of a character, None: of one that is no code character."""
        return np.array([is_rival(other, character or "") for other in self.codes])

    def spell(self, index: npt.NDArray[np.int32], probability: Floats, code_margin: Floats | None = None) -> Spelling:
        """The text of one line: `index` int32 (T,) and `probability` float32 (T,) of the likeliest class of each step,
        `code_margin` float32 (T, C) the log probabilities of the code characters less the winner's.

        Confidence is the mean probability of the characters.
        """
        kept = index != BLANK
        kept[1:] &= index[1:] != index[:-1]
        if not kept.any():
            return NOTHING
        starts = np.flatnonzero(kept)
        texts = [self.charset[n] for n in index[starts]]
        text, confidence = "".join(texts), float(probability[starts].mean())
        if code_margin is None or not self.codes or len(text) != len(texts):
            return Spelling(text, confidence)
        if code_margin.shape != (len(index), len(self.codes)):
            raise ModelError(
                f"code_margin is {code_margin.shape} for {len(index)} steps and {len(self.codes)} code characters; "
                "run edge-agent models fetch"
            )
        changes = np.flatnonzero(index[1:] != index[:-1]) + 1
        following = np.searchsorted(changes, starts, side="right")
        ends = np.append(changes, len(index))[following]
        lattice = self._lattice(index, probability, code_margin, np.stack([starts, ends], axis=1))
        peaks = [begin + int(probability[begin:end].argmax()) for begin, end in zip(starts, ends, strict=True)]
        return Spelling(text, confidence, self._characters(texts, probability[peaks], code_margin[peaks]), lattice)

    def _characters(self, texts: Sequence[str], probability: Floats, code_margin: Floats) -> tuple[Character, ...]:
        assert self._rivals is not None
        rivals = self._rivals[[self._row.get(text, -1) for text in texts]]
        among = np.where(rivals, code_margin, -np.inf)
        nearest = among.argmax(axis=1)
        margins = np.maximum(-among[np.arange(len(texts)), nearest], 0.0)
        return tuple(
            Character(text, p, margin, self.codes[n])
            for text, p, margin, n in zip(texts, probability.tolist(), margins.tolist(), nearest.tolist(), strict=True)
        )

    def _lattice(
        self, index: npt.NDArray[np.int32], probability: Floats, code_margin: Floats, steps: npt.NDArray[np.int64]
    ) -> Lattice:
        best_log_p = np.log(np.maximum(probability, np.finfo(np.float32).tiny))
        return Lattice(
            self.codes,
            best_log_p[:, None] + code_margin,
            tuple(self.charset[n] for n in index.tolist()),
            best_log_p,
            steps.astype(np.int32),
        )


def is_rival(other: str, character: str) -> bool:
    """Whether it says something else: not the same letter in another case, which often its size alone tells."""
    return other != "" and other.lower() != character.lower()


def doubtful(characters: Sequence[Character], margin: float) -> tuple[int, ...]:
    """The indices of the characters whose margin is below the bound."""
    return tuple(n for n, character in enumerate(characters) if character.margin < margin)


def rivals_of(line: TextLine, at: int, margin: float) -> str:
    """What a character of a line could be: its rival, and all code characters within the margin of it where it is
    surest; "" where nothing is known of it."""
    found = [line.characters[at].rival] if line.characters else []
    lattice = line.lattice
    if lattice is not None and lattice.steps[at, 1] > lattice.steps[at, 0]:
        begin, end = lattice.steps[at]
        step = begin + int(lattice.best_log_p[begin:end].argmax())
        behind = lattice.best_log_p[step] - lattice.log_p[step]
        found += [lattice.alphabet[n] for n in np.argsort(behind) if behind[n] < margin]
    return "".join(dict.fromkeys(rival for rival in found if is_rival(rival, line.text[at])))


def stripped(spelling: Spelling) -> Spelling:
    """The line without the spaces at its ends."""
    text = spelling.text.strip()
    if text == spelling.text:
        return spelling
    if not spelling.characters or spelling.lattice is None:
        return Spelling(text, spelling.confidence)
    begin = len(spelling.text) - len(spelling.text.lstrip())
    kept = slice(begin, begin + len(text))
    lattice = replace(spelling.lattice, steps=spelling.lattice.steps[kept])
    return Spelling(text, spelling.confidence, spelling.characters[kept], lattice)


def spaced(spelling: Spelling, places: Sequence[int]) -> Spelling:
    """The line with a space put in before each of the characters at `places`, ascending; it has no steps of its own."""
    for at in reversed(places):
        text = f"{spelling.text[:at]} {spelling.text[at:]}"
        if not spelling.characters or spelling.lattice is None:
            spelling = Spelling(text, spelling.confidence)
            continue
        characters = (*spelling.characters[:at], Character(" ", 1.0, CERTAIN, ""), *spelling.characters[at:])
        steps = spelling.lattice.steps
        between = steps[at, 0] if at < len(steps) else len(spelling.lattice.best)
        lattice = replace(spelling.lattice, steps=np.insert(steps, at, between, axis=0))
        spelling = Spelling(text, spelling.confidence, characters, lattice)
    return spelling


def joined(pieces: Sequence[tuple[Spelling, bool]]) -> Spelling:
    """Pieces of one line as one, each with whether a space stands between it and the one before; confidence weighted
    by length."""
    whole, *others = [spaced(spelling, [0]) if space else spelling for spelling, space in pieces]
    for piece in others:
        length = len(whole.text) + len(piece.text)
        confidence = (
            (len(whole.text) * whole.confidence + len(piece.text) * piece.confidence) / length if length else 0.0
        )
        whole_pieces = [each for each in (whole, piece) if each.text]
        if all(each.lattice is not None for each in whole_pieces) and whole_pieces:
            lattice = _end_to_end([each.lattice for each in whole_pieces if each.lattice is not None])
        else:
            lattice = None
        characters = (*whole.characters, *piece.characters) if lattice is not None else ()
        whole = Spelling(whole.text + piece.text, confidence, characters, lattice)
    return whole if whole.text else NOTHING


def _end_to_end(lattices: Sequence[Lattice]) -> Lattice:
    """Lattices one after the other, a sure blank between: what ends one and begins the next is not one character."""
    first, *others = lattices
    for other in others:
        blank = np.full((1, len(first.alphabet)), np.float32(-CERTAIN))
        blank[0, 0] = 0.0
        first = Lattice(
            first.alphabet,
            np.concatenate([first.log_p, blank, other.log_p]),
            (*first.best, "", *other.best),
            np.concatenate([first.best_log_p, np.zeros(1, np.float32), other.best_log_p]),
            np.concatenate([first.steps, other.steps + len(first.best) + 1]),
        )
    return first
