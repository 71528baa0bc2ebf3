from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from edge_agent.records import Code
from edge_agent.settings.items import ItemsConfig
from tests.items.sightings import Film, label, line, lot, quad

STILL = ItemsConfig(mode="still")
CONVEYOR = ItemsConfig(mode="conveyor", decide_within_ms=60_000)
TEXTS = ("ACME OATS", "LOT L2345B", "EXP 31.08.2027")


# --- still ---


def test_still_scene_gives_one_result_not_a_stream() -> None:
    film = Film(STILL)
    for _ in range(100):
        film.show(label(*TEXTS))
    assert film.texts() == [list(TEXTS)]
    assert (film.items[0].decided_by, film.items[0].n_reads) == ("settled", 2)


def test_flicker_between_frames_is_gone_from_the_result() -> None:
    film = Film(replace_items(STILL, min_reads=8))
    for n in range(8):
        texts = list(TEXTS)
        if n == 2:
            texts[1] = "LOT L23458"
        if n == 4:
            texts = texts[:2]
        stray = [line("Il|", 500, 300)] if n == 5 else []
        film.show([*label(*texts), *stray] if n != 6 else ())
    film.lane.close(film.now)
    assert film.texts() == [list(TEXTS)]
    item = film.items[0]
    assert item.n_reads == 7
    (vote,) = [vote for vote in item.lines[1].votes if vote.share < 1]
    assert (vote.text, vote.rival, round(vote.share, 2)) == ("B", "8", 0.86)
    assert 0.95 < item.agreement < 1


def test_next_item_at_the_same_place_is_another_result() -> None:
    film = Film(STILL)
    for texts in (TEXTS, ("ACME OATS", "LOT M9999C", "EXP 15.01.2028"), ("OTHER", "THINGS", "HERE")):
        for _ in range(5):
            film.show(label(*texts))
    assert len(film.items) == 3


def test_same_label_after_a_pause_is_another_item_and_after_a_flicker_the_same() -> None:
    film = Film(replace_items(STILL, gone_after_ms=400))
    for pause in (2, 4):
        for _ in range(4):
            film.show(label(*TEXTS))
        for _ in range(pause):
            film.show()
    film.show(label(*TEXTS))
    film.show(label(*TEXTS))
    assert len(film.items) == 2


def test_glimpse_of_another_item_long_ago_is_not_the_first_sight_of_the_next() -> None:
    film = Film(replace_items(STILL, decide_within_ms=60_000), verdict="FAIL")
    for _ in range(3):
        film.show(label(*TEXTS))
    film.show(label("OTHER", "THINGS"))
    for _ in range(100):
        film.show()
    began = film.now
    for _ in range(3):
        film.show(label("OTHER", "THINGS"))
    film.lane.close(film.now)
    assert film.texts() == [list(TEXTS), ["OTHER", "THINGS"]]
    assert film.items[1].first_seen_at > 1_000.0 + began


def test_slow_reading_makes_no_new_item_of_each_frame() -> None:
    for settings in (STILL, CONVEYOR):
        film = Film(replace_items(settings, gone_after_ms=600, decide_within_ms=60_000), verdict="FAIL")
        for _ in range(5):
            film.now += 1.5
            film.show(label(*TEXTS))
        film.lane.close(film.now)
        assert [item.n_reads for item in film.items] == [5]


def test_camera_that_showed_nothing_for_long_begins_anew() -> None:
    for settings in (STILL, CONVEYOR):
        film = Film(replace_items(settings, decide_within_ms=60_000), verdict="FAIL")
        for _ in range(2):
            film.now += 10.0
            film.show(label(*TEXTS))
        film.lane.close(film.now)
        assert len(film.items) == 2


def test_label_that_is_moved_by_hand_stays_one_item() -> None:
    film = Film(STILL)
    for n in range(10):
        film.show(label(*TEXTS, x=100 + 40 * n, y=60 + 10 * n))
    assert len(film.items) == 1


def test_hand_before_the_camera_for_a_moment_ends_no_item() -> None:
    film = Film(STILL)
    for n in range(10):
        film.show(label("WATCH", "12:45") if n == 5 else label(*TEXTS))
    assert len(film.items) == 1


# --- when it is decided ---


