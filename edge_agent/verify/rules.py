"""Rules: what each kind of rule makes of a label. A new kind is a row of RULES and a key of settings.expected.Rule.

A rule passes only on what is certain. It fails where something certain, or every way to read it, contradicts it. All
else is NO_READ: what is absent, doubtful or cannot be judged here was not read.
"""

from __future__ import annotations

import calendar
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from functools import lru_cache, partial

from rapidfuzz import fuzz

from edge_agent.records import FROM_CATALOGUE, INFORMING_FLAGS, LINE_DOUBTS, Code, Field, Reason, TextLine, Verdict
from edge_agent.settings.date_rule import DATE_FIELDS, Comparison, DateRule, DateSide, field_name
from edge_agent.settings.expected import MAX_RULES, Rule
from edge_agent.stages.dates import gs1_date, same_date
from edge_agent.stages.label_date import MONTH, DateRules
from edge_agent.stages.label_text import label_text, skeleton
from edge_agent.stages.product_numbers import contradict, numbers_of
from edge_agent.verify.expectation import pattern_of
from edge_agent.verify.label import CODE, Label, product_number

ALIKE = 0.6  # a text this like the expected one is that text, misprinted or misread; below, another
CATALOGUE_ALIKE = 0.85  # of skeletons: 60 entries under noise of 9.6 % CER were told apart from there on
MAX_SEEN_CHARS = 300
MISMATCH = "pattern_mismatch"  # flag of a field that its pattern does not match
AMOUNT = "weight_volume"
CONTRADICTS = "contradicts_code"  # flag of fields that print and code say differently


@dataclass(frozen=True)
class Today:
    """The day that rules count from; not `trusted` where nothing has set the clock."""

    day: date
    trusted: bool


def judge_rule(rule: Rule, label: Label, today: Today) -> Reason:
    """What one rule says of a label."""
    return RULES[rule.kind](rule, label, today)


def words_of(rule: Rule) -> str:
    """The rule as people read it: `lot: pattern L9999A`."""
    subject = "" if rule.field is None else f"{rule.field}: "
    content = {
        "read": "read",
        "date": rule.date,
        "one_of": f"one of {len(rule.one_of or ())}",
        "gs1": f"gs1 ({')('.join(rule.gs1 or ())})",
        "equals": f"equals {rule.equals}",
    }
    return subject + str(content.get(rule.kind) or f"{rule.kind} {getattr(rule, rule.kind)}")


def _reason(rule: Rule, expected: str, seen: str, verdict: Verdict, why: str | None = None) -> Reason:
    return Reason(words_of(rule), expected[:MAX_SEEN_CHARS], seen[:MAX_SEEN_CHARS], verdict, why)


def _of_field(
    rule: Rule, field: Field | None, expected: str, holds: Callable[[str], bool], judged_here: str = ""
) -> Reason:
    """A field whose value must hold: it passes where it is certain, and fails where no way to read it holds.

    `judged_here` is a flag that says what this rule finds out by itself.
    """
    if field is None:
        return _reason(rule, expected, "", "NO_READ", "absent")
    seen = field.value or field.text
    if without(field, judged_here).certain:
        return _reason(rule, expected, seen, *(("PASS", None) if holds(field.value) else ("FAIL", "differs")))
    if "ambiguous" in field.flags and field.alternatives:
        every = (field.value, *field.alternatives)
        others = set(field.flags) - {"ambiguous", *INFORMING_FLAGS}
        if not others and not field.corrections and not any(holds(value) for value in every):
            return _reason(rule, expected, " or ".join(every), "FAIL", "differs")
        return _reason(rule, expected, " or ".join(every), "NO_READ", "ambiguous")
    return _reason(rule, expected, f"{seen} ({doubts_of(field)})", "NO_READ", "uncertain")


def without(field: Field, flag: str) -> Field:
    """The field as it is but for one flag."""
    return replace(field, flags=tuple(each for each in field.flags if each != flag))


def doubts_of(field: Field) -> str:
    """What speaks against a field, in a few words."""
    corrections = [f"{c.seen or 'nothing'} taken for {c.taken or 'nothing'}" for c in field.corrections]
    return ", ".join([*field.flags, *corrections]) or "no value"


def _read(rule: Rule, label: Label, today: Today) -> Reason:
    assert rule.name is not None
    return _of_field(rule, label.field(rule.name), "read beyond doubt", bool)


