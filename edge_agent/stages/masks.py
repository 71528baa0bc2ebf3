"""Masks: a field's pattern put to use. Where a value does not fit it, the line is decoded again under the pattern.

What the network itself holds possible decides, not a table of swaps: without a lattice, or where no text of the pattern
is likely enough, the value stays as read and is flagged. Without a pattern no character is ever changed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from edge_agent.patterns import Pattern
from edge_agent.records import Correction
from edge_agent.stages.code_fields import FROM_GS1
from edge_agent.stages.constrained import Constrained, decode
from edge_agent.stages.field_values import ReadRules, Value, read_value
from edge_agent.stages.found_values import Found, Label
from edge_agent.stages.segments import Segment

MISMATCH = "pattern_mismatch"
MISMATCH_COST = 0.5  # of confidence
MAX_COST = 6.0  # nats that a correction may cost against what was read: e^6 is 400 times less likely
MIN_KEYLESS_CHARS = 4  # of a word that its pattern alone names
MasksByRegion = Mapping["str | None", Mapping[str, Pattern]]  # what a field's value must look like there, by its name
_WORD = re.compile(r"\S+")
# what a mask proves wrong or needless to say
_DISPROVED = frozenset({"no_digits", "unreadable", "repaired", "incomplete"})


@dataclass(frozen=True)
class _Span:
    """A part of a line: `[start, end)` of its clean text, `[begin, stop)` of its text as read."""

    start: int
    end: int
    begin: int
    stop: int
    seen: str


def fit_to_masks(label: Label, masks_of: MasksByRegion, rules: ReadRules) -> None:
    """Holds what was found against its field's pattern in its region, and finds by it what no key names there."""
    for at, found in enumerate(label.found):
        pattern = masks_of[label.lines[found.lines[-1]].region].get(found.value.name)
        if pattern is not None:
            label.found[at] = _fitted(found, label, pattern, rules)
    for region, patterns in masks_of.items():
        for name, pattern in patterns.items():
            if rules.kinds.get(name, "code") == "code" and not _is_told(label, region, name):
                label.found += _keyless(label, region, name, pattern)


def _is_told(label: Label, region: str | None, name: str) -> bool:
    return any(found.value.name == name and label.lines[found.lines[-1]].region == region for found in label.found)


def matching(text: str, pattern: Pattern) -> str | None:
    """The text, with or without the spaces that group it, where the pattern takes it."""
    return next((form for form in (text, text.replace(" ", "")) if pattern.matches(form)), None)


def _fitted(found: Found, label: Label, pattern: Pattern, rules: ReadRules) -> Found:
    if FROM_GS1 in found.value.flags:  # its place is the whole GS1 text
        is_code = rules.kinds[found.value.name] == "code"
        return found if not is_code or pattern.matches(found.value.value) else _mismatched(found)
    if rules.kinds[found.value.name] == "code" and (settled := _settled(found, pattern)) is not None:
        return settled
    line = label.lines[found.lines[-1]]
    spans = _spans(found, label)
    for span in spans:
        if (form := matching(span.seen, pattern)) is not None:
            return _taken(found, span, form, (), rules)
    if line.lattice is not None and found.lines[-1] not in label.truncated:
        decoded = [(span, one) for span in spans if (one := decode(line.lattice, span.begin, span.stop, pattern))]
        likely = [(span, one) for span, one in decoded if _cost(one) <= MAX_COST * max(1, len(_changes(one)))]
        if likely:
            span, one = min(likely, key=lambda each: _cost(each[1]))
            return _taken(found, span, one.text, _changes(one), rules)
    return _mismatched(found)


def _settled(found: Found, pattern: Pattern) -> Found | None:
    """A value that could be read in several ways, of which the pattern takes one; None where it is none of these."""
    value = found.value
    fitting = [way for way in (value.value, *value.alternatives) if pattern.matches(way)]
    if not value.alternatives or len(fitting) != 1:
        return None
    flags = tuple(flag for flag in value.flags if flag not in {*_DISPROVED, "ambiguous"})
    seen = fitting[0] if fitting[0].endswith(found.seen) else found.seen  # the end of its phrase is its own beginning
    return replace(found, value=replace(value, value=fitting[0], flags=flags, alternatives=()), seen=seen)


def _spans(found: Found, label: Label) -> list[_Span]:
    """The value's place, then all that stands behind its key: a rule may have cut it where the pattern would not."""
    index, value = found.lines[-1], found.value
    segment = next((s for s in label.segments[index] if s.start <= value.start < s.end), label.segments[index][0])
    places = [(value.start, value.end), _stripped(segment)]
    spans = (_span(segment, start, end) for start, end in dict.fromkeys(places) if start < end)
    return [span for span in spans if span.seen]


def _stripped(segment: Segment) -> tuple[int, int]:
    text = segment.value_text
    start = len(text) - len(text.lstrip(" :.#=-"))
    return segment.start + start, segment.start + len(text.rstrip(" :;,."))


def _span(segment: Segment, start: int, end: int) -> _Span:
    begin, stop = segment.text.at[start], segment.text.at[end - 1] + 1
    return _Span(start, end, begin, stop, segment.text.raw[begin:stop])


def _cost(one: Constrained) -> float:
    return one.greedy_log_probability - one.log_probability


def _changes(one: Constrained) -> tuple[Correction, ...]:
    """The corrections, without spaces that only group."""
    return tuple(change for change in one.corrections if change.seen.strip() or change.taken.strip())


def _taken(found: Found, span: _Span, text: str, corrections: tuple[Correction, ...], rules: ReadRules) -> Found:
    """The found value as the pattern has it, its dates and amounts read from that text."""
    flags = tuple(flag for flag in found.value.flags if flag not in _DISPROVED)
    value = replace(found.value, value=text, start=span.start, end=span.end, flags=flags)
    if rules.kinds[value.name] not in ("code", "text"):
        read = read_value(value.name, text, rules)
        if read is None or not read.value:
            return _mismatched(found)
        value = replace(read, start=span.start, end=span.end)
    return replace(found, value=value, seen=span.seen, corrections=corrections)


def _mismatched(found: Found) -> Found:
    value = replace(found.value, flags=(*found.value.flags, MISMATCH))
    return replace(found, value=value, sureness=found.sureness * MISMATCH_COST)


def _keyless(label: Label, region: str | None, name: str, pattern: Pattern) -> Iterator[Found]:
    """Words that no key names and nothing else was read from, and that the pattern takes as they stand."""
    for index, segments in enumerate(label.segments):
        for segment in segments:
            if segment.keys or index in label.claimed or label.lines[index].region != region:
                continue
            for word in _WORD.finditer(segment.value_text):
                start, end = segment.start + word.start(), segment.start + word.end()
                if (
                    len(word[0]) < MIN_KEYLESS_CHARS
                    or not pattern.matches(word[0])
                    or _is_read(label, index, start, end)
                ):
                    continue
                yield Found(Value(name, word[0], start, end), segment.text.seen(start, end), (index,), 1.0, start)


def _is_read(label: Label, index: int, start: int, end: int) -> bool:
    return any(f.lines[-1] == index and f.value.start < end and f.value.end > start for f in label.found)
