"""What the rules find on a label: each segment's values, and the value that stands right of or below its key.

A Label is one frame's lines while they are being read; what is found is gathered in it, with its place in the line.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from edge_agent.records import Correction, TextLine
from edge_agent.stages.field_values import (
    DATE_FIELDS,
    TEXT_FIELDS,
    UNNAMED_DATE,
    ReadRules,
    Value,
    read_dates,
    read_gtin_alone,
    read_rest,
    read_tail,
    read_unnamed,
    read_value,
    text_value,
    without_dates,
)
from edge_agent.stages.key_phrases import KeyPhrase, KeyTable
from edge_agent.stages.label_date import MONTH
from edge_agent.stages.label_layout import beside, neighbours
from edge_agent.stages.lexicon import OTHER
from edge_agent.stages.lost_days import begins_with_sign, is_piece
from edge_agent.stages.segments import Segment, segments_of

Source = Literal["barcode", "rule", "model"]
INFERRED = "key_inferred"
ERROR_PENALTY = 0.9  # of confidence, per letter of the key phrase that was not as in the lexicon
_HEAD_OF_CODE = re.compile(r"[^\W_]+\Z")
BARE_LOT = re.compile(r"(?=.{4})(?=.*[0-9].*[0-9])(?:[A-Z][A-Z0-9/-]{3,15}|[0-9]+[A-Z][A-Z0-9/-]*|[0-9]{5,10})")
MIN_LOOSE_CODE = 4  # characters of a code behind a short key that is glued to it in the middle of a line


@dataclass(frozen=True)
class Found:
    """A value on its way to a Field: in which lines it stands, where in the text of the last of them, what was seen."""

    value: Value
    seen: str
    lines: tuple[int, ...]
    sureness: float
    at: int
    source: Source = "rule"
    corrections: tuple[Correction, ...] = ()


@dataclass
class Label:
    """One frame's lines, cut into segments; `claimed` are lines whose text belongs to a key on another line,
    `doubtful_numbers` those in which a digit could be another one."""

    lines: Sequence[TextLine]
    segments: list[tuple[Segment, ...]]
    truncated: set[int]
    found: list[Found] = field(default_factory=list)
    claimed: set[int] = field(default_factory=set)
    doubtful_numbers: set[int] = field(default_factory=set)

    def whole_text(self, index: int) -> str:
        """The clean text of a line."""
        return self.segments[index][0].text.text

    def take(self, found: Found) -> None:
        """Puts in what a model found in a line; a date there that nothing named has its name now."""
        if found.value.name not in TEXT_FIELDS:
            start, end = found.value.start, found.value.end
            self.found = [
                f
                for f in self.found
                if not (
                    f.lines == found.lines
                    and f.value.name == UNNAMED_DATE
                    and f.value.start < end
                    and f.value.end > start
                )
            ]
        self.found.append(found)

    def told(self) -> list[Found]:
        """What was found, without the unnamed readings of lines whose text another line's key has claimed."""
        return [f for f in self.found if len(f.lines) > 1 or f.lines[0] not in self.claimed]


def read_label(lines: Sequence[TextLine], rules: ReadRules, keys: KeyTable, max_line_chars: int) -> Label:
    """The label of these lines, with all that rules find on it."""
    label = Label(lines, [], set())
    for index, line in enumerate(lines):
        segments, too_long = segments_of(line.text, max_line_chars, keys)
        label.segments.append(segments)
        if too_long:
            label.truncated.add(index)
    for index, segments in enumerate(label.segments):
        for segment in segments:
            label.found += [_placed(value, key, segment, index) for value, key in segment_values(segment, rules)]
    _read_across_lines(label, rules)
    label.found = [_with_lost_day(found, label, rules) for found in label.found]
    return label


def segment_values(segment: Segment, rules: ReadRules) -> list[tuple[Value, KeyPhrase | None]]:
    """Every value of one segment, with the key that named it."""
    text = segment.value_text
    if not segment.keys:
        return [(value, None) for value in read_unnamed(text, rules)]
    named = _named_values(segment, text, rules)
    if any(rules.kinds.get(key.name) == "text" for _, key in named):
        return [*named]
    taken = [value for value, _ in named]
    tail = read_tail(text, max(v.end for v in taken)) if taken else []
    rest = [v for v in read_rest(text, rules) + tail if all(v.end <= t.start or v.start >= t.end for t in taken)]
    if OTHER in segment.names:
        rest = [v for v in rest if v.name != "lot"] + read_gtin_alone(text)
    names = {value.name for value in taken}
    return [*named, *((v, None) for v in rest if v.name not in names and not (v.name == UNNAMED_DATE and names))]


def _named_values(segment: Segment, text: str, rules: ReadRules) -> list[tuple[Value, KeyPhrase]]:
    dates = tuple(name for name in segment.names if name in DATE_FIELDS)
    undated = without_dates(text, rules) if dates else text
    values: list[tuple[Value, KeyPhrase]] = []
    for name in segment.names:
        key = next(k for k in segment.keys if k.name == name)
        if len(dates) > 1 and name in dates:
            if name == dates[0]:
                values += [(value, key) for value in read_dates(dates, text, rules)]
        elif name in TEXT_FIELDS:
            if (named := _text_behind(segment, name)) is not None:
                values.append((named, key))
        elif name in rules.kinds:
            value = read_value(name, text if rules.kinds[name] == "date" else undated, rules)
            if value is not None and not _is_loose(segment, key, value):
                with_end = _KEY_S_END.get(rules.kinds[name])
                values.append((with_end(value, key, segment) if with_end else value, key))
    return [(value if key.sure else replace(value, flags=(*value.flags, INFERRED)), key) for value, key in values]


