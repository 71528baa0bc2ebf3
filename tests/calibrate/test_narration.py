"""Narration: what is told of a calibration, each thing once."""

from __future__ import annotations

import pytest

from edge_agent.calibrate.judgement import ChangedLine
from edge_agent.calibrate.narration import each_once, precision_of


def line(frame: str, float_text: str, int8_text: str, x: float = 0.0) -> ChangedLine:
    return ChangedLine(frame, [[x, 0.0], [9.0, 0.0], [9.0, 5.0], [x, 5.0]], float_text, int8_text, None)


@pytest.mark.parametrize(
    ("fingerprint", "precision"),
    [("onnxruntime-1.32.0:3f2c90aa11bb:fp32", "FP32"), ("tensorrt-10.3.0:3f2c90aa:fp16:9ab1", "FP16")],
)
def test_float_precision_is_known_of_every_backend(fingerprint: str, precision: str) -> None:
    assert precision_of(fingerprint) == precision


def test_line_that_two_judges_met_stands_once() -> None:
    own = [line("a.jpg", "LOT B2", "LOT 82"), line("b.jpg", "x", "y")]
    whole = [line("a.jpg", "LOT B2", "LOT 82", 0.4), line("a.jpg", "EXP 1", "EXP I")]
    assert each_once([own, whole]) == [*own, whole[1]]


def test_text_that_changed_twice_in_a_frame_stands_twice() -> None:
    twice = [line("a.jpg", "B", "8", 1), line("a.jpg", "B", "8", 2)]
    assert each_once([twice, twice[:1]]) == twice
    assert each_once([twice[:1], twice]) == twice
    assert each_once([[], []]) == []