def _text(rule: Rule, label: Label, today: Today) -> Reason:
    assert rule.text is not None
    if (name := rule.name) is not None:
        said = _said(name, rule.text)
        return _of_field(rule, label.field(name), rule.text, lambda value: not said.isdisjoint(_said(name, value)))
    wanted = _plain(rule.text)
    if (standing := _standing(label.lines, partial(_places, rule.text))) is not None:
        return _reason(rule, rule.text, rule.text if standing.certain else standing.text, *_outcome(standing))
    return _nearest(rule, rule.text, label.lines, lambda text: fuzz.ratio(_plain(text), wanted) / 100)


def _pattern(rule: Rule, label: Label, today: Today) -> Reason:
    assert rule.pattern is not None
    matches = pattern_of(rule.pattern).matches
    field = None if rule.name is None else label.field(rule.name)
    if rule.name is not None:
        text = "" if field is None else field.text
        return _of_field(rule, field, rule.pattern, lambda value: matches(value) or matches(text), MISMATCH)
    standing = _standing(label.lines, lambda text: (place for place in _words_of(text) if matches(text[slice(*place)])))
    if standing is None:
        return _reason(rule, rule.pattern, "", "NO_READ", "absent")
    return _reason(rule, rule.pattern, standing.text, *_outcome(standing))


@dataclass(frozen=True)
class _Standing:
    """What was looked for, as it stands in a line; `certain` where nothing speaks against those characters."""

    text: str
    certain: bool


def _outcome(standing: _Standing) -> tuple[Verdict, str | None]:
    return ("PASS", None) if standing.certain else ("NO_READ", "uncertain")


def _standing(lines: Iterable[TextLine], places: Callable[[str], Iterable[tuple[int, int]]]) -> _Standing | None:
    """What `places` finds in the lines as characters [begin, end), beyond doubt if it stands so anywhere."""
    doubted: _Standing | None = None
    for line in lines:
        for begin, end in places(line.text):
            found = line.text[begin:end]
            if not (LINE_DOUBTS.intersection(line.flags) or any(begin <= at < end for at in line.doubtful)):
                return _Standing(found, certain=True)
            doubted = doubted or _Standing(found, certain=False)
    return doubted


def _places(wanted: str, text: str) -> Iterator[tuple[int, int]]:
    """Where a text stands in another, whatever spaces; `500 g` does not stand in `1500 g`, `1.500 g` or `500 gal`."""
    seen = label_text(text)
    for found in _as_a_whole(_plain(wanted)).finditer(seen.text):
        yield seen.at[found.start()], seen.at[found.end() - 1] + 1


_NO_LONGER_UNIT = r"(?!(?!e\b)[^\W\d_]{1,2}(?![^\W_]))"


@lru_cache(maxsize=MAX_RULES)
def _as_a_whole(plain: str) -> re.Pattern[str]:
    """Numbers count as a whole, and so do units: `24 V 5 A` is not in `24 V 5 Ah`. A word may be glued to the next, for
    OCR loses spaces, and the sign of an estimated amount, which it reads as an e, to its unit."""
    if not plain:
        return re.compile(r"(?!)")  # nothing stands nowhere
    before = r"(?<![0-9])(?<![0-9][.,\s])" if plain[0].isdigit() else ""
    after = r"(?![.,\s]?[0-9])" if plain[-1].isdigit() else _NO_LONGER_UNIT if re.search("[0-9]", plain) else ""
    return re.compile(before + r"\s*".join(map(re.escape, plain)) + after)


def _words_of(text: str) -> Iterator[tuple[int, int]]:
    """A whole text, and its words, as characters [begin, end)."""
    yield 0, len(text)
    yield from (word.span() for word in re.finditer(r"\S+", text))


def _one_of(rule: Rule, label: Label, today: Today) -> Reason:
    name = rule.name
    assert name is not None and rule.one_of is not None
    values = _values_said(name, rule.one_of)
    expected = ", ".join(rule.one_of[:5]) + (f", ... ({len(rule.one_of)})" if len(rule.one_of) > 5 else "")
    return _of_field(rule, label.field(name), expected, lambda value: not values.isdisjoint(_said(name, value)))


