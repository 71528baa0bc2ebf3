"""FieldExtractor: from text lines to fields.

Lines are cut at key phrases (`LOT A123 EXP 08/2026` -> two segments); rules read each segment's value and check
it; a key without a value looks to its right and below; lines that no rule settles go to the encoder in one batch,
which names them by the nearest prototypes. Rules alone give values; the encoder gives only names.

Fields: expiry_date, manufacture_date, lot, serial_number, weight_volume, barcode_digits, contact, product_name,
ingredients, warning, address, and `date` for a date that nothing names. Flags that mean doubt:

    ambiguous        can be read in two ways; `Field.alternatives` has the other
    incomplete       beside the date stands something that may be a lost piece of it
    year_precision   a year alone
    order_conflict   a date that fits only the order that was not configured
    repaired         a digit or unit was read as another character and mended
    invalid          a date that does not exist, such as 31/02; no value
    unreadable       a key with digits behind it that make no value; no value
    implausible      a date far from today; clock_untrusted: this could not be judged
    check_failed     a check digit, a length or an address ending is wrong
    no_key           nothing on the label says what this date is
    key_inferred     the name comes from the encoder, not from a key phrase
    contradicts      expiry before manufacture
    no_digits        a serial or lot of letters alone
    unit_assumed     a count without a unit, taken as pieces
    truncated        the line was too long, its middle was not read
    cut, ...         flags of the lines themselves

and that inform: month_precision (the printed date has no day: an expiry then holds to the last day of its month,
`2027-08-31`; a manufacture date keeps its printed precision, `2027-08`), from_gs1 (from a bracketed GS1 text).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, timezone
from typing import Literal

from edge_agent.config import FieldsConfig
from edge_agent.records import Field, TextLine
from edge_agent.stages.dates import DateRules
from edge_agent.stages.field_prototypes import PROTOTYPES
from edge_agent.stages.field_values import (
    DATE_FIELDS,
    TEXT_FIELDS,
    UNNAMED_DATE,
    Value,
    read_dates,
    read_rest,
    read_tail,
    read_unnamed,
    read_value,
    readings,
    text_value,
    without_dates,
)
from edge_agent.stages.key_phrases import VALUE_FIELDS, KeyPhrase
from edge_agent.stages.label_layout import neighbours
from edge_agent.stages.lexicon import OTHER
from edge_agent.stages.line_shape import may_be_address
from edge_agent.stages.nearest import Nearest, NearestPrototypes
from edge_agent.stages.segments import Segment, segments_of
from edge_agent.stages.text_encoder import TextEncoder

Clock = Callable[[], "float | None"]
Source = Literal["barcode", "rule", "model"]

# A clock that shows less has never been set: boards without a battery start in 1970 or at their image's date.
CLOCK_FLOOR_S = datetime(2025, 1, 1, tzinfo=timezone.utc).timestamp()
ERROR_PENALTY = 0.9  # of confidence, per letter of the key phrase that was not as in the lexicon
MIN_SHARE = 0.35  # of the fields' likenesses; below it a line stays unnamed
MAX_LINE_CHARS = 300  # of a line that the encoder may name by a value: a longer one is prose
MIN_OPEN_LETTERS = 3  # a line with fewer letters says nothing to the encoder


@dataclass(frozen=True)
class _Found:
    """A value on its way to a Field: where it stands and what was seen."""

    value: Value
    seen: str
    lines: tuple[int, ...]
    sureness: float
    at: int
    source: Source = "rule"


@dataclass
class _Label:
    """One frame's lines while they are being read."""

    lines: Sequence[TextLine]
    segments: list[tuple[Segment, ...]]
    truncated: set[int]
    found: list[_Found]
    claimed: set[int]  # lines whose text belongs to a key on another line


