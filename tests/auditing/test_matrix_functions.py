"""Linear algebra of every row of the batch by itself, places among boundaries, and distances."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from tests.auditing.law_pairs import VECTORS, verdicts

PROVED, REFUTED, UNDECIDED = "proved", "refuted", "undecided"


class Function(nn.Module):
    """A module that calls a function."""

    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, x):
        return self.function(x)


def gram(x: Tensor) -> Tensor:
    return x.mT @ x + torch.eye(16)


def of_all_rows(x: Tensor) -> Tensor:
    """The Gram matrix of the tokens of all rows of the batch."""
    return torch.einsum("bti,btj->ij", x, x) + torch.eye(16)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: torch.linalg.qr(x)[0],
        lambda x: torch.linalg.svdvals(gram(x)),
        lambda x: torch.linalg.solve(gram(x), x.mT).mT,
        lambda x: torch.cholesky_solve(x.mT, torch.linalg.cholesky(gram(x))).mT,
        lambda x: x @ torch.linalg.inv(gram(x)),
        lambda x: torch.linalg.eigh(gram(x))[0],
        lambda x: x * torch.linalg.slogdet(gram(x))[1][:, None, None],
        lambda x: x @ torch.matrix_exp(gram(x) / 100),
    ],
)
def test_a_matrix_of_a_row_does_not_depend_on_other_rows(function):
    assert verdicts(Function(function), ["batch"]) == {"batch": PROVED}


@pytest.mark.parametrize(
    "function",
    [
        lambda x: torch.linalg.solve(of_all_rows(x), x.mT).mT,
        lambda x: x @ torch.linalg.inv(of_all_rows(x)),
        lambda x: x @ torch.matrix_exp(of_all_rows(x) / 100),
    ],
)
def test_a_matrix_of_all_rows_mixes_them(function):
    assert verdicts(Function(function), ["batch"]) == {"batch": REFUTED}


class Places(nn.Module):
    """Embeds the place of each token's mean among boundaries."""

    def __init__(self, boundaries):
        super().__init__()
        self.boundaries = boundaries
        self.embedding = nn.Embedding(17, 16)

    def forward(self, x):
        return x + self.embedding(torch.bucketize(x.mean(-1), self.boundaries(x)))


def test_places_among_constant_boundaries_are_those_of_each_token():
    assert set(verdicts(Places(lambda x: torch.linspace(-2, 2, 7)), ["causal", "permutation", "batch"]).values()) == {
        PROVED
    }


def test_places_among_boundaries_of_the_first_row_mix_rows():
    assert verdicts(Places(lambda x: x[0, 0].sort().values), ["batch"]) == {"batch": REFUTED}


def test_places_among_the_tokens_of_the_row():
    rows = Function(lambda x: torch.searchsorted(x.sum(-1).sort(-1).values, x.mean(-1)).float()[..., None] * x)
    assert verdicts(rows, ["batch", "permutation", "causal"]) == {
        "batch": PROVED,
        "permutation": PROVED,
        "causal": REFUTED,
    }


def test_unsorted_boundaries_that_move_prove_nothing():
    """A search among numbers that are not sorted depends on their order."""
    moved = Function(lambda x: torch.searchsorted(x.sum(-1), x.mean(-1).contiguous()).float()[..., None] * x)
    assert verdicts(moved, ["permutation"])["permutation"] != PROVED


def test_the_nearest_codes_of_a_quantizer():
    codes = torch.randn(5, 16)
    nearest = Function(lambda x: x + codes[torch.cdist(x, codes).argmin(-1)])
    assert set(verdicts(nearest, ["causal", "permutation", "batch"]).values()) == {PROVED}
    assert verdicts(Function(lambda x: x + torch.cdist(x, x[:1]).argmin(-1)[..., None]), ["batch"]) == {
        "batch": REFUTED
    }


def test_torch_decomposes_the_matrices_of_a_batch_one_by_one():
    for function in (torch.linalg.inv, torch.linalg.matrix_exp, lambda a: torch.linalg.qr(a)[0]):
        matrices = gram(VECTORS).double()
        alone = function(matrices[:1])
        matrices[1] = torch.eye(16) * 1e8
        assert torch.equal(function(matrices)[:1], alone)
