"""Readers: from the named parts of a printed form to its date, every other reading told beside it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from edge_agent.stages.label_date import NO_DATE, DateRules, LabelDate, exists, iso
from edge_agent.stages.months import month_number

Parts = Mapping[str, str]
Reader = Callable[[Parts, DateRules], LabelDate | None]
_Day = tuple[int, int, int]


def year_month_day(parts: Parts, rules: DateRules) -> LabelDate | None:
    """2027-08-31; a printed 2027-31-08 is read the other way round, and says so."""
    year, a, b = int(parts["y"]), int(parts["a"]), int(parts["b"])
    if exists(year, a, b):
        return LabelDate.of(year, a, b)
    return LabelDate.of(year, b, a, "order_conflict") if exists(year, b, a) else NO_DATE


def day_month_year(parts: Parts, rules: DateRules) -> LabelDate | None:
    """31/08/2027 and 31/08/27 by the configured order, with the other reading beside it."""
    a, b, last = int(parts["a"]), int(parts["b"]), parts["y"]
    year = rules.full_year(last)
    year_first = (rules.full_year(parts["a"]), b, int(last)) if len(last) == len(parts["a"]) == 2 else None
    if rules.order == "YMD" and year_first is not None and exists(*year_first):
        return _unless_nearer(year_first, (year, b, a), rules)
    day, month = (b, a) if rules.order == "MDY" else (a, b)
    if not exists(year, month, day):
        return LabelDate.of(year, day, month, "order_conflict") if exists(year, day, month) else NO_DATE
    is_vouched_for = rules.trusts_order and rules.order != "YMD"
    if day != month and exists(year, day, month) and not is_vouched_for:
        return LabelDate.of(year, month, day, "ambiguous", alternative=iso(year, day, month))
    conflict = ("order_conflict",) if rules.order == "YMD" and len(last) == 2 else ()
    return _unless_nearer((year, month, day), year_first, rules, *conflict)


def month_name(parts: Parts, rules: DateRules) -> LabelDate | None:
    """12 AUG 2026, AUG 2026, January 11, 2028, 2026-AUG-12."""
    month = month_number(parts["mon"])
    if month is None:
        return None
    year, day = rules.full_year(parts["y"]), parts.get("d")
    if day is None:
        return _month_first(month, parts["y"], rules)
    if not exists(year, month, int(day)):
        return NO_DATE
    year_first = (rules.full_year(day), month, int(parts["y"])) if len(day) == len(parts["y"]) == 2 else None
    return _unless_nearer((year, month, int(day)), year_first, rules)


def _unless_nearer(day: _Day, from_other_end: _Day | None, rules: DateRules, *flags: str) -> LabelDate:
    """A date of two-digit numbers, with what it says when it is read from its other end (27/08/31 as 2027-08-31, not
    2031-08-27), where it lies years off and that lies nearer."""
    if from_other_end is None or not exists(*from_other_end) or not rules.nearer(from_other_end, day):
        return LabelDate.of(*day, *flags)
    return LabelDate.of(*day, "ambiguous", *flags, alternative=iso(*from_other_end))


def month_year(parts: Parts, rules: DateRules) -> LabelDate | None:
    """08/2027 and 2027-08; no calendar has 08/0000."""
    year, month = int(parts["y"]), int(parts["m"])
    return LabelDate.of(year, month, None) if exists(year, month, 1) else NO_DATE


def month_short_year(parts: Parts, rules: DateRules) -> LabelDate | None:
    """08/27 behind a date's phrase; 05/06 can be both ways round."""
    a, b = parts["m"], parts["y"]
    year_first = rules.order == "YMD" and 1 <= int(b) <= 12 and len(b) == 2
    if year_first:
        a, b = b, a
    if not exists(rules.full_year(b), int(a), 1):
        return NO_DATE
    if a != b and len(parts["m"]) == 2 and 1 <= int(b) <= 12:
        other = f"{rules.full_year(a):04d}-{int(b):02d}"
        return LabelDate.of(rules.full_year(b), int(a), None, "ambiguous", alternative=other)
    return LabelDate.of(rules.full_year(b), int(a), None) if year_first else _month_first(int(a), b, rules)


