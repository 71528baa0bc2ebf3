"""SwapEngine: one engine takes another's place and no run is lost."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest

from edge_agent.backends.base import Array, Engine, Feed, TensorSpec
from edge_agent.backends.swap import SwapEngine, running
from edge_agent.errors import ConfigError, EngineError, ModelError
from tests.fakes import FakeEngine

IMAGE = TensorSpec("image", "uint8", (None, None, None, 3))


def picture(seed: int = 0) -> npt.NDArray[np.uint8]:
    return np.random.default_rng(seed).integers(0, 255, (2, 8, 8, 3), np.uint8)


def named(name: str, value: int = 0, outputs: tuple[TensorSpec, ...] = ()) -> FakeEngine:
    def answer(feed: Feed) -> dict[str, Array]:
        return {"value": np.array([value, feed["image"][0, 0, 0, 0]])}

    engine = FakeEngine(answer, (IMAGE,), outputs)
    engine.fingerprint = name
    return engine


def test_swap_changes_the_engine_and_closes_the_stand_in() -> None:
    stand_in, wanted = named("cpu", 1), named("gpu", 2)
    engine = SwapEngine("m", stand_in)
    assert (engine.fingerprint, engine.inputs) == ("cpu", (IMAGE,))
    assert engine.infer({"image": picture()})["value"][0] == 1
    engine.swap(lambda: wanted)
    assert engine.fingerprint == "gpu"
    assert engine.infer({"image": picture()})["value"][0] == 2
    assert stand_in.closed


def test_run_under_way_at_the_swap_is_the_stand_ins_and_not_lost() -> None:
    engine = SwapEngine("m", named("cpu", 1))
    image = picture(7)
    engine.enqueue({"image": image})
    engine.swap(lambda: named("gpu", 2))
    assert engine.fingerprint == "cpu", "who made what is collected next"
    with pytest.raises(EngineError, match="under way"):
        engine.enqueue({"image": image})
    assert engine.collect()["value"].tolist() == [1, image[0, 0, 0, 0]]
    assert engine.fingerprint == "gpu"
    with pytest.raises(EngineError, match="nothing to collect"):
        engine.collect()
    assert engine.infer({"image": image})["value"][0] == 2


@pytest.mark.parametrize(
    "outputs",
    [
        (TensorSpec("value", "int64", (None,)),),
        (TensorSpec("value", "int32", (None, 2)),),
        (TensorSpec("value", "int32", (3,)),),
        (TensorSpec("other", "int32", (2,)),),
    ],
)
def test_plan_with_other_tensors_is_not_put_to_use(outputs: tuple[TensorSpec, ...]) -> None:
    engine = SwapEngine("m", named("cpu", 1, (TensorSpec("value", "int32", (2,)),)))
    wanted = named("gpu", 2, outputs)
    with pytest.raises(ModelError, match="m: the new engine differs from what runs: .*(value|other).*restart"):
        engine.swap(lambda: wanted)
    assert wanted.closed
    assert engine.infer({"image": picture()})["value"][0] == 1


def test_open_dimension_fits_a_fixed_one() -> None:
    engine = SwapEngine("m", named("cpu", 1, (TensorSpec("value", "int32", (None,)),)))
    engine.swap(lambda: named("gpu", 2, (TensorSpec("value", "int32", (2,)),)))
    assert engine.fingerprint == "gpu"


@pytest.mark.parametrize("error", [ConfigError("over the budget"), EngineError("out of memory")])
def test_stand_in_gives_way_where_both_do_not_fit_into_memory(error: Exception) -> None:
    stand_in = named("cpu", 1)

    def load() -> Engine:
        if not stand_in.closed:
            raise error
        return named("gpu", 2)

    engine = SwapEngine("m", stand_in)
    engine.swap(load)
    assert engine.infer({"image": picture()})["value"][0] == 2


def test_plan_that_never_loads_after_the_stand_in_gave_way_is_an_engine_error() -> None:
    answers: list[Exception] = [EngineError("out of memory"), ModelError("refused")]

    def load() -> Engine:
        raise answers.pop(0)

    with pytest.raises(EngineError, match="refused; nothing is left to go on with"):
        SwapEngine("m", named("cpu")).swap(load)


def test_former_engine_comes_back_where_the_wanted_one_does_not_load_in_its_place_either() -> None:
    former = named("float", 1)
    engine = SwapEngine("m", former)

    def load() -> Engine:
        raise EngineError("out of memory")

    with pytest.raises(ModelError, match="out of memory"):
        engine.swap(load, lambda: named("float again", 3))
    assert former.closed, "both did not fit together"
    assert (engine.fingerprint, engine.infer({"image": picture()})["value"][0]) == ("float again", 3)


def test_former_engine_comes_back_where_the_one_in_its_place_has_other_tensors() -> None:
    former = named("float", 1, (TensorSpec("value", "int32", (2,)),))
    other = named("int8", 2, (TensorSpec("value", "int32", (3,)),))

    def load() -> Engine:
        if not former.closed:
            raise EngineError("out of memory")
        return other

    engine = SwapEngine("m", former)
    with pytest.raises(ModelError, match="differs from what runs"):
        engine.swap(load, lambda: named("float again", 3))
    assert other.closed
    assert engine.fingerprint == "float again"


def test_nothing_is_restored_where_the_wanted_engine_loads() -> None:
    engine = SwapEngine("m", named("float", 1))
    engine.swap(lambda: named("int8", 2), lambda: pytest.fail("restored for nothing"))
    assert engine.fingerprint == "int8"


def test_engine_behind_swaps_is_found() -> None:
    inner = named("float")
    assert running(SwapEngine("m", SwapEngine("m", inner))) is inner
    assert running(inner) is inner


def test_close_tells_once() -> None:
    told: list[str] = []
    stand_in = named("cpu")
    engine = SwapEngine("m", stand_in, lambda: told.append("closed"))
    engine.close()
    engine.close()
    assert told == ["closed"]
    assert stand_in.closed
