from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper

from edge_agent.calibrate.ranges import Ranges, measure
from edge_agent.errors import CalibrationRefused, EngineError
from tests.calibrate import small_nets

TENSORS = ["float", "stem.relu", "skipped", "down.relu"]


@pytest.fixture
def net(tmp_path: Path) -> Path:
    path = tmp_path / "net.onnx"
    onnx.save(small_nets.detector(), path)
    return path


def activations(path: Path, tensor: str, feeds: list[dict[str, Any]]) -> Any:
    model = onnx.load(path)
    model.graph.output.append(helper.make_tensor_value_info(tensor, TensorProto.FLOAT, None))
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    return np.concatenate([session.run([tensor], feed)[0].ravel() for feed in feeds])


def test_one_pass_gives_all_methods(net: Path) -> None:
    feeds = [small_nets.picture(seed, 32 + 16 * seed) for seed in range(4)]
    ranges = measure(net, TENSORS, iter(feeds), 4, threads=1, percentile=99.0)
    assert (ranges.batches, ranges.percentile) == (4, 99.0)
    for tensor in TENSORS:
        values = activations(net, tensor, feeds)
        low, high = ranges.by_method["minmax"][tensor]
        assert (low, high) == pytest.approx((values.min(), values.max()), rel=1e-5)
        cut_low, cut_high = ranges.by_method["percentile"][tensor]
        bin_width = 2 * max(-low, high) / 1024
        assert cut_low == pytest.approx(np.percentile(values, 0.5), abs=bin_width)
        assert cut_high == pytest.approx(np.percentile(values, 99.5), abs=bin_width)
        narrow = ranges.by_method["entropy"][tensor]
        assert low <= narrow[0] <= 0 <= narrow[1] <= high


def test_same_feeds_give_the_same_ranges_to_the_last_digit(net: Path) -> None:
    feeds = [small_nets.picture(seed) for seed in range(3)]
    first, second = (measure(net, TENSORS, feeds, 3, threads=1) for _ in range(2))
    assert first.to_json() == second.to_json()
    assert Ranges.from_json(first.to_json()) == first


def test_large_tensor_is_sampled_and_still_has_exact_extremes(net: Path) -> None:
    feed = small_nets.picture(0, 512, 640)
    feed["image"][:] = 100
    feed["image"][0, 1, 77, 333] = 255  # one value in a million
    ranges = measure(net, ["float"], [feed], 1, threads=1)
    assert ranges.by_method["minmax"]["float"] == (100, 255)


def test_fewer_feeds_than_promised_are_refused(net: Path) -> None:
    with pytest.raises(CalibrationRefused, match="2 feeds came of 3"):
        measure(net, TENSORS, [small_nets.picture(seed) for seed in range(2)], 3, threads=1)


def test_more_feeds_than_promised_are_refused(net: Path) -> None:
    with pytest.raises(CalibrationRefused, match="more feeds came than the 1"):
        measure(net, TENSORS, [small_nets.picture(seed) for seed in range(2)], 1, threads=1)


def test_nothing_at_all_is_refused(net: Path) -> None:
    with pytest.raises(CalibrationRefused, match="0 feeds"):
        measure(net, TENSORS, [], 0, threads=1)


def test_failing_feed_raises_and_is_counted(net: Path) -> None:
    wrong = {"image": np.zeros((1, 4, 8, 8), np.uint8)}
    with pytest.raises(EngineError, match="feed 2"):
        measure(net, TENSORS, [small_nets.picture(0), wrong], 2, threads=1)


def test_tensor_that_never_moved_is_named(net: Path) -> None:
    model = onnx.load(net)
    next(c for c in model.graph.initializer if c.name == "stem.w").CopyFrom(
        onnx.numpy_helper.from_array(np.zeros((8, 3, 3, 3), np.float32), "stem.w")
    )
    next(c for c in model.graph.initializer if c.name == "stem.b").CopyFrom(
        onnx.numpy_helper.from_array(np.zeros(8, np.float32), "stem.b")
    )
    onnx.save(model, net)
    with pytest.raises(CalibrationRefused, match=r"tensor stem\.relu was 0 everywhere"):
        measure(net, TENSORS, [small_nets.picture(0)], 1, threads=1)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_nan_and_infinity_are_named(net: Path, value: float) -> None:
    model = onnx.load(net)
    bias = next(c for c in model.graph.initializer if c.name == "wide.b")
    values = onnx.numpy_helper.to_array(bias).copy()
    values[3] = value
    bias.CopyFrom(onnx.numpy_helper.from_array(values, "wide.b"))
    onnx.save(model, net)
    with pytest.raises(CalibrationRefused, match="tensor skipped held NaN or infinity"):
        measure(net, TENSORS, [small_nets.picture(0)], 1, threads=1)


def test_tensor_of_another_model_is_refused(net: Path) -> None:
    with pytest.raises(CalibrationRefused, match="nowhere"):
        measure(net, ["nowhere"], [small_nets.picture(0)], 1, threads=1)


def test_progress_is_told_after_every_feed(net: Path) -> None:
    told: list[float] = []
    measure(net, ["float"], [small_nets.picture(seed) for seed in range(4)], 4, threads=1, report=told.append)
    assert told == [0.25, 0.5, 0.75, 1.0]


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"by_method": 3, "batches": 1, "percentile": 99.0}'])
def test_damaged_ranges_are_refused(text: str) -> None:
    with pytest.raises(CalibrationRefused, match="calibrate afresh"):
        Ranges.from_json(text)
