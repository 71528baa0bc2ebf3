"""Rehearsal: what the frames read last would have said with other regions and expectations, before anything is saved.

Where regions differ in place alone, lines are told apart by where they stand, at once; where one turns or joins dots
otherwise, the kept pictures are read again in it, between the cameras' frames, as far as SPEND_S reaches.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import date
from typing import Annotated, Any

import numpy as np
from pydantic import Field

from edge_agent.records import Code, Reading, TextLine, reason_to_json, rfc3339
from edge_agent.settings.cameras import CameraName
from edge_agent.settings.expected import Rules
from edge_agent.settings.roi import RoiConfig
from edge_agent.settings.scalars import Name
from edge_agent.settings.section import Section
from edge_agent.verify.expectation import Expectation
from edge_agent.verify.judge import Judgement, day_of, judge_reading
from edge_agent.web.endpoint import Call, Endpoint, Said
from edge_agent.web.kept import Kept
from edge_agent.web.site import Refused

SPEND_S = 6.0
EXAMPLES = 12
MAX_TEXT_CHARS = 500


class OtherSettings(Section):
    """Other settings of a camera."""

    camera: CameraName
    """Whose frames."""
    rois: Annotated[dict[Name, RoiConfig], Field(max_length=32)] | None = None
    """Its regions, all of them; null or absent: those in force."""
    expected: Rules | None = None
    """What an item must say; null or absent: what is in force."""


class Example(Said):
    """What became of one frame."""

    seq: int
    at: str
    verdict: str | None
    """Null where nothing is expected."""
    reasons: list[dict[str, Any]]
    """One for each rule: as in `result` of docs/mqtt.md."""
    text: str


class Counts(Said):
    """What became of the frames."""

    frames: int
    """How many were looked at, of those kept."""
    pass_: Annotated[int, Field(serialization_alias="pass")]
    fail: int
    no_read: int
    reread: bool
    """Whether they were read again; else what had been read was looked at anew."""
    examples: list[Example]
    """Newest first."""


async def rehearse(call: Call) -> Counts:
    """What would have come of it; one at a time."""
    wish: OtherSettings = call.body
    call.known_camera(wish.camera)
    settings = call.site.config.cameras.get(wish.camera)
    if settings is None:
        raise Refused(404, "no_camera", f"the settings in force have no camera {wish.camera}")
    rois = settings.rois if wish.rois is None else wish.rois
    rules = settings.expected if wish.expected is None else wish.expected
    expectation = Expectation("rehearsal", rules, {name: roi.expected for name, roi in rois.items() if roi.expected})
    if call.door.rehearsing.locked():
        raise Refused(429, "rehearsing", "another rehearsal is under way", {"Retry-After": "2"})
    async with call.door.rehearsing:
        frames = list(reversed(call.site.kept(wish.camera)))
        again = bool(rois) and must_be_read_again(settings.rois, rois)
        if again:
            readings = await read_again(call, frames, rois, expectation)
        else:
            readings = [placed(kept.reading, rois) for kept in frames]
        counts: Counts = await call.door.aside(counted, readings, expectation, again)
        return counts


def must_be_read_again(before: Mapping[str, RoiConfig], rois: Mapping[str, RoiConfig]) -> bool:
    """Whether what was read cannot tell: a region turns the picture, joins dots or strengthens print otherwise than the
    region of its name did, or auto does."""
    return any(_way(roi) != _way(before.get(name, RoiConfig())) for name, roi in rois.items())


def _way(roi: RoiConfig) -> tuple[Any, ...]:
    return roi.angle_deg, roi.dot_matrix, roi.contrast


async def read_again(
    call: Call, frames: Sequence[Kept], rois: Mapping[str, RoiConfig], expectation: Expectation
) -> list[Reading]:
    """The newest frames read in other regions, as many as SPEND_S allows, one at least."""
    readings: list[Reading] = []
    until_mono = time.monotonic() + SPEND_S
    for kept in frames:
        future = await call.door.aside(call.site.reread, kept, rois, expectation)
        reading: Reading = await asyncio.wrap_future(future)
        was = kept.reading
        readings.append(replace(reading, camera=was.camera, seq=was.seq, captured_at=was.captured_at))
        if time.monotonic() > until_mono:
            break
    return readings


def placed(reading: Reading, rois: Mapping[str, RoiConfig]) -> Reading:
    """The reading with its lines, codes and fields told apart by regions; what stands in none is left out. Without
    regions all stays."""
    if not rois:
        return replace(
            reading,
            lines=tuple(replace(line, region=None) for line in reading.lines),
            codes=tuple(replace(code, region=None) for code in reading.codes),
        )
    size = (reading.width_px, reading.height_px)
    lines = {n: region for n, line in enumerate(reading.lines) if (region := region_of(line, rois, size)) is not None}
    codes = {n: region for n, code in enumerate(reading.codes) if (region := region_of(code, rois, size)) is not None}
    line_at = {n: at for at, n in enumerate(lines)}
    code_at = {n: at for at, n in enumerate(codes)}
    fields = tuple(
        replace(field, lines=tuple(line_at[n] for n in field.lines), codes=tuple(code_at[n] for n in field.codes))
        for field in reading.fields
        if set(field.lines) <= lines.keys() and set(field.codes) <= codes.keys()
    )
    return replace(
        reading,
        lines=tuple(replace(reading.lines[n], region=region) for n, region in lines.items()),
        codes=tuple(replace(reading.codes[n], region=region) for n, region in codes.items()),
        fields=fields,
    )


def region_of(what: TextLine | Code, rois: Mapping[str, RoiConfig], size: tuple[int, int]) -> str | None:
    """The first region in which its middle stands; None for none."""
    quad = what.box.quad if isinstance(what, TextLine) else what.quad
    x, y = quad.centre / np.array(size)
    return next(
        (name for name, roi in rois.items() if roi.x <= x <= roi.x + roi.width and roi.y <= y <= roi.y + roi.height),
        None,
    )


def counted(readings: Sequence[Reading], expectation: Expectation, reread: bool) -> Counts:
    """The verdicts on some readings, newest first."""
    judged = [(reading, judge_reading(reading, expectation, _day(reading))) for reading in readings]
    verdicts = Counter("" if judgement is None else judgement.verdict for _, judgement in judged)
    return Counts(
        frames=len(readings),
        pass_=verdicts["PASS"],
        fail=verdicts["FAIL"],
        no_read=verdicts["NO_READ"],
        reread=reread,
        examples=[example(reading, judgement) for reading, judgement in judged[:EXAMPLES]],
    )


def example(reading: Reading, judgement: Judgement | None) -> Example:
    """What is told of one frame."""
    return Example(
        seq=reading.seq,
        at=rfc3339(reading.captured_at),
        verdict=None if judgement is None else judgement.verdict,
        reasons=[] if judgement is None else [reason_to_json(reason) for reason in judgement.reasons],
        text=" / ".join(line.text for line in reading.lines)[:MAX_TEXT_CHARS],
    )


def _day(reading: Reading) -> date:
    return day_of(reading.captured_at)


ENDPOINTS = (
    Endpoint(
        "POST",
        "/v1/rehearsal",
        rehearse,
        "What the frames read last would have said with other regions and expectations",
        {200: Counts},
        body=OtherSettings,
        refusals=(404, 429, 503),
    ),
)
