"""History: the device's figures over the last quarter of an hour and the last day, as series for charts.

Each report becomes one row of numbers: all of them for FINE_S, and the mean of each BUCKET_S for a day. Absent is null,
never 0.
"""

from __future__ import annotations

import json
import math
import re
import threading
from array import array
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any

from edge_agent.records import rfc3339

FINE_S = 960.0
FINE_EVERY_S = 1.0  # reports that come sooner than this after another are not kept one by one
BUCKET_S = 120.0
DAY_S = 86_400.0
MOST_SERIES = 512
LEFT_OUT = frozenset({"v", "at", "absent", "backend_counters", "calibration", "clock", "engines", "frames", "ledger"})
ABSENT = float("nan")

_AT = re.compile(rb'"at":"([0-9T:.-]{19,30})Z"')


def series_of(report: Mapping[str, Any]) -> Iterator[tuple[str, float]]:
    """Name and value of each number in a telemetry message: `temp_c.cpu`, `latency_ms.total.p50`; booleans are 0 and
    1."""
    for member, value in report.items():
        if member not in LEFT_OUT:
            yield from _below(member, value)


def _below(name: str, value: Any) -> Iterator[tuple[str, float]]:
    if isinstance(value, (bool, int, float)):
        yield name, float(value)
    elif isinstance(value, Mapping):
        for key, below in value.items():
            yield from _below(f"{name}.{key}", below)


class Charts:
    """Every method may be called from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._columns: dict[str, int] = {}
        self._fine: deque[tuple[float, array[float]]] = deque()
        self._coarse: deque[tuple[float, array[float]]] = deque()  # the beginning of each bucket, and its means
        self._sums: array[float] = array("d")  # of the bucket that fills, and how many values they are of
        self._counts: array[float] = array("d")

    def add(self, payload: bytes) -> None:
        """One telemetry message; one that is none, or older than the newest, is passed over."""
        at = reported_at(payload)
        if at is None:
            return
        report = json.loads(payload)
        with self._lock:
            newest = self._fine[-1][0] if self._fine else -math.inf
            if at < newest:
                return
            row = self._row(report)
            self._add_to_bucket(at, row)
            if at - newest >= FINE_EVERY_S:
                self._fine.append((at, row))
                while self._fine[0][0] < at - FINE_S:
                    self._fine.popleft()

    def add_older(self, payloads: Iterable[bytes]) -> None:
        """Messages of before those that were added, oldest first; of each bucket one is enough."""
        rows: list[tuple[float, array[float]]] = []
        for payload in payloads:
            at = reported_at(payload)
            if at is None or (rows and _bucket(at) <= rows[-1][0]):
                continue
            try:
                report = json.loads(payload)
            except ValueError:  # a line that was being written when the power went
                continue
            with self._lock:
                rows.append((_bucket(at), self._row(report)))
        with self._lock:
            first = self._coarse[0][0] if self._coarse else math.inf
            newest = self._coarse[-1][0] if self._coarse else (rows[-1][0] if rows else 0.0)
            older = [row for row in rows if newest - DAY_S <= row[0] < first]
            self._coarse.extendleft(reversed(older))

    def over(self, seconds: float, points: int, now: float, prefixes: tuple[str, ...] = ("",)) -> dict[str, Any]:
        """The last `seconds`, as at most `points` means: `at` (RFC 3339) and `series` by name, of those whose names
        begin with one of `prefixes`; null where absent."""
        with self._lock:
            rows = list(self._fine if seconds <= FINE_S else self._coarse)
            columns = {name: column for name, column in self._columns.items() if name.startswith(prefixes)}
        rows = [(at, row) for at, row in rows if now - seconds <= at <= now + 1.0]
        grouped = _grouped(rows, now - seconds, seconds / points) if len(rows) > points else rows
        series = {}
        for name, column in columns.items():
            values = [_said(row[column]) if column < len(row) else None for _, row in grouped]
            if any(value is not None for value in values):
                series[name] = values
        return {"at": [rfc3339(at) for at, _ in grouped], "series": series}

    def _row(self, report: Mapping[str, Any]) -> array[float]:
        found = dict(series_of(report))
        for name in found:
            if name not in self._columns and len(self._columns) < MOST_SERIES:
                self._columns[name] = len(self._columns)
        return array("d", (found.get(name, ABSENT) for name in self._columns))

    def _add_to_bucket(self, at: float, row: array[float]) -> None:
        begin = _bucket(at)
        if not self._coarse or self._coarse[-1][0] != begin:
            self._sums, self._counts = array("d"), array("d")
            self._coarse.append((begin, row))
            while self._coarse[0][0] < begin - DAY_S:
                self._coarse.popleft()
        more = array("d", [0.0]) * (len(row) - len(self._sums))
        self._sums, self._counts = self._sums + more, self._counts + more
        for column, value in enumerate(row):
            if not math.isnan(value):
                self._sums[column] += value
                self._counts[column] += 1
        means = (total / count if count else ABSENT for total, count in zip(self._sums, self._counts, strict=True))
        self._coarse[-1] = (begin, array("d", means))


def reported_at(payload: bytes) -> float | None:
    """When a message was said, unix s, without parsing the rest; None where it does not say."""
    match = _AT.search(payload, 0, 200)
    try:
        return None if match is None else datetime.fromisoformat(f"{match[1].decode()}+00:00").timestamp()
    except ValueError:
        return None


def _bucket(at: float) -> float:
    return at - at % BUCKET_S


def _mean(rows: list[array[float]]) -> array[float]:
    """Of each column the mean of what is there."""
    width = max(len(row) for row in rows)
    means = array("d", [ABSENT]) * width
    for column in range(width):
        there = [row[column] for row in rows if column < len(row) and not math.isnan(row[column])]
        if there:
            means[column] = sum(there) / len(there)
    return means


def _grouped(rows: list[tuple[float, array[float]]], begin: float, every_s: float) -> list[tuple[float, array[float]]]:
    groups: dict[int, list[tuple[float, array[float]]]] = {}
    for at, row in rows:
        groups.setdefault(int((at - begin) / every_s), []).append((at, row))
    return [(group[-1][0], _mean([row for _, row in group])) for group in groups.values()]


def _said(value: float) -> float | None:
    return None if math.isnan(value) else round(value, 4)
