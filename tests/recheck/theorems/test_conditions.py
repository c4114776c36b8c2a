"""Certificates whose conditions no length fulfils are refused: from such conditions everything follows."""

from __future__ import annotations

import copy
import itertools
from typing import Any

import pytest

from orderproof_recheck.conditions import can_be_fulfilled, without_open_factors
from orderproof_recheck.errors import CertificateError
from orderproof_recheck.logic.notation import read_formula
from orderproof_recheck.theorem import check_theorem
from tests.recheck.theorems.evaluation import value_of
from tests.recheck.theorems.examples import Certificate, example

BLOCKS = ["floor", ["*", -1, "tokens"], 4]
IN_ONE_BLOCK = ["=", ["+", "batch", ["product", "batch", BLOCKS]], 0]
OPAQUE = ["=", ["apply", "opaque"], 0]
CONTRADICTIONS = {
    "false": [False],
    "a formula and its negation": [OPAQUE, ["not", OPAQUE]],
    "two values of a function": [OPAQUE, ["=", ["apply", "opaque"], 1]],
    "products": [IN_ONE_BLOCK, ["not", IN_ONE_BLOCK]],
    "a nested contradiction": [["and", OPAQUE, ["not", OPAQUE]]],
    "a length below the range": [["<=", "tokens", 1]],
    "no rows": [["<=", "batch", 1]],
    "a remainder": [["=", ["+", "tokens", ["*", -4, ["floor", "tokens", 4]]], 5]],
    "a choice": [["=", ["if", ["<=", "tokens", 1], ["apply", "opaque"], 4], 0]],
}


def refilled(conditions: list[list[Any]]) -> Certificate:
    """A certificate for ranges up to 4 and from 5 on, or for one, with other conditions."""
    made = example("causal attention", "causal")
    assert made is not None
    (whole,) = made["calls"][0]["ranges"]
    ranges = [copy.deepcopy(whole) for _ in conditions]
    for one, own in zip(ranges, conditions, strict=True):
        one["conditions"] = own
    if len(ranges) == 2:
        ranges[0]["greatest_length"], ranges[1]["least_length"] = 4, 5
    made["calls"][0]["ranges"] = ranges
    return made


@pytest.mark.parametrize("name", CONTRADICTIONS)
def test_a_certificate_with_conditions_that_no_length_fulfils_is_refused(name: str) -> None:
    for conditions in ([CONTRADICTIONS[name]], [[], CONTRADICTIONS[name]], [CONTRADICTIONS[name], []]):
        with pytest.raises(CertificateError, match="no length fulfils the conditions"):
            check_theorem(refilled(conditions), fill=True)


@pytest.mark.parametrize("variable", ["x1", "x3", "cut", "row", "another"])
def test_conditions_are_about_sizes(variable: str) -> None:
    """An index stands for another one in each obligation: of two ranges, one would hold for each."""
    for conditions in ([[["<=", variable, 0]]], [[["<=", variable, 0]], [["<=", 1, variable]]]):
        with pytest.raises(CertificateError, match="a condition of a range is not about its sizes"):
            check_theorem(refilled(conditions), fill=True)


@pytest.mark.parametrize("condition", [OPAQUE, ["=", "batch", 3], ["not", IN_ONE_BLOCK]])
def test_conditions_of_one_range_leave_lengths_of_the_other(condition: Any) -> None:
    """Each range has its own condition, and the theorem would be about lengths that fulfil both."""
    with pytest.raises(CertificateError, match="no length fulfils the conditions"):
        check_theorem(refilled([[["not", condition]], [condition]]), fill=True)


def test_conditions_that_lengths_fulfil_are_accepted() -> None:
    made = refilled([[OPAQUE], [OPAQUE, ["<=", 9, ["product", "batch", "tokens"]]]])
    check_theorem(made, fill=True)
    assert check_theorem(made).theorem.endswith(
        "every length from 2 on, every batch size of at least 2 and every weight, "
        "where opaque() = 0 and 9 <= batch * tokens"
    )
    assert can_be_fulfilled(200, None, [read_formula(["<=", 210, "tokens"])])


def test_division_by_open_sizes_changes_no_condition() -> None:
    zero = [
        ["+", "batch", ["product", "batch", BLOCKS]], ["+", ["product", "batch", "tokens"], ["*", -3, "batch"]],
        ["+", ["product", "tokens", BLOCKS], ["*", 2, "tokens"]], ["+", "batch", ["*", -1, "tokens"]],
        ["product", "batch", "batch", BLOCKS], ["product", "tokens", "batch"], ["+", ["product", "batch", BLOCKS], 3],
    ]  # fmt: skip
    kinds = [f for term in zero for f in (["=", term, 0], ["<=", term, 0], ["<=", 0, term])]
    single = [*kinds, *(["not", f] for f in kinds)]
    joined = [[join, a, b] for join in ("and", "or") for a, b in itertools.pairwise(single)]
    for condition in map(read_formula, [*single, *joined]):
        for batch, tokens in itertools.product(range(2, 6), range(2, 14)):
            sizes = {"batch": batch, "tokens": tokens}
            assert value_of(without_open_factors(condition), sizes, {}) == value_of(condition, sizes, {})
    divided = without_open_factors(read_formula(IN_ONE_BLOCK))
    assert divided is read_formula(["=", ["+", BLOCKS, 1], 0])
