"""Ledger: what became of every reading, per camera and UTC day: produced = delivered + queued + dropped, always."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date, timedelta
from typing import Any

EARLIER = -1  # the day that older days are added up under
DAYS_KEPT = 400  # of each camera
_EPOCH = date(1970, 1, 1)


@dataclass(frozen=True)
class LedgerRow:
    """One camera's readings of one day (days since 1970-01-01, or EARLIER), `dropped` by reason."""

    source: str
    day: int
    produced: int
    delivered: int
    queued: int
    dropped: Mapping[str, int]
    last_seq: int | None

    def to_json(self) -> dict[str, Any]:
        """The counts alone."""
        return {
            "produced": self.produced,
            "delivered": self.delivered,
            "queued": self.queued,
            "dropped": dict(self.dropped),
        }


@dataclass
class _Tally:
    produced: int = 0
    delivered: int = 0
    queued: int = 0
    dropped: Counter[str] = field(default_factory=Counter)
    last_seq: int | None = None

    def add(self, row: LedgerRow) -> None:
        self.produced += row.produced
        self.delivered += row.delivered
        self.queued += row.queued
        self.dropped.update(row.dropped)
        seqs = [seq for seq in (self.last_seq, row.last_seq) if seq is not None]
        self.last_seq = max(seqs, default=None)


class Ledger:
    """Counts by (source, day). Not for several threads at once: its outbox's lock guards it."""

    def __init__(self, rows: Iterable[LedgerRow] = ()) -> None:
        self._tallies: dict[tuple[str, int], _Tally] = {}
        self._changed: set[tuple[str, int]] = set()
        self.merge(rows)
        self._changed.clear()

    def merge(self, rows: Iterable[LedgerRow]) -> None:
        """Adds counts kept elsewhere to these."""
        for row in rows:
            self._tally(row.source, row.day).add(row)

    def produced(self, source: str, day: int, seq: int | None) -> None:
        """A reading came; it is queued."""
        tally = self._tally(source, day)
        tally.produced += 1
        tally.queued += 1
        if seq is not None:
            tally.last_seq = seq if tally.last_seq is None else max(seq, tally.last_seq)

    def delivered(self, source: str, day: int) -> None:
        """A queued reading was confirmed."""
        tally = self._tally(source, day)
        tally.queued -= 1
        tally.delivered += 1

    def dropped(self, source: str, day: int, reason: str, readings: int = 1) -> None:
        """So many queued readings were given up."""
        tally = self._tally(source, day)
        tally.queued -= readings
        tally.dropped[reason] += readings

    def lose_all_but(self, present: Mapping[tuple[str, int], int], reason: str) -> int:
        """Counts as dropped what is queued beyond those that are still there; returns how many that are."""
        lost = 0
        for (source, day), tally in list(self._tallies.items()):
            missing = tally.queued - present.get((source, day), 0)
            if missing > 0:
                self.dropped(source, day, reason, missing)
                lost += missing
        return lost

    def fold(self) -> list[tuple[str, int]]:
        """Adds days beyond DAYS_KEPT of a source up under EARLIER, if nothing of them waits; returns which."""
        folded: list[tuple[str, int]] = []
        for source in {source for source, _ in self._tallies}:
            days = sorted(day for name, day in self._tallies if name == source and day != EARLIER)
            for day in days[:-DAYS_KEPT]:
                if self._tallies[source, day].queued == 0:
                    row = self._row(source, day)
                    del self._tallies[source, day]
                    self._changed.discard((source, day))
                    self._tally(source, EARLIER).add(row)
                    folded.append((source, day))
        return folded

    def take_changed(self) -> list[LedgerRow]:
        """The rows that changed since the last call."""
        changed, self._changed = self._changed, set()
        return [self._row(*key) for key in sorted(changed)]

    def mark_changed(self, keys: Iterable[tuple[str, int]] | None = None) -> None:
        """Has rows given again by `take_changed`; None: all of them."""
        self._changed.update(self._tallies if keys is None else keys)

    @property
    def any_changed(self) -> bool:
        """Whether `take_changed` would give something."""
        return bool(self._changed)

    def rows(self) -> Iterator[LedgerRow]:
        """Every row, by day and source."""
        for source, day in sorted(self._tallies, key=lambda key: (key[1], key[0])):
            yield self._row(source, day)

    def copy(self) -> Ledger:
        """One that no longer changes."""
        return Ledger(self.rows())

    def next_seq(self, source: str) -> int:
        """One more than the highest frame number counted."""
        seqs = [tally.last_seq for (name, _), tally in self._tallies.items() if name == source]
        return max((seq for seq in seqs if seq is not None), default=-1) + 1

    def of_day(self, day: int) -> dict[str, dict[str, Any]]:
        """Source -> counts of one day."""
        return {row.source: row.to_json() for row in self.rows() if row.day == day}

    def totals(self) -> dict[str, dict[str, Any]]:
        """Source -> counts of all days."""
        sums = Ledger()
        sums.merge(LedgerRow(**{**vars(row), "day": EARLIER}) for row in self.rows())
        return sums.of_day(EARLIER)

    @property
    def queued(self) -> int:
        """Readings that wait, of all sources."""
        return sum(tally.queued for tally in self._tallies.values())

    def _tally(self, source: str, day: int) -> _Tally:
        key = (source, day)
        self._changed.add(key)
        tally = self._tallies.get(key)
        if tally is None:
            tally = self._tallies[key] = _Tally()
        return tally

    def _row(self, source: str, day: int) -> LedgerRow:
        tally = self._tallies[source, day]
        return LedgerRow(
            source, day, tally.produced, tally.delivered, tally.queued, dict(tally.dropped), tally.last_seq
        )


def day_text(day: int) -> str:
    """2026-11-30 for a day since 1970-01-01; `earlier` for the days that were added up."""
    try:
        return "earlier" if day == EARLIER else (_EPOCH + timedelta(days=day)).isoformat()
    except OverflowError:
        return str(day)