def test_item_that_passes_is_decided_at_once_and_another_when_its_time_is_over() -> None:
    passing = Film(replace_items(CONVEYOR, decide_within_ms=1000), verdict="PASS")
    failing = Film(replace_items(CONVEYOR, decide_within_ms=1000), verdict="FAIL")
    for _ in range(20):
        passing.show(label(*TEXTS))
        failing.show(label(*TEXTS))
    assert [(item.decided_by, item.n_reads) for item in passing.items] == [("settled", 2)]
    assert [item.decided_by for item in failing.items] == ["time"]
    assert failing.items[0].decided_after_ms == pytest.approx(1000, abs=101)


def test_time_runs_out_also_while_no_frame_comes() -> None:
    film = Film(replace_items(CONVEYOR, decide_within_ms=500))
    film.show(label(*TEXTS))
    assert film.lane.due_mono == pytest.approx(film.now + 0.5)
    film.lane.attend(film.now + 0.4)
    assert not film.items
    film.lane.attend(film.now + 0.5)
    assert [item.decided_by for item in film.items] == ["time"]
    assert film.lane.due_mono == float("inf")


def test_item_that_is_open_at_the_end_is_decided_then() -> None:
    film = Film(CONVEYOR)
    film.show(label(*TEXTS))
    film.lane.close(film.now)
    assert [(item.decided_by, item.n_reads) for item in film.items] == [("stop", 1)]


# --- conveyor ---


def test_item_that_passes_by_is_one_result_with_all_of_its_lines() -> None:
    film = Film(CONVEYOR)
    for n in range(30):
        film.show(label(*TEXTS, x=640 - 30 * n))
    for _ in range(10):
        film.show()
    assert film.texts() == [list(TEXTS)]
    assert film.items[0].decided_by == "gone"
    assert all(each.line.flags == () for each in film.items[0].lines)


@pytest.mark.parametrize("direction", ["auto", "left"])
@pytest.mark.parametrize("pitch_px", [260, 400, 700])
def test_items_that_all_say_the_same_are_told_apart_by_their_motion(pitch_px: int, direction: str) -> None:
    film = Film(replace_items(CONVEYOR, direction=direction))
    for n in range(180):
        shift = 640 - 24 * n
        items = [label(*TEXTS, x=shift + pitch_px * k) for k in range(5) if -200 < shift + pitch_px * k < 640]
        film.show([each for lines in items for each in lines])
    film.lane.close(film.now)
    assert film.texts() == [list(TEXTS)] * 5
    assert len({item.id for item in film.items}) == 5


def test_piece_of_a_label_at_the_edge_is_no_item() -> None:
    film = Film(CONVEYOR)
    film.show([line("00 g", x=0, flags=("cut",))])
    film.lane.close(film.now)
    assert (film.items, film.lane.fragments) == ([], 1)
    film.show([line("00 g", x=0, flags=("cut",))])
    film.show([line("00 g", x=0, flags=("cut",))])  # that often it is something that the camera sees no better
    film.lane.close(film.now)
    assert [item.n_reads for item in film.items] == [2]


def test_specks_of_an_empty_belt_are_no_items_but_small_print_that_stays_is_one() -> None:
    film = Film(CONVEYOR)
    for n in range(40):
        film.show([line("88", x=200 + 90 * (n % 3), flags=("too_small",))] if n % 8 == 0 else ())
    film.lane.close(film.now)
    assert (film.items, film.lane.fragments) == ([], 5)
    for n in range(30):
        film.show([replace(each, flags=(*each.flags, "too_small")) for each in label(*TEXTS, x=640 - 30 * n)])
    film.lane.close(film.now)
    assert film.texts() == [list(TEXTS)]


def test_belt_that_stops_and_goes_on_makes_no_new_item() -> None:
    film = Film(CONVEYOR)
    x = 640.0
    for n in range(60):
        x -= 0 if 15 <= n < 40 else 24
        film.show(label(*TEXTS, x=x))
    film.lane.close(film.now)
    assert film.texts() == [list(TEXTS)]


def test_conveyor_item_that_is_not_read_for_a_moment_stays_one() -> None:
    film = Film(CONVEYOR)
    for n in range(24):
        film.show(() if n in (8, 9, 10, 15) else label(*TEXTS, x=640 - 30 * n))
    film.lane.close(film.now)
    assert film.texts() == [list(TEXTS)]
    assert film.items[0].n_reads <= 20


def test_items_follow_one_another_downwards_too() -> None:
    film = Film(CONVEYOR)
    for n in range(60):
        lines = [each for k in range(3) for each in label("ACME", "LOT L2345B", y=-60 + 15 * n - 250 * k)]
        film.show([each for each in lines if 0 < each.box.quad.centre[1] < 340])
    film.lane.close(film.now)
    assert film.texts() == [["ACME", "LOT L2345B"]] * 3