class FieldExtractor:
    """Reads fields from lines; keeps no state between frames but the memory of texts already embedded.

    `clock` gives unix seconds, or None while the clock is not trusted (before time synchronisation).
    """

    def __init__(self, config: FieldsConfig, encoder: TextEncoder | None = None, clock: Clock = time.time) -> None:
        self._config = config
        self._clock = clock
        self._nearest = NearestPrototypes(encoder, PROTOTYPES) if encoder is not None else None
        self.dropped = 0  # fields beyond max_fields, since the start

    @property
    def min_similarity(self) -> float:
        """Below this likeness the encoder's name for a line is not believed."""
        return self._config.min_similarity

    def tune(self, config: FieldsConfig) -> None:
        """From the next frame on, as `config` says."""
        self._config = config

    def extract(self, lines: Sequence[TextLine]) -> tuple[Field, ...]:
        """The fields of one frame's lines, in the lines' order. Any text is taken; EngineError passes through."""
        rules = DateRules(self._config.date_order, self._today(), self._config.date_window_years)
        label = self._opened(lines)
        for index in range(len(lines)):
            self._read_line(label, index, rules)
        self._read_across_lines(label, rules)
        self._ask_encoder(label, rules)
        found = _with_contradictions(_unclaimed(label))
        found.sort(key=lambda f: (f.lines[0], f.at))
        self.dropped += max(0, len(found) - self._config.max_fields)
        return tuple(_field(f, label) for f in found[: self._config.max_fields])

    def _today(self) -> date | None:
        now = self._clock()
        return None if now is None or now < CLOCK_FLOOR_S else datetime.fromtimestamp(now, timezone.utc).date()

    def _opened(self, lines: Sequence[TextLine]) -> _Label:
        segments, truncated = [], set()
        for index, line in enumerate(lines):
            cut, too_long = segments_of(line.text, self._config.max_line_chars)
            segments.append(cut)
            if too_long:
                truncated.add(index)
        return _Label(lines, segments, truncated, [], set())

    def _read_line(self, label: _Label, index: int, rules: DateRules) -> None:
        for segment in label.segments[index]:
            for value, key in _segment_values(segment, rules):
                label.found.append(_placed(value, key, segment, index))

    def _read_across_lines(self, label: _Label, rules: DateRules) -> None:
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

    def _ask_encoder(self, label: _Label, rules: DateRules) -> None:
        if self._nearest is None:
            return
        open_lines = [
            i
            for i in range(len(label.lines))
            if _is_open(label, i) and self._nearest.understands(_whole_text(label.segments[i]))
        ]
        texts = [_whole_text(label.segments[i]) for i in open_lines]
        values_of = [readings(text, rules) if len(text) <= MAX_LINE_CHARS else {} for text in texts]
        candidates = [_candidates(text, values) for text, values in zip(texts, values_of, strict=True)]
        answers = self._nearest.nearest(texts, candidates)
        for index, text, values, answer in zip(open_lines, texts, values_of, answers, strict=True):
            if answer.name == OTHER or answer.similarity < self._config.min_similarity or answer.share < MIN_SHARE:
                continue
            self._take_answer(label, index, text, values, answer)

    def _take_answer(self, label: _Label, index: int, text: str, values: dict[str, Value], answer: Nearest) -> None:
        if answer.name in values:
            value = values[answer.name]
            value = replace(value, flags=(*value.flags, "key_inferred"))
            label.found = [f for f in label.found if not (f.lines == (index,) and f.value.name == UNNAMED_DATE)]
        else:
            value = text_value(answer.name, text)
        segment = label.segments[index][0]
        label.found.append(
            _Found(value, segment.text.seen(value.start, value.end), (index,), answer.share, value.start, "model")
        )


def _segment_values(segment: Segment, rules: DateRules) -> list[tuple[Value, KeyPhrase | None]]:
    """Every value of one segment, with the key that named it."""
    text = segment.value_text
    if not segment.keys:
        return [(value, None) for value in read_unnamed(text, rules)]
    named = _named_values(segment, text, rules)
    if any(key.name in TEXT_FIELDS for _, key in named):
        return [*named]
    taken = [value for value, _ in named]
    tail = read_tail(text, max(v.end for v in taken)) if taken else []
    rest = [v for v in read_rest(text, rules) + tail if all(v.end <= t.start or v.start >= t.end for t in taken)]
    if OTHER in segment.names:
        rest = [v for v in rest if v.name != "lot"]
    names = {value.name for value in taken}
    return [*named, *((v, None) for v in rest if v.name not in names and not (v.name == UNNAMED_DATE and names))]


