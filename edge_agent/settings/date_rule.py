"""DateRule: `expiry >= today + 90d` as a value; a small grammar of its own, and nothing is ever evaluated.

rule  = side op side          op   = >= | > | <= | < | = | ==
side  = name [(+|-) N unit]   unit = d | w | m | y  (days, weeks, months, years)
name  = today | a date such as 2027-08-31 | expiry | mfg | date; also code.expiry or print.expiry
"""

from __future__ import annotations

import calendar
import re
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Literal, cast

from edge_agent.errors import ConfigError

TODAY = "today"
MAX_SHIFT = 99_999  # of a unit: what is farther away is a mistake
ALIASES = {
    "expiry": "expiry_date",
    "mfg": "manufacture_date",
    "serial": "serial_number",
    "gtin": "barcode_digits",
    "quantity": "weight_volume",
    "product": "product_name",
}
DATE_FIELDS = ("expiry_date", "manufacture_date", "date")
REFERENCE = r"(?:(?:code|print)\.)?[a-z][a-z0-9_]{0,63}"

Comparison = Literal[">=", ">", "<=", "<", "="]
Unit = Literal["d", "w", "m", "y"]

_SIDE = re.compile(rf"({REFERENCE}|[0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}})(?:\s*([+-])\s*([0-9]{{1,5}})\s*([dwmy]))?")
_OPERATOR = re.compile(r"(>=|<=|==|=|>|<)")
EXPECTED = "expected such as `expiry >= today + 90d`, `mfg <= today` or `expiry > mfg`"


@dataclass(frozen=True)
class DateSide:
    """One side of a rule: a field's name, `today`, or a `fixed` day; `count` units later (earlier where negative)."""

    name: str
    fixed: date | None = None
    count: int = 0
    unit: Unit = "d"

    @property
    def is_field(self) -> bool:
        """Whether an item must say it."""
        return self.fixed is None and self.name != TODAY

    def shifted(self, day: date) -> date:
        """`day` moved as this side says; a month or year later ends on the month's last day where it is shorter.
        OverflowError or ValueError beyond the years 1 to 9999."""
        if self.unit in ("d", "w"):
            return day + timedelta(days=self.count * (7 if self.unit == "w" else 1))
        months = day.year * 12 + day.month - 1 + self.count * (12 if self.unit == "y" else 1)
        year, month = divmod(months, 12)
        if not 1 <= year <= 9999:
            raise OverflowError(f"the year {year} has no date")
        return date(year, month + 1, min(day.day, calendar.monthrange(year, month + 1)[1]))


@dataclass(frozen=True)
class DateRule:
    """`left` compared with `right`."""

    left: DateSide
    comparison: Comparison
    right: DateSide

    @classmethod
    def parse(cls, text: str) -> DateRule:
        """The rule that the text says; ConfigError tells where it is wrong."""
        parts = _OPERATOR.split(text)
        if len(parts) != 3:
            raise ConfigError(f"{text!r} has {len(parts) // 2} comparisons, one is needed; {EXPECTED}")
        left, comparison, right = parts[0].strip(), parts[1].replace("==", "="), parts[2].strip()
        rule = cls(_side(left), cast(Comparison, comparison), _side(right))
        if not (rule.left.is_field or rule.right.is_field):
            raise ConfigError(f"{text!r} names no date of the item, so it says nothing about it; {EXPECTED}")
        return rule

    def holds(self, left: date, right: date) -> bool:
        """Whether two days, already shifted, stand as the rule says."""
        return {
            ">=": left >= right,
            ">": left > right,
            "<=": left <= right,
            "<": left < right,
            "=": left == right,
        }[self.comparison]


def field_name(reference: str) -> str:
    """The field that a reference means, with its side: `code.expiry` -> `code.expiry_date`."""
    side, dot, name = reference.rpartition(".")
    return f"{side}{dot}{ALIASES.get(name, name)}"


def _side(text: str) -> DateSide:
    match = _SIDE.fullmatch(text)
    if match is None:
        raise ConfigError(f"{text!r} is no date; {EXPECTED}")
    name, sign, count, unit = match.groups()
    shift = 0 if count is None else int(count) * (-1 if sign == "-" else 1)
    unit = cast(Unit, unit or "d")
    if name[0].isdigit():
        try:
            return DateSide(name, date.fromisoformat(name), shift, unit)
        except ValueError:
            raise ConfigError(f"{name!r} is no day of the calendar; expected one such as 2027-08-31") from None
    if name == TODAY:
        return DateSide(name, None, shift, unit)
    field = field_name(name)
    if field.rpartition(".")[2] not in DATE_FIELDS:
        raise ConfigError(f"{name!r} is no date that a label has; known: expiry, mfg, date, today, 2027-08-31")
    return DateSide(field, None, shift, unit)
