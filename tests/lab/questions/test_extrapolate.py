"""The source of the second order: its letters, and what a reader who sees all, and one who counts, pay for each."""

from __future__ import annotations

import math

import pytest
import torch

from orderproof.lab.questions.extrapolate import Extrapolate


def test_a_letter_is_the_one_before_the_last_as_often_as_said():
    made = Extrapolate(noise=0.2).draw(257, 200, torch.Generator().manual_seed(0))
    again = (made.targets[:, 1:] == made.tokens[:, :-1]).double().mean()
    assert float(again) == pytest.approx(0.8, abs=4 * math.sqrt(0.16 / (256 * 200)))


def test_the_last_letter_alone_says_nothing():
    made = Extrapolate().draw(257, 200, torch.Generator().manual_seed(0))
    assert float((made.targets == made.tokens).double().mean()) == pytest.approx(0.5, abs=0.02)


def test_targets_are_the_tokens_one_on():
    made = Extrapolate().draw(9, 4, torch.Generator().manual_seed(0))
    assert torch.equal(made.targets[:, :-1], made.tokens[:, 1:])


@pytest.mark.parametrize("length", [3, 64, 1024])
def test_who_sees_the_order_pays_less_than_who_counts_and_who_counts_less_than_a_coin(length):
    asked = Extrapolate()
    assert asked.entropy_rate < asked.floor(length) < asked.ceiling(length).value < math.log(2)


def test_who_counts_pays_more_the_longer_the_row():
    asked = Extrapolate()
    paid = [asked.ceiling(length).value for length in asked.test_lengths]
    assert paid == sorted(paid)


def test_the_floor_is_what_the_best_reader_pays_over_all_rows():
    asked = Extrapolate(noise=0.3)
    paid = 0.0
    for row in asked.everything(6):
        seen = [0.5, *(0.7 if row.targets[t] == row.tokens[t - 1] else 0.3 for t in range(1, 6))]
        paid -= float(row.weight) * sum(map(math.log, seen)) / 6
    assert asked.floor(6) == pytest.approx(paid, abs=1e-12)
