"""Digest: the sha256 of a file, or why it cannot be had."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from edge_agent.errors import ModelError
from edge_agent.models import digest
from edge_agent.models.digest import sha256_of


def test_digest_is_that_of_the_whole_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(digest, "CHUNK_BYTES", 7)
    content = bytes(range(100))
    (tmp_path / "file").write_bytes(content)
    assert sha256_of(tmp_path / "file") == hashlib.sha256(content).hexdigest()


def test_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=f"{tmp_path} cannot be read: Is a directory"):
        sha256_of(tmp_path)
    with pytest.raises(ModelError, match="nowhere cannot be read: No such file"):
        sha256_of(tmp_path / "nowhere")
