"""Ranges: what values each tensor of a float model takes over recorded feeds, and the range to quantise it by.

One pass gives all methods: the model runs with the statistics of each wanted tensor as further outputs, computed where
the tensor lies, so that no activation is ever kept; what comes out is its extremes, its sum and a strided sample, which
goes into a histogram of fixed size. Memory does not grow with the number of feeds.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

from edge_agent.backends.base import Feed
from edge_agent.backends.ort import ORT_ERRORS, PROVIDERS, session_options
from edge_agent.calibrate.histogram import Histogram
from edge_agent.calibrate.recipe import METHODS, Method
from edge_agent.errors import CalibrationRefused, EngineError, in_one_line

Range = tuple[float, float]
SAMPLE_VALUES = 1 << 15  # of one tensor in one feed, at most about twice this
STATISTICS = ("lowest", "highest", "sum", "sample")


@dataclass(frozen=True)
class Ranges:
    """(lowest, highest) by method and tensor, from `batches` feeds; `percentile` is the share method percentile
    covers, %. `divisors`: what the channels of a tensor were divided by before (edge_agent.calibrate.smoothing)."""

    by_method: Mapping[Method, Mapping[str, Range]]
    batches: int
    percentile: float
    divisors: Mapping[str, tuple[float, ...]] = field(default_factory=dict)

    def to_json(self) -> str:
        """As JSON text; the same for equal ranges."""
        return json.dumps(
            {
                "batches": self.batches,
                "percentile": self.percentile,
                "by_method": self.by_method,
                "divisors": self.divisors,
            },
            sort_keys=True,
            allow_nan=False,
        )

    @staticmethod
    def from_json(text: str) -> Ranges:
        """Ranges that `to_json` wrote. Raises CalibrationRefused for anything else."""
        try:
            values = json.loads(text)
            by_method = {
                method: {tensor: (float(low), float(high)) for tensor, (low, high) in ranges.items()}
                for method, ranges in values["by_method"].items()
            }
            divisors = {tensor: tuple(map(float, channels)) for tensor, channels in values["divisors"].items()}
            return Ranges(by_method, int(values["batches"]), float(values["percentile"]), divisors)
        except (AttributeError, KeyError, TypeError, ValueError) as exc:
            raise CalibrationRefused(f"stored ranges cannot be read ({exc}); calibrate afresh") from exc


def measure(
    source: Path | onnx.ModelProto,
    tensors: Sequence[str],
    feeds: Iterable[Feed],
    promised: int,
    methods: Sequence[Method] = METHODS,
    threads: int = 0,
    report: Callable[[float], None] = lambda share: None,
    percentile: float = 99.999,
) -> Ranges:
    """The ranges of `tensors` over `promised` feeds of the float model, a file or the model itself, which is used up.

    `report` is told the share done, 0 to 1, after every feed. Raises EngineError when the model fails on a feed, and
    CalibrationRefused when fewer or more feeds came than promised or none, for a tensor that the model does not make,
    and for one that held NaN or infinity or only ever one value: no scale can come from that.
    """
    if promised < 1 or not tensors:
        raise CalibrationRefused(f"{promised} feeds for {len(tensors)} tensors; expected at least one of each")
    session, names = _session(source, tensors, threads)
    histograms = {tensor: Histogram(tensor) for tensor in tensors}
    done = 0
    for feed in feeds:
        if done == promised:
            raise CalibrationRefused(f"more feeds came than the {promised} promised; record them afresh")
        values = _run(session, names, feed, done)
        for position, histogram in enumerate(histograms.values()):
            histogram.add(*values[position * len(STATISTICS) : (position + 1) * len(STATISTICS)])
        done += 1
        report(done / promised)
    if done < promised:
        raise CalibrationRefused(f"{done} feeds came of {promised} promised; record them afresh")
    for histogram in histograms.values():
        histogram.refuse_if_still()
    by_method = {
        method: {tensor: histogram.range(method, percentile) for tensor, histogram in histograms.items()}
        for method in methods
    }
    return Ranges(by_method, done, percentile)


def _session(
    source: Path | onnx.ModelProto, tensors: Sequence[str], threads: int
) -> tuple[onnxruntime.InferenceSession, list[str]]:
    """A session of the model with statistics for outputs, and these outputs' names."""
    model, names = with_statistics(onnx.load(source) if isinstance(source, Path) else source, tensors)
    options = session_options(threads)
    # statistics as soon as their tensor is there, which is then freed: 480 MB instead of 970 (PP-OCRv6 detector)
    options.execution_order = onnxruntime.ExecutionOrder.PRIORITY_BASED
    try:
        session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=list(PROVIDERS))
    except ORT_ERRORS as exc:
        raise EngineError(f"the model with statistics cannot be loaded: {in_one_line(exc)}") from exc
    return session, names


