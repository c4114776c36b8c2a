"""Certificates whose numbers are forged, each so that a mask hides nothing: the check must refuse all of them."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from orderproof.logic.solver import Solver
from orderproof_recheck.errors import CertificateError
from orderproof_recheck.theorem import check_theorem
from tests.recheck.theorems.examples import Certificate, recorded_module, unchecked

Step = dict[str, Any]
NAN = {"float": "nan"}
SQUARE = {"axes": [["tokens"], ["tokens"]]}


class MaskedByNumbers(nn.Module):
    """Causal attention; a key is hidden only if the larger of two numbers is positive, as it is."""

    def forward(self, x: Tensor) -> Tensor:
        n = x.shape[1]
        larger = torch.maximum(x.new_full((n,), 1.0), x.new_full((n,), 2.0))
        hidden = torch.ones(n, n, dtype=torch.bool).triu(1) & (larger > 0.5)
        return (x @ x.mT).masked_fill(hidden, -1e9).softmax(-1) @ x


@pytest.fixture(scope="module")
def honest() -> Certificate:
    made = unchecked(*recorded_module(MaskedByNumbers()), "causal", Solver())
    assert made is not None
    check_theorem(made, fill=True)
    return made


def steps_of(made: Certificate) -> list[Step]:
    """The steps of its recording."""
    found: list[Step] = made["calls"][0]["ranges"][0]["recordings"][0]["steps"]
    return found


def place(made: Certificate, operator: str) -> int:
    """The place of the only step of an operator."""
    (found,) = [k for k, step in enumerate(steps_of(made)) if step["operator"].startswith(f"aten.{operator}.")]
    return found


def new_step(node: str, operator: str, args: list[Any], shape: list[Any], dtype: str, fact: dict[str, Any]) -> Step:
    """A step without keywords."""
    return {
        "node": node, "operator": operator, "args": args, "kwargs": {}, "shape": [shape], "dtype": [dtype],
        "fact": fact, "needs": [],
    }  # fmt: skip


def nan_in_a_maximum(made: Certificate) -> None:
    """The maximum of 1 and NaN is NaN, which is larger than nothing."""
    at = place(made, "maximum")
    second = next(s for s in steps_of(made) if {"node": s["node"]} == steps_of(made)[at]["args"][1])
    second["args"][-1], second["fact"]["value"]["cases"] = NAN, [[True, NAN]]
    steps_of(made)[at]["fact"]["value"]["cases"] = [[True, 1.0]]


def nan_in_a_minimum(made: Certificate) -> None:
    """The same with a minimum."""
    nan_in_a_maximum(made)
    step = steps_of(made)[place(made, "maximum")]
    step["operator"] = "aten.minimum.default"


def comparison_by(cases: list[Any], made: Certificate, *, both: bool) -> None:
    """Replace the comparison by one of a buffer that is zero or not, or both."""
    at = place(made, "gt")
    node, zero, other = {"node": "stored"}, {"node": "is_zero"}, {"node": "is_not"}
    claims = [both, both, both] if both else [False, ["<=", "x0", -1], ["<=", "x0", -1]]

    def fact(claim: Any) -> dict[str, Any]:
        return {"axes": [[2]], "value": {"boolean": claim}}

    joined = "aten.__and__.Tensor" if both else "aten.__or__.Tensor"
    new = [
        new_step("stored", "buffer", ["stored"], [2], "float32", {"axes": [[2]], "value": {"cases": cases}}),
        new_step("is_zero", "aten.eq.Scalar", [node, 0], [2], "bool", fact(claims[0])),
        new_step("is_not", "aten.ne.Scalar", [node, 0], [2], "bool", fact(claims[1])),
        new_step("joined", joined, [zero, other], [2], "bool", fact(claims[2])),
    ]
    steps_of(made)[at:at] = new


def cases_that_leave_elements_out(made: Certificate) -> None:
    """No element of a buffer has a case, so that it is neither zero nor anything else."""
    comparison_by([[["<=", "x0", -1], 1.0]], made, both=False)


def cases_that_overlap(made: Certificate) -> None:
    """Each element of a buffer is zero and one."""
    comparison_by([[True, 1.0], [True, 0.0]], made, both=True)


def low_integers(made: Certificate) -> None:
    """An int8 cannot be as low as the mask with which it is filled."""
    at = place(made, "masked_fill")
    masked = steps_of(made)[at]
    scores, hidden = masked["args"][:2]
    low = {**SQUARE, "hidden": True, "ordinary": False}
    sizes = [{"size": "tokens"}, {"size": "tokens"}]
    zeros = new_step(
        "zeros", "aten.zeros.default", [sizes], ["tokens", "tokens"], "int8", {**SQUARE, "value": {"integer": 0}}
    )
    zeros["kwargs"] = {"dtype": {"dtype": "int8"}}
    number = new_step(
        "number", "aten.full.default", [[], -1e9], [], "float32", {"axes": [], "value": {"cases": [[True, -1e9]]}}
    )
    filled = new_step(
        "filled", "aten.fill.Tensor", [{"node": "zeros"}, {"node": "number"}], ["tokens", "tokens"], "int8", low
    )
    floats = new_step("floats", "aten._to_copy.default", [{"node": "filled"}], ["tokens", "tokens"], "float32", low)
    floats["kwargs"] = {"dtype": {"dtype": "float32"}}
    chosen = new_step(
        masked["node"],
        "aten.where.self",
        [hidden, {"node": "floats"}, scores],
        masked["shape"][0],
        "float32",
        masked["fact"],
    )
    steps_of(made)[at : at + 1] = [zeros, number, filled, floats, chosen]


@pytest.mark.parametrize(
    ("forge", "step"),
    [
        (nan_in_a_maximum, "aten.maximum.default"),
        (nan_in_a_minimum, "aten.minimum.default"),
        (cases_that_leave_elements_out, "the cases of a stored value leave elements out"),
        (cases_that_overlap, "the cases of a stored value overlap"),
        (low_integers, "aten.fill.Tensor"),
    ],
)
def test_a_forged_number_is_refused(honest: Certificate, forge: Any, step: str) -> None:
    made = copy.deepcopy(honest)
    forge(made)
    with pytest.raises(CertificateError, match=step):
        check_theorem(made, fill=True)


class ShiftedByOne(nn.Module):
    """Each token but the first gets the one before it."""

    def forward(self, x: Tensor) -> Tensor:
        return x.roll((0, 1), (2, 1)) * (torch.arange(x.shape[1]) >= 1)[:, None]


@pytest.mark.parametrize(
    ("shifts", "dims"), [([-2, 1], [1, -2]), ([1, -2], [1, -2]), ([1, 1], [1, 1]), ([-2, 1], [-2, 1])]
)
def test_a_roll_along_a_dimension_that_is_named_twice_is_refused(shifts: list[int], dims: list[int]) -> None:
    made = unchecked(*recorded_module(ShiftedByOne()), "causal", Solver())
    assert made is not None
    check_theorem(copy.deepcopy(made), fill=True)
    step = steps_of(made)[place(made, "roll")]
    step["args"][1:] = [shifts, dims]
    with pytest.raises(CertificateError, match="aten.roll.default"):
        check_theorem(made, fill=True)
