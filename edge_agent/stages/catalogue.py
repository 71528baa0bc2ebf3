"""Catalogue: which product of a list a line names, however OCR bent it.

Texts are compared by skeleton (what is left when case, spaces, punctuation and OCR's usual swaps are gone) and word by
word in any order, with rapidfuzz; of measured matchers this one told best what is in the list from what is not (AUC
0.97 against 0.84 for WRatio). Two rules no score can overrule: a product whose numbers or units contradict the text is
none, and of twins that lie within MARGIN none is taken for the other: that is told as ambiguous.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

from rapidfuzz import fuzz, process

from edge_agent.errors import ConfigError
from edge_agent.stages.label_text import label_text, skeleton
from edge_agent.stages.quantities import Quantity, find_quantities

MIN_SCORE = 80.0  # 0 to 100; below it a text names no product of the list
MARGIN = 6.0  # a runner-up this near makes the match ambiguous
MAX_ENTRIES = 100_000
MAX_TEXT_CHARS = 256
MAX_FILE_BYTES = 64 << 20
MAX_OTHERS = 5
_BASE_UNITS = {
    "mg": ("g", Decimal("0.001")),
    "g": ("g", Decimal(1)),
    "kg": ("g", Decimal(1000)),
    "ml": ("ml", Decimal(1)),
    "cl": ("ml", Decimal(10)),
    "dl": ("ml", Decimal(100)),
    "l": ("ml", Decimal(1000)),
}
# a letter that is read for a digit must not touch it: in TD-T00 the number is lost, not 00
_NUMBER = re.compile(r"(?<![OoDQIilZSGTBbg|0-9])[0-9]+(?:[.,][0-9]+)?(?![OoDQIilZSGTBbg|0-9])")


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
    """A list of products to match against; made ready once, any thread may ask it."""

    def __init__(self, products: Iterable[Product]) -> None:
        self.products = tuple(dict.fromkeys(products))
        self._bones = [skeleton(product.name).chars for product in self.products]
        self._words = [_words(product.name) for product in self.products]
        self._numbers = [numbers_of(product.name) for product in self.products]

    def match(self, text: str) -> Match | None:
        """The product that a text names; None where none is near enough or its numbers contradict it."""
        text = text[:MAX_TEXT_CHARS]
        bones = skeleton(text).chars
        if not self.products or not bones:
            return None
        glued = process.cdist([bones], self._bones, scorer=fuzz.ratio)[0]
        in_any_order = process.cdist([_words(text)], self._words, scorer=fuzz.token_sort_ratio)[0]
        seen = numbers_of(text)
        scored = [
            (float(max(a, b)), at)
            for at, (a, b) in enumerate(zip(glued, in_any_order, strict=True))
            if max(a, b) >= MIN_SCORE - MARGIN and not contradict(seen, self._numbers[at])
        ]
        scored.sort(key=lambda each: (-each[0], each[1]))
        if not scored or scored[0][0] < MIN_SCORE:
            return None
        best, at = scored[0]
        others = [self.products[other] for score, other in scored[1:] if best - score < MARGIN]
        if bones == self._bones[at] and self._numbers[at].all <= seen.all:  # TD-T00 is not quite TD-700
            others = [self.products[other] for _, other in scored[1:] if self._bones[other] == bones]
        return Match(self.products[at], best / 100, tuple(others[:MAX_OTHERS]))


def read_catalogue(names: Sequence[str], path: Path | None) -> Catalogue:
    """The catalogue of names and of a file's lines: a name, or an id, a tab and a name; empty lines and those that
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
    return Catalogue(products)


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


def _words(text: str) -> str:
    return " ".join(skeleton(word).chars for word in re.split(r"[\s,;/]+", text))


@dataclass(frozen=True)
class Numbers:
    """The amounts of a text, as (value, unit), masses in g and volumes in ml, and its other numbers."""

    amounts: frozenset[tuple[str, str]]
    others: frozenset[str]

    @property
    def all(self) -> frozenset[str]:
        return self.others | {amount for amount, _ in self.amounts}


def numbers_of(text: str) -> Numbers:
    clean = label_text(text).text
    amounts = [quantity for quantity in find_quantities(clean, keyed=False) if "ambiguous" not in quantity.flags]
    for quantity in amounts:
        clean = clean[: quantity.start] + " " * (quantity.end - quantity.start) + clean[quantity.end :]
    others = {number[0].replace(",", ".") for number in _NUMBER.finditer(clean)}
    return Numbers(frozenset(map(_in_base_unit, amounts)), frozenset(others))


def _in_base_unit(quantity: Quantity) -> tuple[str, str]:
    """An amount and its unit: 0.5 kg and 500 g are the same, 500 kg is another."""
    unit, scale = _BASE_UNITS.get(quantity.unit, (quantity.unit, Decimal(1)))
    *count, amount, _ = quantity.value.split(" ")
    return " ".join([*count, f"{(Decimal(amount) * scale).normalize():f}"]), unit


def contradict(seen: Numbers, listed: Numbers) -> bool:
    """Whether text and product both give an amount in a unit, or both a number, and no two of them are the same."""
    for unit in {unit for _, unit in seen.amounts} & {unit for _, unit in listed.amounts}:
        if not {a for a, u in seen.amounts if u == unit} & {a for a, u in listed.amounts if u == unit}:
            return True
    return bool(seen.others and listed.others and not seen.others & listed.others)