def test_item_that_only_has_a_code_is_one_item() -> None:
    film = Film(CONVEYOR)
    for n in range(20):
        film.show(codes=[Code("DataMatrix", "0109506000134352", quad(500 - 24 * n, 100, 60, 60))])
    film.lane.close(film.now)
    assert [(item.n_reads, len(item.codes)) for item in film.items] == [(20, 1)]


def test_most_items_at_once_are_bounded() -> None:
    film = Film(replace_items(CONVEYOR, max_open=2))
    film.show([*label("A1", x=20), *label("B2", x=220), *label("C3", x=420)])
    assert [item.decided_by for item in film.items] == ["full"]


def test_items_beyond_the_most_at_once_get_one_result_each_not_one_a_frame() -> None:
    film = Film(replace_items(CONVEYOR, max_open=2))
    for n in range(20):
        film.show([each for k in range(4) for each in label(f"ITEM {k}", x=20 + 160 * k - n)])
    film.lane.close(film.now)
    assert sorted(film.texts()) == [[f"ITEM {k}"] for k in range(4)]


def test_noise_of_ever_new_texts_is_bounded() -> None:
    film = Film(replace_items(CONVEYOR, max_open=2))
    rng = np.random.default_rng(1)
    for n in range(60):
        film.show([line(f"{chr(65 + n % 26) * 3}{k}", x=160.0 * k, y=float(rng.integers(0, 300))) for k in range(4)])
        assert len(film.lane._tracker.open) <= 2 + 3 * 2
    assert film.items


# --- triggers ---


def test_trigger_gathers_what_is_read_in_its_time() -> None:
    film = Film(replace_items(STILL, decide_within_ms=500), triggered=True)
    film.show(label("BEFORE"))
    film.lane.trigger(film.now + 0.05, 5.0, film.now)
    for n in range(4):
        film.show(label(*TEXTS, x=400 - 60 * n))
    film.show(label("BEHIND"))
    film.lane.attend(film.now + 1)
    assert film.texts() == [list(TEXTS)]


def test_trigger_without_a_reading_is_an_item_all_the_same() -> None:
    film = Film(replace_items(STILL, decide_within_ms=500), triggered=True, verdict="NO_READ")
    film.lane.trigger(film.now, 5.0, film.now)
    film.show()
    film.lane.attend(film.now + 1)
    assert [(item.n_reads, item.decided_by, item.lines) for item in film.items] == [(0, "time", ())]
    assert film.items[0].width_px == 640
    assert film.drafts[0].best is not None  # the picture of what was not read


def test_next_trigger_decides_the_item_before() -> None:
    film = Film(replace_items(STILL, decide_within_ms=5000), triggered=True, verdict="FAIL")
    for texts in (("ONE",), ("TWO",)):
        film.lane.trigger(film.now, 5.0, film.now)
        film.show(label(*texts))
        film.show(label(*texts))
    film.lane.close(film.now)
    assert film.texts() == [["ONE"], ["TWO"]]
    assert [item.decided_by for item in film.items] == ["trigger", "stop"]


def test_items_on_their_way_from_the_sensor_to_the_camera_keep_their_own_time() -> None:
    """With `delay_ms` the next trigger comes before the item of this one is in the picture."""
    film = Film(replace_items(STILL, decide_within_ms=5000), triggered=True, verdict="FAIL")
    began = film.now
    for k in range(3):
        film.lane.trigger(began + 1.0 + 0.5 * k - 0.05, 5.0 + k, film.now)
    for _ in range(9):
        film.show(label("BEFORE"))
        assert not film.items
    for text in ("ONE", "TWO", "THREE"):
        for _ in range(5):
            film.show(label(text))
    film.lane.close(film.now)
    assert film.texts() == [["ONE"], ["TWO"], ["THREE"]]
    assert [item.decided_by for item in film.items] == ["trigger", "trigger", "stop"]


def test_frame_from_before_the_next_trigger_that_is_read_after_it_is_of_the_item_before() -> None:
    film = Film(replace_items(STILL, decide_within_ms=5000), triggered=True, verdict="FAIL")
    film.lane.trigger(film.now, 5.0, film.now)
    film.show(label("ONE"))
    film.lane.trigger(film.now + 0.15, 6.0, film.now + 0.15)  # while the next frame is read
    film.show(label("ONE"))
    film.show(label("TWO"))
    film.lane.close(film.now)
    assert [(item.n_reads, item.decided_by) for item in film.items] == [(2, "trigger"), (1, "stop")]


