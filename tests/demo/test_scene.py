"""Scene: a belt that repeats without a seam, and a truth that fits the picture."""

from __future__ import annotations

import cv2
import numpy as np
import pytest

from edge_agent.demo.labels import render_label, sample_labels
from edge_agent.demo.scene import HEIGHT_PX, LABEL_WIDTH_PX, STEP_PX, WIDTH_PX, Conveyor

LABELS = sample_labels(2026)


@pytest.fixture(scope="module")
def conveyor() -> Conveyor:
    return Conveyor(LABELS)


def test_frames_are_the_same_every_time(conveyor: Conveyor) -> None:
    again = Conveyor(LABELS).frame(25)
    frame = conveyor.frame(25)
    assert frame.image.shape == (HEIGHT_PX, WIDTH_PX, 3)
    assert frame.image.dtype == np.uint8
    assert np.array_equal(frame.image, again.image)


def test_the_belt_repeats_without_a_seam(conveyor: Conveyor) -> None:
    assert np.array_equal(conveyor.frame(conveyor.frames).image, conveyor.frame(0).image) or (
        # only the sensor's noise may differ
        np.abs(conveyor.frame(conveyor.frames).image.astype(int) - conveyor.frame(0).image.astype(int)).mean() < 4
    )
    before, after = conveyor.frame(conveyor.frames - 1), conveyor.frame(0)
    for late, early in zip(before.texts, after.texts, strict=False):
        if late.text == early.text:
            assert 0.8 * STEP_PX < (late.quad - early.quad)[:, 0].mean() < 1.2 * STEP_PX


def test_the_first_frame_shows_the_first_label_whole(conveyor: Conveyor) -> None:
    whole = [t.text for t in conveyor.frame(0).texts if not t.cut]
    assert sorted(whole) == sorted(LABELS[0].lines)


def test_every_label_is_in_full_view_for_half_of_its_way(conveyor: Conveyor) -> None:
    seen = [0] * len(LABELS)
    for index in range(0, conveyor.frames, 6):
        texts = conveyor.frame(index).texts
        for item in {t.item for t in texts}:
            lines = [t for t in texts if t.item == item]
            seen[item] += len(lines) == len(LABELS[item].lines) and not any(t.cut for t in lines)
    per_label = conveyor.frames / 6 / len(LABELS)
    assert min(seen) >= per_label * 0.5


def test_quads_lie_on_their_texts(conveyor: Conveyor) -> None:
    """Each text, taken out of the frame by its quad, looks like the same text taken out of the flat label."""
    for item in range(len(LABELS)):
        flat = render_label(LABELS[item], LABEL_WIDTH_PX)
        frame = conveyor.frame(item * conveyor.frames // len(LABELS))
        placed = {t.text: t.quad for t in frame.texts if t.item == item}
        for text in flat.texts:
            a, b = crop(flat.image, text.quad), crop(frame.image, placed[text.text])
            assert np.corrcoef(a.ravel(), b.ravel())[0, 1] > 0.8, text.text


def crop(image: np.ndarray, quad: np.ndarray) -> np.ndarray:
    corners = np.array([[0, 0], [200, 0], [200, 24], [0, 24]], np.float32)
    grey = cv2.cvtColor(image, cv2.COLOR_BGR2GRAY)
    return cv2.warpPerspective(grey, cv2.getPerspectiveTransform(quad, corners), (200, 24)).astype(float)


def test_no_two_labels_are_in_full_view_at_once(conveyor: Conveyor) -> None:
    for index in range(0, conveyor.frames, 5):
        whole = {t.item for t in conveyor.frame(index).texts} - {t.item for t in conveyor.frame(index).texts if t.cut}
        assert len(whole) <= 1


def test_what_leaves_the_picture_is_marked_cut(conveyor: Conveyor) -> None:
    for index in (0, 20, 35, 50):
        for text in conveyor.frame(index).texts:
            x = text.quad[:, 0]
            assert text.cut == bool(x.min() < 0 or x.max() >= WIDTH_PX)
            assert x.max() > 0
            assert x.min() < WIDTH_PX


def test_a_belt_without_labels_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one label"):
        Conveyor(())
