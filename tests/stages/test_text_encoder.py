from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tokenizers import Tokenizer, models, pre_tokenizers, processors

from edge_agent.backends.base import Array, Feed, TensorSpec
from edge_agent.backends.ort import OrtBackend
from edge_agent.errors import ModelError
from edge_agent.stages.text_encoder import LENGTH_LADDER, MAX_BATCH, TextEncoder
from tests.conftest import ROOT
from tests.fakes import FakeEngine

MODEL = ROOT / "engines" / "minilm-l6-v2"
ODD = ["", " \n\t", "A\x00B\x1b[31m", "\u202e\u2028", "\ud83d", "🙂", "a" * 100_000, "LOT " * 20_000]


def inputs(dtype: str = "int64", *names: str) -> tuple[TensorSpec, ...]:
    return tuple(TensorSpec(name, dtype, (None, None)) for name in ("input_ids", "attention_mask", *names))


def pooled(feed: Feed) -> dict[str, Array]:
    """A vector that tells a row's words apart and forgets its padding."""
    ids = feed["input_ids"].astype(np.float32) * feed["attention_mask"]
    return {"sentence_embedding": np.stack([ids.sum(1), (ids**2).sum(1), np.ones(len(ids), np.float32)], 1)}


SENTENCE = (TensorSpec("sentence_embedding", "float32", (None, 3)),)


@pytest.fixture
def tokenizer(tmp_path: Path) -> Path:
    """A word-level tokenizer whose file asks for padding to 128, as MiniLM's does."""
    words = {word: at for at, word in enumerate(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "lot", "exp", "a", "b"])}
    made = Tokenizer(models.WordLevel(words, unk_token="[UNK]"))
    made.pre_tokenizer = pre_tokenizers.Whitespace()
    made.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    made.enable_padding(length=128)
    made.enable_truncation(128)
    path = tmp_path / "tokenizer.json"
    made.save(str(path))
    return path


@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_feed_has_what_the_engine_asks_for(tokenizer: Path, dtype: str) -> None:
    engine = FakeEngine(pooled, inputs(dtype, "token_type_ids", "position_ids"), SENTENCE)
    TextEncoder(engine, tokenizer).encode(["lot a"])
    (feed,) = engine.feeds
    assert set(feed) == {"input_ids", "attention_mask", "token_type_ids", "position_ids"}
    assert {str(array.dtype) for array in feed.values()} == {dtype}
    assert feed["input_ids"].tolist() == [[2, 4, 6, 3, 0, 0, 0, 0]]
    assert feed["attention_mask"].tolist() == [[1, 1, 1, 1, 0, 0, 0, 0]]
    assert feed["position_ids"].tolist() == [list(range(8))]


def test_shapes_come_from_the_ladder_and_batches_are_bounded(tokenizer: Path) -> None:
    engine = FakeEngine(pooled, inputs(), SENTENCE)
    TextEncoder(engine, tokenizer).encode([f"lot{' a' * n}" + f" {n}" for n in range(60)])
    for feed in engine.feeds:
        rows, length = feed["input_ids"].shape
        assert rows <= MAX_BATCH
        assert length in LENGTH_LADDER


def test_vectors_come_back_in_order_with_unit_length(tokenizer: Path) -> None:
    encoder = TextEncoder(FakeEngine(pooled, inputs(), SENTENCE), tokenizer)
    texts = ["lot a b a b a b a b a b", "exp", "lot a", "exp", "b"]
    together = encoder.encode(texts)
    alone = np.concatenate([TextEncoder(FakeEngine(pooled, inputs(), SENTENCE), tokenizer).encode([t]) for t in texts])
    np.testing.assert_allclose(together, alone, rtol=1e-6)
    np.testing.assert_allclose(np.linalg.norm(together, axis=1), 1.0, rtol=1e-6)
    assert encoder.encode([]).shape[0] == 0


def test_repeated_texts_are_embedded_once_and_counted(tokenizer: Path) -> None:
    engine = FakeEngine(pooled, inputs(), SENTENCE)
    encoder = TextEncoder(engine, tokenizer, cache_size=2)
    encoder.encode(["lot", "lot", "exp"])
    encoder.encode(["exp", "lot"])
    assert (encoder.hits, encoder.misses, encoder.evicted, len(engine.feeds)) == (3, 2, 0, 1)
    encoder.encode(["a", "b"])
    encoder.encode(["lot"])
    assert (encoder.misses, encoder.evicted) == (5, 3)


