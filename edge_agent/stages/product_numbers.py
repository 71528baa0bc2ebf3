"""Numbers: the amounts and other numbers of a text, by which no product is taken for another however alike the words.

Two texts contradict one another where both give an amount in a unit, or both a number, and no two of them are the same;
and where one gives a mass alone, the other a volume alone.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from edge_agent.stages.label_text import label_text
from edge_agent.stages.quantities import BASE_UNITS, find_quantities

# a letter that is read for a digit must not touch it: in TD-T00 the number is lost, not 00
_NUMBER = re.compile(r"(?<![OoDQIilZSGTBbg|0-9])[0-9]+(?:[.,][0-9]+)?(?![OoDQIilZSGTBbg|0-9])")
_COUNTED = re.compile(r"[0-9½¼¾]")
MASS, VOLUME = "g", "ml"
OTHER = ""  # stands for the unit of numbers that are no amounts

Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Numbers:
    """The amounts of a text, as (value, unit), masses in g and volumes in ml, and its other numbers."""

    amounts: frozenset[tuple[str, str]] = frozenset()
    others: frozenset[str] = frozenset()

    @property
    def all(self) -> frozenset[str]:
        return self.others | {amount for amount, _ in self.amounts}


NO_NUMBERS = Numbers()


def numbers_of(text: str) -> Numbers:
    clean = label_text(text).text
    first = _COUNTED.search(clean)
    # what stands before the first digit counts for nothing, but for the letter that touches it
    return NO_NUMBERS if first is None else _numbers_from(clean[max(0, first.start() - 1) :])


@lru_cache(maxsize=4096)
def _numbers_from(clean: str) -> Numbers:
    amounts = [quantity for quantity in find_quantities(clean, keyed=False) if "ambiguous" not in quantity.flags]
    for quantity in amounts:
        clean = clean[: quantity.start] + " " * (quantity.end - quantity.start) + clean[quantity.end :]
    others = frozenset(number.replace(",", ".") for number in _NUMBER.findall(clean))
    return Numbers(frozenset(_in_base_unit(quantity.value, quantity.unit) for quantity in amounts), others)


def _in_base_unit(value: str, unit: str) -> tuple[str, str]:
    """An amount and its unit: 0.5 kg and 500 g are the same, 500 kg is another."""
    *count, amount = value.removesuffix(unit).split()  # a unit may be two words: fl oz
    base, scale = BASE_UNITS.get(unit, (unit, Decimal(1)))
    return " ".join([*count, f"{(Decimal(amount) * scale).normalize():f}"]), base


def contradict(seen: Numbers, listed: Numbers) -> bool:
    """Whether text and product both give an amount in a unit, or both a number, and no two of them are the same; or one
    a mass alone, the other a volume."""
    if {_kind(seen), _kind(listed)} == {MASS, VOLUME}:
        return True
    for unit in {unit for _, unit in seen.amounts} & {unit for _, unit in listed.amounts}:
        if not {a for a, u in seen.amounts if u == unit} & {a for a, u in listed.amounts if u == unit}:
            return True
    return bool(seen.others and listed.others and not seen.others & listed.others)


def _kind(numbers: Numbers) -> str | None:
    """MASS or VOLUME, whichever of them alone is given; None for both and for neither."""
    kinds = {unit for _, unit in numbers.amounts} & {MASS, VOLUME}
    return kinds.pop() if len(kinds) == 1 else None


class NumberIndex:
    """The numbers of many texts, to tell at once which of them contradict another text."""

    def __init__(self, numbers: Sequence[Numbers]) -> None:
        self._count = len(numbers)
        self._ids: dict[tuple[str, str], int] = {}  # of a unit and a number
        holders = defaultdict[str, list[tuple[int, int]]](list)
        for at, each in enumerate(numbers):
            for unit, number in _by_unit(each):
                holders[unit].append((at, self._ids.setdefault((unit, number), len(self._ids))))
        kinds = [_kind(each) for each in numbers]
        self._of_kind = {kind: np.array([each == kind for each in kinds], np.bool_) for kind in (MASS, VOLUME)}
        self._holders = {unit: np.array(found, np.int32).T for unit, found in holders.items()}  # by unit: where, which

    def agreeing(self, seen: Numbers) -> Mask:
        """Bool (N): the texts that `seen` does not contradict."""
        agreeing = np.ones(self._count, np.bool_)
        if kind := _kind(seen):
            agreeing &= ~self._of_kind[VOLUME if kind == MASS else MASS]
        for unit in {unit for unit, _ in _by_unit(seen)} & self._holders.keys():
            where, which = self._holders[unit]
            same = np.ones(self._count, np.bool_)
            same[where] = False
            for number in (self._ids.get(each) for each in _by_unit(seen) if each[0] == unit):
                if number is not None:
                    same[where[which == number]] = True
            agreeing &= same
        return agreeing


def _by_unit(numbers: Numbers) -> Iterator[tuple[str, str]]:
    yield from ((unit, amount) for amount, unit in numbers.amounts)
    yield from ((OTHER, number) for number in numbers.others)
