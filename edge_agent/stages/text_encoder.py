"""TextEncoder: texts in, unit vectors out; a sentence embedding model behind an Engine, whatever its inputs.

Shapes are few and known before the first frame: lengths come from LENGTH_LADDER, batches hold at most MAX_BATCH.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from tokenizers import Tokenizer

from edge_agent.backends.base import Engine, TensorSpec
from edge_agent.errors import ModelError

Vectors = npt.NDArray[np.float32]
Pooling = Literal["mean", "cls"]

LENGTH_LADDER = (8, 16, 32, 64)  # tokens; label lines have 11 (median) to 28
MAX_BATCH = 16
MAX_WINDOWS = 4  # of one text: what lies beyond is not embedded
MAX_CHARS = 4096  # of one text, before the tokenizer
INPUTS = ("input_ids", "attention_mask", "token_type_ids", "position_ids")
UNKNOWN_TOKENS = ("[UNK]", "<unk>")
WORD_MARK = "\N{LOWER ONE EIGHTH BLOCK}"  # what a word begins with in vocabularies that mark it
POOLED_OUTPUT = "sentence_embedding"
TOKEN_OUTPUTS = ("last_hidden_state", "token_embeddings")


class TextEncoder:
    """Embeds texts; remembers the latest ones, for consecutive frames repeat their lines.

    What an engine embedded is forgotten once another one runs in its place: vectors of two must not be compared.
    One thread owns it, the engine's. `hits`, `misses` and `evicted` count what the memory did. Two encoders of
    one `fingerprint` and `tokenizer_digest` agree.
    """

    def __init__(
        self,
        engine: Engine,
        tokenizer_path: Path,
        max_len: int = LENGTH_LADDER[-1],
        prefix: str = "",
        pooling: Pooling = "mean",
        cache_size: int = 2048,
    ) -> None:
        """Raises ModelError for a tokenizer file that cannot be read or an engine that is no text encoder."""
        if not 4 <= max_len <= 512:
            raise ModelError(f"max_len is {max_len}; expected 4 to 512 tokens")
        self._engine = engine
        self._inputs = known_inputs(engine.inputs)
        self._output = _known_output(engine.outputs)
        self._tokenizer = load_tokenizer(tokenizer_path, max_len)
        self.tokenizer_digest = hashlib.sha256(self._tokenizer.to_str().encode()).hexdigest()
        ids = (self._tokenizer.token_to_id(token) for token in UNKNOWN_TOKENS)
        self._unknown = frozenset(token for token in ids if token is not None)
        self._ladder = (*(length for length in LENGTH_LADDER if length < max_len), max_len)
        self._prefix = prefix
        self._pooling = pooling
        self._cache_size = cache_size
        self._cache: OrderedDict[str, Vectors] = OrderedDict()
        self._embedded_by = engine.fingerprint
        self.hits = self.misses = self.evicted = 0

    @property
    def fingerprint(self) -> str:
        """The engine's."""
        return self._engine.fingerprint

    def understood(self, text: str) -> float:
        """The share 0..1 of the text's tokens that the vocabulary knows; 0 for a text without any."""
        ids = self._tokenizer.encode(encodable(text), add_special_tokens=False).ids
        return 1.0 - sum(token in self._unknown for token in ids) / len(ids) if ids else 0.0

    def words(self) -> dict[str, int]:
        """The whole words of the vocabulary by its order, which goes from common to rare."""
        tokens = self._tokenizer.get_vocab()
        marked = any(token.startswith(WORD_MARK) for token in tokens)
        whole = {t.removeprefix(WORD_MARK): n for t, n in tokens.items() if t.startswith(WORD_MARK) or not marked}
        words = sorted((n, word) for word, n in whole.items() if len(word) > 1 and word.isalpha())
        return {word: rank for rank, (_, word) in enumerate(words)}

    def encode(self, texts: Sequence[str]) -> Vectors:
        """Unit vectors, float32 (N, dimensions), for N texts in their order; (0, 0) for none.

        Any str is taken: lone surrogates and control characters become spaces. A text longer than the model's
        length is embedded by up to MAX_WINDOWS windows, whose mean is its vector. Raises EngineError when
        inference fails.
        """
        if not texts:
            return np.zeros((0, 0), np.float32)
        if self.fingerprint != self._embedded_by:
            self._embedded_by = self.fingerprint
            self._cache.clear()
        plain = [encodable(text) for text in texts]
        missing = [text for text in dict.fromkeys(plain) if text not in self._cache]
        fresh = dict(zip(missing, self._embedded(missing), strict=True)) if missing else {}
        vectors = np.stack([fresh[text] if text in fresh else self._cache[text] for text in plain])
        self.misses += len(missing)
        self.hits += len(plain) - len(missing)
        self._remember(plain, fresh)
        return vectors

    def try_out(self) -> None:
        """Embeds a word, whatever is remembered; raises EngineError where inference fails."""
        self._embedded(["word"])

    def _remember(self, texts: Sequence[str], fresh: dict[str, Vectors]) -> None:
        self._cache.update(fresh)
        for text in texts:
            self._cache.move_to_end(text)
        while len(self._cache) > self._cache_size:
            self._cache.popitem(last=False)
            self.evicted += 1

    def _embedded(self, texts: list[str]) -> Vectors:
        """Windows of all texts, batched by length, and their mean per text."""
        owners: list[int] = []
        windows: list[tuple[list[int], list[int]]] = []
        for owner, encoding in enumerate(self._tokenizer.encode_batch([self._prefix + text for text in texts])):
            for window in [encoding, *encoding.overflowing][:MAX_WINDOWS]:
                owners.append(owner)
                windows.append((window.ids, window.type_ids))
        vectors = self._inferred(windows)
        sums = np.zeros((len(texts), vectors.shape[1]), np.float32)
        np.add.at(sums, owners, vectors)
        return _unit(sums)

    def _inferred(self, windows: list[tuple[list[int], list[int]]]) -> Vectors:
        """One vector a window; windows of the same tokens, as an uncased vocabulary has many, are computed once."""
        tokens = [tuple(ids) for ids, _ in windows]
        distinct = sorted(dict(zip(tokens, windows, strict=True)).items(), key=lambda item: len(item[0]))
        rows: dict[tuple[int, ...], Vectors] = {}
        for at in range(0, len(distinct), MAX_BATCH):
            batch = distinct[at : at + MAX_BATCH]
            feed = feed_of([window for _, window in batch], self._inputs, self._ladder)
            vectors = self._vectors(self._engine.infer(feed), feed)
            rows.update((ids, vector) for (ids, _), vector in zip(batch, vectors, strict=True))
        return np.stack([rows[ids] for ids in tokens])

    def _vectors(self, outputs: dict[str, npt.NDArray[Any]], feed: dict[str, npt.NDArray[Any]]) -> Vectors:
        output = np.asarray(outputs[self._output], np.float32)
        if self._output == POOLED_OUTPUT:
            return _unit(output)
        if self._pooling == "cls":
            return _unit(output[:, 0])
        mask = feed["attention_mask"][..., None].astype(np.float32)
        return _unit((output * mask).sum(axis=1) / np.maximum(mask.sum(axis=1), 1.0))


