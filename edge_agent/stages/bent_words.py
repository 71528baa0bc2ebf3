"""BentWords: the words of a list that a text can be, each letter seen as itself or as what it is taken for."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt

# What each letter may have been, by how it is seen.
MEANT = {
    "0": "o", "1": "li", "4": "a", "5": "s", "6": "gb", "7": "t", "8": "b", "9": "g", "|": "li",
    "a": "o", "c": "eg", "e": "aco", "f": "et", "h": "bn", "i": "ljn", "l": "itf", "m": "n", "n": "rmhu", "o": "acdeq",
    "q": "g", "r": "n", "t": "fl", "u": "vn", "v": "uywr", "x": "k", "y": "v", "z": "s",
}  # fmt: skip
ANY = "?"  # in what is seen: a letter that was lost, and can have been any
_NEVER = 100  # bends of a letter that is not taken for the other


class BentWords:
    """Words in lower case, each found by how it is seen."""

    def __init__(self, words: Iterable[str]) -> None:
        by_length: defaultdict[int, list[str]] = defaultdict(list)
        for word in words:
            by_length[len(word)].append(word)
        letters = sorted(set().union(*(word for same in by_length.values() for word in same)))
        self._code_of = {letter: code for code, letter in enumerate(letters)}
        self._bends = {seen: _bends(seen, letters) for seen in {*letters, *MEANT, ANY}}
        self._by_length = {length: (same, self._codes(same)) for length, same in by_length.items()}

    def meant_by(self, seen: str, most: int) -> list[tuple[int, str]]:
        """(bends, word) for each word of `seen`'s length that is seen so when its letters are bent `most` times at
        most; one letter may be bent twice. `seen` is in lower case; ANY in it stands for any letter."""
        if len(seen) not in self._by_length or not all(letter in self._bends for letter in seen):
            return []
        words, codes = self._by_length[len(seen)]
        bends = sum(self._bends[letter][column] for letter, column in zip(seen, codes, strict=True))
        return [(int(bends[at]), words[at]) for at in np.flatnonzero(bends <= most)]

    def _codes(self, same: Sequence[str]) -> npt.NDArray[np.uint16]:
        """(length, words): the letters of words of one length."""
        codes = np.array([[self._code_of[letter] for letter in word] for word in same], np.uint16)
        return np.ascontiguousarray(codes.T)


def _bends(seen: str, letters: Sequence[str]) -> npt.NDArray[np.uint16]:
    """How many times each letter is bent where it looks so."""
    once = MEANT.get(seen, "")
    twice = "".join(MEANT.get(between, "") for between in once)
    steps = dict.fromkeys(twice, 2) | dict.fromkeys(once, 1) | {seen: 0}
    return np.array([0 if seen == ANY else steps.get(letter, _NEVER) for letter in letters], np.uint16)
