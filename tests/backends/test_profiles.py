"""Profiles suggested from counted shapes: better tuned, never narrower."""

from __future__ import annotations

import itertools
from collections import Counter
from pathlib import Path

import pytest
import yaml

from edge_agent.backends.base import Profile
from edge_agent.backends.profiles import MOST_SHAPES, ShapeLog, Shapes, read_shapes, shapes_path, suggest, to_yaml

WIDE = Profile({"image": (1, 48, 64, 3)}, {"image": (4, 48, 320, 3)}, {"image": (8, 48, 1600, 3)})


def line(count: int, width: int) -> Shapes:
    return (("image", (count, 48, width, 3)),)


def test_opt_moves_to_where_most_work_is() -> None:
    (tuned,) = suggest([WIDE], {line(1, 64): 50, line(2, 192): 100, line(3, 128): 60})
    assert tuned.opt == {"image": (2, 48, 192, 3)}
    assert (tuned.min, tuned.max) == (WIDE.min, WIDE.max)


def test_widely_different_sizes_get_a_profile_each() -> None:
    runs = {line(1, 64): 8000, line(1, 128): 4000, line(8, 960): 200, line(8, 1280): 100}
    small, large = suggest([WIDE], runs)
    assert small.max == {"image": (1, 48, 128, 3)}
    assert small.opt["image"][2] <= 128
    assert large.opt == {"image": (8, 48, 960, 3)}
    assert (large.min, large.max) == (WIDE.min, WIDE.max)


def test_rare_large_shapes_do_not_get_a_profile() -> None:
    assert len(suggest([WIDE], {line(1, 64): 10_000, line(1, 96): 5000, line(8, 1600): 1})) == 1


def test_everything_admitted_before_is_admitted_after() -> None:
    runs = {line(1, 64): 8000, line(8, 1280): 200}
    profiles = suggest([WIDE], runs)
    for count, width in itertools.product((1, 3, 8), (64, 500, 1600)):
        assert any(profile.admits(dict(line(count, width))) for profile in profiles)


def test_profile_that_nothing_uses_stays_and_unknown_shapes_are_passed_over() -> None:
    small = Profile({"image": (1, 48, 64, 3)}, {"image": (1, 48, 64, 3)}, {"image": (2, 48, 128, 3)})
    runs = {line(4, 640): 9, line(99, 9999): 5, (("other", (1, 2)),): 5}
    kept, tuned = suggest([WIDE, small], runs)
    assert kept == small
    assert tuned.opt == {"image": (4, 48, 640, 3)}


def test_counts_add_up_over_restarts(tmp_path: Path) -> None:
    path = shapes_path(tmp_path, "rec")
    for _ in range(3):
        log = ShapeLog()
        for _ in range(5):
            log.count(line(1, 64))
        log.count(line(2, 128))
        log.save(path)
        assert not log.runs
    assert read_shapes(path) == {line(1, 64): 15, line(2, 128): 3}


@pytest.mark.parametrize("content", [b"", b"{", b"[1]", b'[{"shapes": 3, "runs": 1}]'])
def test_damaged_counts_start_anew(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "x-shapes.json"
    path.write_bytes(content)
    assert read_shapes(path) == Counter()
    log = ShapeLog()
    log.count(line(1, 64))
    log.save(path)
    assert read_shapes(path) == {line(1, 64): 1}


def test_number_of_shapes_remembered_is_bounded() -> None:
    log = ShapeLog()
    for width in range(3 * MOST_SHAPES):
        log.count(line(1, width + 1))
        log.count(line(1, 1))
    assert len(log.runs) == MOST_SHAPES
    assert log.runs[line(1, 1)] == 3 * MOST_SHAPES + 1


def test_suggestion_is_the_block_of_a_model_yaml() -> None:
    parts = {"min": [1, 48, 64, 3], "opt": [4, 48, 320, 3], "max": [8, 48, 1600, 3]}
    expected = {"profiles": [{part: {"image": shape} for part, shape in parts.items()}]}
    assert yaml.safe_load(to_yaml([WIDE])) == expected
