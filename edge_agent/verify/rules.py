"""Rules: what each kind of rule makes of a label. A new kind is a row of RULES and a key of settings.expected.Rule.

A rule passes only on what is certain. It fails where something certain, or every way to read it, contradicts it. All
else is NO_READ: what is absent, doubtful or cannot be judged here was not read.
"""

from __future__ import annotations

import calendar
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import date

from rapidfuzz import fuzz

from edge_agent.patterns import Pattern
from edge_agent.records import Code, Field, Reason, TextLine, Verdict
from edge_agent.settings.date_rule import DateRule, DateSide, field_name
from edge_agent.settings.expected import Rule
from edge_agent.stages.dates import DateRules, gs1_date
from edge_agent.stages.label_text import label_text, skeleton
from edge_agent.verify.label import Label

ALIKE = 0.6  # a text this like the expected one is that text, misprinted or misread; below, another
CATALOGUE_ALIKE = 0.85  # of skeletons: 60 entries under noise of 9.6 % CER were told apart from there on
MAX_SEEN_CHARS = 300
MISMATCH = "pattern_mismatch"  # flag of a field that its pattern does not match
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
        others = set(field.flags) - {"ambiguous", "month_precision", "from_gs1"}
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
    wanted = _plain(rule.text)
    if rule.name is not None:
        return _of_field(rule, label.field(rule.name), rule.text, lambda value: wanted in map(_plain, said_by(value)))
    if any(wanted in _plain(line.text) for line in label.lines):
        return _reason(rule, rule.text, rule.text, "PASS")
    return _nearest(rule, rule.text, label.lines, lambda text: fuzz.ratio(_plain(text), wanted) / 100)


def _pattern(rule: Rule, label: Label, today: Today) -> Reason:
    assert rule.pattern is not None
    matches = Pattern.parse(rule.pattern).matches
    field = None if rule.name is None else label.field(rule.name)
    if rule.name is not None:
        text = "" if field is None else field.text
        return _of_field(rule, field, rule.pattern, lambda value: matches(value) or matches(text), MISMATCH)
    for line in label.lines:
        found = next((text for text in (line.text, *line.text.split()) if matches(text)), None)
        if found is not None:
            doubtful = bool(line.doubtful or line.flags)
            return _reason(rule, rule.pattern, found, *(("NO_READ", "uncertain") if doubtful else ("PASS", None)))
    return _reason(rule, rule.pattern, "", "NO_READ", "absent")


def _one_of(rule: Rule, label: Label, today: Today) -> Reason:
    assert rule.name is not None and rule.one_of is not None
    values = frozenset(map(_plain, rule.one_of))
    expected = ", ".join(rule.one_of[:5]) + (f", ... ({len(rule.one_of)})" if len(rule.one_of) > 5 else "")
    return _of_field(
        rule, label.field(rule.name), expected, lambda value: not values.isdisjoint(map(_plain, said_by(value)))
    )


def said_by(value: str) -> tuple[str, ...]:
    """What a field's value says: itself, and of a GS1 element string (`01=...;17=...`) the product's number, too."""
    elements = dict(each.partition("=")[::2] for each in value.split(";"))
    return (value, elements["01"]) if elements.get("01") else (value,)


def _catalogue(rule: Rule, label: Label, today: Today) -> Reason:
    """Words may differ a little, numbers and units not: `TD-700` is no `TD-500`."""
    entry = rule.catalogue
    assert entry is not None
    if rule.name is not None:
        return _of_field(rule, label.field(rule.name), entry, lambda value: _is_entry(value, entry))
    pairs = [f"{one.text} {two.text}" for one, two in zip(label.lines, label.lines[1:], strict=False)]
    texts = [line.text for line in label.lines] + pairs
    found = next((text for text in texts if _is_entry(text, entry)), None)
    if found is not None:
        return _reason(rule, entry, found, "PASS")
    return _nearest(rule, entry, label.lines, lambda text: _likeness(text, entry))


def _nearest(rule: Rule, expected: str, lines: tuple[TextLine, ...], likeness: Callable[[str], float]) -> Reason:
    """A text that stands nowhere: it differs where a line that is read beyond doubt is meant to be it."""
    nearest = max(lines, key=lambda line: likeness(line.text), default=None)
    if nearest is None or likeness(nearest.text) < ALIKE:
        return _reason(rule, expected, "" if nearest is None else nearest.text, "NO_READ", "absent")
    if nearest.doubtful or nearest.flags:
        return _reason(rule, expected, nearest.text, "NO_READ", "uncertain")
    return _reason(rule, expected, nearest.text, "FAIL", "differs")


def _is_entry(text: str, entry: str) -> bool:
    return _numbers(text) == _numbers(entry) and _likeness(text, entry) >= CATALOGUE_ALIKE


def _likeness(text: str, entry: str) -> float:
    ours, theirs = (" ".join(skeleton(word).chars for word in each.split()) for each in (text, entry))
    return (
        float(max(fuzz.ratio(ours.replace(" ", ""), theirs.replace(" ", "")), fuzz.token_sort_ratio(ours, theirs)))
        / 100
    )


def _numbers(text: str) -> list[str]:
    return sorted(re.findall(r"[0-9]+", text))


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
    return _of_field(rule, label.field(rule.name), other.value, lambda value: _same(value, other), CONTRADICTS)


def _same(value: str, other: Field) -> bool:
    """Whether two values say one thing; of a date that is printed without its day, the month counts."""
    if _plain(value) == _plain(other.value):
        return True
    one, two = sorted((value, other.value), key=len)
    by_month = len(one) == 7 and two.startswith(one)
    ends_month = "month_precision" in other.flags and len(value) == 10 and value[:7] == other.value[:7]
    return by_month or ends_month


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
    left, right = (_days_of(side, label, today) for side in (parsed.left, parsed.right))
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


def _days_of(side: DateSide, label: Label, today: Today) -> _Days:
    if not side.is_field:
        day = _shifted(side, side.fixed or today.day)
        untrusted = side.fixed is None and not today.trusted
        return _Days(() if day is None else ((day, day),), "", "clock_untrusted" if untrusted else None)
    field = label.field(side.name)
    if field is None:
        return _Days((), "", "absent")
    ways = [_span(value) for value in (field.value, *field.alternatives) if value]
    days = [(_shifted(side, way[0]), _shifted(side, way[1])) for way in ways if way is not None]
    whole = tuple((first, last) for first, last in days if first is not None and last is not None)
    seen = " or ".join(value for value in (field.value, *field.alternatives) if value) or field.text
    if field.certain and whole:
        return _Days(whole, seen)
    only_ambiguous = set(field.flags) - {"month_precision", "from_gs1"} == {"ambiguous"} and not field.corrections
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
