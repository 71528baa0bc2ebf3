"""Vectors of example phrases outlive a start, and never a change of what they are of."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from edge_agent.stages.prototype_vectors import PrototypeVectors, Vectors


class Embedding:
    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, phrases: Sequence[str]) -> Vectors:
        self.calls += 1
        return np.arange(2 * len(phrases), dtype=np.float32).reshape(-1, 2)


def test_phrases_are_embedded_once_for_an_engine_and_its_phrases(tmp_path: Path) -> None:
    path, embed = tmp_path / "plans" / "prototypes.npz", Embedding()
    first = PrototypeVectors(path).vectors("model:1", ["a", "b"], embed)
    np.testing.assert_array_equal(PrototypeVectors(path).vectors("model:1", ["a", "b"], embed), first)
    assert embed.calls == 1
    for fingerprint, phrases in (("model:2", ["a", "b"]), ("model:2", ["a", "c"]), ("model:2", ["a\0c"])):
        assert len(PrototypeVectors(path).vectors(fingerprint, phrases, embed)) == len(phrases)
    assert embed.calls == 4


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04 no more", b"x" * 100])
def test_a_damaged_file_is_written_anew(tmp_path: Path, content: bytes) -> None:
    path, embed = tmp_path / "prototypes.npz", Embedding()
    path.write_bytes(content)
    PrototypeVectors(path).vectors("m", ["a"], embed)
    PrototypeVectors(path).vectors("m", ["a"], embed)
    assert embed.calls == 1


def test_a_folder_that_cannot_be_written_costs_time_only(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    embed = Embedding()
    kept = PrototypeVectors(tmp_path / "file" / "prototypes.npz")
    assert kept.vectors("m", ["a"], embed).shape == kept.vectors("m", ["a"], embed).shape == (1, 2)
    assert embed.calls == 2
