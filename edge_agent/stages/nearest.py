"""NearestPrototypes: which field's example phrases a text lies nearest to, by cosine of sentence embeddings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from edge_agent.stages.text_encoder import TextEncoder

TOP_K = 3
# Softmax temperature over the fields' similarities: a lead of 0.1 is worth about 7 to 1.
TEMPERATURE = 0.05


@dataclass(frozen=True)
class Nearest:
    """The nearest field, the mean cosine to its nearest prototypes, and its share 0..1 against the other fields."""

    name: str
    similarity: float
    share: float


class NearestPrototypes:
    """Embeds the prototypes once, when made; afterwards `nearest` costs one batched encoder call."""

    def __init__(self, encoder: TextEncoder, prototypes: Mapping[str, Sequence[str]]) -> None:
        self._encoder = encoder
        self._names = tuple(prototypes)
        phrases = [phrase for name in self._names for phrase in prototypes[name]]
        owners = [at for at, name in enumerate(self._names) for _ in prototypes[name]]
        self._vectors = encoder.encode(phrases)
        self._columns = [np.flatnonzero(np.array(owners) == at) for at in range(len(self._names))]

    def nearest(self, texts: Sequence[str], candidates: Sequence[frozenset[str]]) -> list[Nearest]:
        """For each text the nearest among its candidate fields."""
        if not texts:
            return []
        scores = self._scores(self._encoder.encode(texts))
        return [self._best(row, allowed) for row, allowed in zip(scores, candidates, strict=True)]

    def _scores(self, vectors: npt.NDArray[np.float32]) -> npt.NDArray[np.float64]:
        """(texts, fields): mean of the TOP_K largest cosines between a text and a field's prototypes."""
        cosines = vectors.astype(np.float64) @ self._vectors.T.astype(np.float64)
        return np.stack([np.sort(cosines[:, columns], axis=1)[:, -TOP_K:].mean(axis=1) for columns in self._columns], 1)

    def _best(self, scores: npt.NDArray[np.float64], allowed: frozenset[str]) -> Nearest:
        kept = [at for at, name in enumerate(self._names) if name in allowed]
        weights = np.exp((scores[kept] - scores[kept].max()) / TEMPERATURE)
        best = int(np.argmax(weights))
        return Nearest(self._names[kept[best]], float(scores[kept[best]]), float(weights[best] / weights.sum()))
