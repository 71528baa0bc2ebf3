"""PrototypeVectors: the embeddings of the example phrases, kept from one start to the next.

Embedding some hundreds of phrases takes seconds on a small CPU. The file is named by nothing but its content's key: the
engine's fingerprint (model and precision) and the phrases; for another key it is written anew.
"""

from __future__ import annotations

import hashlib
import io
import logging
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from edge_agent.files import write_atomically

log = logging.getLogger(__name__)

Vectors = npt.NDArray[np.float32]


class PrototypeVectors:
    """The vectors in `path`; None: nothing is kept. A file that cannot be read or written costs time, nothing else."""

    def __init__(self, path: Path | None) -> None:
        self._path = path

    def vectors(self, fingerprint: str, phrases: Sequence[str], embed: Callable[[Sequence[str]], Vectors]) -> Vectors:
        """float32 (N, dimensions) of the phrases, from the file where it has these, else by `embed`."""
        key = hashlib.sha256("\0".join((fingerprint, *phrases)).encode("utf-8", "surrogatepass")).hexdigest()
        vectors = self._read(key, len(phrases))
        if vectors is None:
            vectors = embed(phrases)
            self._write(key, vectors)
        return vectors

    def _read(self, key: str, count: int) -> Vectors | None:
        if self._path is None or not self._path.exists():
            return None
        try:
            with np.load(self._path, allow_pickle=False) as file:
                if str(file["key"]) != key:
                    return None
                vectors = np.asarray(file["vectors"], np.float32)
        except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile) as exc:
            log.info("%s is not used: %s", self._path, exc)
            return None
        return vectors if vectors.ndim == 2 and len(vectors) == count and np.isfinite(vectors).all() else None

    def _write(self, key: str, vectors: Vectors) -> None:
        if self._path is None:
            return
        content = io.BytesIO()
        np.savez(content, key=np.array(key), vectors=vectors)
        try:
            write_atomically(self._path, content.getvalue(), durable=False)
        except OSError as exc:
            log.info("the example phrases are embedded anew at each start: %s cannot be written: %s", self._path, exc)
