"""Loops from a later token on, and numbers of the length, are computed for each length as an eager call does."""

from __future__ import annotations

import torch

from tests.theorems.operators import numbers_of_sizes, rows_of_loops
from tests.theorems.programs import Case
from tests.theorems.test_programs import (
    test_one_recording_computes_what_each_call_computes as computes_what_calls_compute,
)


def _hold(cases: list[Case], *names: str) -> None:
    by_name = {case.name: case for case in cases}
    with torch.no_grad():
        for name in names:
            computes_what_calls_compute(by_name[name])


def test_loops_from_a_later_token_on() -> None:
    _hold(rows_of_loops.PROGRAMS, "loop from the second token on", "rows joined after the first")


def test_numbers_of_the_length() -> None:
    _hold(numbers_of_sizes.PROGRAMS, "scores by the root of the length", "logarithm of the length added")
