"""Bert: the graph built from weights computes what an independent float64 computation says."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
import safetensors.numpy

from edge_agent.errors import ModelError
from edge_agent.models.bert import MAX_ONNX_BYTES, build_bert, read_config, read_safetensors
from edge_agent.models.build import free_tokenizer
from edge_agent.models.check import embed, read_reference, session
from tests.conftest import ROOT
from tests.models import small
from tests.models.numpy_bert import sentence_vectors

CONFIG = {
    "model_type": "bert",
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 64,
    "hidden_act": "gelu",
    "layer_norm_eps": 1e-12,
}
TEXTS = [[5, 6, 7, 8, 9, 10, 11], [12, 3], [4]]
MINILM = ROOT / "engines" / "minilm-l6-v2"


def weights(prefix: str = "", *, types: bool = True, **changes: Any) -> dict[str, small.Array]:
    """Random weights for CONFIG."""
    config = {**CONFIG, **changes}
    random = np.random.default_rng(11)
    hidden, inner = config["hidden_size"], config["intermediate_size"]
    shapes: dict[str, tuple[int, ...]] = {
        "embeddings.word_embeddings.weight": (50, hidden),
        "embeddings.position_embeddings.weight": (16, hidden),
        "embeddings.LayerNorm.weight": (hidden,),
        "embeddings.LayerNorm.bias": (hidden,),
        "pooler.dense.weight": (hidden, hidden),
    }
    if types:
        shapes["embeddings.token_type_embeddings.weight"] = (2, hidden)
    for n in range(config["num_hidden_layers"]):
        at = f"encoder.layer.{n}"
        for name in ("attention.self.query", "attention.self.key", "attention.self.value", "attention.output.dense"):
            shapes |= {f"{at}.{name}.weight": (hidden, hidden), f"{at}.{name}.bias": (hidden,)}
        for name in ("attention.output.LayerNorm", "output.LayerNorm"):
            shapes |= {f"{at}.{name}.weight": (hidden,), f"{at}.{name}.bias": (hidden,)}
        shapes |= {f"{at}.intermediate.dense.weight": (inner, hidden), f"{at}.intermediate.dense.bias": (inner,)}
        shapes |= {f"{at}.output.dense.weight": (hidden, inner), f"{at}.output.dense.bias": (hidden,)}
    return {prefix + name: random.normal(0, 0.3, shape).astype(np.float32) for name, shape in shapes.items()}


def run(model: onnx.ModelProto, texts: list[list[int]]) -> small.Array:
    onnx.checker.check_model(model, full_check=True)
    return embed(onnxruntime.InferenceSession(model.SerializeToString()), texts)


def cosine(a: small.Array, b: small.Array) -> small.Array:
    return np.asarray((a * b).sum(axis=1) / np.linalg.norm(a, axis=1) / np.linalg.norm(b, axis=1))


@pytest.mark.parametrize("activation", ["gelu", "gelu_new", "gelu_pytorch_tanh", "relu"])
@pytest.mark.parametrize("prefix", ["", "bert."])
@pytest.mark.parametrize("types", [True, False])
def test_vectors_are_those_of_the_independent_computation(activation: str, prefix: str, types: bool) -> None:
    config = {**CONFIG, "hidden_act": activation}
    given = weights(prefix, types=types)
    want = sentence_vectors(given, config, TEXTS)
    got = run(build_bert(given, config), TEXTS)
    assert cosine(got, want).min() >= 0.999999
    np.testing.assert_allclose(got, want, atol=2e-5)


def test_padding_changes_nothing() -> None:
    model = build_bert(weights(), CONFIG)
    together = run(model, TEXTS)
    for row, text in zip(together, TEXTS, strict=True):
        np.testing.assert_allclose(row, run(model, [text])[0], atol=1e-6)


def test_vectors_have_length_one_and_text_without_tokens_is_finite() -> None:
    model = build_bert(weights(), CONFIG)
    np.testing.assert_allclose(np.linalg.norm(run(model, TEXTS), axis=1), 1, atol=1e-6)
    zeros = np.zeros((1, 4), np.int32)
    empty = onnxruntime.InferenceSession(model.SerializeToString()).run(
        None, {"input_ids": zeros, "attention_mask": zeros}
    )[0]
    assert np.isfinite(empty).all()


def test_graph_has_the_agreed_tensors_and_the_operators_meant_for_tensorrt() -> None:
    model = build_bert(weights(), CONFIG)
    assert [(v.name, v.type.tensor_type.elem_type) for v in model.graph.input] == [
        ("input_ids", onnx.TensorProto.INT32),
        ("attention_mask", onnx.TensorProto.INT32),
    ]
    assert [v.name for v in model.graph.output] == ["sentence_embedding"]
    assert model.opset_import[0].version == 17
    kinds = {node.op_type for node in model.graph.node}
    assert "LayerNormalization" in kinds
    assert not kinds & {"Where", "Range", "GatherND", "CumSum", "Expand", "Constant"}


def test_names_of_checkpoints_that_came_from_tensorflow_are_known() -> None:
    given = weights()
    old = {
        n.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta"): v
        for n, v in given.items()
    }
    np.testing.assert_array_equal(run(build_bert(old, CONFIG), TEXTS), run(build_bert(given, CONFIG), TEXTS))


def test_roberta_numbers_its_positions_after_the_padding() -> None:
    given = weights("roberta.")
    config = {**CONFIG, "model_type": "roberta", "pad_token_id": 1}
    moved = {name.removeprefix("roberta."): value for name, value in given.items()}
    positions = "embeddings.position_embeddings.weight"
    moved[positions] = moved[positions][2:]
    np.testing.assert_allclose(run(build_bert(given, config), TEXTS), sentence_vectors(moved, CONFIG, TEXTS), atol=2e-5)


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({"model_type": "t5"}, "model_type is 't5'; this builder knows bert"),
        ({"position_embedding_type": "relative_key"}, "position_embedding_type is 'relative_key'"),
        ({"hidden_act": "silu"}, "hidden_act is 'silu'; this builder knows gelu"),
        ({"is_decoder": True}, "is_decoder is set"),
        ({"embedding_size": 16}, "factorised embeddings"),
        ({"hidden_size": None}, "hidden_size is None"),
        ({"hidden_size": True}, "hidden_size is True"),
        ({"num_attention_heads": 5}, "no multiple of num_attention_heads 5"),
        ({"hidden_size": 64}, r"has shape \(\d+, 32\); config.json asks for"),
        ({"num_hidden_layers": 3}, "the weights have no encoder.layer.2"),
        ({"num_hidden_layers": 1}, r"hold encoder\.layer\.1\.\S+, which this builder has no place for"),
    ],
)
def test_config_that_is_not_known_or_does_not_fit_is_refused_by_name(changes: dict[str, Any], fault: str) -> None:
    with pytest.raises(ModelError, match=fault):
        build_bert(weights(), {**CONFIG, **changes})


def test_weights_without_a_place_are_refused_by_name() -> None:
    given = weights()
    given["encoder.layer.0.attention.self.distance_embedding.weight"] = np.zeros((3, 8), np.float32)
    with pytest.raises(ModelError, match=r"distance_embedding\.weight, which this builder has no place for"):
        build_bert(given, CONFIG)
    with pytest.raises(ModelError, match=r"have no embeddings\.word_embeddings\.weight"):
        build_bert({"transformer.wte.weight": np.zeros((2, 2), np.float32)}, CONFIG)


def test_weights_too_large_for_one_file_are_refused() -> None:
    huge = np.broadcast_to(np.float32(0), (MAX_ONNX_BYTES // 4 + 1,))
    with pytest.raises(ModelError, match="more than 2 GB"):
        build_bert({**weights(), "huge": huge}, CONFIG)


def test_bert_base_dimensions_build() -> None:
    config = {
        **CONFIG,
        "hidden_size": 768,
        "num_hidden_layers": 1,
        "num_attention_heads": 12,
        "intermediate_size": 3072,
    }
    model = build_bert(
        weights(**{k: config[k] for k in ("hidden_size", "num_hidden_layers", "intermediate_size")}), config
    )
    assert run(model, TEXTS).shape == (3, 768)


def test_safetensors_are_read_in_every_float_type() -> None:
    exact = {"a": np.array([[1.0, -2.5], [0.125, 4096]], np.float32)}
    for dtype in (np.float16, np.float32, np.float64):
        got = read_safetensors(safetensors.numpy.save({"a": exact["a"].astype(dtype)}), "w")
        assert got["a"].dtype == np.float32
        np.testing.assert_array_equal(got["a"], exact["a"])
    upper = (exact["a"].view(np.uint32) >> 16).astype("<u2").tobytes()
    header = json.dumps({"a": {"dtype": "BF16", "shape": [2, 2], "data_offsets": [0, len(upper)]}}).encode()
    got = read_safetensors(len(header).to_bytes(8, "little") + header + upper, "w")
    np.testing.assert_array_equal(got["a"], exact["a"])


def test_position_numbers_among_the_weights_are_left_out() -> None:
    content = safetensors.numpy.save({"embeddings.position_ids": np.arange(4), "a": np.ones(2, np.float32)})
    assert set(read_safetensors(content, "w")) == {"a"}


@pytest.mark.parametrize("content", [b"", b"\x08\0\0\0\0\0\0\0{}", b"no safetensors at all"])
def test_damaged_safetensors_are_said(content: bytes) -> None:
    with pytest.raises(ModelError, match=r"w is not a safetensors file or is damaged"):
        read_safetensors(content, "w")


def test_config_that_is_no_mapping_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    path.write_text("[]")
    with pytest.raises(ModelError, match="holds list; expected a mapping"):
        read_config(path)


def test_tokenizer_loses_its_fixed_padding() -> None:
    """all-MiniLM's pads every text to 128 tokens: every line would cost as much as the longest."""
    from tokenizers import Tokenizer, models, pre_tokenizers

    tokenizer = Tokenizer(models.WordLevel({"[PAD]": 0, "lot": 1}, unk_token="[PAD]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.enable_padding(length=128)
    tokenizer.enable_truncation(3)
    freed = Tokenizer.from_str(free_tokenizer(tokenizer.to_str().encode(), "m").decode())
    assert freed.encode("lot lot lot lot lot").ids == [1] * 5
    with pytest.raises(ModelError, match=r"tokenizer\.json is not a tokenizer"):
        free_tokenizer(b"[1]", "m")


@pytest.mark.skipif(not (MINILM / "model.onnx").exists(), reason="models not fetched: run edge-agent models fetch")
def test_minilm_gives_its_reference_vectors() -> None:
    from tokenizers import Tokenizer

    engine = session((MINILM / "model.onnx").read_bytes())
    tokenizer = Tokenizer.from_file(str(MINILM / "tokenizer.json"))
    reference = read_reference(MINILM / "reference.yaml")
    assert len(reference) == 5
    texts = [entry["input_ids"] for entry in reference]
    got = embed(engine, texts)
    np.testing.assert_allclose(got[:, :8], [entry["vector"] for entry in reference], atol=1e-6)
    assert tokenizer.encode("LOT A0B1O8").ids == texts[1]
