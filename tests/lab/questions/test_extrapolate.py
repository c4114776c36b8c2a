"""The second-order source: its letters, its entropy rate and its ceilings."""

from __future__ import annotations

import math

import pytest
import torch

from orderproof.lab.questions.extrapolate import SecondOrderSource


def test_a_letter_repeats_the_one_before_the_last_with_the_configured_probability():
    batch = SecondOrderSource(noise=0.2).sample(257, 200, torch.Generator().manual_seed(0))
    again = (batch.targets[:, 1:] == batch.tokens[:, :-1]).double().mean()
    assert float(again) == pytest.approx(0.8, abs=4 * math.sqrt(0.16 / (256 * 200)))


def test_the_last_letter_alone_has_no_information():
    batch = SecondOrderSource().sample(257, 200, torch.Generator().manual_seed(0))
    assert float((batch.targets == batch.tokens).double().mean()) == pytest.approx(0.5, abs=0.02)


def test_targets_are_the_next_tokens():
    batch = SecondOrderSource().sample(9, 4, torch.Generator().manual_seed(0))
    assert torch.equal(batch.targets[:, :-1], batch.tokens[:, 1:])


@pytest.mark.parametrize("length", [3, 64, 1024])
def test_entropy_rate_floor_ceiling_and_uniform_are_in_order(length):
    question = SecondOrderSource()
    assert question.entropy_rate < question.floor(length) < question.ceiling(length).value < math.log(2)


def test_the_ceiling_rises_with_the_length():
    question = SecondOrderSource()
    paid = [question.ceiling(length).value for length in question.test_lengths]
    assert paid == sorted(paid)


def test_the_floor_is_the_cross_entropy_of_the_best_predictor_over_all_rows():
    question = SecondOrderSource(noise=0.3)
    paid = 0.0
    for row in question.enumerate_rows(6):
        seen = [0.5, *(0.7 if row.targets[t] == row.tokens[t - 1] else 0.3 for t in range(1, 6))]
        paid -= float(row.weight) * sum(map(math.log, seen)) / 6
    assert question.floor(6) == pytest.approx(paid, abs=1e-12)
