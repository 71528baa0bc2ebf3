"""NearestPrototypes: which field's example phrases a text is most like, by embeddings, the pieces of its words, shape
and what rules half know.

Two opinions are added: the mean cosine to a field's nearest prototypes, which knows the single example, and a logistic
regression, which knows what sets the fields apart. Both come from the prototypes and one misreading of each, and are
made at start-up; nothing is trained elsewhere. What is embedded and cut into pieces is a text's gist, its words without
the digits of its value; its shape is that of the whole text.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from edge_agent.stages import logistic
from edge_agent.stages.char_ngrams import char_ngrams
from edge_agent.stages.line_shape import shape
from edge_agent.stages.misreadings import misread
from edge_agent.stages.prototype_vectors import PrototypeVectors
from edge_agent.stages.text_encoder import TextEncoder

Matrix = npt.NDArray[np.floating[Any]]

TOP_K = 5
MIN_UNDERSTOOD = 0.5  # share of a text's tokens; below it an embedding tells nothing
SHAPE_WEIGHT = 0.6  # of a shape's numbers beside an embedding of length 1
SIMILARITY_WEIGHT = 6.0  # of the mean cosine beside the regression's scores
PENALTY = 3e-4  # on squared weights, beside the mean loss of a prototype

Evidence = Callable[[str, Sequence[str]], Matrix]
Candidates = Mapping[str, float]  # the fields that a text may be of, and what speaks for each beforehand, in nats


def no_evidence(text: str, names: Sequence[str]) -> Matrix:
    """Nothing is known of a text but its words and its shape."""
    return np.zeros(0)


@dataclass(frozen=True)
class Nearest:
    """The likeliest field, the mean cosine to its nearest prototypes, and its share 0..1 against the other fields."""

    name: str
    similarity: float
    share: float


class NearestPrototypes:
    """Embeds the prototypes when made, and again for another engine; else `nearest` costs one batched encoder call.

    `gist` gives the words of a text; `evidence` what rules know of it, by the fields' names; `kept` has the vectors of
    an earlier start, where they are the same.
    """

    def __init__(
        self,
        encoder: TextEncoder,
        prototypes: Mapping[str, Sequence[str]],
        gist: Callable[[str], str] = str,
        evidence: Evidence = no_evidence,
        kept: PrototypeVectors | None = None,
    ) -> None:
        self._encoder = encoder
        self._evidence = evidence
        self._kept = kept or PrototypeVectors(None)
        known = {name: [p for p in phrases if self.understands(p)] for name, phrases in prototypes.items()}
        self._names = tuple(known)
        phrases = [phrase for name in self._names for phrase in known[name]]
        owners = np.array([at for at, name in enumerate(self._names) for _ in known[name]])
        self._columns = [np.flatnonzero(owners == at) for at in range(len(self._names))]
        examples = [*phrases, *map(misread, phrases)]
        self._gists = [gist(example) for example in examples]
        self._owners = np.concatenate([owners, owners])
        self._manners = self._manner(examples, self._gists)
        self._embed()

    def understands(self, text: str) -> bool:
        """Whether the encoder's vocabulary has the text's script: an English one knows next to no ideographs."""
        return self._encoder.understood(text) >= MIN_UNDERSTOOD

    def nearest(
        self, texts: Sequence[str], candidates: Sequence[Candidates], gists: Sequence[str] | None = None
    ) -> list[Nearest]:
        """For each text the likeliest among its candidate fields; `gists` are the texts' words, None: the texts."""
        if not texts:
            return []
        if self._encoder.fingerprint != self._embedded_by:
            self._embed()
        gists = texts if gists is None else gists
        vectors = self._encoder.encode(gists)
        similarities = self._similarities(vectors)
        scores = SIMILARITY_WEIGHT * similarities + np.hstack([vectors, self._manner(texts, gists)]) @ self._weights
        return [
            self._best(row, score, allowed)
            for row, score, allowed in zip(similarities, scores, candidates, strict=True)
        ]

    def try_encoder(self) -> None:
        """Has the encoder embed something that it does not remember; raises EngineError where it cannot."""
        self._encoder.try_out()

    def without_encoder(
        self, texts: Sequence[str], candidates: Sequence[Candidates], gists: Sequence[str]
    ) -> list[Nearest]:
        """For each text the likeliest among its candidate fields by all but the encoder's vectors."""
        scores = self._manner(texts, gists) @ self._manner_weights if texts else ()
        return [
            self._best(np.ones(len(self._names)), score, allowed)
            for score, allowed in zip(scores, candidates, strict=True)
        ]

    @cached_property
    def _manner_weights(self) -> Matrix:
        """Fitted where the encoder is out of order, and only then."""
        return logistic.fit(self._manners, self._owners, len(self._names), PENALTY)

    def _manner(self, texts: Sequence[str], gists: Sequence[str]) -> Matrix:
        """(texts, D): all that is known of them but their vectors: shape, a constant, word pieces, what rules see."""
        rows = (
            (SHAPE_WEIGHT * shape(text), [0.3], char_ngrams(words), self._evidence(text, self._names))
            for text, words in zip(texts, gists, strict=True)
        )
        return np.stack([np.concatenate(row) for row in rows]).astype(np.float32)

    def _embed(self) -> None:
        self._embedded_by = self._encoder.fingerprint
        vectors = self._kept.vectors(self._embedded_by, self._gists, self._encoder.encode)
        self._vectors = vectors[: len(vectors) // 2]  # of the prototypes themselves
        self._weights = logistic.fit(np.hstack([vectors, self._manners]), self._owners, len(self._names), PENALTY)

    def _similarities(self, vectors: Matrix) -> Matrix:
        """(texts, fields): mean of the TOP_K largest cosines between a text and a field's prototypes."""
        cosines = vectors @ self._vectors.T
        nearest = [np.sort(cosines[:, columns], axis=1)[:, -TOP_K:].mean(axis=1) for columns in self._columns]
        return np.stack(nearest, axis=1)

    def _best(self, similarities: Matrix, scores: Matrix, allowed: Candidates) -> Nearest:
        kept = [at for at, name in enumerate(self._names) if name in allowed]
        shares = logistic.probabilities(scores[kept] + [allowed[self._names[at]] for at in kept])
        best = int(np.argmax(shares))
        return Nearest(self._names[kept[best]], float(similarities[kept[best]]), float(shares[best]))
