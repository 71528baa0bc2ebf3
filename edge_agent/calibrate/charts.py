"""Charts: small pictures of numbers, drawn as SVG with positions in percent, so that they fit any width undistorted.

A chart repeats numbers that stand beside it as text, and is then hidden from screen readers; the histogram stands alone
and says its numbers in its label. Colours are classes of report_page.css.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from edge_agent.calibrate.markup import Markup, element, joined

BAR_PX = 10
HISTOGRAM_PX = 112
MOST_BINS = 16
MOST_LABELS = 8
MOST_DECADES = 3  # of a range chart, below its widest tensor; what is smaller lies near its zero
TICKS_APART = 8.0  # percent of the width


@dataclass(frozen=True)
class Axis:
    """From `low` to `high`, zero inside; `position` is percent of the width."""

    low: float
    high: float

    def position(self, value: float) -> float:
        span = self.high - self.low
        return 100 * (min(max(value, self.low), self.high) - self.low) / span if span else 0.0


@dataclass(frozen=True)
class LogAxis:
    """Logarithmic to both sides of zero, linear below `linear`; `position` is percent of the width."""

    low: float
    high: float
    linear: float

    def position(self, value: float) -> float:
        return Axis(self.bent(self.low), self.bent(self.high)).position(self.bent(value))

    def bent(self, value: float) -> float:
        return math.copysign(math.log10(1 + abs(value) / self.linear), value)

    @property
    def ticks(self) -> list[float]:
        """Zero and powers of ten, the largest first as far as their numbers do not touch."""
        first, last = round(math.log10(self.linear)), math.floor(math.log10(max(self.high, -self.low)))
        kept = [0.0]
        for power in reversed(range(first, last + 1)):
            for value in (-(10.0**power), 10.0**power):
                apart = min(abs(self.position(value) - self.position(other)) for other in kept)
                if self.low <= value <= self.high and apart >= TICKS_APART:
                    kept.append(value)
        return sorted(kept)


def axis_over(values: Sequence[float]) -> Axis:
    """An axis that holds zero and all values."""
    return Axis(min(0.0, *values, 0.0), max(0.0, *values, 0.0)) if values else Axis(0.0, 1.0)


def log_axis_over(ranges: Mapping[str, tuple[float, float]]) -> LogAxis:
    """An axis that holds zero and all ranges, with at most MOST_DECADES on either side."""
    ends = [end for low_high in ranges.values() for end in low_high]
    sizes = [size for size in (max(abs(low), abs(high)) for low, high in ranges.values()) if size > 0]
    if not sizes:
        return LogAxis(-1.0, 1.0, 0.1)
    least = max(math.floor(math.log10(min(sizes))) - 1, math.floor(math.log10(max(sizes))) - MOST_DECADES)
    return LogAxis(min(0.0, *ends), max(0.0, *ends), 10.0**least)


def svg(height_px: int, css: str, *shapes: str) -> Markup:
    """A drawing as wide as its place, for eyes alone."""
    attributes = {"class": css, "width": "100%", "height": str(height_px), "aria-hidden": "true", "focusable": "false"}
    return element("svg", attributes, *shapes)


def rect(css: str, left: float, right: float, top_px: float, height_px: float) -> Markup:
    """A box from `left` to `right` percent; never so narrow that it vanishes."""
    width = max(right - left, 0.4)
    attributes = {"x": at(min(left, 100 - width)), "y": px(top_px), "width": at(width), "height": px(height_px)}
    return element("rect", {"class": css, **attributes, "rx": "2"})


def upright(css: str, position: float, top_px: float, bottom_px: float) -> Markup:
    """A line from top to bottom at `position` percent."""
    return element(
        "line", {"class": css, "x1": at(position), "x2": at(position), "y1": px(top_px), "y2": px(bottom_px)}
    )


def at(percent: float) -> str:
    return f"{percent:.2f}%"


def px(value: float) -> str:
    return f"{value:g}"


def signed_bar(value: float | None, axis: Axis, css: str, below: str, bound: float | None = None) -> Markup:
    """A bar from zero to `value`, of class `below` where that is negative; a mark at `bound`."""
    zero = axis.position(0.0)
    shapes = [upright("zero", zero, 0, BAR_PX + 4)]
    if value is not None:
        end = axis.position(value)
        shapes.append(rect(css if value >= 0 else below, min(zero, end), max(zero, end), 2, BAR_PX))
    if bound is not None and axis.low < bound < axis.high:
        shapes.append(upright("bound", axis.position(bound), 0, BAR_PX + 4))
    return svg(BAR_PX + 4, "bar", *shapes)


def pair_of_bars(float_value: float | None, int8_value: float | None) -> Markup:
    """Float above INT8, on one scale from zero."""
    axis = axis_over([value for value in (float_value, int8_value) if value is not None])
    bars = [
        rect(css, 0, axis.position(value), top_px, 7)
        for css, value, top_px in (("float", float_value, 1), ("int8", int8_value, 10))
        if value is not None and value >= 0
    ]
    return svg(18, "bar", *bars)


def range_bar(low: float, high: float, axis: LogAxis) -> Markup:
    """A range on the common axis, over its grid."""
    grid = [upright("zero" if tick == 0 else "grid", axis.position(tick), 0, BAR_PX + 6) for tick in axis.ticks]
    return svg(BAR_PX + 6, "bar", *grid, rect("range", axis.position(low), axis.position(high), 3, BAR_PX))


def range_scale(axis: LogAxis) -> Markup:
    """The axis's numbers, to stand above range bars."""
    labels = []
    for tick in axis.ticks:
        position = axis.position(tick)
        anchor = "start" if position < 6 else "end" if position > 94 else "middle"
        attributes = {"class": "tick", "x": at(position), "y": "11", "text-anchor": anchor}
        labels.append(element("text", attributes, f"{tick:g}".replace("-", "−")))
    return svg(14, "bar", *labels)


