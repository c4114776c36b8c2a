"""Modules that draw random numbers: laws are proved for two runs that draw the same ones."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from tests.auditing.law_pairs import findings_of


class Slots(nn.Module):
    """Slots that begin with random numbers and read all tokens."""

    def forward(self, x: Tensor) -> Tensor:
        slots = torch.randn(x.shape[0], 3, x.shape[2])
        return (slots @ x.mT).softmax(1) @ x


class Noisy(nn.Module):
    """Causal means of tokens with noise on each element."""

    def __init__(self, *, shared: bool = False) -> None:
        super().__init__()
        self.shared = shared

    def forward(self, x: Tensor) -> Tensor:
        noise = torch.rand_like(x[:, :1] if self.shared else x)
        return (x + noise).cumsum(1)


class Weighted(Noisy):
    """A sum of tokens with random weights, which may be those of each token."""

    def forward(self, x: Tensor) -> Tensor:
        return (x * torch.randn_like(x[:, :1] if self.shared else x)).sum(1)


class Shuffled(nn.Module):
    """Tokens in a random order."""

    def forward(self, x: Tensor) -> Tensor:
        return x[:, torch.randperm(x.shape[1])]


class Sampled(nn.Module):
    """A choice of a feature by the probabilities of earlier tokens."""

    def forward(self, x: Tensor) -> Tensor:
        rows = x.cumsum(1).softmax(-1).flatten(0, 1)
        return torch.multinomial(rows, 1).view(*x.shape[:2], 1) * x


def test_the_same_random_numbers_are_an_assumption() -> None:
    (finding,) = findings_of(Slots(), "permutation")
    assert finding.verdict == "proved"
    assert "the same random numbers in both runs: randn_default" in finding.scope.assumptions
    assert findings_of(Slots(), "batch")[0].verdict == "proved"


def test_noise_of_each_token_does_not_move_with_it() -> None:
    assert findings_of(Noisy(), "causal")[0].verdict == "proved"
    assert findings_of(Noisy(), "batch")[0].verdict == "proved"

    for shared, verdict in ((True, "proved"), (False, "refuted")):
        assert findings_of(Weighted(shared=shared), "permutation")[0].verdict == verdict


@pytest.mark.parametrize(("module", "verdict"), [(Shuffled(), "refuted"), (Sampled(), "undecided")])
def test_other_random_operators_prove_nothing(module: nn.Module, verdict: str) -> None:
    assert findings_of(module, "causal")[0].verdict == verdict
