"""The judge of the ceilings, on questions small enough to be judged by hand."""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import pytest
import torch

from orderproof.lab.brute_force import brute_force
from orderproof.lab.question import UNSCORED, Batch, Question, Row


class Listed(Question):
    """A question of given rows."""

    rows: tuple[Any, ...]

    @property
    def vocabulary(self) -> int:
        return 4

    def tokens(self, length: int) -> int:
        return length

    def draw(self, length: int, rows: int, generator: torch.Generator) -> Batch:
        raise AssertionError("only listed")

    def everything(self, length: int) -> Iterator[Row]:
        for tokens, targets, weight in self.rows:
            yield Row(tokens=tokens, targets=targets, weight=Fraction(weight))


class Matched(Listed):
    measure = "exact_match"


class Paid(Listed):
    measure = "nats"


class Onward(Listed):
    causal = True


N = UNSCORED


def test_two_orders_of_one_bag_with_one_last_token_are_one_to_it():
    told_apart = ((0, 1, 2), (N, N, 0), "1/4"), ((1, 0, 2), (N, N, 1), "3/4")
    assert brute_force(Listed(rows=told_apart), 3) == Fraction(3, 4)


def test_the_token_at_the_place_is_known():
    by_itself = ((0, 1), (N, 1), "1/2"), ((1, 0), (N, 0), "1/2")
    assert brute_force(Listed(rows=by_itself), 2) == 1


def test_only_a_decoder_does_not_know_the_bag_behind():
    behind = ((0, 1), (1, N), "1/2"), ((0, 2), (2, N), "1/2")
    assert brute_force(Listed(rows=behind), 2) == 1
    assert brute_force(Onward(rows=behind), 2) == Fraction(1, 2)


def test_rows_at_odds_cannot_both_be_right_and_the_heaviest_choice_is_found():
    # The second is at odds with the first at one place and with the third at the other; it alone weighs most of all.
    rows = (
        ((0, 3), (0, N), "3/10"),
        ((0, 3), (1, 0), "4/10"),
        ((3, 0), (1, N), "3/10"),
    )
    assert brute_force(Matched(rows=rows[:2]), 2) == Fraction(4, 10)
    assert brute_force(Matched(rows=rows[1:]), 2) == Fraction(4, 10)
    assert brute_force(Matched(rows=rows), 2) == Fraction(6, 10)


def test_nats_are_the_entropy_in_each_group():
    rows = (((0, 1, 2), (N, N, 0), "1/4"), ((1, 0, 2), (N, N, 1), "1/4"), ((3, 3, 2), (N, N, 1), "1/2"))
    assert brute_force(Paid(rows=rows), 3) == pytest.approx(math.log(2) / 2)
