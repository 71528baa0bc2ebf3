from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnxruntime.quantization.calibrate import HistogramCollector

from edge_agent.calibrate.histogram import BINS, QUANTISED_BINS, Histogram, entropy_range, percentile_range
from edge_agent.errors import CalibrationRefused

RANDOM = np.random.default_rng(3)
SAMPLES = {
    "normal": RANDOM.normal(0, 1, 20_000),
    "relu": np.maximum(RANDOM.normal(0, 1, 20_000), 0),
    "rare large values": np.concatenate([RANDOM.normal(0, 1, 20_000), [40.0, -25.0]]),
    "all negative": -np.abs(RANDOM.normal(3, 1, 20_000)),
}


def add(histogram: Histogram, values: Any) -> None:
    values = np.asarray(values, np.float32)
    histogram.add(values.min(), values.max(), values.sum(), values)


def counted(values: Any, bins: int) -> tuple[Any, Any]:
    reach = float(np.abs(values).max())
    return np.histogram(values, bins, range=(-reach, reach))


@pytest.mark.parametrize("bins", [128, 256, 512])
@pytest.mark.parametrize("kind", SAMPLES)
def test_entropy_cuts_where_onnxruntime_does(kind: str, bins: int) -> None:
    counts, edges = counted(SAMPLES[kind], bins)
    low, high = np.float64(-np.inf), np.float64(np.inf)
    expected = HistogramCollector("entropy", False, bins, QUANTISED_BINS, 0, "same").get_entropy_threshold(
        (counts, edges, low, high, edges[-1]), QUANTISED_BINS
    )
    assert entropy_range(counts, edges) == pytest.approx([float(end) for end in expected])


@pytest.mark.parametrize("kind", SAMPLES)
def test_percentile_cuts_where_onnxruntime_does_but_keeps_its_last_bin(kind: str) -> None:
    counts, edges = counted(SAMPLES[kind], BINS)
    collector = HistogramCollector("percentile", False, BINS, QUANTISED_BINS, 99.9, "same")
    collector.histogram_dict = {"t": (counts, edges, np.float64(-np.inf), np.float64(np.inf), edges[-1])}
    low, high, *_ = collector.compute_percentile()["t"]
    width = edges[1] - edges[0]
    assert percentile_range(counts, edges, 99.9) == pytest.approx([float(low), float(high) + width])


def test_counts_survive_values_beyond_the_reach() -> None:
    values = RANDOM.normal(0, 1, 5000).astype(np.float32)
    histogram = Histogram("t")
    for part in (values * 0.01, values, values * 300):
        add(histogram, part)
    assert histogram.counts.sum() == 3 * len(values)
    everything = np.concatenate([values * 0.01, values, values * 300])
    width = 2 * histogram.reach / BINS
    assert histogram.range("percentile", 90.0) == pytest.approx(np.percentile(everything, [5, 95]), abs=2 * width)


def test_values_that_were_all_zero_first_are_counted_at_zero() -> None:
    histogram = Histogram("t")
    add(histogram, np.zeros(100))
    add(histogram, [0.0, 4.0])
    assert histogram.counts[BINS // 2] == 101
    assert histogram.range("minmax", 99.0) == (0.0, 4.0)


def test_range_is_never_wider_than_the_extremes() -> None:
    histogram = Histogram("t")
    add(histogram, np.abs(SAMPLES["normal"]) + 0.5)
    for method in ("minmax", "percentile", "entropy"):
        low, high = histogram.range(method, 99.999)
        assert histogram.lowest <= low < high <= histogram.highest


@pytest.mark.parametrize(("values", "said"), [([], "never computed"), ([0.0, 0.0], "was 0 everywhere")])
def test_tensor_that_never_moved_is_refused(values: list[float], said: str) -> None:
    histogram = Histogram("t")
    if values:
        add(histogram, values)
    with pytest.raises(CalibrationRefused, match=f"tensor t.*{said}"):
        histogram.refuse_if_still()