def _run(session: onnxruntime.InferenceSession, names: list[str], feed: Feed, number: int) -> list[npt.NDArray[Any]]:
    try:
        return list(session.run(names, dict(feed)))
    except ORT_ERRORS as exc:
        shapes = {name: array.shape for name, array in feed.items()}
        raise EngineError(f"the float model failed on feed {number + 1} with {shapes}: {in_one_line(exc)}") from exc


def with_statistics(model: onnx.ModelProto, tensors: Sequence[str]) -> tuple[onnx.ModelProto, list[str]]:
    """The model with STATISTICS of each tensor as its outputs, and their names in that order.

    Raises CalibrationRefused for a tensor that the model does not make.
    """
    made = {name for node in model.graph.node for name in node.output} | {value.name for value in model.graph.input}
    if unknown := sorted(set(tensors) - made):
        raise CalibrationRefused(f"the model makes no tensor {', '.join(unknown)}; take the names from this very file")
    del model.graph.output[:]
    for name, value in (("calibrate.flat", [-1]), ("calibrate.from", [0]), ("calibrate.to", [np.iinfo(np.int64).max])):
        model.graph.initializer.append(numpy_helper.from_array(np.array(value, np.int64), name))
    for name, number in (("calibrate.count", 2 * SAMPLE_VALUES), ("calibrate.two", 2), ("calibrate.one", 1)):
        model.graph.initializer.append(numpy_helper.from_array(np.array([number], np.int64), name))
    names: list[str] = []
    for tensor in tensors:
        model.graph.node.extend(_statistics(tensor))
        for statistic in STATISTICS:
            names.append(f"calibrate.{statistic}.{tensor}")
            shape = ["sampled"] if statistic == "sample" else []
            model.graph.output.append(helper.make_tensor_value_info(names[-1], TensorProto.FLOAT, shape))
    return model, names


def _statistics(tensor: str) -> list[onnx.NodeProto]:
    """Nodes for the extremes, the sum and every n-th value of a tensor; n is odd, lest it meet the same column again
    and again in rows whose length is a multiple of 32."""
    own = {key: f"calibrate.{key}.{tensor}" for key in (*STATISTICS, "line", "size", "part", "even", "step")}
    return [
        helper.make_node("ReduceMin", [tensor], [own["lowest"]], keepdims=0),
        helper.make_node("ReduceMax", [tensor], [own["highest"]], keepdims=0),
        # NaN and infinity anywhere show in the sum; extremes may miss NaN
        helper.make_node("ReduceSum", [tensor], [own["sum"]], keepdims=0),
        helper.make_node("Reshape", [tensor, "calibrate.flat"], [own["line"]]),
        helper.make_node("Shape", [own["line"]], [own["size"]]),
        helper.make_node("Div", [own["size"], "calibrate.count"], [own["part"]]),
        helper.make_node("Mul", [own["part"], "calibrate.two"], [own["even"]]),
        helper.make_node("Add", [own["even"], "calibrate.one"], [own["step"]]),
        helper.make_node(
            "Slice", [own["line"], "calibrate.from", "calibrate.to", "calibrate.from", own["step"]], [own["sample"]]
        ),
    ]