def _with_key_s_end(value: Value, key: KeyPhrase, segment: Segment) -> Value:
    """A code to which a word of its phrase is glued, that may be its own beginning: `S/N O921`, `LOT NO123`."""
    text = segment.text.text
    head = _HEAD_OF_CODE.search(text, key.start, key.end)
    if value.start > 0 or not value.value or head is None or head.start() == key.start:
        return value
    both = head[0] + value.value
    return replace(value, flags=(*value.flags, "ambiguous"), alternatives=(*value.alternatives, both))


def _with_key_s_letter(value: Value, key: KeyPhrase, segment: Segment) -> Value:
    """A day of one digit that touches a bent phrase, whose last letter may be its first: the 19 of `lel9.11.2026`."""
    text, at = segment.text.text, key.end
    touches = at == segment.start and value.start == 0 and text[at - 1 : at] in tuple("lIiOoSZB")
    is_one_digit = text[at : at + 1].isdigit() and not text[at + 1 : at + 2].isdigit()
    if not (key.errors and touches and is_one_digit and value.value):
        return value
    return replace(value, flags=tuple(dict.fromkeys((*value.flags, "incomplete"))))


# what the end of a phrase may have of a value that touches it, by what the value is
_KEY_S_END: Mapping[str, Callable[[Value, KeyPhrase, Segment], Value]] = {
    "code": _with_key_s_end,
    "date": _with_key_s_letter,
}


def _is_loose(segment: Segment, key: KeyPhrase, value: Value) -> bool:
    """Whether a short key in the middle of a line is more likely a piece of something: the SN5 of a postal code."""
    text = segment.text.text
    glued = text[key.end : key.end + 1].isalnum()
    return key.chars <= 3 and glued and bool(text[: key.start].strip()) and len(value.value) < MIN_LOOSE_CODE


def _text_behind(segment: Segment, name: str) -> Value | None:
    """Ingredients are what stands behind the phrase, but for an amount: Contains 330 ml; in a warning or address the
    phrase belongs to the text."""
    if name == "ingredients":
        if (amount := read_tail(segment.value_text, 0)) or segment.says_nothing:
            return amount[0] if amount else None
        return text_value(name, segment.value_text)
    whole = text_value(name, segment.text.text[segment.begin : segment.end])
    shift = segment.begin - segment.start
    return replace(whole, start=whole.start + shift, end=whole.end + shift)


def bare_lots(label: Label) -> list[Found]:
    """A code that is all that stands before the key of a date, where the label tells no lot: A123 EXP 08/2027."""
    if any(found.value.name == "lot" for found in label.found):
        return []
    return [
        _placed(Value("lot", code, start, start + len(code), ("no_key",)), None, first, index)
        for index, (first, second) in [(n, s[:2]) for n, s in enumerate(label.segments) if len(s) > 1]
        if not first.keys and set(second.names) & set(DATE_FIELDS)
        for code in [first.value_text.strip()]
        for start in [first.value_text.index(code)]
        if BARE_LOT.fullmatch(code)
    ]


def _read_across_lines(label: Label, rules: ReadRules) -> None:
    """A key that ends its line without a value takes the one to its right or below."""
    for index, segments in enumerate(label.segments):
        if not segments or not segments[-1].keys or not segments[-1].says_nothing:
            continue
        waiting = segments[-1]
        for other in neighbours(label.lines, index):
            if other in label.claimed or any(s.keys for s in label.segments[other]):
                continue
            values = _values_below(waiting, label.segments[other], rules)
            if values:
                label.found += [
                    replace(_placed(value, key, label.segments[other][0], other), lines=(index, other))
                    for value, key in values
                ]
                label.claimed.add(other)
                break


def _values_below(
    waiting: Segment, below: tuple[Segment, ...], rules: ReadRules
) -> list[tuple[Value, KeyPhrase | None]]:
    if not below:
        return []
    lent = Segment(below[0].text, waiting.keys, below[0].start, below[-1].end)
    if any(name in ("warning", "address", OTHER) for name in waiting.names):
        return []
    values = _named_values(lent, lent.value_text, rules)
    return [(value, key) for value, key in values if "unreadable" not in value.flags]


def _with_lost_day(found: Found, label: Label, rules: ReadRules) -> Found:
    """A date whose day, or a digit of it, is a line of its own beside it, or was lost at its line's beginning."""
    value, index = found.value, found.lines[-1]
    text = label.whole_text(index)
    parts = re.findall("[0-9]+", text[value.start : value.end])
    if rules.kinds.get(value.name, "date") != "date" or not value.value or not parts or "incomplete" in value.flags:
        return found
    by_month = MONTH in value.flags
    before, behind = text[: value.start], text[value.end :]
    lost = by_month and begins_with_sign(before)
    if by_month or len(parts[0]) == 1 or len(parts[-1]) == 1:
        sides = beside(label.lines, index)
        for others, between, part in zip(sides, (before, behind), (parts[0], parts[-1]), strict=True):
            if (by_month or len(part) == 1) and not any(map(str.isalnum, between)):
                lost = lost or any(is_piece(label.whole_text(other)) for other in others)
    return replace(found, value=replace(value, flags=(*value.flags, "incomplete"))) if lost else found


def _placed(value: Value, key: KeyPhrase | None, segment: Segment, index: int) -> Found:
    start, end = segment.start + value.start, segment.start + value.end
    sureness = value.certainty * (ERROR_PENALTY**key.errors if key else 1.0)
    return Found(replace(value, start=start, end=end), segment.text.seen(start, end), (index,), sureness, start)
