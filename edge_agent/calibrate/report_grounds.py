"""The second half of a report: sensitivity, what it was calibrated on, ranges, and where everything comes from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from edge_agent.calibrate import charts
from edge_agent.calibrate.findings import MOST_THUMBNAILS, CalibratedOn, Findings, GroupFinding, Tried
from edge_agent.calibrate.markup import Markup, element, joined
from edge_agent.calibrate.report_result import image, section
from edge_agent.calibrate.report_table import Column, amount, facts, folded, items, table
from edge_agent.calibrate.report_words import (
    NO_VALUE,
    PART_NAMES,
    byte_size,
    count_of,
    day_and_time,
    duration,
    milliseconds,
    number,
    plain_name,
    signed,
)
from edge_agent.models.spec import Task

RANGES_SHOWN = 12
SKIPPED_SHOWN = 100
MOST_DAMAGE_DRAWN = 3.0  # times what the gates allow: a bar that is longer would flatten all others
LEAST_DAMAGE_DRAWN = -0.5
# the dimension of a recorded input that varies with the text: its name, unit, and place in the shape
VARIES: Mapping[Task, tuple[str, str, int]] = {
    "text_recognition": ("Widths of lines", "px", 2),
    "text_embedding": ("Lengths of texts", "tokens", 1),
    "text_detection": ("Widths of frames", "px", 2),
}


def sensitivity(findings: Findings) -> Markup:
    """What each group damages and gains, alone; the methods; everything that was tried."""
    parts: list[str] = []
    if findings.groups:
        parts += [group_intro(findings), group_table(findings.groups)]
    for conflict in findings.conflicts:
        together = "cannot be built together" if len(conflict.groups) > 1 else "cannot be built"
        sure = "" if conflict.smallest else " (the search ended before it was sure that none of them can be left out)"
        parts.append(
            element("p", {}, f"{', '.join(conflict.groups)}: {together}{sure}. The builder says: {conflict.words}")
        )
    if findings.methods:
        parts += [element("h3", {}, "Methods"), method_table(findings)]
    if findings.search_stopped:
        parts.append(element("p", {"class": "quiet"}, f"The search ended early: {findings.search_stopped}."))
    if findings.tried:
        parts.append(folded(f"All {count_of(len(findings.tried), 'set')} that were tried", tried_table(findings.tried)))
    if not parts:
        parts.append(element("p", {"class": "quiet"}, "Nothing was tried: it ended before."))
    return section("sensitivity", "Sensitivity", *parts)


def group_intro(findings: Findings) -> Markup:
    """How to read the chart."""
    return element(
        "p",
        {"class": "quiet"},
        "Each group of layers was quantised alone. Damage 1 is all that the gates allow (dashed line); gain is time "
        f"that one inference saves against {findings.float_precision}.",
    )


def group_table(groups: Sequence[GroupFinding]) -> Markup:
    """One row a group with its bars."""
    damage_axis = axis_of_damage([group.damage for group in groups])
    gain_axis = charts.axis_over([group.gain_ms for group in groups if group.gain_ms is not None])
    columns = (
        Column("Group"),
        Column("Layers", "n", "Layers "),
        Column("Weights", "n", "Weights "),
        Column("Now, and why", "now full"),
        Column("Damage alone", "chart full", "Damage "),
        Column("Gain alone", "chart full", "Gain "),
    )
    rows = [
        (
            group.name,
            f"{len(group.nodes)}",
            byte_size(group.weight_bytes),
            joined(chip(group.quantised), " ", element("span", {"class": "note"}, group.note)),
            damage_bar(group.damage, damage_axis),
            measured(milliseconds(group.gain_ms), charts.signed_bar(group.gain_ms, gain_axis, "gain", "loss"))
            if group.gain_ms is not None
            else NO_VALUE,
        )
        for group in groups
    ]
    return table("Damage and gain of each group by itself", columns, rows)


def axis_of_damage(damages: Sequence[float | None]) -> charts.Axis:
    """An axis that shows what the gates allow, and values far beyond it or far better than float by its edges."""
    drawn = [min(max(value, LEAST_DAMAGE_DRAWN), MOST_DAMAGE_DRAWN) for value in damages if value is not None]
    return charts.axis_over([*drawn, 1.05])


def damage_bar(damage: float | None, axis: charts.Axis) -> str:
    """Damage as number and bar, with a mark at what the gates allow."""
    if damage is None:
        return NO_VALUE
    bar = charts.signed_bar(damage, axis, "damage", "gain", bound=1.0)
    return measured(number_of_damage(damage), bar, "measured short")


def measured(written: str, bar: Markup, css: str = "measured") -> Markup:
    """A number and its bar beside it."""
    return element("div", {"class": css}, element("span", {}, written), bar)


def number_of_damage(damage: float | None) -> str:
    """Damage in the precision that it has."""
    return NO_VALUE if damage is None else signed(f"{damage:.2f}")


def chip(quantised: bool) -> Markup:
    """INT8 or float, as a small sign."""
    return element("span", {"class": "chip is-int8" if quantised else "chip"}, "INT8" if quantised else "float")


def method_table(findings: Findings) -> Markup:
    """How ranges were chosen, with what each method damaged."""
    axis = axis_of_damage([one.damage for one in findings.methods])
    columns = (
        Column("Method"),
        Column("Damage, all groups at once", "chart full", "Damage "),
        Column("Note", "why full"),
    )
    rows = [
        (
            joined(f"{one.method} ", element("span", {"class": "chip is-int8"}, "chosen"))
            if one.chosen
            else one.method,
            damage_bar(one.damage, axis),
            one.note or ("" if one.passed else "breaks a gate"),
        )
        for one in findings.methods
    ]
    return table("How ranges come from what was seen", columns, rows)


def tried_table(tried: Sequence[Tried]) -> Markup:
    """Each set in the order of the search."""
    columns = (
        Column("Step"),
        Column("Method", "", "Method "),
        Column("Damage", "n", "Damage "),
        Column("Time", "n", "Time "),
        Column("Passed", "state"),
        Column("Groups", "why full"),
    )
    rows = [
        (
            one.step,
            one.method,
            number_of_damage(one.damage),
            milliseconds(one.ms),
            "✓ passed" if one.passed else "✕ not",
            one.note or ", ".join(one.groups),
        )
        for one in tried
    ]
    return table("Sets of groups that were built and judged, in order", columns, rows)


def calibrated_on(findings: Findings) -> Markup:
    """The frames, and the inputs that came of them."""
    on = findings.calibrated_on
    parts: list[str] = [element("p", {"class": "quiet"}, f"From {on.source}. {on.note}".strip())]
    numbers = [("frames offered", on.offered), ("used", on.used)]
    numbers += [(name, on.parts[part]) for part, name in PART_NAMES.items() if part in on.parts]
    numbers += [("of them with labels", on.labelled)] if on.labelled else []
    parts.append(element("dl", {"class": "funnel"}, *(amount(name, f"{count:,}") for name, count in numbers)))
    parts += not_used(on)
    if on.thumbnails:
        shown = on.thumbnails[:MOST_THUMBNAILS]
        thumbnails = [element("li", {}, image(picture, f"Frame {picture.name}")) for picture in shown]
        parts.append(element("ul", {"class": "thumbs", "aria-label": "Frames, examples"}, *thumbnails))
    parts += recorded(findings)
    return section("calibrated-on", "What it was calibrated on", *parts)


def not_used(on: CalibratedOn) -> list[str]:
    """Which frames were not used, and why."""
    most_first = sorted(on.passed_over.items(), key=lambda item: (-item[1], item[0]))
    reasons = [f"{count:,} {reason}" for reason, count in most_first if count]
    parts: list[str] = []
    if reasons:
        parts.append(element("p", {}, f"Not used: {'; '.join(reasons)}."))
    if on.skipped:
        listed = [f"{one.name}: {one.reason}" for one in on.skipped[:SKIPPED_SHOWN]]
        listed += [f"and {len(on.skipped) - SKIPPED_SHOWN:,} more"] if len(on.skipped) > SKIPPED_SHOWN else []
        parts.append(folded(f"{count_of(len(on.skipped), 'file')} could not be used", items(listed)))
    return parts


def recorded(findings: Findings) -> list[str]:
    """Histograms of the recorded inputs."""
    on = findings.calibrated_on
    if not on.shapes:
        return []
    name, unit, place = VARIES[findings.task]
    left_out = f"; {on.feeds_left_out:,} more of the same shapes were left out" if on.feeds_left_out else ""
    parts: list[str] = [
        element("h3", {}, "Recorded inputs"),
        element("p", {"class": "quiet"}, f"{count_of(on.feeds, 'input')} of the model were recorded{left_out}."),
    ]
    drawn = [(name, unit, tally(on.shapes, place)), ("Batch sizes", "in one run", tally(on.shapes, 0))]
    figures = [distribution(title, of, counts) for title, of, counts in drawn if counts]
    return [*parts, element("div", {"class": "charts"}, *figures)]


def distribution(title: str, unit: str, counts: Mapping[int, int]) -> Markup:
    """A histogram; of one value alone the value."""
    if len(counts) == 1:
        ((value, count),) = counts.items()
        return element("p", {}, f"{title}: {value} {unit}, all {count:,}.")
    return element("figure", {}, element("figcaption", {}, f"{title}, {unit}"), charts.histogram(counts, unit, title))


def tally(shapes: Mapping[str, int], place: int) -> dict[int, int]:
    """How often each size of one dimension was met; shapes that are no `AxBxC` are left out."""
    counts: dict[int, int] = {}
    for shape, count in shapes.items():
        sizes = shape.split("x")
        if len(sizes) > place and sizes[place].isdecimal():
            counts[int(sizes[place])] = counts.get(int(sizes[place]), 0) + count
    return counts


def ranges(findings: Findings) -> Markup:
    """The range of each tensor on one logarithmic axis."""
    if not findings.ranges:
        none = element("p", {"class": "quiet"}, "No ranges were measured: it ended before.")
        return section("ranges", "Activation ranges", none)
    widest = sorted(findings.ranges.items(), key=lambda item: (item[1][0] - item[1][1], item[0]))
    axis = charts.log_axis_over(findings.ranges)
    by_method = f", by method {findings.method}" if findings.method else ""
    intro = (
        f"What {count_of(len(widest), 'tensor')} held while the float model ran{by_method}; the widest first, on a "
        "logarithmic scale to both sides of zero. One scale of 256 steps has to hold each of them."
    )
    if findings.smoothing is not None:
        intro += (
            " Channels before matrix products were evened out (names that end in .evened): the weights took up "
            f"{number(findings.smoothing)} of what stood out."
        )
    parts = [element("p", {"class": "quiet"}, intro), range_table(widest[:RANGES_SHOWN], axis)]
    if len(widest) > RANGES_SHOWN:
        rest = range_table(widest[RANGES_SHOWN:], axis)
        parts.append(folded(f"The other {len(widest) - RANGES_SHOWN}", rest))
    return section("ranges", "Activation ranges", *parts)


def range_table(tensors: Sequence[tuple[str, tuple[float, float]]], axis: charts.LogAxis) -> Markup:
    """Rows of tensors with their bars."""
    columns = (
        Column("Tensor"),
        Column("Low", "n", "Low "),
        Column("High", "n", "High "),
        Column("Range", "wide full", drawn=charts.range_scale(axis)),
    )
    rows = [
        (element("code", {}, name), number(low), number(high), charts.range_bar(low, high, axis))
        for name, (low, high) in tensors
    ]
    return table("Ranges of activations", columns, rows)


def provenance(findings: Findings) -> Markup:
    """Device, versions and what everything was made from."""
    machine = findings.machine
    pairs = [
        ("Model", f"{findings.model}, {findings.variant}, {plain_name(findings.task).lower()}"),
        ("Made", f"{day_and_time(findings.made_at)}, in {duration(findings.took_s)}"),
        ("Device", machine.device),
        ("Backend", f"{machine.backend} {machine.backend_version}, placement for {findings.scheme}"),
        ("edge_agent", machine.product_version),
        ("Libraries", ", ".join(f"{name} {version}" for name, version in sorted(machine.libraries.items()))),
    ]
    if findings.artefact is not None:
        pairs.append(("Artefact", element("code", {}, findings.artefact)))
    digests = {"collection": findings.calibrated_on.digest, **findings.came_from}
    pairs += [(plain_name(name), element("code", {}, digest)) for name, digest in sorted(digests.items())]
    return section("provenance", "Where it comes from", facts(pairs))
