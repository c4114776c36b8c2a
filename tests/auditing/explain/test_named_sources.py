"""The reason of a failed proof names what an element comes to depend on: a token, a replaced token or another row."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from orderproof import prove
from tests.function_module import Function


def mixed_over(dim: int) -> Function:
    """Each element with a share of all elements along a dimension that rounding hides."""

    def mixed(x: Tensor) -> Tensor:
        return x + 1e-30 * x.amax(dim, keepdim=True)

    return Function(mixed)


@pytest.mark.parametrize(("law", "dim", "named"), [("batch", 0, "another row"), ("causal", 1, "token 6")])
def test_the_reason_names_what_an_element_depends_on(law: str, dim: int, named: str) -> None:
    finding = prove(mixed_over(dim).eval(), law, inputs=torch.randn(2, 7, 4))
    assert finding.verdict == "undecided"
    assert f"does not read {named};" in finding.reason
