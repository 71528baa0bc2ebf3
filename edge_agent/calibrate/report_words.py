"""Words of a report: numbers with their units as people write them, what gates and figures are called, the headline."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import datetime, timezone

from edge_agent.calibrate.findings import Findings
from edge_agent.calibrate.judgement import GateResult
from edge_agent.models.spec import Task

NO_VALUE = "–"
AS_WELL: Mapping[Task, str] = {
    "text_detection": "finds text as well",
    "text_recognition": "reads as well",
    "text_embedding": "tells meanings apart as well",
}
AT_MOST = frozenset({"cer_increase", "changed_fields", "outputs"})  # gates on what should be little
NAMES: Mapping[str, str] = {
    "box_precision": "Boxes that float finds too",
    "box_recall": "Boxes found again",
    "boxes": "Boxes found",
    "cer_increase": "Character errors added",
    "cer_to_float": "Characters read otherwise than float",
    "cer_to_float_with_spaces": "The same, spaces counted",
    "changed_classes": "lines with another class",
    "changed_field_values": "field values changed",
    "changed_fields": "Field values changed",
    "changed_lines": "lines changed",
    "changed_readings": "readings changed",
    "chars": "characters",
    "class_agreement": "Lines that keep their class of meaning",
    "cosine": "Cosine to float, mean",
    "evidence": "Text to judge by",
    "field_values": "field values",
    "frames": "frames",
    "label_cer": "Character errors against labels",
    "labelled_lines": "lines with a label",
    "labels_not_found": "labels that no line resembles",
    "lines": "lines",
    "mask_iou": "Overlap of masks with float (gates nothing)",
    "outputs": "Runs with broken outputs",
    "readings": "readings",
    "repeat_cer": "Characters read otherwise on a second look",
    "speedup": "Speed against float",
    "texts": "texts",
    "texts_with_class": "texts with a class of meaning",
    "worst_cosine": "Cosine to float, worst",
}
PART_NAMES: Mapping[str, str] = {
    "calibration": "to measure ranges",
    "search": "to search with",
    "held_out": "held out to judge by",
}


def headline(findings: Findings) -> str:
    """The verdict in one sentence or two."""
    if findings.verdict == "refused":
        return f"Refused: {why_refused(findings)}; {findings.float_precision} stays."
    faster = f" and is {ratio(findings.timing.speedup)} faster" if findings.timing else ""
    well = f"INT8 {AS_WELL[findings.task]}{faster}"
    if findings.verdict == "passed":
        return f"{well}. Dry run: nothing was put to use."
    since = f" since {day_and_time(findings.promoted_at)}" if findings.promoted_at is not None else ""
    return f"{well}: in use{since}."


def why_refused(findings: Findings) -> str:
    """The gates that failed and by how much, else the first reason."""
    if findings.failed:
        return ", ".join(missed(gate) for gate in findings.failed)
    return findings.reasons[0].rstrip(".") if findings.reasons else "no reason was given"


def missed(gate: GateResult) -> str:
    """A failed gate: its value and its bound."""
    if gate.name == "outputs":
        return "its outputs are broken"
    name = name_of(gate.name)
    return f"{name[:1].lower()}{name[1:]} {quantity(gate.value, gate.unit)} (gate: {bound_of(gate)})"


def name_of(name: str) -> str:
    """What a gate or figure is called."""
    return NAMES.get(name) or plain_name(name)


def plain_name(name: str) -> str:
    """An identifier as words."""
    return sentence(name.replace("_", " "))


def sentence(words: str) -> str:
    """The words, begun with a capital letter."""
    return words[:1].upper() + words[1:]


def bound_of(gate: GateResult) -> str:
    """The bound, and on which side of it a value must lie."""
    bound = f"{number(100 * gate.bound)} %" if gate.unit == "share" else quantity(gate.bound, gate.unit)
    return f"at {'most' if gate.name in AT_MOST else 'least'} {bound}"


def quantity(value: float | None, unit: str) -> str:
    """A value with its unit."""
    if value is None or not math.isfinite(value):
        return NO_VALUE
    if unit == "share":
        return percent(value)
    if unit == "times":
        return ratio(value)
    if unit == "cosine":
        return f"{value:.4f}"
    if unit == "count":
        return f"{value:,.0f}"
    return f"{number(value)} {unit}".rstrip()


def number(value: float | None) -> str:
    """Four digits, without exponent as far as that can be read; minus as such."""
    if value is None or not math.isfinite(value):
        return NO_VALUE
    if value != 0 and not 1e-4 <= abs(value) < 1e7:
        return signed(f"{value:.2e}")
    decimals = max(0, 3 - math.floor(math.log10(abs(value)))) if value else 0
    written = f"{value:.{min(decimals, 6)}f}"
    return signed(written.rstrip("0").rstrip(".") if "." in written else written)


def signed(written: str) -> str:
    """With the minus sign that is as wide as a digit; no negative zero."""
    zero = not any(digit in written for digit in "123456789")
    return written.lstrip("-") if zero else written.replace("-", "−")


def percent(share: float | None) -> str:
    """A share as percent: two decimals below 10 and next to 100, where they count."""
    if share is None or not math.isfinite(share):
        return NO_VALUE
    value = 100 * share
    decimals = 2 if abs(value) < 10 or 99 < abs(value) < 100 else 1
    return f"{signed(f'{value:.{decimals}f}')} %"


def ratio(value: float | None) -> str:
    """1.31×"""
    return NO_VALUE if value is None or not math.isfinite(value) else f"{value:.2f}×"


def milliseconds(value: float | None) -> str:
    """Three digits: 0.83 ms, 41.2 ms, 310 ms."""
    if value is None or not math.isfinite(value):
        return NO_VALUE
    decimals = 2 if abs(value) < 10 else 1 if abs(value) < 100 else 0
    return f"{signed(f'{value:.{decimals}f}')} ms"


def joules(value: float | None) -> str:
    """0.42 J, 3.1 mJ"""
    if value is None or not math.isfinite(value):
        return NO_VALUE
    return f"{value:.2f} J" if value >= 0.1 else f"{number(float(f'{value * 1e3:.3g}'))} mJ"


def byte_size(count: float | None) -> str:
    """Decimal units, as files and memory are sold: 9.9 MB."""
    if count is None:
        return NO_VALUE
    for unit, size in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if count >= size:
            return f"{count / size:.{1 if count < 100 * size else 0}f} {unit}"
    return f"{count:.0f} B"


def duration(seconds: float | None) -> str:
    """7 min 12 s"""
    if seconds is None:
        return NO_VALUE
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"


def day_and_time(unix_s: float | None) -> str:
    """2026-11-30 14:05 UTC"""
    return NO_VALUE if unix_s is None else f"{datetime.fromtimestamp(unix_s, timezone.utc):%Y-%m-%d %H:%M} UTC"


def count_of(count: int, noun: str) -> str:
    """1 frame, 2 frames"""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"