@lru_cache(maxsize=MAX_RULES)
def _values_said(name: str, values: tuple[str, ...]) -> frozenset[str]:
    """Made once of a list: it may have 10 000 lots, and is asked at every reading."""
    return frozenset(said for value in values for said in _said(name, value))


def _said(name: str, value: str) -> frozenset[str]:
    """What a field's value says, as it is compared: of a bar code, or a GS1 element string (`01=...;17=...`), the
    product's number too, of 14 digits however many are printed; of an amount, the same in g or ml."""
    said = {_plain(value)}
    if name.endswith(CODE) and (number := product_number(_plain(value))) is not None:
        said.add(number)
    if name.endswith(AMOUNT):
        said |= {f"{amount} {unit}" for amount, unit in numbers_of(value).amounts}
    return frozenset(said)


def _catalogue(rule: Rule, label: Label, today: Today) -> Reason:
    """What the catalogue of the settings says of a line counts; it knows the twins. Of what it does not know words may
    differ a little, numbers and units not: `TD-700` is no `TD-500`."""
    entry = rule.catalogue
    assert entry is not None
    if rule.name is not None:
        field = label.field(rule.name)
        known = field is not None and FROM_CATALOGUE in field.flags
        return _of_field(
            rule, field, entry, lambda value: _plain(value) == _plain(entry) if known else _is_entry(value, entry)
        )
    products = [field for field in label.fields if FROM_CATALOGUE in field.flags]
    if sure := next((each for each in products if each.certain and _plain(each.value) == _plain(entry)), None):
        return _reason(rule, entry, sure.text, "PASS")
    pairs = [_joined(one, two) for one, two in zip(label.lines, label.lines[1:], strict=False)]
    named = [line for line in [*label.lines, *pairs] if _may_be_entry(line.text, entry, products)]
    if named:
        clear = next((line for line in named if not _number_in_doubt(line)), None)
        text = (clear or named[0]).text
        return _reason(rule, entry, text, *(("PASS", None) if clear is not None else ("NO_READ", "uncertain")))
    return _of_products(rule, entry, products) or _nearest(
        rule, entry, label.lines, lambda text: _likeness(text, entry)
    )


def _may_be_entry(text: str, entry: str, products: Sequence[Field]) -> bool:
    """Whether a text is the entry by its likeness, where the catalogue does not say that it is something else."""
    if not _is_entry(text, entry):
        return False
    told = any(product.text in text or text in product.text for product in products)
    return not told or skeleton(text).chars == skeleton(entry).chars


def _of_products(rule: Rule, entry: str, products: Sequence[Field]) -> Reason | None:
    """What products that the catalogue knows say of an entry that is none of them for certain; None where they say
    nothing."""
    for product in products:
        ways = (product.value, *product.alternatives)
        if _plain(entry) in map(_plain, ways):
            why = "ambiguous" if len(ways) > 1 else "uncertain"
            seen = " or ".join(ways) if len(ways) > 1 else f"{product.value} ({doubts_of(product)})"
            return _reason(rule, entry, seen, "NO_READ", why)
    other = next((product for product in products if product.certain), None)
    return None if other is None else _reason(rule, entry, other.value, "FAIL", "differs")


def _joined(one: TextLine, two: TextLine) -> TextLine:
    """Two lines that follow one another as one."""
    doubtful = (*one.doubtful, *(len(one.text) + 1 + at for at in two.doubtful))
    return replace(one, text=f"{one.text} {two.text}", flags=(*one.flags, *two.flags), doubtful=doubtful, characters=())


def _number_in_doubt(line: TextLine) -> bool:
    """Letters of a product's name may be in doubt, its digits not."""
    return bool(LINE_DOUBTS.intersection(line.flags)) or any(line.text[at].isdigit() for at in line.doubtful)


def _nearest(rule: Rule, expected: str, lines: tuple[TextLine, ...], likeness: Callable[[str], float]) -> Reason:
    """A text that stands nowhere: it differs where a line that is read beyond doubt is meant to be it."""
    nearest = max(lines, key=lambda line: likeness(line.text), default=None)
    if nearest is None or likeness(nearest.text) < ALIKE:
        return _reason(rule, expected, "" if nearest is None else nearest.text, "NO_READ", "absent")
    if nearest.doubtful or nearest.flags or _is_an_end(_plain(nearest.text), _plain(expected)):
        return _reason(rule, expected, nearest.text, "NO_READ", "uncertain")
    return _reason(rule, expected, nearest.text, "FAIL", "differs")


