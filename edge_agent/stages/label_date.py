"""LabelDate: a date as a label prints it, and the rules by which digits become one."""

from __future__ import annotations

import calendar
from dataclasses import dataclass
from datetime import date
from typing import Literal

DateOrder = Literal["DMY", "MDY", "YMD"]
DEFAULT_WINDOW_YEARS = 20
FAR_OFF_DAYS = 3 * 365  # few dates on goods lie further off
MONTH = "month_precision"  # flag of a date that is printed without its day


@dataclass(frozen=True)
class LabelDate:
    """A date found at `text[start:end]`; `month` and `day` are None where the label does not print them.

    `alternative` is the other reading (ISO 8601) of an ambiguous date. An `invalid` one has year 0.
    """

    year: int
    month: int | None
    day: int | None
    start: int
    end: int
    flags: tuple[str, ...] = ()
    alternative: str | None = None

    @classmethod
    def of(cls, year: int, month: int, day: int | None, *flags: str, alternative: str | None = None) -> LabelDate:
        """A date whose place in the text is not known yet."""
        return cls(year, month, day, 0, 0, flags if day else (*flags, MONTH), alternative)

    @property
    def valid(self) -> bool:
        return "invalid" not in self.flags

    @property
    def printed(self) -> str:
        """ISO 8601 in the precision printed: 2027-08-31, 2027-08 or 2027; empty when invalid."""
        if not self.valid:
            return ""
        parts = [f"{self.year:04d}", *(f"{part:02d}" for part in (self.month, self.day) if part is not None)]
        return "-".join(parts)

    @property
    def latest(self) -> str:
        """The last day that the printed date covers: 2027-08 is 2027-08-31; empty when invalid."""
        if not self.valid:
            return ""
        month = self.month or 12
        return date(self.year, month, self.day or calendar.monthrange(self.year, month)[1]).isoformat()


@dataclass(frozen=True)
class DateRules:
    """How dates are read here: `order` of a printed all-number date, `today` (None: the clock is not trusted) and
    how many years around today a date may lie before it is called `implausible`. `trusts_order`: day and month always
    stand in that order, so that 03/04/26 is not ambiguous."""

    order: DateOrder = "DMY"
    today: date | None = None
    window_years: int = DEFAULT_WINDOW_YEARS
    trusts_order: bool = False

    def full_year(self, digits: str) -> int:
        """Four digits as they are; two digits in the century that lies nearest to today, else in 20xx."""
        year = int(digits)
        if len(digits) > 2:
            return year
        if self.today is None:
            return 2000 + year
        century = self.today.year - self.today.year % 100
        return min((century + year + shift for shift in (-100, 0, 100)), key=lambda y: abs(y - self._year))

    def plausible(self, year: int, *, short: bool = False) -> bool:
        """Whether `year` lies within the window; a `short` one of two digits within half of it."""
        window = self.window_years / 2 if short else self.window_years
        return self.today is None or abs(year - self._year) <= window

    def nearer(self, other: tuple[int, int, int], day: tuple[int, int, int]) -> bool:
        """Whether `other` (year, month, day) lies nearer to today than `day`, which lies years off."""
        return self.far_off(*day) and self._days_off(*other) < self._days_off(*day)

    def far_off(self, year: int, month: int, day: int = 1) -> bool:
        """Whether a day lies so many years from today that its digits may mean something else."""
        return self._days_off(year, month, day) > FAR_OFF_DAYS

    def _days_off(self, year: int, month: int, day: int) -> int:
        return 0 if self.today is None else abs(date(year, month, day) - self.today).days

    @property
    def _year(self) -> int:
        return self.today.year if self.today else 2000


NO_DATE = LabelDate(0, None, None, 0, 0, ("invalid",))


def exists(year: int, month: int, day: int) -> bool:
    """Whether the calendar has this day."""
    return 1 <= year <= 9999 and 1 <= month <= 12 and 1 <= day <= calendar.monthrange(year, month)[1]


def iso(year: int, month: int, day: int) -> str:
    """ISO 8601: 2027-08-31."""
    return f"{year:04d}-{month:02d}-{day:02d}"
