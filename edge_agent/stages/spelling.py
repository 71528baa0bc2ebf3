"""Spelling: words glued and bent by OCR (`Kcepsuntil`) as the sentence encoder knows them (`keeps until`).

Each run of letters that is no known word is cut into known words, some letters of them seen as what they are taken for;
the cheapest cut counts, and only where it is cheaper than a word that nobody knows. What is mended so is read for its
meaning alone: no value comes from it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from string import ascii_lowercase

from edge_agent.stages.bent_words import MEANT, BentWords
from edge_agent.stages.label_text import unaccented

MAX_WORD_CHARS = 18
MAX_RUN_CHARS = 48  # of a run of letters; a longer one is left as it is, and so is one shorter than
LEAST_CHARS = 4
LEAST_PIECE_CHARS = 3  # of a word within a glued run, but for LITTLE_WORDS
BENT_PIECE_CHARS = 5  # of a bent word within a glued run: of shorter ones there are too many
TWICE_BENT_CHARS = 8  # from here on two letters of a word may be bent
OWN_RANK = 3000  # of words of labels, beside the vocabulary's own, from common to rare
BENT = 2.6  # nats: one letter in fourteen is seen as another
LOST = 6.0  # nats: one in eighty is not seen, and it can have been any
UNKNOWN, UNKNOWN_LETTER = 6.0, 2.2  # nats of a word that nobody knows, and of each letter of it
LITTLE_WORDS = frozenset("of to by on in at or is no do if up it an am im au el le la de du da il al us we".split())
_RUN = re.compile(r"[^\W_]+")
_ADDRESS = re.compile(r"@|//|www\.|\w\.\w+/|\w\.[a-z]{2,4}\Z")


class Spelling:
    """The words that are known, with how rare each is; keeps the runs of letters mended lately."""

    def __init__(self, ranks: Mapping[str, int], own: Iterable[str]) -> None:
        """`ranks`: words in lower case, from common (0) to rare; `own`: texts whose words are known as well."""
        known = {unaccented(word): rank for word, rank in ranks.items()}
        for text in own:
            for run in _RUN.findall(unaccented(text)):
                if run.isalpha():
                    known[run] = min(OWN_RANK, known.get(run, OWN_RANK))
        scale = math.log(math.log(len(known) + 2.0))
        self._costs = {word: math.log(rank + 50) + scale for word, rank in known.items()}
        self._long = BentWords(word for word in known if len(word) >= TWICE_BENT_CHARS)
        self._mended = lru_cache(maxsize=8192)(self._cut)

    def mended(self, text: str) -> str:
        """`text` with its unknown runs of letters as the known words that they most likely are, but for addresses."""
        return " ".join(
            part if _ADDRESS.search(part) else _RUN.sub(lambda match: self._mended(match[0]), part)
            for part in text.split(" ")
        )

    def _cut(self, run: str) -> str:
        plain = unaccented(run)
        letters = sum(map(str.isalpha, plain))
        if not (LEAST_CHARS <= len(plain) <= MAX_RUN_CHARS) or plain in self._costs or letters < 0.7 * len(plain):
            return run
        best: list[tuple[float, tuple[str, ...]]] = [(0.0, ())]
        for end in range(1, len(plain) + 1):
            cuts = (
                (best[start][0] + cost, (*best[start][1], word))
                for start in range(max(0, end - MAX_WORD_CHARS), end)
                if best[start][0] < math.inf
                for cost, word in self._words(plain[start:end], whole=end - start == len(plain))
            )
            best.append(min(cuts, default=(math.inf, ())))
        cost, words = best[-1]
        return " ".join(words) if cost < UNKNOWN + UNKNOWN_LETTER * len(plain) else run

    def _words(self, seen: str, *, whole: bool) -> Iterator[tuple[float, str]]:
        """The known word that is seen so, and its cost: as it stands, else with letters bent or one lost."""
        if len(seen) < LEAST_PIECE_CHARS and seen not in LITTLE_WORDS:
            return
        if seen in self._costs:
            yield self._costs[seen], seen
        elif len(seen) >= (LEAST_CHARS if whole else BENT_PIECE_CHARS):
            forms = [(self._costs[form] + BENT, form) for form in _meant(seen) if form in self._costs]
            if not forms and len(seen) >= TWICE_BENT_CHARS:
                forms = [(self._costs[form] + 2 * BENT, form) for _, form in self._long.meant_by(seen, 2)]
            if not forms and whole and len(seen) >= BENT_PIECE_CHARS:
                forms = [(self._costs[form] + LOST, form) for form in _longer(seen) if form in self._costs]
            if forms:
                yield min(forms)


def _meant(seen: str) -> Iterator[str]:
    """The forms with one letter as it may have been."""
    for at, char in enumerate(seen):
        for other in MEANT.get(char, ""):
            yield f"{seen[:at]}{other}{seen[at + 1 :]}"


def _longer(seen: str) -> Iterator[str]:
    """The forms with one letter more."""
    for at in range(len(seen) + 1):
        for letter in ascii_lowercase:
            yield f"{seen[:at]}{letter}{seen[at:]}"
