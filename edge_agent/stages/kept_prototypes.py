"""KeptPrototypes: what is learned from the example phrases, kept from one start to the next.

Learning takes seconds on a small CPU. The file is named by nothing but its content's key: what the caller names, which
is the model's engine and the phrases, and the code that learns; for another key it is written anew.
"""

from __future__ import annotations

import hashlib
import io
import logging
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from edge_agent import __version__
from edge_agent.files import write_atomically

log = logging.getLogger(__name__)

Matrix = npt.NDArray[np.floating[Any]]


@dataclass(frozen=True, eq=False)
class Learned:
    """Of phrases of some classes: their vectors (phrases, dimensions), and the classes' weights of a vector and a
    manner together (dimensions + M, classes) and of a manner alone (M, classes)."""

    vectors: Matrix
    weights: Matrix
    manner_weights: Matrix

    def is_sound(self) -> bool:
        """Whether the shapes fit together and every number is finite."""
        parts = (self.vectors, self.weights, self.manner_weights)
        if not all(part.ndim == 2 and np.isfinite(part).all() for part in parts):
            return False
        rows = self.vectors.shape[1] + len(self.manner_weights)
        return self.weights.shape == (rows, self.manner_weights.shape[1])


class KeptPrototypes:
    """What was learned, in `path`; None: nothing is kept. A file that cannot be read or written costs time, nothing
    else."""

    def __init__(self, path: Path | None) -> None:
        self._path = path

    def learned(self, named: Sequence[str], learn: Callable[[], Learned]) -> Learned:
        """What the file has for these names, else what `learn` gives, which is written there."""
        key = hashlib.sha256("\0".join((own_code(), *named)).encode("utf-8", "surrogatepass")).hexdigest()
        learned = self._read(key)
        if learned is None:
            learned = learn()
            self._write(key, learned)
        return learned

    def _read(self, key: str) -> Learned | None:
        if self._path is None or not self._path.exists():
            return None
        try:
            with np.load(self._path, allow_pickle=False) as file:
                if str(file["key"]) != key:
                    return None
                parts = (np.asarray(file[name], np.float32) for name in ("vectors", "weights", "manner_weights"))
                learned = Learned(*parts)
        except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile) as exc:
            log.info("%s is not used: %s", self._path, exc)
            return None
        return learned if learned.is_sound() else None

    def _write(self, key: str, learned: Learned) -> None:
        if self._path is None:
            return
        content = io.BytesIO()
        np.savez(content, key=np.array(key), **vars(learned))
        try:
            write_atomically(self._path, content.getvalue(), durable=False)
        except OSError as exc:
            log.info("the example phrases are learned anew at each start: %s cannot be written: %s", self._path, exc)


@cache
def own_code() -> str:
    """What tells one state of the code from another: all rules of this folder have a part in what is learned."""
    digest = hashlib.sha256(__version__.encode())
    for path in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()
