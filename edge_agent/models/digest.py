"""Digest: the sha256 of files, by which damage and mix-ups are found."""

from __future__ import annotations

import hashlib
from pathlib import Path

from edge_agent.errors import ModelError

CHUNK_BYTES = 1 << 20


def sha256_of(path: Path) -> str:
    """The sha256 of a file, hexadecimal; ModelError where it cannot be read."""
    digest = hashlib.sha256()
    try:
        with path.open("rb") as file:
            while chunk := file.read(CHUNK_BYTES):
                digest.update(chunk)
    except OSError as exc:
        raise ModelError(f"{path} cannot be read: {exc.strerror}; check its owner and mode") from exc
    return digest.hexdigest()
