"""A BERT encoder in plain numpy, float64, written apart from the builder: what its graph must say."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]


def sentence_vectors(weights: Mapping[str, Array], config: Mapping[str, Any], texts: list[list[int]]) -> Array:
    """One vector of length 1 per text, float64 (N, D); each text is computed alone, so nothing is padded or masked."""
    w = {name.removeprefix("bert."): np.asarray(value, np.float64) for name, value in weights.items()}
    return np.stack([_one(w, config, text) for text in texts])


def _one(w: Mapping[str, Array], config: Mapping[str, Any], text: list[int]) -> Array:
    eps, heads = config.get("layer_norm_eps", 1e-12), config["num_attention_heads"]

    def dense(x: Array, name: str) -> Array:
        return np.einsum("si,oi->so", x, w[f"{name}.weight"]) + w[f"{name}.bias"]

    def norm(x: Array, name: str) -> Array:
        spread = np.sqrt(x.var(axis=1) + eps)[:, None]
        return (x - x.mean(axis=1)[:, None]) / spread * w[f"{name}.weight"] + w[f"{name}.bias"]

    x = w["embeddings.word_embeddings.weight"][text]
    x = x + w["embeddings.position_embeddings.weight"][: len(text)]
    if "embeddings.token_type_embeddings.weight" in w:
        x = x + w["embeddings.token_type_embeddings.weight"][0]
    x = norm(x, "embeddings.LayerNorm")
    for n in range(config["num_hidden_layers"]):
        at = f"encoder.layer.{n}"
        q, k, v = (dense(x, f"{at}.attention.self.{part}") for part in ("query", "key", "value"))
        size = q.shape[1] // heads
        mixed = np.zeros_like(q)
        for h in range(heads):
            part = slice(h * size, (h + 1) * size)
            scores = np.exp(q[:, part] @ k[:, part].T / math.sqrt(size))
            mixed[:, part] = scores / scores.sum(axis=1)[:, None] @ v[:, part]
        x = norm(x + dense(mixed, f"{at}.attention.output.dense"), f"{at}.attention.output.LayerNorm")
        wide = activation(dense(x, f"{at}.intermediate.dense"), config.get("hidden_act", "gelu"))
        x = norm(x + dense(wide, f"{at}.output.dense"), f"{at}.output.LayerNorm")
    mean = x.mean(axis=0)
    return np.asarray(mean / np.linalg.norm(mean))


def activation(x: Array, kind: str) -> Array:
    """The three that the builder knows."""
    if kind == "relu":
        return np.maximum(x, 0)
    if kind == "gelu":
        return x * 0.5 * (1 + np.vectorize(math.erf)(x / math.sqrt(2)))
    return 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))
