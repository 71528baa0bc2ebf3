"""Catalogue: which product of a list a line names, however OCR bent it.

Texts are compared by skeleton (what is left when case, spaces, punctuation and OCR's usual swaps are gone) and word by
word in any order, with rapidfuzz; of measured matchers this one told best what is in the list from what is not (AUC
0.97 against 0.84 for WRatio). Two rules no score can overrule: a product whose numbers or units contradict the text is
none, and of twins that lie within MARGIN none is taken for the other: that is told as ambiguous.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
import numpy.typing as npt
from rapidfuzz import fuzz, process

from edge_agent.errors import ConfigError
from edge_agent.stages.label_text import skeletons
from edge_agent.stages.letter_counts import LetterCounts
from edge_agent.stages.product_numbers import Mask, NumberIndex, numbers_of

MIN_SCORE = 80.0  # 0 to 100; below it a text names no product of the list
MARGIN = 6.0  # a runner-up this near makes the match ambiguous
NEAR = MIN_SCORE - MARGIN
SURELY_BELOW_NEAR = NEAR - 0.01  # scores are rounded
LEAST_SHARE = np.float32(SURELY_BELOW_NEAR / 200)  # of both lengths, in common: a score is 200 times that share
MAX_ENTRIES = 100_000
MAX_TEXT_CHARS = 256
MAX_FILE_BYTES = 64 << 20
MAX_OTHERS = 5
REMEMBERED = 1024  # texts: consecutive frames repeat their lines

Indices = npt.NDArray[np.int64]
Scores = npt.NDArray[np.float32]


@dataclass(frozen=True)
class Product:
    """A product of the catalogue: `id` is the plant's own name for it, the printed `name` where it has none."""

    id: str
    name: str


@dataclass(frozen=True)
class Match:
    """The product that a text names, with `score` 0..1, and the `others` that it might as well."""

    product: Product
    score: float
    others: tuple[Product, ...] = ()


class Catalogue:
    """A list of products to match against; made ready once, one thread at a time may ask it."""

    def __init__(self, products: Iterable[Product]) -> None:
        self.products = tuple(dict.fromkeys(products))
        names = [product.name for product in self.products]
        self._bones, self._words = _forms(names)
        self._letters = LetterCounts(self._bones)
        lengths = [np.fromiter(map(len, forms), np.float32, len(names)) for forms in (self._bones, self._words)]
        self._gaps = (lengths[1] - lengths[0]).astype(np.uint16)
        self._least = [LEAST_SHARE * length for length in lengths]  # characters in common with a text of none
        self._by_number = NumberIndex([numbers_of(name) for name in names])
        self._remembered = lru_cache(REMEMBERED)(self._match)

    def match(self, text: str) -> Match | None:
        """The product that a text names; None where none is near enough or its numbers contradict it."""
        return self._remembered(text[:MAX_TEXT_CHARS])

    def _match(self, text: str) -> Match | None:
        (bones,), (words,) = _forms([text])
        if not bones:
            return None
        seen = numbers_of(text)
        near, scores = self._near(bones, words, self._by_number.agreeing(seen))
        if not len(near) or scores[0] < MIN_SCORE:
            return None
        best, *others = near
        if bones == self._bones[best] and numbers_of(self.products[best].name).all <= seen.all:
            others = [at for at in others if self._bones[at] == bones]  # TD-T00 is not quite TD-700
        else:
            others = others[: int(np.count_nonzero(scores[0] - scores < MARGIN)) - 1]
        twins = tuple(self.products[at] for at in others[:MAX_OTHERS])
        return Match(self.products[best], float(scores[0]) / 100, twins)

    def _near(self, bones: str, words: str, agreeing: Mask) -> tuple[list[int], Scores]:
        """The products whose names are near a text, the nearest first, and how near; of those that agree with it."""
        shared = self._letters.shared(bones)
        shared_with_gaps = shared + np.minimum(self._gaps, len(words) - len(bones))
        least, least_with_gaps = self._least[0] + LEAST_SHARE * len(bones), self._least[1] + LEAST_SHARE * len(words)
        (at,) = np.nonzero(agreeing & ((shared >= least) | (shared_with_gaps >= least_with_gaps)))
        scores = np.maximum(_ratios(bones, self._bones, at), _ratios(words, self._words, at))
        order = np.argsort(-scores, kind="stable")[: np.count_nonzero(scores >= NEAR)]
        return at[order].tolist(), scores[order]


def read_products(names: Sequence[str], path: Path | None) -> list[Product]:
    """The products of names and of a file's lines: a name, or an id, a tab and a name; empty lines and those that
    begin with # are skipped. ConfigError for a file that cannot be read, or that holds more than a catalogue can."""
    products = [Product(name, name) for name in names]
    if path is not None:
        try:
            lines = _bounded_text(path).splitlines()
        except (OSError, ValueError) as exc:
            raise ConfigError(f"catalogue.file {path} cannot be read: {exc}; expected text in UTF-8") from exc
        products += [_product(line) for line in lines if line.strip() and not line.startswith("#")]
    products = [product for product in products if product.name]
    if (longest := max((len(product.name) for product in products), default=0)) > MAX_TEXT_CHARS:
        raise ConfigError(f"the catalogue has a name of {longest} characters; at most {MAX_TEXT_CHARS} are compared")
    if len(products) > MAX_ENTRIES:
        raise ConfigError(f"the catalogue has {len(products)} products; at most {MAX_ENTRIES} can be held against")
    return products


def _product(line: str) -> Product:
    left, tab, right = line.partition("\t")
    name = " ".join((right if tab else left).split())
    return Product(left.strip() or name if tab else name, name)


def _bounded_text(path: Path) -> str:
    """A file's text. Raises OSError, or ValueError for what is no regular file, too large or not UTF-8."""
    if not path.is_file() and path.exists():  # a pipe would be waited for, a device never ends
        raise ValueError("it is no regular file")
    with path.open("rb") as file:
        content = file.read(MAX_FILE_BYTES + 1)
    if len(content) > MAX_FILE_BYTES:
        raise ValueError(f"it is larger than {MAX_FILE_BYTES} bytes")
    return content.decode("utf-8-sig")


def _forms(texts: Sequence[str]) -> tuple[list[str], list[str]]:
    """Of each text its skeleton, and the skeletons of its words in the order of the alphabet."""
    words = [each.split() for each in skeletons(texts, between_words=",;/")]
    return ["".join(each) for each in words], [" ".join(sorted(each)) for each in words]


def _ratios(text: str, others: Sequence[str], at: Indices) -> Scores:
    """How like the text is to the others at these places, float32 (N) 0 to 100; 0 for those that are not near."""
    found = process.cdist(
        [text], list(map(others.__getitem__, at.tolist())), scorer=fuzz.ratio, score_cutoff=SURELY_BELOW_NEAR
    )
    return np.asarray(found[0], np.float32)