def _month_first(month: int, digits: str, rules: DateRules) -> LabelDate:
    """A month before a year. Two digits may be its day, with no year printed, where labels have the month first, and
    where they make a year far off: AUG 31 is no month of 2031 for certain."""
    year = rules.full_year(digits)
    if not exists(year, month, 1):
        return NO_DATE
    may_be_a_day = len(digits) == 2 and exists(2000, month, int(digits))  # 2000 has a 29 February
    if may_be_a_day and (rules.order != "DMY" or rules.far_off(year, month)):
        return LabelDate.of(year, month, None, "incomplete")
    return LabelDate.of(year, month, None)


def eight_digits(parts: Parts, rules: DateRules) -> LabelDate | None:
    """20270831, or 31082027 by the configured order; only a year within the window counts."""
    s = parts["s"]
    year_first = (int(s[:4]), int(s[4:6]), int(s[6:]))
    return _from_digits(rules, year_first, _year_last(s[:2], s[2:4], int(s[4:]), rules), None)


def six_digits(parts: Parts, rules: DateRules) -> LabelDate | None:
    """311027 by the configured order, 271031, 102027 and 202710 (months) otherwise; a second reading is told."""
    s = parts["s"]
    year_first = (rules.full_year(s[:2]), int(s[2:4]), int(s[4:]))
    months = [(int(s[2:]), int(s[:2])), (int(s[:4]), int(s[4:]))]
    month = next((each for each in months if 1 <= each[1] <= 12 and _fits(rules, each[0])), None)
    return _from_digits(rules, year_first, _year_last(s[:2], s[2:4], rules.full_year(s[4:]), rules), month)


def _from_digits(
    rules: DateRules, year_first: _Day, year_last: tuple[_Day, _Day], month: tuple[int, int] | None
) -> LabelDate | None:
    """The likeliest reading of bare digits: the configured order, a month, the year first, the other order."""
    ours, others = year_last
    ordered = [year_first, ours] if rules.order == "YMD" else [ours, year_first]
    readings: list[LabelDate] = [LabelDate.of(*day) for day in ordered if exists(*day) and _fits(rules, day[0])]
    if month is not None:
        readings.insert(0 if not readings or readings[0].printed != iso(*ours) else 1, LabelDate.of(*month, None))
    if others != ours and exists(*others) and _fits(rules, others[0]):
        readings.append(LabelDate.of(*others, "order_conflict"))
    if not readings:
        return None
    other = next((r.printed for r in readings[1:] if r.printed != readings[0].printed), None)
    return (
        readings[0]
        if other is None
        else replace(readings[0], flags=(*readings[0].flags, "ambiguous"), alternative=other)
    )


def four_digits(parts: Parts, rules: DateRules) -> LabelDate | None:
    """0827 is August 2027, 2027 the whole year; both readings are told where both fit."""
    s = parts["s"]
    month, year = int(s[:2]), rules.full_year(s[2:])
    if s.startswith("20") and (rules.today is None or rules.plausible(int(s))):
        return LabelDate(int(s), None, None, 0, 0, ("year_precision",))
    if not 1 <= month <= 12 or not rules.plausible(year):
        return None
    if 1 <= int(s[2:]) <= 12 and s[:2] != s[2:]:
        return LabelDate.of(year, month, None, "ambiguous", alternative=f"{rules.full_year(s[:2]):04d}-{s[2:]}")
    return _month_first(month, s[2:], rules)


def _year_last(a: str, b: str, year: int, rules: DateRules) -> tuple[_Day, _Day]:
    """Year, month, day of two numbers before a year: by the configured order, then by the other."""
    day_first, month_first = (year, int(b), int(a)), (year, int(a), int(b))
    return (month_first, day_first) if rules.order == "MDY" else (day_first, month_first)


def _fits(rules: DateRules, year: int) -> bool:
    """Whether digits that could be anything make a year of our time."""
    return 1990 <= year <= 2099 if rules.today is None else rules.plausible(year)
