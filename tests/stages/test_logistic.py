from __future__ import annotations

import numpy as np
import pytest

from edge_agent.stages import logistic


def clouds(seed: int = 1) -> tuple[np.ndarray, np.ndarray]:
    """Three clouds of unlike sizes about their centres, and a constant."""
    random = np.random.default_rng(seed)
    owners = np.repeat([0, 1, 2], [60, 20, 8])
    centres = np.array([[2.0, 0.0], [-1.0, 2.0], [-1.0, -2.0]])
    points = centres[owners] + random.normal(0, 0.5, (len(owners), 2))
    return np.hstack([points, np.ones((len(owners), 1))]), owners


def test_classes_are_told_apart_and_small_ones_are_not_drowned() -> None:
    features, owners = clouds()
    weights = logistic.fit(features, owners, 3, 1e-3)
    told = logistic.probabilities(features @ weights).argmax(axis=1)
    for each in range(3):
        assert (told[owners == each] == each).mean() > 0.9


def test_the_loss_cannot_be_lowered_by_a_small_step() -> None:
    features, owners = clouds()
    l2 = 1e-2
    weights = logistic.fit(features, owners, 3, l2)
    shares = 1.0 / np.sqrt(np.bincount(owners))[owners]
    shares /= shares.sum()

    def loss(w: np.ndarray) -> float:
        p = logistic.probabilities(features @ w)[np.arange(len(owners)), owners]
        return float(-(shares * np.log(p)).sum() + 0.5 * l2 * (w**2).sum())

    random = np.random.default_rng(2)
    for _ in range(50):
        step = random.normal(0, 1e-3, weights.shape)
        assert loss(weights + step) >= loss(weights) - 1e-6


def test_the_same_rows_give_the_same_weights() -> None:
    features, owners = clouds()
    np.testing.assert_array_equal(logistic.fit(features, owners, 3, 1e-3), logistic.fit(features, owners, 3, 1e-3))


@pytest.mark.parametrize("scores", [[1000.0, 0.0], [-1000.0, -1001.0]])
def test_probabilities_stay_finite(scores: list[float]) -> None:
    found = logistic.probabilities(np.array(scores))
    assert np.isfinite(found).all()
    assert found.sum() == pytest.approx(1.0)
