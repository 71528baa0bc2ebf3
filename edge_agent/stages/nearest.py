"""NearestPrototypes: which field's example phrases a text is most like, by sentence embeddings and shape.

Two opinions are added: the mean cosine to a field's nearest prototypes, which knows the single example, and a ridge
regression over embeddings and shapes, which knows what sets the fields apart. Both come from the prototypes alone
and are made at start-up; nothing is trained elsewhere. What is embedded is a text's gist, its words without the digits
of its value; its shape is that of the whole text.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from edge_agent.stages.line_shape import shape
from edge_agent.stages.prototype_vectors import PrototypeVectors
from edge_agent.stages.text_encoder import TextEncoder

Matrix = npt.NDArray[np.float64]

TOP_K = 5
MIN_UNDERSTOOD = 0.5  # share of a text's tokens; below it an embedding tells nothing
SHAPE_WEIGHT = 0.6  # of a shape's numbers beside an embedding of length 1
RIDGE = 3.0
# Softmax temperature over the fields' scores: with it the mean share of prototypes left out one by one comes near the
# rate of right answers among them (0.82).
TEMPERATURE = 0.14


@dataclass(frozen=True)
class Nearest:
    """The likeliest field, the mean cosine to its nearest prototypes, and its share 0..1 against the other fields."""

    name: str
    similarity: float
    share: float


class NearestPrototypes:
    """Embeds the prototypes when made, and again for another engine; else `nearest` costs one batched encoder call.

    `gist` gives the words of a prototype; `kept` has the vectors of an earlier start, where they are the same.
    """

    def __init__(
        self,
        encoder: TextEncoder,
        prototypes: Mapping[str, Sequence[str]],
        gist: Callable[[str], str] = str,
        kept: PrototypeVectors | None = None,
    ) -> None:
        self._encoder = encoder
        self._kept = kept or PrototypeVectors(None)
        known = {name: [p for p in phrases if self.understands(p)] for name, phrases in prototypes.items()}
        self._names = tuple(known)
        self._phrases = [phrase for name in self._names for phrase in known[name]]
        self._owners = np.array([at for at, name in enumerate(self._names) for _ in known[name]])
        self._gists = [gist(phrase) for phrase in self._phrases]
        self._columns = [np.flatnonzero(self._owners == at) for at in range(len(self._names))]
        shapes = np.stack([shape_of(phrase) for phrase in self._phrases])
        self._shape_weights = _ridge(shapes, self._owners, len(self._names))
        self._embed()

    def understands(self, text: str) -> bool:
        """Whether the encoder's vocabulary has the text's script: an English one knows next to no ideographs."""
        return self._encoder.understood(text) >= MIN_UNDERSTOOD

    def nearest(
        self, texts: Sequence[str], candidates: Sequence[frozenset[str]], gists: Sequence[str] | None = None
    ) -> list[Nearest]:
        """For each text the likeliest among its candidate fields; `gists` are the texts' words, None: the texts."""
        if not texts:
            return []
        if self._encoder.fingerprint != self._embedded_by:
            self._embed()
        vectors = self._encoder.encode(texts if gists is None else gists).astype(np.float64)
        similarities = self._similarities(vectors)
        scores = similarities + _features(vectors, texts) @ self._weights
        return [
            self._best(row, score, allowed)
            for row, score, allowed in zip(similarities, scores, candidates, strict=True)
        ]

    def by_shape(self, texts: Sequence[str], candidates: Sequence[frozenset[str]]) -> list[Nearest]:
        """For each text the likeliest among its candidate fields by how it is written, for want of an encoder."""
        return [
            self._best(np.ones(len(self._names)), shape_of(text) @ self._shape_weights, allowed)
            for text, allowed in zip(texts, candidates, strict=True)
        ]

    def _embed(self) -> None:
        self._embedded_by = self._encoder.fingerprint
        vectors = self._kept.vectors(self._embedded_by, self._gists, self._encoder.encode)
        self._vectors: Matrix = vectors.astype(np.float64)
        self._weights = _ridge(_features(self._vectors, self._phrases), self._owners, len(self._names))

    def _similarities(self, vectors: Matrix) -> Matrix:
        """(texts, fields): mean of the TOP_K largest cosines between a text and a field's prototypes."""
        cosines = vectors @ self._vectors.T
        nearest = [np.sort(cosines[:, columns], axis=1)[:, -TOP_K:].mean(axis=1) for columns in self._columns]
        return np.stack(nearest, axis=1)

    def _best(self, similarities: Matrix, scores: Matrix, allowed: frozenset[str]) -> Nearest:
        kept = [at for at, name in enumerate(self._names) if name in allowed]
        weights = np.exp((scores[kept] - scores[kept].max()) / TEMPERATURE)
        best = int(np.argmax(weights))
        similarity = float(similarities[kept[best]])
        return Nearest(self._names[kept[best]], similarity, float(weights[best] / weights.sum()))


def _features(vectors: Matrix, texts: Sequence[str]) -> Matrix:
    """(texts, dimensions + shapes + 1): embedding, shape and a constant."""
    return np.hstack([vectors, np.stack([shape_of(text) for text in texts])])


def shape_of(text: str) -> Matrix:
    """(shapes + 1,): how a text is written, and a constant."""
    return np.append(SHAPE_WEIGHT * shape(text), 0.3)


def _ridge(features: Matrix, owners: npt.NDArray[np.int64], fields: int) -> Matrix:
    """(features, fields): least squares to each field's indicator, fields with few prototypes weighing more."""
    counts = np.bincount(owners, minlength=fields)
    weights = (counts.mean() / counts[owners]) ** 0.25
    weighted = features * weights[:, None]
    targets = np.eye(fields)[owners] * weights[:, None]
    normal = weighted.T @ weighted + RIDGE * np.eye(features.shape[1])
    return np.linalg.solve(normal, weighted.T @ targets)
