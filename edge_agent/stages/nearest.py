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

import numpy as np

from edge_agent.stages import logistic
from edge_agent.stages.char_ngrams import char_ngrams
from edge_agent.stages.kept_prototypes import KeptPrototypes, Learned, Matrix
from edge_agent.stages.line_shape import shape
from edge_agent.stages.misreadings import misread
from edge_agent.stages.text_encoder import TextEncoder

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
    """Learns from the prototypes when made, and again for another engine, unless an earlier start has; else `nearest`
    costs one batched encoder call.

    `gist` gives the words of a text; `evidence` what rules know of it, by the fields' names; `kept` has what an earlier
    start learned, and `settings` names what `gist` and `evidence` depend on beside the code.
    """

    def __init__(
        self,
        encoder: TextEncoder,
        prototypes: Mapping[str, Sequence[str]],
        gist: Callable[[str], str] = str,
        evidence: Evidence = no_evidence,
        kept: KeptPrototypes | None = None,
        settings: str = "",
    ) -> None:
        self._encoder = encoder
        self._gist = gist
        self._evidence = evidence
        self._kept = kept or KeptPrototypes(None)
        self._settings = settings
        known = {name: [p for p in phrases if self.understands(p)] for name, phrases in prototypes.items()}
        self._names = tuple(known)
        self._phrases = [phrase for name in self._names for phrase in known[name]]
        self._owners = np.array([at for at, name in enumerate(self._names) for _ in known[name]])
        self._columns = [np.flatnonzero(self._owners == at) for at in range(len(self._names))]
        self._recall()

    def understands(self, text: str) -> bool:
        """Whether the encoder's vocabulary has the text's script: an English one knows next to no ideographs."""
        return self._encoder.understood(text) >= MIN_UNDERSTOOD

    def nearest(
        self, texts: Sequence[str], candidates: Sequence[Candidates], gists: Sequence[str] | None = None
    ) -> list[Nearest]:
        """For each text the likeliest among its candidate fields; `gists` are the texts' words, None: the texts."""
        if not texts:
            return []
        if self._encoder.fingerprint != self._learned_of:
            self._recall()
        gists = texts if gists is None else gists
        vectors = self._encoder.encode(gists)
        similarities = self._similarities(vectors)
        scores = (
            SIMILARITY_WEIGHT * similarities + np.hstack([vectors, self._manner(texts, gists)]) @ self._learned.weights
        )
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
        scores = self._manner(texts, gists) @ self._learned.manner_weights if texts else ()
        return [
            self._best(np.ones(len(self._names)), score, allowed)
            for score, allowed in zip(scores, candidates, strict=True)
        ]

    def _manner(self, texts: Sequence[str], gists: Sequence[str]) -> Matrix:
        """(texts, D): all that is known of them but their vectors: shape, a constant, word pieces, what rules see."""
        rows = (
            (SHAPE_WEIGHT * shape(text), [0.3], char_ngrams(words), self._evidence(text, self._names))
            for text, words in zip(texts, gists, strict=True)
        )
        return np.stack([np.concatenate(row) for row in rows]).astype(np.float32)

    def _recall(self) -> None:
        """What an earlier start learned of the engine that runs now, else what is learned here."""
        self._learned_of = self._encoder.fingerprint
        classes = (f"{name} {len(columns)}" for name, columns in zip(self._names, self._columns, strict=True))
        named = (self._learned_of, self._encoder.tokenizer_digest, self._settings, *classes, *self._phrases)
        self._learned = self._kept.learned(named, self._learn)

    def _learn(self) -> Learned:
        gists, manners = self._examples
        vectors = self._encoder.encode(gists)
        owners, classes = np.concatenate([self._owners, self._owners]), len(self._names)
        weights = logistic.fit(np.hstack([vectors, manners]), owners, classes, PENALTY)
        return Learned(vectors[: len(self._phrases)], weights, logistic.fit(manners, owners, classes, PENALTY))

    @cached_property
    def _examples(self) -> tuple[list[str], Matrix]:
        """The gists and manners of the prototypes and of a misreading of each."""
        examples = [*self._phrases, *map(misread, self._phrases)]
        gists = [self._gist(example) for example in examples]
        return gists, self._manner(examples, gists)

    def _similarities(self, vectors: Matrix) -> Matrix:
        """(texts, fields): mean of the TOP_K largest cosines between a text and a field's prototypes."""
        cosines = vectors @ self._learned.vectors.T
        nearest = [np.sort(cosines[:, columns], axis=1)[:, -TOP_K:].mean(axis=1) for columns in self._columns]
        return np.stack(nearest, axis=1)

    def _best(self, similarities: Matrix, scores: Matrix, allowed: Candidates) -> Nearest:
        kept = [at for at, name in enumerate(self._names) if name in allowed]
        shares = logistic.probabilities(scores[kept] + [allowed[self._names[at]] for at in kept])
        best = int(np.argmax(shares))
        return Nearest(self._names[kept[best]], float(similarities[kept[best]]), float(shares[best]))