def feed_of(
    windows: Sequence[tuple[list[int], list[int]]], inputs: Sequence[TensorSpec], ladder: Sequence[int]
) -> dict[str, npt.NDArray[Any]]:
    """Arrays (batch, length) of token and type ids, padded with zeros to the ladder, in the dtype the inputs want."""
    longest = max(len(ids) for ids, _ in windows)
    length = next(step for step in ladder if step >= longest)
    columns = {name: np.zeros((len(windows), length), np.int64) for name in INPUTS}
    columns["position_ids"][:] = np.arange(length)
    for row, (ids, type_ids) in enumerate(windows):
        columns["input_ids"][row, : len(ids)] = ids
        columns["attention_mask"][row, : len(ids)] = 1
        columns["token_type_ids"][row, : len(ids)] = type_ids
    return {spec.name: columns[spec.name].astype(spec.dtype) for spec in inputs}


def encodable(text: str) -> str:
    """`text` within MAX_CHARS, with a space for each character that has no place in UTF-8 or on paper."""
    text = text[:MAX_CHARS]
    if text.isascii() and text.isprintable():
        return text
    return "".join(" " if "\ud800" <= c <= "\udfff" or not (c.isprintable() or c == " ") else c for c in text)


def known_inputs(specs: tuple[TensorSpec, ...]) -> tuple[TensorSpec, ...]:
    unknown = [str(spec) for spec in specs if spec.name not in INPUTS or spec.dtype not in ("int32", "int64")]
    names = {spec.name for spec in specs}
    if unknown or not {"input_ids", "attention_mask"} <= names:
        listed = ", ".join(map(str, specs))
        raise ModelError(f"encoder takes {listed}; expected int32 or int64 inputs among {', '.join(INPUTS)}")
    return specs


def _known_output(specs: tuple[TensorSpec, ...]) -> str:
    names = [spec.name for spec in specs]
    for name in (POOLED_OUTPUT, *TOKEN_OUTPUTS):
        if name in names:
            return name
    raise ModelError(f"encoder gives {', '.join(names)}; expected {POOLED_OUTPUT} or one of {', '.join(TOKEN_OUTPUTS)}")


def load_tokenizer(path: Path, max_len: int) -> Tokenizer:
    """The tokenizer with its own padding and truncation taken out: files carry a padding to 128 tokens."""
    try:
        text = path.read_text(encoding="utf-8")
        tokenizer = Tokenizer.from_str(text)
    except OSError as exc:
        raise ModelError(
            f"tokenizer {path} cannot be read ({exc.strerror}); `edge-agent models fetch` brings it"
        ) from exc
    except Exception as exc:  # tokenizers raises no narrower type for a damaged file
        raise ModelError(f"tokenizer {path} is damaged: {exc}; `edge-agent models fetch` brings it anew") from exc
    tokenizer.no_padding()
    tokenizer.enable_truncation(max_length=max_len, stride=0)
    return tokenizer


def _unit(vectors: Vectors) -> Vectors:
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(vectors / np.maximum(norms, 1e-6), np.float32)
