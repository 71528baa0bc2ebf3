"""Kept: small pictures of what was read, bounded in number and bytes."""

from __future__ import annotations

from typing import Any

import cv2
import numpy as np
import pytest

from edge_agent.records import Frame, Lattice, Quad, Reading, TextBox, TextLine
from edge_agent.web import kept
from edge_agent.web.kept import KeptFrames
from tests.broker import wait_until


def made(seq: int, camera: str = "left", width_px: int = 640) -> tuple[Frame, Reading]:
    frame = Frame(camera, seq, 1000.0 + seq, 1.0 + seq, np.full((480, width_px, 3), 200, np.uint8))
    quad = Quad(np.array([[100, 100], [300, 100], [300, 140], [100, 140]], np.float32))
    lattice = Lattice(
        ("", "A"), np.zeros((3, 2), np.float32), ("", "A", ""), np.zeros(3, np.float32), np.zeros((1, 2), np.int32)
    )
    line = TextLine("LOT A7", 0.9, TextBox(quad, 0.9), lattice=lattice)
    return frame, Reading(camera, seq, frame.captured_at, width_px, 480, lines=(line,), timings_ms={"total": 1.0})


def size_of(jpeg: bytes) -> tuple[int, int]:
    height_px, width_px = cv2.imdecode(np.frombuffer(jpeg, np.uint8), cv2.IMREAD_COLOR).shape[:2]
    return width_px, height_px


def test_frame_with_text_is_kept_small_once_in_a_while_and_its_crop_always() -> None:
    now = [0.0]
    with KeptFrames(lambda: now[0]) as frames:
        for seq, at in ((1, 0.0), (2, 0.5), (3, 1.5)):
            now[0] = at
            frames.offer(*made(seq, width_px=2560))
            wait_until(lambda seq=seq: frames.crop("left", seq, seq) is not None, "the crop")  # type: ignore[misc]
        assert [each.reading.seq for each in frames.of("left")] == [1, 3]
        assert size_of(frames.of("left")[0].jpeg) == (1280, 240)
        assert frames.of("left")[0].reading.lines[0].lattice is None
        assert frames.of("right") == []


def test_crop_shows_the_text_of_the_newest_of_the_frames_asked_for() -> None:
    with KeptFrames() as frames:
        for seq in (1, 2, 3):
            frames.offer(*made(seq))
            wait_until(lambda seq=seq: frames.crop("left", seq, seq) is not None, "the crop")  # type: ignore[misc]
        crop = frames.crop("left", 1, 2)
        assert crop is not None
        width_px, height_px = size_of(crop)
        assert 200 < width_px < 260
        assert 40 < height_px < 60
        assert frames.crop("left", 4, 9) is None
        assert frames.crop("right", 1, 9) is None


def test_frame_without_text_is_not_kept() -> None:
    frame, reading = made(1)
    with KeptFrames() as frames:
        frames.offer(frame, Reading("left", 1, 1.0, 640, 480))
        frames.offer(frame, reading)
        wait_until(lambda: frames.crop("left", 1, 1) is not None, "the crop of the one with text")
        assert len(frames.of("left")) == 1


@pytest.mark.parametrize(("bound", "value", "expected"), [("FRAMES", 3, 3), ("MAX_BYTES", 1, 1)])
def test_kept_frames_are_bounded(monkeypatch: pytest.MonkeyPatch, bound: str, value: Any, expected: int) -> None:
    monkeypatch.setattr(kept, bound, value)
    monkeypatch.setattr(kept, "CROPS", 2)
    now = [0.0]
    with KeptFrames(lambda: now[0]) as frames:
        for seq in range(6):
            now[0] += 2.0
            frames.offer(*made(seq))
            wait_until(lambda seq=seq: frames.crop("left", seq, seq) is not None, "the crop")  # type: ignore[misc]
        assert [each.reading.seq for each in frames.of("left")] == list(range(6 - expected, 6))
        assert frames.crop("left", 0, 3) is None