def histogram(counts: Mapping[int, int], unit: str, what: str) -> Markup:
    """How often each value was met, in MOST_BINS bins at most; `what` names it for screen readers."""
    bins = binned(counts)
    most = max(count for _, count in bins)
    each = 100 / len(bins)
    shapes = []
    for n, (name, count) in enumerate(bins):
        height_px = (HISTOGRAM_PX - 34) * count / most
        top_px = HISTOGRAM_PX - 18 - height_px
        middle = {"x": at((n + 0.5) * each), "text-anchor": "middle"}
        bar = rect("int8", (n + 0.12) * each, (n + 0.88) * each, top_px, max(height_px, 1))
        shapes.append(element("g", {}, element("title", {}, f"{name} {unit}: {count}"), bar))
        if len(bins) <= MOST_LABELS or n % (1 + len(bins) // MOST_LABELS) == 0:
            shapes.append(element("text", {"class": "tick", **middle, "y": px(HISTOGRAM_PX - 5)}, name))
        if len(bins) <= MOST_BINS // 2 or count == most:
            shapes.append(element("text", {"class": "count", **middle, "y": px(top_px - 4)}, str(count)))
    said = f"{what}: " + ", ".join(f"{name} {unit} {count} times" for name, count in bins)
    attributes = {"class": "histogram", "width": "100%", "height": str(HISTOGRAM_PX), "role": "img", "aria-label": said}
    return element("svg", attributes, joined(*shapes))


def binned(counts: Mapping[int, int]) -> list[tuple[str, int]]:
    """Values in order with their counts; neighbours joined into bins of equal width where there are too many."""
    values = sorted(counts)
    if len(values) <= MOST_BINS:
        return [(str(value), counts[value]) for value in values]
    step = -(-(values[-1] - values[0] + 1) // MOST_BINS)
    bins: dict[int, int] = {}
    for value in values:
        bins[(value - values[0]) // step] = bins.get((value - values[0]) // step, 0) + counts[value]
    return [(f"{values[0] + n * step}+", bins.get(n, 0)) for n in range(max(bins) + 1)]
