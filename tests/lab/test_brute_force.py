"""The brute-force ceiling, on questions small enough to solve by hand."""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import pytest
import torch

from orderproof.lab.brute_force import brute_force_ceiling
from orderproof.lab.question import UNSCORED, Batch, Question, WeightedRow


class EnumeratedQuestion(Question):
    """A question with explicit rows."""

    rows: tuple[Any, ...]

    @property
    def vocabulary(self) -> int:
        return 4

    def row_length(self, length: int) -> int:
        return length

    def sample(self, length: int, rows: int, generator: torch.Generator) -> Batch:
        raise AssertionError("never sampled")

    def enumerate_rows(self, length: int) -> Iterator[WeightedRow]:
        for tokens, targets, weight in self.rows:
            yield WeightedRow(tokens=tokens, targets=targets, weight=Fraction(weight))


class ExactMatchQuestion(EnumeratedQuestion):
    measure = "exact_match"


class NatsQuestion(EnumeratedQuestion):
    measure = "nats"


class CausalQuestion(EnumeratedQuestion):
    requires_causal = True


N = UNSCORED


def test_two_permutations_with_the_same_last_token_are_indistinguishable():
    permutations = ((0, 1, 2), (N, N, 0), "1/4"), ((1, 0, 2), (N, N, 1), "3/4")
    assert brute_force_ceiling(EnumeratedQuestion(rows=permutations), 3) == Fraction(3, 4)


def test_the_token_at_the_position_is_known():
    rows = ((0, 1), (N, 1), "1/2"), ((1, 0), (N, 0), "1/2")
    assert brute_force_ceiling(EnumeratedQuestion(rows=rows), 2) == 1


def test_only_a_decoder_does_not_know_the_later_tokens():
    rows = ((0, 1), (1, N), "1/2"), ((0, 2), (2, N), "1/2")
    assert brute_force_ceiling(EnumeratedQuestion(rows=rows), 2) == 1
    assert brute_force_ceiling(CausalQuestion(rows=rows), 2) == Fraction(1, 2)


def test_conflicting_rows_cannot_both_be_right_and_the_best_set_is_selected():
    # The second row, with the largest weight, conflicts with the first at one position and with the third at the other.
    rows = (
        ((0, 3), (0, N), "3/10"),
        ((0, 3), (1, 0), "4/10"),
        ((3, 0), (1, N), "3/10"),
    )
    assert brute_force_ceiling(ExactMatchQuestion(rows=rows[:2]), 2) == Fraction(4, 10)
    assert brute_force_ceiling(ExactMatchQuestion(rows=rows[1:]), 2) == Fraction(4, 10)
    assert brute_force_ceiling(ExactMatchQuestion(rows=rows), 2) == Fraction(6, 10)


def test_nats_are_the_entropy_in_each_group():
    rows = (((0, 1, 2), (N, N, 0), "1/4"), ((1, 0, 2), (N, N, 1), "1/4"), ((3, 3, 2), (N, N, 1), "1/2"))
    assert brute_force_ceiling(NatsQuestion(rows=rows), 3) == pytest.approx(math.log(2) / 2)
