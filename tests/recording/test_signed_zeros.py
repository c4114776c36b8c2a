"""0 and -0 are one real number: a proof about an operator that tells them apart says that it assumes so."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from orderproof import prove
from tests.function_module import Function

ZEROS = torch.tensor([0.0, -0.0] * 64)[:, None]


def angles(x: Tensor) -> Tensor:
    return torch.atan2(ZEROS[: x.shape[1]], 50 - x.abs())


def signs(x: Tensor) -> Tensor:
    return torch.copysign(x, ZEROS[: x.shape[1]])


def roots(x: Tensor) -> Tensor:
    return torch.complex(50 - x.abs(), ZEROS[: x.shape[1]] + 0 * x).log().real


def assumptions(function: Callable[[Tensor], Tensor]) -> list[str]:
    finding = prove(Function(function).eval(), "causal", inputs=torch.randn(2, 7, 4))
    assert finding.verdict == "proved"
    assert finding.theorem is not None
    assert {a for a in finding.scope.assumptions if "-0" in a} == {
        a for a in finding.theorem.assumptions if "-0" in a
    } or not finding.theorem.proved
    return [text for text in finding.scope.assumptions if "-0" in text]


@pytest.mark.parametrize(("function", "operator"), [(angles, "atan2"), (signs, "copysign"), (roots, "log")])
def test_an_operator_that_reads_the_sign_of_zero_is_an_assumption(
    function: Callable[[Tensor], Tensor], operator: str
) -> None:
    (text,) = assumptions(function)
    assert text.startswith(f"0 and -0 are one number to aten.{operator}.")


def test_other_operators_are_none() -> None:
    assert assumptions(torch.exp) == []
