"""LetterCounts: how near many texts can be to another one at most, told by their letters alone.

The longest common subsequence of two texts, of which their likeness is made (rapidfuzz.fuzz.ratio is 200 times its
length over both lengths), holds no letter more often than either text has it. Counting letters is a hundred times
cheaper than comparing texts, and leaves out no text that is near.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

AT_ONCE = 4096  # texts whose letters are counted at once: some 10 MB meanwhile
BUCKETS = 32  # letters that share one count as the same: the bound is then wider, and holds

Counts = npt.NDArray[np.int32]


class LetterCounts:
    """The letters of N texts; `lengths` int32 (N)."""

    def __init__(self, texts: Sequence[str]) -> None:
        self.lengths: Counts = np.fromiter(map(len, texts), np.int32, len(texts))
        self._counts = np.zeros((BUCKETS, len(texts)), np.uint16)
        for begin in range(0, len(texts), AT_ONCE):
            part = slice(begin, min(begin + AT_ONCE, len(texts)))
            self._counts[:, part] = _counted(texts[part], self.lengths[part])

    def shared(self, text: str) -> Counts:
        """int32 (N): at most so many letters each has in common with `text`, in any order."""
        shared = np.zeros(len(self.lengths), np.uint16)
        for bucket, count in Counter(ord(char) % BUCKETS for char in text).items():
            shared += np.minimum(self._counts[bucket], np.uint16(count))
        return shared.astype(np.int32)


def _counted(texts: Sequence[str], lengths: Counts) -> npt.NDArray[np.int64]:
    """int64 (BUCKETS, N)."""
    codes = np.frombuffer("".join(texts).encode("utf-32-le", "surrogatepass"), np.uint32)
    cells = (codes % BUCKETS).astype(np.int64) * len(texts) + np.repeat(np.arange(len(texts)), lengths)
    return np.bincount(cells, minlength=BUCKETS * len(texts)).reshape(BUCKETS, len(texts))
