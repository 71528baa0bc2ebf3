"""What belts do: whatever it is, each item gets one result, and each result is of one item."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable, Sequence

import pytest

from edge_agent.records import TextLine
from edge_agent.settings.items import ItemsConfig
from tests.items.sightings import SIZE, STEP_S, Film, label, line

CONVEYOR = ItemsConfig(mode="conveyor", decide_within_ms=60_000)
TEXTS = ("ACME OATS", "LOT L2345B", "EXP 31.08.2027")  # 168 px wide
ITEMS = 5

Way = Callable[[int], float]  # px that the belt has gone by a frame


def steady(speed_px: float) -> Way:
    return lambda n: speed_px * n


def stops(n: int) -> float:
    """It stands still a third of the time."""
    return 24.0 * sum((each // 12) % 3 != 1 for each in range(n))


def stands_for_long(n: int) -> float:
    return 24.0 * (min(n, 25) + max(0, n - 105))


def starts_slowly(n: int) -> float:
    return min(0.4 * n * n, 24.0 * n - 360)


def jogs_back(n: int) -> float:
    return 24.0 * min(n, 30) - 12.0 * min(max(0, n - 30), 6) + 24.0 * max(0, n - 36)


def shown(at_px: float, pitch_px: float, texts: Sequence[str] = TEXTS, count: int = ITEMS) -> list[TextLine]:
    """Items that say the same, at this pitch, of which the first is at `at_px`."""
    places = [at_px + pitch_px * k for k in range(count)]
    return [each for x in places if -220 < x < SIZE[0] for each in label(*texts, x=x)]


def belt(film: Film, way: Way, pitch_px: float, seen: Callable[[int], bool] = lambda n: True) -> None:
    """All items pass by; frames that are not `seen` are lost on the way."""
    n = 0
    while way(n) < SIZE[0] + pitch_px * ITEMS:
        if seen(n):
            film.show(shown(SIZE[0] - way(n), pitch_px))
        else:
            film.now += STEP_S
        n += 1
    film.lane.close(film.now)


@pytest.mark.parametrize("direction", ["auto", "left"])
@pytest.mark.parametrize("way", [stops, stands_for_long, starts_slowly, jogs_back])
def test_belt_that_does_not_run_evenly_makes_no_new_items(way: Way, direction: str) -> None:
    film = Film(CONVEYOR.model_copy(update={"direction": direction}))
    belt(film, way, 260)
    assert film.texts() == [list(TEXTS)] * ITEMS


@pytest.mark.parametrize("pitch_px", [175, 200, 230, 400])
@pytest.mark.parametrize("speed_px", [12, 48])
def test_items_that_say_the_same_and_nearly_touch_are_told_apart(pitch_px: float, speed_px: float) -> None:
    film = Film(CONVEYOR)
    belt(film, steady(speed_px), pitch_px)
    assert film.texts() == [list(TEXTS)] * ITEMS


@pytest.mark.parametrize("pitch_px", [230, 400])
def test_frames_that_are_lost_make_no_new_items(pitch_px: float) -> None:
    film = Film(CONVEYOR)
    belt(film, steady(24), pitch_px, lambda n: n % 3 != 1)
    assert film.texts() == [list(TEXTS)] * ITEMS


@pytest.mark.parametrize("pitch_px", [230, 400])
def test_text_that_only_every_second_frame_shows_is_one_item_and_so_is_one_that_flickers(pitch_px: float) -> None:
    strobe, flicker = Film(CONVEYOR), Film(CONVEYOR)
    for n in range(100):
        at_px = SIZE[0] - 24.0 * n
        strobe.show(shown(at_px, pitch_px) if n % 2 else [])
        flicker.show(shown(at_px, pitch_px, TEXTS if n % 2 else ("ACME OATS", "LOT L2345R", "EXP 31.08.2027")))
    for film in (strobe, flicker):
        film.lane.close(film.now)
        assert len(film.items) == ITEMS


def test_items_that_touch_are_told_apart_at_first_sight_too() -> None:
    film = Film(CONVEYOR)
    for n in range(4):
        film.show(shown(75.0 - n, 190, count=3))
    film.lane.close(film.now)
    assert film.texts() == [list(TEXTS)] * 3


@pytest.mark.parametrize("speed_px", [10, 24])
def test_columns_of_one_label_are_one_item(speed_px: float) -> None:
    columns = (("SN 00123", "EXP 31.08.2027", "MADE IN EU"), ("PN 00123", "MFG 12.01.2026", "500 G"), ("LOT A1", "24"))
    film = Film(CONVEYOR)
    n = 0
    while speed_px * n < SIZE[0] + 3 * 520:
        at_px = SIZE[0] - speed_px * n
        places = [(at_px + 520 * k + 190 * c, texts) for k in range(3) for c, texts in enumerate(columns)]
        film.show([each for x, texts in places if -220 < x < SIZE[0] for each in label(*texts, x=x)])
        n += 1
    film.lane.close(film.now)
    assert [len(texts) for texts in film.texts()] == [8] * 3


def test_item_that_goes_back_out_the_way_it_came_is_one() -> None:
    film = Film(CONVEYOR)
    for n in range(40):
        film.show(shown(SIZE[0] - 24.0 * min(n, 32 - n), 700, count=1))
    film.lane.close(film.now)
    assert film.texts() == [list(TEXTS)]


@pytest.mark.parametrize("gap_px", [30, 45])
def test_item_with_two_labels_close_to_each_other_is_one(gap_px: float) -> None:
    film = Film(CONVEYOR)
    for n in range(80):
        at_px = SIZE[0] - 24.0 * n
        film.show([*shown(at_px, 900, ("FRONT",), 2), *shown(at_px + 60 + gap_px, 900, ("BACK L1",), 2)])
    film.lane.close(film.now)
    assert film.texts() == [["FRONT", "BACK L1"]] * 2


def test_two_lanes_that_run_unevenly_are_counted_apart_where_each_is_a_region() -> None:
    lanes = {name: Film(CONVEYOR, region=name) for name in ("near", "far")}
    for n in range(180):
        lines = [
            *(line("LOT A1", x, 60, region="near") for k in range(5) if -80 < (x := 640 - 20.0 * n + 330 * k) < 640),
            *(line("LOT A1", x, 250, region="far") for k in range(3) if -80 < (x := 640 - 14.0 * n + 500 * k) < 640),
        ]
        for film in lanes.values():
            film.show(lines)
    assert [len(film.items) for film in lanes.values()] == [5, 3]


@pytest.mark.parametrize("fps", [10, 5])
def test_a_hundred_items_a_minute_are_so_many_results(fps: float) -> None:
    film, pitch_px, way = Film(CONVEYOR), 400, 400 * 100 / 60 / fps
    for n in range(round(21 * fps)):
        film.now += 1 / fps - STEP_S
        film.show(shown(SIZE[0] - way * n, pitch_px, count=25))
    film.lane.close(film.now)
    assert len(film.items) == 25
    assert len({item.id for item in film.items}) == 25


def test_clock_that_jumps_changes_no_items() -> None:
    """The time of day is told, and nothing is measured by it."""
    film = Film(CONVEYOR)
    for n in range(60):
        film.unix_s = 1_000.0 if n < 20 else 5e8 if n < 22 else 0.0
        film.show(shown(SIZE[0] - 24.0 * n, 400, count=2))
    film.lane.close(film.now)
    assert film.texts() == [list(TEXTS)] * 2


@pytest.mark.parametrize("mode", ["still", "conveyor"])
def test_empty_belt_costs_nothing_however_long_it_runs(mode: str) -> None:
    film = Film(CONVEYOR.model_copy(update={"mode": mode}))
    for n in range(20):
        film.show(shown(SIZE[0] - 24.0 * n, 400))
    film.lane.close(film.now)
    tracemalloc.start()
    for _ in range(2 * 60 * 10):  # two minutes are as good as an hour
        film.show()
    left_bytes = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert film.lane.due_mono == float("inf")
    assert left_bytes < 20_000
    film.show(shown(300, 400, count=1))
    film.lane.close(film.now)
    assert film.texts()[-1] == list(TEXTS)
