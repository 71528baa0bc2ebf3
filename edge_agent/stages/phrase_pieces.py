"""PhrasePieces: which long phrases a line may hold within their allowed edit distance, before any distance is computed.

By the pigeonhole principle: of a phrase cut into one piece more than letters may differ, one piece stands in the line
as it is. So no phrase is missed, and of hundreds a handful is left to compare.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence


class PhrasePieces:
    """The phrases by the first letters of each of their pieces."""

    def __init__(self, phrases: Sequence[str], errors: Sequence[int], letters: int) -> None:
        """`errors[i]` letters of `phrases[i]` may differ; below 0 it is never looked for. Each piece must have
        `letters` letters at least: raises ValueError for a phrase too short for that."""
        self._letters = letters
        self._holders: defaultdict[str, set[int]] = defaultdict(set)
        for index, (phrase, most) in enumerate(zip(phrases, errors, strict=True)):
            if most >= 0 and len(phrase) < letters * (most + 1):
                raise ValueError(f"{phrase!r} with {most} errors has no {most + 1} pieces of {letters} letters")
            for piece in range(most + 1):
                start = piece * len(phrase) // (most + 1)
                self._holders[phrase[start : start + letters]].add(index)

    def held_by(self, line: str) -> set[int]:
        """The indices of the phrases of which `line` holds a piece; other phrases are in no part of it."""
        pieces = {line[at : at + self._letters] for at in range(len(line) - self._letters + 1)}
        return set().union(*(self._holders[piece] for piece in pieces & self._holders.keys()))
