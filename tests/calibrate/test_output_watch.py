from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from edge_agent.backends.base import Array, Feed, TensorSpec
from edge_agent.calibrate.output_watch import ENOUGH_RUNS, OutputWatch
from tests.fakes import FakeEngine

IMAGE = TensorSpec("image", "uint8", (1, None))
OUTPUT = TensorSpec("probability", "float32", (1, None))


def watched(outputs: Sequence[Array], feeds: Sequence[int] | None = None) -> OutputWatch:
    """An engine that gave these outputs to feeds that hold these numbers, all different unless told."""
    answers = iter(outputs)
    watch = OutputWatch(FakeEngine(lambda feed: {"probability": next(answers)}, (IMAGE,), (OUTPUT,)))
    for number in feeds or range(len(outputs)):
        feed: Feed = {"image": np.full((1, 3), number, np.uint8)}
        watch.infer(feed)
    return watch


def varied(count: int, seed: int = 0, length: int = 5) -> list[Array]:
    rng = np.random.default_rng(seed)
    return [rng.random((1, length), np.float32) for _ in range(count)]


def flat(value: float, count: int) -> list[Array]:
    return [np.full((1, 5), value, np.float32)] * count


def test_sound_outputs_have_no_fault() -> None:
    assert watched(varied(6)).fault(watched(varied(6, 1))) == ""
    assert watched([]).fault() == ""


def test_engine_is_passed_through() -> None:
    engine = FakeEngine(lambda feed: {"probability": feed["image"] * 2}, (IMAGE,), (OUTPUT,))
    watch = OutputWatch(engine)
    watch.enqueue({"image": np.ones((1, 2), np.uint8)})
    assert watch.collect()["probability"].tolist() == [[2, 2]]
    assert (watch.inputs, watch.outputs, watch.fingerprint) == ((IMAGE,), (OUTPUT,), "fake")
    watch.close()
    assert engine.closed


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_one_value_that_is_no_number_is_a_fault_at_once(bad: float) -> None:
    outputs = varied(3)
    outputs[1][0, 2] = bad
    words = "output `probability` holds NaN or infinity on 1 of 3 runs"
    assert watched(outputs).fault(watched(varied(3, 1)), at_end=False) == words


def test_integers_are_never_nan() -> None:
    assert watched([np.arange(5)[None] + n for n in range(3)]).fault() == ""


@pytest.mark.parametrize("value", [0.0, 255.0, 0.25])
def test_output_with_one_value_everywhere_is_a_fault(value: float) -> None:
    watch = watched(flat(value, 5))
    assert watch.fault(watched(varied(5))) == f"output `probability` is {value:g} everywhere on 5 of 5 runs"


def test_output_that_is_flat_on_some_runs_only_is_left_to_the_gates() -> None:
    assert watched([*flat(0, 2), *varied(3)]).fault(watched(varied(5))) == ""
    assert watched([*flat(0, 3), *varied(2)]).fault(watched(varied(5))).endswith("on 3 of 5 runs")


def test_flat_output_is_no_fault_where_floats_is_flat_too() -> None:
    float_watch = watched([*flat(0, 4), *varied(2)])
    assert watched([*flat(0, 4), *varied(2, 1)]).fault(float_watch) == ""
    assert watched(flat(0, 6)).fault(float_watch) == "output `probability` is 0 everywhere on 6 of 6 runs"


def test_fault_in_all_runs_ends_judging_only_once_there_are_enough() -> None:
    for count in range(1, ENOUGH_RUNS + 2):
        fault = watched(flat(0, count)).fault(watched(varied(9)), at_end=False)
        assert bool(fault) == (count >= ENOUGH_RUNS)


def test_same_output_for_different_inputs_is_a_fault() -> None:
    same = varied(1) * 4
    assert watched(same).fault(watched(varied(4))) == "output `probability` is the same for 4 different inputs"
    assert watched(same, [7, 7, 7, 7]).fault(watched(varied(4))) == ""
    assert watched(same).fault(watched(varied(1, 3) * 4)) == "", "float's is stuck as well: these inputs do not differ"


def test_stuck_output_is_seen_among_outputs_of_several_shapes() -> None:
    short, long = varied(1, length=4) * 2, varied(1, length=9) * 2
    sound = [*varied(2, 5, length=4), *varied(2, 6, length=9)]
    assert watched([*short, *long]).fault(watched(sound)).endswith("is the same for 4 different inputs")
    assert watched([*varied(1, length=4), *varied(1, length=9)]).fault(watched(sound)) == "", "one run of each shape"
