"""Encoder: graphs as others export them get the agreed tensors and keep their vectors."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from edge_agent.errors import ModelError
from edge_agent.models.encoder import agreed_encoder
from edge_agent.models.surgery import check, raise_opset
from tests.models import small

IDS = np.array([[1, 2, 3], [4, 5, 0]], np.int32)
MASK = np.array([[1, 1, 1], [1, 1, 0]], np.int32)


def agreed(model: onnx.ModelProto) -> onnx.ModelProto:
    made = agreed_encoder(raise_opset(model))
    check(made)
    return made


@pytest.mark.parametrize("types", [True, False])
def test_vectors_per_token_become_one_per_text(types: bool) -> None:
    original = small.encoder(types=types)
    feed = {"input_ids": IDS.astype(np.int64), "attention_mask": MASK.astype(np.int64)}
    if types:
        feed["token_type_ids"] = feed["input_ids"] * 0
    session_feed = {k: v for k, v in feed.items() if k != "attention_mask"}
    trimmed = onnx.ModelProto()
    trimmed.CopyFrom(original)
    trimmed.graph.input.remove(next(v for v in trimmed.graph.input if v.name == "attention_mask"))
    tokens = small.run(trimmed, **session_feed)["last_hidden_state"]
    mean = (tokens * MASK[..., None]).sum(axis=1) / MASK.sum(axis=1, keepdims=True)
    want = mean / np.linalg.norm(mean, axis=1, keepdims=True)
    got = small.run(agreed(original), input_ids=IDS, attention_mask=MASK)
    assert set(got) == {"sentence_embedding"}
    np.testing.assert_allclose(got["sentence_embedding"], want, atol=1e-6)


def test_unknown_input_is_named() -> None:
    model = small.encoder()
    model.graph.input.append(helper.make_tensor_value_info("position_ids", TensorProto.INT64, ["b", "s"]))
    with pytest.raises(ModelError, match=r"position_ids: int64 \(b, s\); expected input_ids and attention_mask"):
        agreed(model)


@pytest.mark.parametrize(("name", "shape"), [("logits", ["b", 4]), ("x", ["b", "s", "d"]), ("x", ["b", 2, 3, 4])])
def test_unfit_output_is_named(name: str, shape: list[int | str]) -> None:
    model = small.encoder()
    model.graph.node[-1].output[0] = name
    del model.graph.output[:]
    model.graph.output.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, shape))
    with pytest.raises(ModelError, match=f"the graph gives {name}: float32"):
        agreed(model)