def _is_an_end(seen: str, wanted: str) -> bool:
    """Whether a text merely stops short, as print does that is blurred or hidden at one end."""
    return wanted.startswith(seen) or wanted.endswith(seen)


def _is_entry(text: str, entry: str) -> bool:
    if _numbers(text) != _numbers(entry) or contradict(numbers_of(text), numbers_of(entry)):
        return False
    return _likeness(text, entry) >= CATALOGUE_ALIKE


def _likeness(text: str, entry: str) -> float:
    ours, theirs = (" ".join(skeleton(word).chars for word in each.split()) for each in (text, entry))
    return (
        float(max(fuzz.ratio(ours.replace(" ", ""), theirs.replace(" ", "")), fuzz.token_sort_ratio(ours, theirs)))
        / 100
    )


def _numbers(text: str) -> list[str]:
    return sorted(number.replace(",", ".") for number in re.findall(r"[0-9]+(?:[.,][0-9]+)*", text))


def _gs1(rule: Rule, label: Label, today: Today) -> Reason:
    assert rule.gs1 is not None
    expected = "".join(f"({ai})" for ai in rule.gs1)
    messages = [elements for code in label.codes if (elements := _elements(code)) is not None]
    if not messages:
        others = ", ".join(f"{code.symbology} {code.text}" for code in label.codes)
        return _reason(rule, expected, others, "NO_READ", "absent")
    elements = [element for message in messages for element in message]
    seen = "".join(f"({ai}){content}" for ai, content, _ in elements)
    wrong = [ai for ai, content, sound in elements if not sound or not _date_exists(ai, content, today.day)]
    missing = [ai for ai in rule.gs1 if ai not in {ai for ai, _, _ in elements}]
    contents = {ai: {content for other, content, _ in elements if other == ai} for ai in rule.gs1}
    if any(len(each) > 1 for each in contents.values()):  # codes of two items, or a wrong one
        return _reason(rule, expected, seen, "NO_READ", "ambiguous")
    if not wrong and not missing:
        return _reason(rule, expected, seen, "PASS")
    faults = [f"({ai}) is wrong" for ai in wrong] + [f"({ai}) is missing" for ai in missing]
    return _reason(rule, expected, f"{seen}: {', '.join(faults)}", "FAIL", "differs")


def _elements(code: Code) -> list[tuple[str, str, bool]] | None:
    """(identifier, content, whether its check digit holds) of a GS1 code; None for another."""
    from edge_agent.stages.gs1 import GS1_IDENTIFIERS, elements_of

    if code.identifier not in GS1_IDENTIFIERS:
        return None
    found = elements_of(code.text)
    return None if found is None else [(one.ai, one.content, one.sound) for one in found]


def _date_exists(ai: str, content: str, today: date) -> bool:
    return ai not in ("11", "12", "13", "15", "16", "17") or gs1_date(content, DateRules(today=today)).valid


def _equals(rule: Rule, label: Label, today: Today) -> Reason:
    assert rule.name is not None and rule.equals is not None
    other = label.field(field_name(rule.equals))
    if other is None:
        return _reason(rule, f"{rule.equals} read", "", "NO_READ", "absent")
    if not without(other, CONTRADICTS).certain:
        return _reason(
            rule, f"{rule.equals} read", f"{other.value or other.text} ({doubts_of(other)})", "NO_READ", "uncertain"
        )
    field = label.field(rule.name)
    return _of_field(rule, field, other.value, lambda value: _same(value, field, other), CONTRADICTS)


def _same(value: str, field: Field | None, other: Field) -> bool:
    """Whether a value of a field says what another field says; of a date printed without its day the month counts."""
    if field is not None and {field.name, other.name} <= set(DATE_FIELDS):
        by_month = MONTH in field.flags or MONTH in other.flags
        return same_date(value, other.value, by_month=by_month)
    return not _said(other.name, value).isdisjoint(_said(other.name, other.value))


# Dates


@dataclass(frozen=True)
class _Days:
    """The days that one side of a date rule may mean, and how certain that is."""

    ways: tuple[tuple[date, date], ...]  # of each way to read it, the first and the last day
    seen: str
    why: str | None = None  # why it is not certain


