"""The resolution of scores: rounding is noticed, and float32 is not taken for rounding."""

from __future__ import annotations

import numpy as np
import pytest

from orderproof.ports.comparison import profile, resolution
from orderproof.ports.engines.engine import Scores

RANDOM = np.random.default_rng(0)


@pytest.mark.parametrize("size", [0.01, 1.0, 10.0, 1000.0])
def test_values_of_float32_are_not_called_rounded(size: float) -> None:
    values = (size * RANDOM.standard_normal((12, 99))).astype(np.float32)
    assert resolution([Scores(values)], 99).notes == ()


@pytest.mark.parametrize("digits", [0, 1, 2, 3, 4])
def test_rounded_values_are_noticed_with_their_decimals(digits: int) -> None:
    values = (10 * RANDOM.standard_normal((12, 99))).round(digits).astype(np.float32)
    found = resolution([Scores(values)], 99)
    assert found.notes == (f"its scores are rounded to {digits} decimals: smaller differences are not seen",)
    assert found.step == 10.0**-digits


def test_log_probabilities_among_candidates_are_compared_with_those_of_the_same_tokens() -> None:
    logits = RANDOM.standard_normal((4, 9))
    candidates = np.array([[1, 3, 8, -1]] * 4)
    chosen = np.where(candidates >= 0, logits[:, [1, 3, 8, 0]], -np.inf)
    values = chosen - np.log(np.exp(chosen).sum(-1, keepdims=True))
    scores = Scores(
        np.where(candidates >= 0, values, 0.0).astype(np.float32), candidates, normalised=True, among_candidates=True
    )
    assert profile([scores], [logits], 1e-6).first is None
    moved = logits + 0.1 * (np.arange(9) == 3)
    assert profile([scores], [moved], 1e-6).first == 0
