"""Doubts: values with a character in them that could be another, where nothing settles which of the two it is.

A doubt is settled where the other one cannot stand: where with it the text fits no pattern in force, is no date, breaks
a check digit or a word of one case, or says the same. What codes say settles more (cross_checks), and so do the
readings of an item (items.votes).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from itertools import combinations, product

from edge_agent.patterns import Pattern
from edge_agent.records import DOUBTFUL, TextLine
from edge_agent.stages.code_fields import FROM_GS1
from edge_agent.stages.field_values import UNNAMED_DATE, ReadRules, Value, read_unnamed, read_value
from edge_agent.stages.found_values import Found, Label
from edge_agent.stages.label_text import label_text
from edge_agent.stages.lattice import rivals_of
from edge_agent.stages.masks import MasksByRegion, matching

USUAL_MARGIN = 3.0
MOST_TRIES = 64  # other texts of one value that are read; what has more of them stays in doubt
IN_CODES = "-./+_"  # what a code may hold beside letters, digits and spaces
# a text that is read with one of these is not what was printed
_UNSOUND = frozenset({"check_failed", "implausible", "incomplete", "invalid", "unreadable"})

Places = Mapping[int, str]  # by its index in a text, what else a character could be


def tell_doubts(label: Label, masks_of: MasksByRegion, rules: ReadRules, margin: float) -> None:
    """Flags what was found where a character of the value is doubtful and nothing settles it, and tells of lines whose
    numbers could be others. `margin` is the bound that the lines' doubtful characters are below."""
    for index, line in enumerate(label.lines):
        if any(_could_be_another_digit(line, at, margin) for at in line.doubtful):
            label.doubtful_numbers.add(index)
    for at, found in enumerate(label.found):
        line = label.lines[found.lines[-1]]
        if line.doubtful and is_doubtful(found, label, masks_of[line.region].get(found.value.name), rules, margin):
            value = replace(found.value, flags=(*found.value.flags, DOUBTFUL))
            label.found[at] = replace(found, value=value)


def is_doubtful(found: Found, label: Label, pattern: Pattern | None, rules: ReadRules, margin: float) -> bool:
    """Whether the value could be another one, by what the doubtful characters among its own could be.

    What has no value, or one that a pattern corrected, says so itself; so do dates that nothing names, and lines whose
    middle is not read.
    """
    index, value = found.lines[-1], found.value
    says_so = not value.value or bool(found.corrections) or value.name == UNNAMED_DATE or index in label.truncated
    if says_so or value.start >= value.end:
        return False
    line, text = label.lines[index], label.segments[index][0].text
    begin, end = text.at[value.start], text.at[value.end - 1] + 1
    places = {at - begin: rivals_of(line, at, margin) for at in line.doubtful if begin <= at < end}
    if not all(places.values()):
        return True  # nobody knows what else it could be
    seen = text.raw[begin:end]
    at_once = 2 if rules.kinds.get(value.name) == "gtin" else 1  # two digits together may keep a check digit
    could_be = _judge(value, seen, pattern, rules)
    return any(n == MOST_TRIES or could_be(other) for n, other in enumerate(_others(seen, places, at_once)))


def _could_be_another_digit(line: TextLine, at: int, margin: float) -> bool:
    rivals = rivals_of(line, at, margin)
    return line.text[at].isdigit() and (not rivals or any(map(str.isdigit, rivals)))


def _others(seen: str, places: Places, at_once: int) -> Iterator[str]:
    """The text with one doubtful character after the other replaced by what it could be, then two of them, ..."""
    for count in range(1, at_once + 1):
        for chosen in combinations(places, count):
            for rivals in product(*(places[at] for at in chosen)):
                other = list(seen)
                for at, rival in zip(chosen, rivals, strict=True):
                    other[at] = rival
                yield "".join(other)


def _judge(value: Value, seen: str, pattern: Pattern | None, rules: ReadRules) -> Callable[[str], bool]:
    """Tells of another text whether it could stand there and then says something else."""
    kind = rules.kinds.get(value.name, "text")
    if FROM_GS1 in value.flags or (kind == "gtin" and "=" in value.value):
        return _by_reading(value, seen, lambda text: _in_gs1(value.name, text, pattern, rules))
    if kind in ("code", "text"):
        if pattern is not None:
            return lambda other: matching(other, pattern) is not None
        return lambda other: (_fits_code if kind == "code" else _fits_words)(seen, other)

    def read(text: str) -> Value | None:
        fits = pattern is None or matching(text, pattern) is not None
        return read_value(value.name, text, rules) if fits else None

    return _by_reading(value, seen, read)


def _by_reading(value: Value, seen: str, read: Callable[[str], Value | None]) -> Callable[[str], bool]:
    """By what the rules read in the other text; everything is possible where they do not read the value again."""
    same = read(label_text(seen).text)
    if same is None or same.value != value.value:
        return lambda other: True

    def could_be(other: str) -> bool:
        again = read(label_text(other).text)
        if again is None or (again.start, again.end) != (same.start, same.end):
            return False
        return again.value not in ("", value.value) and not _UNSOUND.intersection(again.flags)

    return could_be


def _in_gs1(name: str, text: str, pattern: Pattern | None, rules: ReadRules) -> Value | None:
    """A field's value in a whole GS1 text; None where it is none, or does not fit the pattern of a code."""
    value = next((each for each in read_unnamed(text, rules) if each.name == name), None)
    if value is not None and pattern is not None and rules.kinds[name] == "code" and not pattern.matches(value.value):
        return None
    return value


def _fits_code(seen: str, other: str) -> bool:
    """Whether a code could be the other text: one of capitals holds no small letter, such as the l for its 1."""
    mixed = seen.isupper() and any(map(str.islower, other))
    return not mixed and all(char.isalnum() or char.isspace() or char in IN_CODES for char in other)


def _fits_words(seen: str, other: str) -> bool:
    """Whether words could be the other text: a word of letters holds no digit, and no letter of another case."""
    at = next(n for n, (one, two) in enumerate(zip(seen, other, strict=True)) if one != two)
    word = seen[seen.rfind(" ", 0, at) + 1 : at] + seen[at:].partition(" ")[0]
    if any(map(str.isdigit, word)):
        return seen[at].isalnum() or other[at].isalnum()
    return seen[at].isalpha() and other[at].isalpha() and seen[at].isupper() == other[at].isupper()