def _date(rule: Rule, label: Label, today: Today) -> Reason:
    assert rule.date is not None
    parsed = DateRule.parse(rule.date)
    left, right = (_days_of(side, label, today, parsed.comparison) for side in (parsed.left, parsed.right))
    expected = _expected(parsed, today)
    seen = ", ".join(days.seen for days in (left, right) if days.seen)
    doubts = [days.why for days in (left, right) if days.why is not None]
    outcomes = {parsed.holds(one, two) for a in left.ways for b in right.ways for one, two in _extremes(parsed, a, b)}
    if not outcomes:
        return _reason(rule, expected, seen, "NO_READ", doubts[0] if doubts else "absent")
    if outcomes == {False} and all(why == "ambiguous" for why in doubts):
        return _reason(rule, expected, seen, "FAIL", "differs")
    if doubts or outcomes != {True}:
        return _reason(rule, expected, seen, "NO_READ", doubts[0] if doubts else "ambiguous")
    return _reason(rule, expected, seen, "PASS")


def _extremes(rule: DateRule, one: tuple[date, date], two: tuple[date, date]) -> Iterator[tuple[date, date]]:
    """The pairs of days between which a comparison can change; for equality a month that holds the day is enough."""
    if rule.comparison == "=" and one[0] <= two[1] and two[0] <= one[1]:
        yield max(one[0], two[0]), max(one[0], two[0])
        return
    yield one[0], two[1]
    yield one[1], two[0]


def _expected(rule: DateRule, today: Today) -> str:
    """The rule with its fixed side as a day: `expiry_date >= 2027-02-28`."""

    def told(side: DateSide) -> str:
        if side.is_field:
            shift = f" {'+' if side.count > 0 else '-'} {abs(side.count)}{side.unit}" if side.count else ""
            return f"{side.name}{shift}"
        day = _shifted(side, side.fixed or today.day)
        return "no day of the calendar" if day is None else day.isoformat()

    return f"{told(rule.left)} {rule.comparison} {told(rule.right)}"


def _days_of(side: DateSide, label: Label, today: Today, comparison: Comparison) -> _Days:
    if not side.is_field:
        day = _shifted(side, side.fixed or today.day)
        untrusted = side.fixed is None and not today.trusted
        return _Days(() if day is None else ((day, day),), "", "clock_untrusted" if untrusted else None)
    field = label.field(side.name)
    if field is None:
        return _Days((), "", "absent")
    # an expiry printed without its day lasts to the month's end, and is still equal to each of its days
    months = comparison == "=" and MONTH in field.flags
    ways = [_span(value[:7] if months else value) for value in (field.value, *field.alternatives) if value]
    days = [(_shifted(side, way[0]), _shifted(side, way[1])) for way in ways if way is not None]
    whole = tuple((first, last) for first, last in days if first is not None and last is not None)
    seen = " or ".join(value for value in (field.value, *field.alternatives) if value) or field.text
    if field.certain and whole:
        return _Days(whole, seen)
    only_ambiguous = set(field.flags) - INFORMING_FLAGS == {"ambiguous"} and not field.corrections
    return _Days(
        whole,
        seen if only_ambiguous else f"{seen} ({doubts_of(field)})",
        "ambiguous" if only_ambiguous else "uncertain",
    )


def _span(value: str) -> tuple[date, date] | None:
    """The days that a date in the precision printed covers: 2027-08-31, 2027-08, 2027; None for something else."""
    match = re.fullmatch(r"([0-9]{4})(?:-([0-9]{2}))?(?:-([0-9]{2}))?", value)
    if match is None:
        return None
    year, month, day = (int(part) if part else None for part in match.groups())
    assert year is not None
    try:
        first = date(year, month or 1, day or 1)
        last_month = month or 12
        return first, date(year, last_month, day or calendar.monthrange(year, last_month)[1])
    except ValueError:
        return None


def _shifted(side: DateSide, day: date) -> date | None:
    try:
        return side.shifted(day)
    except (OverflowError, ValueError):
        return None


def _plain(text: str) -> str:
    """A text as it is compared: compatibility form, without spaces, which OCR loses."""
    return "".join(label_text(text).text.split())


RULES: Mapping[str, Callable[[Rule, Label, Today], Reason]] = {
    "read": _read,
    "text": _text,
    "pattern": _pattern,
    "date": _date,
    "one_of": _one_of,
    "catalogue": _catalogue,
    "gs1": _gs1,
    "equals": _equals,
}
