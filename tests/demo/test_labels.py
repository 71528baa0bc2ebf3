"""Labels: the same picture every time, every text where the truth says, nothing outside the paper."""

from __future__ import annotations

import sys
from datetime import date

import cv2
import numpy as np
import pytest

from edge_agent.demo import ean13
from edge_agent.demo.labels import LAYOUTS, Label, RenderedLabel, render_label, sample_labels
from edge_agent.errors import ConfigError

LABELS = sample_labels(2026)


def ink(rendered: RenderedLabel, box: tuple[int, int, int, int]) -> float:
    """Share of pixels in (left, top, right, bottom) that differ from the corner colour of that box."""
    left, top, right, bottom = box
    part = rendered.image[top:bottom, left:right].astype(int)
    return float((np.abs(part - part[0, 0]).max(axis=2) > 60).mean())


@pytest.mark.parametrize("label", LABELS, ids=lambda label: label.product)
def test_a_label_is_the_same_every_time(label: Label) -> None:
    first, second = render_label(label), render_label(label)
    assert np.array_equal(first.image, second.image)
    assert [t.text for t in first.texts] == [t.text for t in second.texts]


@pytest.mark.parametrize("width_px", [560, 640, 1280])
@pytest.mark.parametrize("label", LABELS, ids=lambda label: label.product)
def test_every_text_stands_where_the_truth_says(label: Label, width_px: int) -> None:
    rendered = render_label(label, width_px)
    height, width = rendered.image.shape[:2]
    assert (width, height) == (width_px, round(width_px * 11 / 16))
    for text in rendered.texts:
        (left, top), (right, bottom) = text.quad[0], text.quad[2]
        assert 0 < left < right < width, text.text
        assert 0 < top < bottom < height, text.text
        inside = (int(left) - 1, int(top) - 1, int(np.ceil(right)) + 1, int(np.ceil(bottom)) + 1)
        assert 0.1 < ink(rendered, inside) < 0.75, text.text
        above = (inside[0], inside[1] - 3, inside[2], inside[1])
        below = (inside[0], inside[3], inside[2], inside[3] + 3)
        assert ink(rendered, above) == 0, f"{text.text} reaches above its quad"
        assert ink(rendered, below) == 0, f"{text.text} reaches below its quad"


@pytest.mark.parametrize("label", LABELS, ids=lambda label: label.product)
def test_texts_are_apart_from_each_other(label: Label) -> None:
    texts = render_label(label).texts
    for n, a in enumerate(texts):
        for b in texts[n + 1 :]:
            apart_x = a.quad[1, 0] + 6 < b.quad[0, 0] or b.quad[1, 0] + 6 < a.quad[0, 0]
            apart_y = a.quad[2, 1] + 6 < b.quad[0, 1] or b.quad[2, 1] + 6 < a.quad[0, 1]
            assert apart_x or apart_y, f"{a.text!r} and {b.text!r}"


@pytest.mark.parametrize("label", LABELS, ids=lambda label: label.product)
def test_the_picture_says_all_lines_of_the_label(label: Label) -> None:
    assert sorted(t.text for t in render_label(label).texts) == sorted(label.lines)


@pytest.mark.parametrize("label", LABELS, ids=lambda label: label.product)
def test_a_barcode_reader_reads_the_gtin(label: Label) -> None:
    texts, _, _ = cv2.barcode.BarcodeDetector().detectAndDecode(render_label(label, 640).image)
    assert texts == label.gtin


def test_sample_labels_are_valid_and_differ() -> None:
    assert {label.layout for label in LABELS} == set(LAYOUTS)
    assert len({label.serial for label in LABELS}) == len({label.lot for label in LABELS}) == len(LABELS)
    for label in LABELS:
        assert ean13.check_digit(label.gtin[:-1]) == label.gtin[-1]
        assert all(line.isascii() for line in label.lines), "the built-in font knows ASCII only"
        assert not set("IOQ") & set(label.lot + label.serial)


@pytest.mark.parametrize("year", [2026, 2031])
def test_expiry_dates_lie_after_the_year_of_rendering(year: int) -> None:
    for label in sample_labels(year):
        assert date(year, 12, 31) < label.expiry <= date(year + 2, 12, 31)


def test_a_label_too_small_to_read_is_refused() -> None:
    with pytest.raises(ValueError, match="at least 160"):
        render_label(LABELS[0], 100)


def test_missing_pillow_is_named_with_the_cure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "PIL", None)
    with pytest.raises(ConfigError, match=r"pip install 'edge-agent\[demo\]'"):
        render_label(LABELS[0])
