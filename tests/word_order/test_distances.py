"""Distances between sentence vectors, and their medians."""

from __future__ import annotations

import pytest
import torch

from orderproof.word_order.distances import SentenceVectors, cosine_distance, median_interval, pool, relative_distance


def test_distances_follow_the_formulas_and_are_accurate_near_zero():
    u, v = torch.randn(2, 50, dtype=torch.float64)
    assert float(cosine_distance(u, v)) == pytest.approx(1 - float(torch.cosine_similarity(u, v, dim=0)))
    assert float(relative_distance(u, v)) == pytest.approx(float((u - v).norm() / u.norm()))
    assert float(cosine_distance(u, u)) == float(relative_distance(u, u)) == 0
    away = torch.zeros(50, dtype=torch.float64)
    away[0], u[0] = 1e-9, 0.0
    assert float(cosine_distance(u, u + away)) == pytest.approx(0.5e-18 / float(u @ u), rel=1e-6)


def test_pooling():
    states = torch.randn(2, 5, 3)
    assert torch.equal(pool(states, "mean"), states.double().mean(1))
    assert torch.equal(pool(states, "first"), states[:, 0].double())
    assert torch.equal(pool(states, "last"), states[:, 4].double())


def test_median_interval_contains_the_median_and_depends_on_the_seed():
    values = torch.randn(30, dtype=torch.float64)
    found = median_interval(values, 0)
    assert found.low < found.median < found.high
    assert median_interval(values, 0) == found != median_interval(values, 1)
    assert median_interval(values[:1], 0).low == median_interval(values[:1], 0).high == float(values[0])


def test_shares_are_of_the_median_distance_to_the_others():
    vectors = SentenceVectors()
    for angle in (0.0, 0.5, 1.2):
        turned = torch.tensor([angle, angle + 0.1], dtype=torch.float64)
        vectors.add(["reversal"], torch.stack([turned.cos(), turned.sin()], dim=1))
    other, moved = vectors.summary(["reversal"], seed=0)
    gaps = [[1 - torch.tensor(a - b).cos() for b in (0, 0.5, 1.2) if a != b] for a in (0, 0.5, 1.2)]
    medians = [float(sum(g)) / 2 for g in gaps]
    step = 1 - float(torch.tensor(0.1, dtype=torch.float64).cos())
    assert other.cosine.median == pytest.approx(sorted(medians)[1], rel=1e-5)
    assert moved.share_of_unrelated.median == pytest.approx(sorted(step / m for m in medians)[1], rel=1e-5)
    assert (moved.still_nearest_fraction, moved.sentences) == (1.0, 3)
