"""Character n-grams: which pieces of words a text has. A bent or lost letter spoils some pieces of a word and leaves
the others, where a sentence encoder sees another word.

Pieces are counted by hash and sign in a vector of fixed size, "feature hashing" (Weinberger et al., ICML 2009), so that
no list of pieces is kept.
"""

from __future__ import annotations

import zlib

import numpy as np
import numpy.typing as npt

from edge_agent.stages.label_text import skeleton

DIMENSIONS = 1024
LENGTHS = (3, 4)  # letters of a piece, spaces between words among them
MAX_CHARS = 300  # of a text: a longer one is prose, and its beginning says enough


def char_ngrams(text: str) -> npt.NDArray[np.float64]:
    """(DIMENSIONS,) numbers of length 1, zeros for a text without letters and digits; look-alikes count as one."""
    words = (skeleton(word).chars for word in text[:MAX_CHARS].split())
    line = f" {' '.join(word for word in words if word)} "
    counts = np.zeros(DIMENSIONS)
    for length in LENGTHS:
        for start in range(len(line) - length + 1):
            code = zlib.crc32(line[start : start + length].encode("utf-8", "surrogatepass"))
            counts[code % DIMENSIONS] += 1.0 if code >> 31 else -1.0
    norm = float(np.linalg.norm(counts))
    return counts / norm if norm else counts
