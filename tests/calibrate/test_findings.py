from __future__ import annotations

from pathlib import Path

from edge_agent.calibrate.collection import CollectedFrame, Collection, Tally
from edge_agent.calibrate.findings import (
    CalibratedOn,
    Figure,
    SkippedFrame,
    figures_of,
    group_findings,
    methods_tried,
)
from edge_agent.calibrate.frames import Skipped
from edge_agent.calibrate.groups import Group
from edge_agent.calibrate.recipe import METHODS, Method
from edge_agent.calibrate.search import search
from edge_agent.calibrate.trial import BuildFailed, Trial


def frame(name: str, part: str) -> CollectedFrame:
    return CollectedFrame(f"{name}.jpg", f"{name}.jpg", name * 64, 1280, 720, None, 0, part)  # type: ignore[arg-type]


def test_counts_of_a_collection_are_taken_over() -> None:
    collection = Collection(
        directory=Path("nowhere"),
        digest="5" * 64,
        described="folder frames",
        frames=(frame("a", "calibration"), frame("b", "calibration"), frame("c", "search"), frame("d", "held_out")),
        skipped=(Skipped("Thumbs.db", "is no image"),),
        tally=Tally(offered=20, near_duplicates=9, flat=1, left_out=5),
        note="endings counted",
        labels={"a.jpg": ("LOT 1",)},
    )
    found = CalibratedOn.of(collection.counts(), collection.digest, {"1x8x8x3": 6}, feeds_left_out=2)
    assert (found.offered, found.used, found.labelled, found.feeds, found.feeds_left_out) == (20, 4, 1, 4, 2)
    assert found.parts == {"calibration": 2, "search": 1, "held_out": 1}
    assert sum(found.passed_over.values()) == 15
    assert found.skipped == (SkippedFrame("Thumbs.db", "is no image"),)


def test_figures_of_float_and_int8_stand_side_by_side() -> None:
    found = figures_of(
        {"float_boxes": 20.0, "label_cer_int8": 0.02, "int8_boxes": 19.0, "label_cer_float": 0.01, "cosine": 0.98},
        "all",
    )
    assert found == (
        Figure("boxes", "count", 20.0, 19.0, "all"),
        Figure("label_cer", "share", 0.01, 0.02, "all"),
        Figure("cosine", "cosine", None, 0.98, "all"),
    )


def test_agreement_with_float_stands_beside_floats_own_second_look() -> None:
    assert figures_of({"cer_to_float": 0.02, "box_recall": 0.97, "repeat_box_recall": 0.98, "repeat_cer": 0.01}) == (
        Figure("cer_to_float", "share", None, 0.02),
        Figure("box_recall", "share", 0.98, 0.97),
        Figure("repeat_cer", "share", 0.01, None),
    )


def test_a_search_is_told_by_method_and_by_group() -> None:
    groups = (
        Group("stem", ("conv1",), 10, default_float=True, why_float="it is small"),
        Group("body", ("conv2", "conv3"), 100, default_float=False, why_float=""),
        Group("neck", ("conv4",), 50, default_float=False, why_float=""),
        Group("tail", ("conv5",), 5, default_float=False, why_float=""),
    )

    def trial(method: Method, names: frozenset[str]) -> Trial:
        if "tail" in names:
            raise BuildFailed("no implementation for conv5")
        damage = 0.3 * len(names) + (0.9 if "neck" in names else 0.0) + (0.2 if method == "minmax" else 0.0)
        return Trial({"cer_increase": damage}, damage <= 1)

    found = search(groups, METHODS, trial)
    methods = {one.method: one for one in methods_tried(found)}
    assert list(methods) == list(METHODS)
    assert [one.method for one in methods.values() if one.chosen] == [found.method] == ["percentile"]
    assert methods["minmax"].damage == 0.2 + 1.5
    rows = {one.name: one for one in group_findings(found, groups)}
    assert (rows["body"].quantised, rows["body"].damage, rows["body"].nodes) == (True, 0.3, ("conv2", "conv3"))
    assert (rows["neck"].quantised, rows["neck"].note) == (False, "breaks a gate alone")
    assert (rows["stem"].damage, rows["stem"].note) == (None, "it is small")
    assert rows["tail"].note == "cannot be built: no implementation for conv5"