def test_texts_that_are_the_same_tokens_are_computed_once(tokenizer: Path) -> None:
    engine = FakeEngine(pooled, inputs(), SENTENCE)
    vectors = TextEncoder(engine, tokenizer).encode(["lot a", "exp", "lot  a", " lot a "])
    assert [feed["input_ids"].shape[0] for feed in engine.feeds] == [2]
    np.testing.assert_array_equal(vectors[[0, 0]], vectors[[2, 3]])
    assert not np.array_equal(vectors[0], vectors[1])


def test_prefix_stands_before_every_text(tokenizer: Path) -> None:
    engine = FakeEngine(pooled, inputs(), SENTENCE)
    TextEncoder(engine, tokenizer, prefix="exp ").encode(["lot"])
    assert engine.feeds[0]["input_ids"][0, :4].tolist() == [2, 5, 4, 3]


def test_long_text_is_embedded_by_windows(tokenizer: Path) -> None:
    engine = FakeEngine(pooled, inputs(), SENTENCE)
    TextEncoder(engine, tokenizer, max_len=8).encode(["a " * 6 + "b " * 6 + "lot"])
    rows = np.concatenate([feed["input_ids"] for feed in engine.feeds])
    assert rows.shape == (3, 8)
    assert (rows == 4).sum() == 1


@pytest.mark.parametrize("pooling", ["mean", "cls"])
def test_token_outputs_are_pooled_without_the_padding(tokenizer: Path, pooling: str) -> None:
    def tokens(feed: Feed) -> dict[str, Array]:
        ids = feed["input_ids"].astype(np.float32)
        return {"last_hidden_state": np.stack([ids, np.ones_like(ids)], axis=2)}

    outputs = (TensorSpec("last_hidden_state", "float32", (None, None, 2)),)
    encoder = TextEncoder(
        FakeEngine(tokens, inputs(), outputs), tokenizer, pooling="cls" if pooling == "cls" else "mean"
    )
    (vector,) = encoder.encode(["lot a"])
    want = np.array([2.0 if pooling == "cls" else (2 + 4 + 6 + 3) / 4, 1.0])
    np.testing.assert_allclose(vector, want / np.linalg.norm(want), rtol=1e-6)


def test_odd_texts_are_taken(tokenizer: Path) -> None:
    vectors = TextEncoder(FakeEngine(pooled, inputs(), SENTENCE), tokenizer).encode(ODD)
    assert vectors.shape == (len(ODD), 3)
    assert np.isfinite(vectors).all()


@pytest.mark.parametrize(
    ("ins", "outs"),
    [
        (inputs("int64", "pixel_values"), SENTENCE),
        (inputs("float32"), SENTENCE),
        (inputs()[:1], SENTENCE),
        (inputs(), (TensorSpec("logits", "float32", (None, 2)),)),
    ],
)
def test_engine_that_is_no_encoder_is_refused(
    tokenizer: Path, ins: tuple[TensorSpec, ...], outs: tuple[TensorSpec, ...]
) -> None:
    with pytest.raises(ModelError, match="expected"):
        TextEncoder(FakeEngine(pooled, ins, outs), tokenizer)


@pytest.mark.parametrize("content", [None, b"", b"{}", b"\xff\xfe", b'{"model": 1}'])
def test_missing_or_damaged_tokenizer_is_refused_by_name(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "tokenizer.json"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ModelError, match="tokenizer.json"):
        TextEncoder(FakeEngine(pooled, inputs(), SENTENCE), path)


def test_what_another_engine_embedded_is_forgotten(tokenizer: Path) -> None:
    engine = FakeEngine(pooled, inputs(), SENTENCE)
    encoder = TextEncoder(engine, tokenizer)
    before = encoder.encode(["lot a"])
    engine.answer = lambda feed: {"sentence_embedding": np.tile(np.float32([0, 0, 1]), (len(feed["input_ids"]), 1))}
    assert np.array_equal(encoder.encode(["lot a"]), before), "one engine, one answer"
    engine.fingerprint = "another"
    assert encoder.encode(["lot a"]).tolist() == [[0.0, 0.0, 1.0]]
    assert (encoder.hits, encoder.misses) == (1, 2)


@pytest.mark.skipif(not (MODEL / "model.onnx").exists(), reason="the encoder is not fetched: edge-agent models fetch")
def test_real_encoder_puts_like_beside_like() -> None:
    encoder = TextEncoder(OrtBackend().load(MODEL / "model.onnx"), MODEL / "tokenizer.json")
    vectors = encoder.encode(["Keep out of reach of children", "Keep away from kids", "Dark chocolate bar", *ODD])
    cosines = vectors @ vectors.T
    assert cosines[0, 1] > cosines[0, 2] + 0.2
    assert np.isfinite(vectors).all()