def _named_values(segment: Segment, text: str, rules: DateRules) -> list[tuple[Value, KeyPhrase]]:
    dates = tuple(name for name in segment.names if name in DATE_FIELDS)
    undated = without_dates(text, rules) if dates else text
    values: list[tuple[Value, KeyPhrase]] = []
    for name in segment.names:
        key = next(k for k in segment.keys if k.name == name)
        if len(dates) > 1 and name in dates:
            if name == dates[0]:
                values += [(value, key) for value in read_dates(dates, text, rules)]
        elif name in VALUE_FIELDS:
            if (value := read_value(name, text if name in DATE_FIELDS else undated, rules)) is not None:
                values.append((value, key))
        elif name in TEXT_FIELDS and (named := _text_behind(segment, name)) is not None:
            values.append((named, key))
    return values


def _text_behind(segment: Segment, name: str) -> Value | None:
    """Ingredients are what stands behind the phrase; in a warning or address the phrase belongs to the text."""
    if name == "ingredients":
        return None if segment.says_nothing else text_value(name, segment.value_text)
    whole = text_value(name, segment.text.text[segment.begin : segment.end])
    shift = segment.begin - segment.start
    return replace(whole, start=whole.start + shift, end=whole.end + shift)


def _values_below(
    waiting: Segment, below: tuple[Segment, ...], rules: DateRules
) -> list[tuple[Value, KeyPhrase | None]]:
    if not below:
        return []
    lent = Segment(below[0].text, waiting.keys, below[0].start, below[-1].end)
    if any(name in ("warning", "address", OTHER) for name in waiting.names):
        return []
    values = _named_values(lent, lent.value_text, rules)
    return [(value, key) for value, key in values if "unreadable" not in value.flags]


def _placed(value: Value, key: KeyPhrase | None, segment: Segment, index: int) -> _Found:
    start, end = segment.start + value.start, segment.start + value.end
    sureness = value.certainty * (ERROR_PENALTY**key.errors if key else 1.0)
    return _Found(value, segment.text.seen(start, end), (index,), sureness, start)


def _is_open(label: _Label, index: int) -> bool:
    """No rule has settled the line, and it has words: a bare date beside words is still open to a name."""
    if index in label.claimed:
        return False
    segments = label.segments[index]
    if not segments or (segments[0].keys and set(segments[0].names) == {OTHER}):
        return False
    own = [f for f in label.found if index in f.lines]
    if any(f.value.name != UNNAMED_DATE for f in own):
        return False
    seen = sum(sum(map(str.isalpha, f.seen)) for f in own)
    return sum(map(str.isalpha, _whole_text(segments))) - seen >= MIN_OPEN_LETTERS


def _whole_text(segments: tuple[Segment, ...]) -> str:
    return segments[0].text.text


def _candidates(text: str, values: dict[str, Value]) -> frozenset[str]:
    """What the encoder may call a text: beside a sound date only a date's kinds, an address only what can be one."""
    if any(name in values and not values[name].doubted for name in DATE_FIELDS):
        return frozenset({*DATE_FIELDS, OTHER})
    texts = TEXT_FIELDS if may_be_address(text) else tuple(name for name in TEXT_FIELDS if name != "address")
    return frozenset({*texts, OTHER, *values})


def _unclaimed(label: _Label) -> list[_Found]:
    """Without the unnamed readings of lines whose text another line's key has claimed."""
    return [f for f in label.found if len(f.lines) > 1 or f.lines[0] not in label.claimed]


def _with_contradictions(found: list[_Found]) -> list[_Found]:
    """With exactly one expiry and one manufacture date, an expiry before the manufacture is told on both."""
    dates = {name: [f for f in found if f.value.name == name and f.value.value] for name in DATE_FIELDS}
    expiry, made = dates["expiry_date"], dates["manufacture_date"]
    if len(expiry) != 1 or len(made) != 1 or expiry[0].value.value >= made[0].value.value:
        return found
    wrong = (expiry[0], made[0])
    return [
        replace(f, value=replace(f.value, flags=(*f.value.flags, "contradicts")), sureness=f.sureness * 0.5)
        if f in wrong
        else f
        for f in found
    ]


def _field(found: _Found, label: _Label) -> Field:
    flags = [*found.value.flags]
    for index in found.lines:
        flags += label.lines[index].flags
        if index in label.truncated:
            flags.append("truncated")
    confidence = found.sureness * min(label.lines[index].confidence for index in found.lines)
    value = found.value
    return Field(
        value.name,
        value.value,
        found.seen,
        confidence,
        found.lines,
        tuple(dict.fromkeys(flags)),
        found.source,
        alternatives=value.alternatives,
    )
