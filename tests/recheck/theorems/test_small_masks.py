"""A mask of ten thousand is stated as a number, which the assumption names; no smaller number can be stated."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from orderproof import prove
from orderproof.logic.solver import Solver
from orderproof.number_limits import FINITE_SCORES_ASSUMPTION, finite_scores_assumption, masks_from
from orderproof_recheck import mask_sizes
from orderproof_recheck.errors import CertificateError
from orderproof_recheck.theorem import check_theorem
from tests.recheck.theorems.examples import Certificate, example, recorded_module, unchecked
from tests.theorems.programs import WIDTH

NAMED = "finite and small compared with 10000, the least masking value (finite mask, not -inf)"


@pytest.fixture(scope="module")
def honest() -> Certificate:
    made = example("mask of 10000", "causal")
    assert made is not None
    return made


def of_range(made: Certificate) -> dict[str, Any]:
    """Its only range of lengths."""
    ((found,),) = (call["ranges"] for call in made["calls"])
    assert isinstance(found, dict)
    return found


def test_the_certificate_and_its_assumption_have_the_number(honest: Certificate) -> None:
    assert of_range(honest)["least_mask"] == 10000
    assert any(NAMED in text for text in honest["assumptions"])
    check_theorem(copy.deepcopy(honest))


@pytest.mark.parametrize("size", [1e9, 9999.0, 100, 0, -10000, float("nan"), float("inf"), True, "10000"])
def test_another_number_is_refused(honest: Certificate, size: object) -> None:
    forged = copy.deepcopy(honest)
    of_range(forged)["least_mask"] = size
    with pytest.raises(CertificateError, match="masks are stated from another size|claimed to be hidden"):
        check_theorem(forged, fill=True)


def test_a_mask_that_is_smaller_than_the_number_hides_nothing(honest: Certificate) -> None:
    forged = copy.deepcopy(honest)
    of_range(forged)["least_mask"] = 65504.0
    forged["assumptions"] = [text.replace("10000", "65504") for text in forged["assumptions"]]
    with pytest.raises(CertificateError):
        check_theorem(forged, fill=True)


def test_without_the_number_or_its_assumption_nothing_is_hidden(honest: Certificate) -> None:
    without = copy.deepcopy(honest)
    del of_range(without)["least_mask"]
    without["assumptions"] = [
        text.replace("10000, the least masking", "the masking") for text in without["assumptions"]
    ]
    with pytest.raises(CertificateError):
        check_theorem(without, fill=True)
    unnamed = copy.deepcopy(honest)
    unnamed["assumptions"] = [
        text.replace("10000, the least masking", "the masking") for text in unnamed["assumptions"]
    ]
    with pytest.raises(CertificateError, match="needs the assumption"):
        check_theorem(unnamed, fill=True)


def test_the_prover_and_the_recheck_have_the_same_sizes() -> None:
    assert finite_scores_assumption() == FINITE_SCORES_ASSUMPTION == mask_sizes.finite_scores()
    for size in (1e4, 32768.0, 1e5, 1e7):
        with masks_from(size), mask_sizes.stated_masks(size):
            assert finite_scores_assumption() == mask_sizes.finite_scores() != FINITE_SCORES_ASSUMPTION


class Masked(nn.Module):
    """Causal attention with a mask, whose scores have a sign and a size, and are divided."""

    def __init__(self, size: float, scale: float = 1.0, divisor: float = 1.0) -> None:
        super().__init__()
        self.size, self.scale, self.divisor = size, scale, divisor
        self.q = nn.Linear(WIDTH, WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        later = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).triu(1)
        s = (self.scale * (self.q(x) @ x.mT)).masked_fill(later, -self.size)
        return (s / self.divisor).softmax(-1) @ x


@pytest.mark.parametrize("size", [10.0, 100.0, 1e3, 9e3])
def test_no_small_number_is_a_mask(size: float) -> None:
    assert unchecked(*recorded_module(Masked(size)), "causal", Solver()) is None


def test_a_mask_that_is_divided_often_is_none() -> None:
    assert unchecked(*recorded_module(Masked(1e4, divisor=16.0)), "causal", Solver()) is not None
    assert unchecked(*recorded_module(Masked(1e4, divisor=20.0)), "causal", Solver()) is None


def test_runs_refute_a_mask_of_10000_where_scores_are_as_large() -> None:
    x = torch.randn(2, 7, WIDTH, generator=torch.Generator().manual_seed(0))
    torch.manual_seed(0)
    module = Masked(1e4, scale=400.0).eval()
    with torch.no_grad():
        module.q.weight.mul_(100.0)
    assert prove(module, "causal", inputs=x).verdict == "refuted"
    small = prove(Masked(1e4).eval(), "causal", inputs=x)
    assert small.verdict == "proved"
    assert small.theorem is not None
    assert any(NAMED in text for text in small.theorem.assumptions)
