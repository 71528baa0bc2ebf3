"""TokenClassifier: a plant's own token classification model (named entity recognition), read by a fixed contract.

Inputs are bound by name among those of text_encoder.INPUTS, int32 or int64 as the graph has them; the output `logits`
is (batch, tokens, labels); labels are plain, IO, BIO, BIOES or BILOU. A word has the label of its first token; an
entity is cut out of the original characters by the tokenizer's offsets, its score the mean of its words' probabilities.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from tokenizers import Encoding

from edge_agent.backends.base import Engine
from edge_agent.errors import EngineError, ModelError
from edge_agent.stages.text_encoder import (
    LENGTH_LADDER,
    MAX_BATCH,
    MAX_WINDOWS,
    encodable,
    feed_of,
    known_inputs,
    load_tokenizer,
)

LOGITS = "logits"
OUTSIDE = "O"
_SCHEME = re.compile(r"(?P<part>[BIESLU])-(?P<kind>.+)")


@dataclass(frozen=True)
class Entity:
    """`text[start:end]` is called `kind`, the label without its B-, I- or the like; `score` 0..1."""

    kind: str
    start: int
    end: int
    score: float


@dataclass(frozen=True)
class _Word:
    """A word of a text with the label and probability of its first token."""

    label: str
    start: int
    end: int
    score: float


class TokenClassifier:
    """Finds entities in texts; one thread owns it, the engine's."""

    def __init__(
        self,
        engine: Engine,
        tokenizer_path: Path,
        labels: Sequence[str],
        max_len: int = LENGTH_LADDER[-1],
        threshold: float = 0.5,
    ) -> None:
        """Raises ModelError for a graph that does not keep the contract, or another count of labels than it gives."""
        if not 4 <= max_len <= 512:
            raise ModelError(f"max_len is {max_len}; expected 4 to 512 tokens")
        self._engine = engine
        self._inputs = known_inputs(engine.inputs)
        self._labels = tuple(labels)
        _check_output(engine, len(self._labels))
        self._tokenizer = load_tokenizer(tokenizer_path, max_len)
        self._ladder = (*(length for length in LENGTH_LADDER if length < max_len), max_len)
        self._threshold = threshold
        self._try_out()

    def _try_out(self) -> None:
        """What a graph leaves open, such as its count of labels, shows here and not on the line."""
        try:
            self.entities(["LOT A1"])
        except EngineError as exc:
            raise ModelError(
                f"the tagger fails on a plain text; is this the tokenizer it was trained with? {exc}"
            ) from exc

    def entities(self, texts: Sequence[str]) -> list[tuple[Entity, ...]]:
        """For each text its entities, left to right. Any str is taken; what lies beyond MAX_WINDOWS times the model's
        length is not looked at. Raises EngineError when inference fails."""
        plain = [encodable(text) for text in texts]
        owners: list[int] = []
        windows: list[Encoding] = []
        for owner, encoding in enumerate(self._tokenizer.encode_batch(plain)):
            for window in [encoding, *encoding.overflowing][:MAX_WINDOWS]:
                owners.append(owner)
                windows.append(window)
        words: list[list[_Word]] = [[] for _ in texts]
        for at in range(0, len(windows), MAX_BATCH):
            batch = windows[at : at + MAX_BATCH]
            feed = feed_of([(window.ids, window.type_ids) for window in batch], self._inputs, self._ladder)
            probabilities = self._probabilities(self._engine.infer(feed)[LOGITS])
            for owner, window, scores in zip(owners[at : at + MAX_BATCH], batch, probabilities, strict=True):
                words[owner] += self._words(window, scores)
        return [tuple(e for e in entities_of(found) if e.score >= self._threshold) for found in words]

    def _probabilities(self, logits: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
        if logits.ndim != 3 or logits.shape[2] != len(self._labels):
            raise ModelError(_WRONG_LABELS.format(shape=logits.shape, count=len(self._labels)))
        scores = np.exp(logits.astype(np.float64) - logits.max(axis=2, keepdims=True))
        return np.asarray(scores / scores.sum(axis=2, keepdims=True))

    def _words(self, window: Encoding, scores: npt.NDArray[np.float64]) -> Iterator[_Word]:
        """The words of one window: tokens of one word id, the first of them deciding."""
        current: int | None = None
        word: _Word | None = None
        for at, (word_id, (start, end)) in enumerate(zip(window.word_ids, window.offsets, strict=True)):
            if word_id is None:
                continue
            if word is not None and word_id == current:
                word = _Word(word.label, word.start, end, word.score)
                continue
            if word is not None:
                yield word
            best = int(scores[at].argmax())
            current, word = word_id, _Word(self._labels[best], start, end, float(scores[at][best]))
        if word is not None:
            yield word


_WRONG_LABELS = (
    "the tagger gives logits of shape {shape} for {count} labels; expected (batch, tokens, {count}): "
    "list under tagger.labels of model.yaml as many as the model was trained with, in its order"
)


def entities_of(words: Sequence[_Word]) -> Iterator[Entity]:
    """The entities that words' labels spell, whatever the scheme: a new one begins at B, S and U, at another kind, and,
    in IO and plain labels, behind a word that is outside; E, L, S and U end it."""
    open_words: list[_Word] = []
    kind = ended = None
    for word in [*words, _Word(OUTSIDE, 0, 0, 0.0)]:
        part, this = parted(word.label)
        begins = this is not None and (this != kind or part in ("B", "S", "U") or bool(ended))
        if open_words and (this is None or begins):
            yield _entity(str(kind), open_words)
            open_words = []
        if this is not None:
            open_words.append(word)
        kind, ended = this, part in ("E", "L", "S", "U")


def parted(label: str) -> tuple[str, str | None]:
    """B, I, E, S, L, U or "" and the kind of a label; None for outside."""
    match = _SCHEME.fullmatch(label)
    if match is not None:
        return match["part"], match["kind"]
    return "", None if label == OUTSIDE else label


def _entity(kind: str, words: Sequence[_Word]) -> Entity:
    return Entity(kind, words[0].start, words[-1].end, float(np.mean([word.score for word in words])))


def _check_output(engine: Engine, count: int) -> None:
    spec = next((spec for spec in engine.outputs if spec.name == LOGITS), None)
    if spec is None:
        names = ", ".join(spec.name for spec in engine.outputs)
        raise ModelError(f"tagger gives {names}; expected {LOGITS} (batch, tokens, labels)")
    if len(spec.shape) != 3 or spec.shape[2] not in (None, count):
        raise ModelError(_WRONG_LABELS.format(shape=spec.shape, count=count))