def test_item_that_a_trigger_told_of_is_one_however_little_is_seen_of_it() -> None:
    film = Film(replace_items(STILL, decide_within_ms=500), triggered=True, verdict="NO_READ")
    film.lane.trigger(film.now, 5.0, film.now)
    film.show([line("00 g", x=0, flags=("cut",))])
    film.lane.attend(film.now + 1)
    assert [(item.n_reads, item.decided_by) for item in film.items] == [(1, "time")]


def test_flood_of_triggers_is_bounded() -> None:
    film = Film(replace_items(STILL, max_open=4), triggered=True, verdict="FAIL")
    for n in range(1000):
        film.lane.trigger(film.now + 10 + n, 5.0, film.now)
    assert [item.decided_by for item in film.items] == ["full"] * 996


# --- fields ---


def test_field_is_voted_over_readings_and_disputed_where_they_differ() -> None:
    film = Film(replace_items(STILL, min_reads=50))
    for value in ("L2345B", "L23458", "L2345B", "L2345B"):
        film.show(label(f"LOT {value}"), [lot(0, value)])
    film.lane.close(film.now)
    (found,) = film.items[0].fields
    assert (found.field.value, found.field.certain, found.n_reads) == ("L2345B", True, 4)
    assert found.agreement == pytest.approx(0.75)

    film = Film(replace_items(STILL, min_reads=50))
    for value in ("L2345B", "L23458"):
        film.show(label(f"LOT {value}"), [lot(0, value)])
    film.lane.close(film.now)
    (found,) = film.items[0].fields
    assert (found.field.certain, "disputed" in found.field.flags) == (False, True)


def test_field_of_a_line_that_the_edge_cuts_gives_way_to_that_of_the_whole_line() -> None:
    film = Film(CONVEYOR)
    for n in range(20):
        lines = label("LOT L2345B", x=620 - 12 * n)
        value = lines[0].text.rpartition(" ")[2]
        film.show(lines, [lot(0, value, flags=lines[0].flags)])
    film.lane.close(film.now)
    (found,) = film.items[0].fields
    assert (found.field.value, found.field.flags) == ("L2345B", ())


def test_field_of_a_code_stands_beside_the_printed_one() -> None:
    film = Film(STILL)
    codes = [Code("DataMatrix", "10A1", quad(300, 100, 60, 60))]
    for n in range(3):
        of_code = lot(0, "A1", source="barcode", lines=() if n else (0,), codes=(0,))
        film.show(label("LOT A1"), [lot(0, "A1"), of_code], codes)
    (item,) = film.items
    found = {(each.field.source, each.field.lines, each.field.codes, each.n_reads) for each in item.fields}
    assert found == {("rule", (0,), (), 2), ("barcode", (), (0,), 2)}


def test_region_has_items_of_its_own() -> None:
    film = Film(STILL, region="top")
    for _ in range(3):
        film.show([*label("LOT A1", region="top"), *label("LOT B2", y=300, region="bottom")])
    assert film.texts() == [["LOT A1"]]
    assert film.items[0].region == "top"


def test_item_keeps_the_frame_that_shows_it_best() -> None:
    film = Film(CONVEYOR)
    for n in range(30):
        film.show(label(*TEXTS, x=640 - 30 * n))
    film.lane.close(film.now)
    best = film.drafts[0].best
    assert best is not None
    assert [each.text for each in best.part().lines] == list(TEXTS)
    assert not any(np.any(each.box.quad.points < 0) for each in best.part().lines)


def replace_items(settings: ItemsConfig, **changes: object) -> ItemsConfig:
    return settings.model_copy(update=changes)


def test_code_far_from_its_print_is_the_same_item_where_the_gap_is_said_to_be_wide() -> None:
    found = []
    for share in (0.08, 0.2):
        film = Film(replace_items(CONVEYOR, max_gap_share=share))
        for n in range(30):
            x = 500 - 30 * n
            code = [Code("DataMatrix", "L2345B", quad(x + 250, 100, 60, 60), None, "]d1")] if -250 < x < 320 else []
            film.show(label(*TEXTS, x=x), codes=code)
        film.lane.close(film.now)
        found.append(len(film.items))
    assert found == [2, 1]
