from __future__ import annotations

import math
from dataclasses import replace

import pytest

from edge_agent.calibrate.judgement import GateResult
from edge_agent.calibrate.report_words import (
    byte_size,
    count_of,
    day_and_time,
    duration,
    headline,
    joules,
    milliseconds,
    name_of,
    number,
    percent,
    quantity,
)
from tests.calibrate.made_findings import refused


@pytest.mark.parametrize(
    ("value", "written"),
    [
        (0, "0"),
        (-0.0, "0"),
        (0.31, "0.31"),
        (12.3456, "12.35"),
        (1234.5678, "1235"),
        (20000, "20000"),
        (-1.5, "−1.5"),
        (0.000012, "1.20e−05"),
        (3.2e9, "3.20e+09"),
        (math.nan, "–"),
        (None, "–"),
    ],
)
def test_numbers_have_four_digits(value: float | None, written: str) -> None:
    assert number(value) == written


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        (percent(0.00387), "0.39 %"),
        (percent(0.972), "97.2 %"),
        (percent(0.9934), "99.34 %"),
        (percent(1.0), "100.0 %"),
        (percent(-0.0004), "−0.04 %"),
        (milliseconds(0.834), "0.83 ms"),
        (milliseconds(41.23), "41.2 ms"),
        (milliseconds(310.4), "310 ms"),
        (milliseconds(-0.11), "−0.11 ms"),
        (milliseconds(math.nan), "–"),
        (joules(0.418), "0.42 J"),
        (joules(0.0031), "3.1 mJ"),
        (byte_size(512), "512 B"),
        (byte_size(9_900_000), "9.9 MB"),
        (byte_size(171_000_000), "171 MB"),
        (byte_size(0), "0 B"),
        (byte_size(None), "–"),
        (duration(143.2), "2 min 23 s"),
        (duration(59.7), "1 min 0 s"),
        (duration(8), "8 s"),
        (day_and_time(0), "1970-01-01 00:00 UTC"),
        (count_of(1, "frame"), "1 frame"),
        (count_of(1200, "frame"), "1,200 frames"),
        (quantity(1.31, "times"), "1.31×"),
        (quantity(0.98765, "cosine"), "0.9877"),
        (quantity(12.0, "characters"), "12 characters"),
        (quantity(2964.0, "count"), "2,964"),
        (quantity(None, "share"), "–"),
        (name_of("cer_increase"), "Character errors added"),
        (name_of("some_new_figure"), "Some new figure"),
    ],
)
def test_units_are_written_as_people_write_them(written: str, expected: str) -> None:
    assert written == expected


def test_broken_outputs_and_too_little_text_are_told_in_the_headline() -> None:
    broken = GateResult("outputs", 3.0, 0.0, "runs", False, "output x is NaN")
    little = GateResult("evidence", 12.0, 50.0, "characters", False, "too little")
    assert headline(replace(refused(), gates=(broken,))) == "Refused: its outputs are broken; FP32 stays."
    assert headline(replace(refused(), gates=(little,))) == (
        "Refused: text to judge by 12 characters (gate: at least 50 characters); FP32 stays."
    )


def test_a_refusal_without_gates_tells_its_first_reason() -> None:
    bare = replace(refused(), gates=(), reasons=("the builder ran out of memory.", "second"))
    assert headline(bare) == "Refused: the builder ran out of memory; FP32 stays."
