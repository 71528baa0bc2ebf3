"""TextRecogniser: crops, batches and decoding with a made engine; no model is needed."""

from __future__ import annotations

import itertools
import random

import numpy as np
import numpy.typing as npt
import pytest

from edge_agent.backends.base import Array, Feed, TensorSpec
from edge_agent.records import Quad, TextBox
from edge_agent.stages.text_recogniser import (
    RecogniserSettings,
    TextRecogniser,
    batch_rows,
    directions,
    plan_batches,
    split_wide,
    touches_edge,
)
from tests.fakes import FakeEngine

SETTINGS = RecogniserSettings()
CHARSET = ["", *"0123456789", " "]
INPUT = TensorSpec("image", "uint8", (None, 48, None, 3))


def quad(left: float, top: float, width: float, height: float) -> Quad:
    return Quad(np.array([[left, top], [left + width, top], [left + width, top + height], [left, top + height]]))


def box(left: float, top: float, width: float, height: float) -> TextBox:
    return TextBox(quad(left, top, width, height), 0.9)


def grey_reader(feed: Feed) -> dict[str, Array]:
    """Reads a crop as one digit: its left-most grey value over 20."""
    digits = (feed["image"][:, 24, 2, 0] // 20).astype(np.int32) + 1
    steps = feed["image"].shape[2] // 8
    index = np.zeros((len(digits), steps), np.int32)
    index[:, 0] = digits
    return {"index": index, "probability": np.full(index.shape, 0.9, np.float32)}


def recogniser() -> tuple[TextRecogniser, FakeEngine]:
    engine = FakeEngine(grey_reader, (INPUT,))
    return TextRecogniser(engine, CHARSET, SETTINGS), engine


def stripes(count: int) -> npt.NDArray[np.uint8]:
    image = np.zeros((count * 20, 400, 3), np.uint8)
    for n in range(count):
        image[n * 20 : n * 20 + 20] = (n % 10) * 20 + 5
    return image


@pytest.mark.parametrize(("turned", "read"), [(0.85, "1"), (0.99, "7")])
def test_lone_character_is_turned_only_where_that_is_plainly_surer(turned: float, read: str) -> None:
    """Upright it is a 1, at 0.8; from its top down a 7."""

    def reader(feed: Feed) -> dict[str, Array]:
        output = grey_reader(feed)
        output["probability"] = np.where(output["index"] == CHARSET.index("7"), turned, 0.8).astype(np.float32)
        return output

    image = np.full((60, 60, 3), CHARSET.index("1") * 20 - 15, np.uint8)
    image[:12] = CHARSET.index("7") * 20 - 15
    stage = TextRecogniser(FakeEngine(reader, (INPUT,)), CHARSET, SETTINGS)
    (line,) = stage.recognise(image, [box(10, 0, 25, 50)])
    assert (line.text, round(line.box.quad.angle_deg)) == (read, 0 if read == "1" else 90)


def test_no_boxes_means_no_inference() -> None:
    stage, engine = recogniser()
    assert stage.recognise(np.zeros((50, 50, 3), np.uint8), []) == ()
    assert engine.feeds == []


def test_each_line_belongs_to_its_own_box_whatever_the_batches() -> None:
    stage, engine = recogniser()
    shuffled = list(range(23))
    random.Random(7).shuffle(shuffled)
    boxes = [box(0, n * 20, 40 + 13 * n, 20) for n in shuffled]
    lines = stage.recognise(stripes(23), boxes)
    assert [line.text for line in lines] == [str(n % 10) for n in shuffled]
    assert 23 <= sum(len(feed["image"]) for feed in engine.feeds) <= 32
    assert {len(feed["image"]) for feed in engine.feeds} <= set(SETTINGS.batch_sizes)
    assert {feed["image"].shape[2] for feed in engine.feeds} <= set(SETTINGS.widths_px)


def test_second_frame_never_repeats_the_first_ones_text() -> None:
    stage, _ = recogniser()
    assert [line.text for line in stage.recognise(stripes(3), [box(0, 40, 100, 20)])] == ["2"]
    assert [line.text for line in stage.recognise(stripes(3), [box(0, 20, 100, 20)])] == ["1"]
    assert stage.recognise(stripes(3), []) == ()


@pytest.mark.parametrize("size", [(3000.0, 20.0), (400.0, 12.0), (5.0, 5.0), (12.0, 400.0)])
def test_extreme_crops_fit_the_ladder(size: tuple[float, float]) -> None:
    stage, engine = recogniser()
    stage.recognise(np.full((500, 3100, 3), 45, np.uint8), [box(10, 10, *size)])
    assert engine.feeds
    assert {feed["image"].shape[2] for feed in engine.feeds} <= set(SETTINGS.widths_px)


def test_wide_line_is_cut_where_there_is_no_ink_and_joined() -> None:
    image = np.full((40, 6000, 3), 255, np.uint8)
    image[10:30, ::6] = 0
    image[:, 1200:1230] = 255
    pieces = split_wide(image, quad(0, 0, 6000, 40), SETTINGS)
    assert 5 <= len(pieces) <= 7
    assert 1195 <= pieces[0].quad.points[1][0] <= 1230
    assert pieces[0].quad.points[0][0] == 0
    assert pieces[-1].quad.points[1][0] == 6000
    for left, right in itertools.pairwise(pieces):
        assert left.quad.points[1].tolist() == right.quad.points[0].tolist()
    assert [piece.spaced for piece in pieces] == [False, True] + [False] * (len(pieces) - 2), "one gap is a space"


def test_pieces_of_a_wide_line_are_joined_with_the_space_that_was_cut() -> None:
    stage, _ = recogniser()
    image = np.full((40, 3200, 3), 45, np.uint8)
    image[:16, ::6] = 255
    image[:, 1240:1280] = 45  # wide enough for a space, and where the line is cut
    (read,) = stage.read_quads(image, [quad(0, 0, 3200, 40)])
    assert read.text == "2 22"
    assert read.confidence == pytest.approx(0.9)
    (read,) = stage.read_quads(np.full((40, 6000, 3), 45, np.uint8), [quad(0, 0, 6000, 40)])
    assert set(read.text) == {"2"}, "a flat line has no spaces"


def test_lone_tall_character_is_also_read_upright_and_long_vertical_text_is_not() -> None:
    assert len(directions(quad(0, 0, 20, 20))) == 1
    assert [d.angle_deg for d in directions(quad(0, 0, 20, 40))] == [0, 90, -90]
    assert [d.angle_deg for d in directions(quad(0, 0, 20, 100))] == [90, -90]


def test_text_at_the_frames_edge_is_flagged_cut() -> None:
    stage, _ = recogniser()
    image = np.full((100, 300, 3), 45, np.uint8)
    lines = stage.recognise(image, [box(0, 10, 100, 20), box(50, 50, 100, 20), box(190, 70, 109, 20)])
    assert [line.flags for line in lines] == [("cut",), (), ("cut",)]


@pytest.mark.parametrize("turn", range(4))
@pytest.mark.parametrize("scale", [1.0, 5.0])
def test_a_text_is_cut_also_where_its_box_stops_a_little_short_of_the_border(turn: int, scale: float) -> None:
    """Its ends within a quarter of its height, its sides within a twentieth; the same for every size and direction."""
    size = np.array((300, 100) if turn % 2 == 0 else (100, 300)) * round(scale)

    def flagged(x: float, y: float, width: float, height: float) -> bool:
        points = quad(x, y, width, height).points - np.array([149.5, 49.5], np.float32)
        for _ in range(turn):
            points = np.stack([-points[:, 1], points[:, 0]], axis=1)
        return touches_edge(Quad(points * scale + (size - 1) / 2), *map(int, size))

    assert flagged(5, 40, 120, 24)
    assert flagged(170, 40, 124, 24)
    assert flagged(60, 0.5, 120, 24)
    assert flagged(60, 74.5, 120, 24)
    assert not flagged(8, 40, 120, 24)
    assert not flagged(170, 40, 121, 24)
    assert not flagged(60, 3, 120, 24)
    assert not flagged(60, 71, 120, 24)


def test_text_running_down_is_judged_along_its_own_direction() -> None:
    stage, _ = recogniser()
    image = np.full((200, 300, 3), 45, np.uint8)
    lines = stage.recognise(image, [box(5, 40, 20, 100), box(100, 4, 20, 100), box(200, 40, 20, 100)])
    assert [line.flags for line in lines] == [(), ("cut",), ()]


def test_line_below_the_confidence_is_not_a_line() -> None:
    engine = FakeEngine(grey_reader, (INPUT,))
    strict = RecogniserSettings(min_confidence=0.95)
    assert TextRecogniser(engine, CHARSET, strict).recognise(stripes(1), [box(0, 0, 100, 20)]) == ()


def test_batches_hold_every_crop_once_and_pad_little() -> None:
    widths = [50, 1600, 52, 310, 300, 55, 900]
    batches = plan_batches(widths, SETTINGS)
    assert sorted(n for batch in batches for n in batch.members) == list(range(len(widths)))
    assert [(batch.members, batch.width_px) for batch in batches] == [
        ((0, 2, 5), 64),
        ((4, 3), 320),
        ((6,), 960),
        ((1,), 1600),
    ]


def test_engine_that_takes_any_shape_gets_batches_as_wide_as_their_widest_crop() -> None:
    ladder = (192, 320, 1600)
    settings = RecogniserSettings(widths_px=ladder, width_step_px=8, batch_sizes=(1, 2, 3, 4), batch_cost_px=40)
    widths = [50, 1600, 180, 521, 525, 905]
    batches = plan_batches(widths, settings)
    assert [(batch.members, batch.width_px) for batch in batches] == [
        ((0, 2), 192),  # not below the first rung
        ((3, 4), 528),
        ((5,), 912),
        ((1,), 1600),
    ]


def test_batch_plan_costs_no_more_than_one_call_each_or_full_batches() -> None:
    rng = random.Random(3)
    most = SETTINGS.batch_sizes[-1]

    def cost(crops: int, width_px: int) -> int:
        return SETTINGS.batch_cost_px + batch_rows(crops, SETTINGS) * width_px

    for _ in range(50):
        widths = [rng.randint(1, 1600) for _ in range(rng.randint(1, 30))]
        planned = sum(cost(len(batch.members), batch.width_px) for batch in plan_batches(widths, SETTINGS))
        rungs = sorted(next(r for r in SETTINGS.widths_px if r >= w) for w in widths)
        single = sum(cost(1, rung) for rung in rungs)
        full = sum(cost(len(part), part[-1]) for part in (rungs[i : i + most] for i in range(0, len(rungs), most)))
        assert planned <= min(single, full)


def test_batch_is_filled_up_to_a_size_of_the_ladder() -> None:
    stage, engine = recogniser()
    stage.recognise(stripes(5), [box(0, n * 20, 300, 20) for n in range(5)])
    assert [len(feed["image"]) for feed in engine.feeds] in ([8], [4, 1], [1, 4])
    assert all(len(feed["image"]) in SETTINGS.batch_sizes for feed in engine.feeds)


class Reversible:
    """Reads a crop as "12345" well where its left half is the brighter one, else as "77777" badly."""

    def __init__(self) -> None:
        self.crops = 0

    def __call__(self, feed: Feed) -> dict[str, Array]:
        image = feed["image"]
        self.crops += len(image)
        index = np.zeros((len(image), 20), np.int32)
        probability = np.zeros((len(image), 20), np.float32)
        for row, crop in enumerate(image):
            stands = crop[:, 8:60].mean() > crop[:, 60:].mean()
            index[row, 1:10:2] = [2, 3, 4, 5, 6] if stands else 8
            probability[row] = 0.95 if stands else 0.6
        return {"index": index, "probability": probability}


def page(*stand: bool) -> tuple[npt.NDArray[np.uint8], list[TextBox]]:
    """Lines that stand, or stand on their heads, and their boxes."""
    image = np.full((40 * len(stand), 200, 3), 60, np.uint8)
    for n, upright in enumerate(stand):
        image[n * 40 : n * 40 + 40, slice(0, 100) if upright else slice(100, 200)] = 200
    return image, [box(2, n * 40 + 2, 190, 36) for n in range(len(stand))]


def test_page_on_its_head_is_read_the_other_way_up() -> None:
    engine = Reversible()
    stage = TextRecogniser(FakeEngine(engine, (INPUT,)), CHARSET, SETTINGS)
    image, boxes = page(False, False, False)
    lines = stage.recognise(image, boxes)
    assert [line.text for line in lines] == ["12345"] * 3
    assert [abs(line.box.quad.angle_deg) for line in lines] == [180] * 3


def test_page_that_stands_is_read_once() -> None:
    engine = Reversible()
    stage = TextRecogniser(FakeEngine(engine, (INPUT,)), CHARSET, SETTINGS)
    assert [line.text for line in stage.recognise(*page(True, True, True))] == ["12345"] * 3
    assert engine.crops <= 4, "three lines, and what fills the batch"


def test_one_bad_line_never_turns_a_page_that_stands() -> None:
    engine = Reversible()
    stage = TextRecogniser(FakeEngine(engine, (INPUT,)), CHARSET, SETTINGS)
    image, boxes = page(True, True, True, False)
    lines = stage.recognise(image, boxes)
    assert [line.text for line in lines] == ["12345", "12345", "12345", "77777"]
    assert all(line.box.quad.angle_deg == 0 for line in lines)


def test_what_is_known_to_stand_is_never_turned() -> None:
    engine = Reversible()
    stage = TextRecogniser(FakeEngine(engine, (INPUT,)), CHARSET, SETTINGS)
    image, boxes = page(False, False)
    lines = stage.recognise(image, boxes, upright=True)
    assert all(line.box.quad.angle_deg == 0 for line in lines)
    tall = box(10, 2, 20, 60)
    assert all(line.box.quad.angle_deg == 0 for line in stage.recognise(image, [tall], upright=True))


def test_line_too_low_to_be_believed_is_flagged() -> None:
    stage, _ = recogniser()
    small, large = stage.recognise(stripes(4), [box(60, 24, 60, 11), box(60, 42, 60, 16)])
    assert "too_small" in small.flags and "too_small" not in large.flags
