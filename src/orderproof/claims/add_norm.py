"""Claim 4: "Add & Norm loses the order". It is permutation-equivariant: it neither adds nor removes order.

    y_m = norm(x_m + sublayer(x)_m)          for each row m

The residual sum adds row m to row m, and the norm uses the mean and the deviation over the features of row m. A row
depends on no other row and not on its index, so Add & Norm(P X) = P Add & Norm(X): the rows keep their order. The
content of the rows had no information about order to lose, because attention without positions does not use it (claim
2). A norm does remove the scale of a row: x and 2x can have the same output. That concerns the content of a row, not
its position.
Source: Vaswani et al. 2017, "Attention Is All You Need", arXiv:1706.03762, section 3.1; Ba et al. 2016, "Layer
Normalization", arXiv:1607.06450.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from orderproof.blocks import AddNorm, FeedForward
from orderproof.blocks.add_norm import Norm, NormPlacement
from orderproof.claims.claim import Claim, ClaimCheck
from orderproof.claims.law_check import LawCheck
from orderproof.claims.numeric_check import output_unchanged
from orderproof.claims.small_models import WIDTH, AttentionBlock, WithRowNumbers, random_vectors, seeded
from orderproof.laws.proved.causal import LAW as CAUSAL
from orderproof.laws.proved.permutation import LAW as PERMUTATION


class AddNormBlock(nn.Module):
    """Add & Norm around a feed-forward network."""

    def __init__(self, norm: Norm = "layer", order: NormPlacement = "after") -> None:
        super().__init__()
        self.add_norm = AddNorm(WIDTH, norm=norm, norm_placement=order)
        self.feed_forward = FeedForward(WIDTH, 2 * WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        """Add the output of the network to its input, and normalise."""
        y: Tensor = self.add_norm(x, self.feed_forward)
        return y


class AddNormAttention(AddNormBlock):
    """Add & Norm around attention, in which rows depend on each other."""

    def __init__(self) -> None:
        super().__init__()
        self.attention = AttentionBlock()

    def forward(self, x: Tensor) -> Tensor:
        """Add the output of attention to its input, and normalise."""
        y: Tensor = self.add_norm(x, self.attention)
        return y


class NormOverTokens(AddNormBlock):
    """Add & Norm followed by a sum over the tokens, in every row."""

    def forward(self, x: Tensor) -> Tensor:
        """Replace each row by the sum of all rows."""
        return super().forward(x).sum(1, keepdim=True).expand_as(x)


class ReversedInput(nn.Module):
    """A module with its input and its output rows reversed."""

    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, x: Tensor) -> Tensor:
        """Reverse, call the inner module, reverse."""
        return torch.flip(self.inner(torch.flip(x, (1,))), (1,))


def post_norm() -> tuple[nn.Module, Tensor]:
    """Add & Norm around a feed-forward network, as in the paper: norm(x + sublayer(x))."""
    return seeded(AddNormBlock), random_vectors()


def pre_norm() -> tuple[nn.Module, Tensor]:
    """Add & Norm in pre-norm form, as in most recent models: x + sublayer(RMSNorm(x))."""
    return seeded(lambda: AddNormBlock("rms", "before")), random_vectors()


def reversed_add_norm() -> tuple[nn.Module, Tensor]:
    """Add & Norm with reversed rows."""
    return seeded(lambda: ReversedInput(AddNormBlock())), random_vectors()


def norm_over_tokens() -> tuple[nn.Module, Tensor]:
    """Add & Norm with a sum over tokens."""
    return seeded(NormOverTokens), random_vectors()


def add_norm_with_row_numbers() -> tuple[nn.Module, Tensor]:
    """Add & Norm with row numbers added to its input."""
    return seeded(lambda: WithRowNumbers(AddNormBlock())), random_vectors()


def add_norm_attention() -> tuple[nn.Module, Tensor]:
    """Add & Norm around attention, in which rows see each other."""
    return seeded(AddNormAttention), random_vectors()


def reversed_add_norm_attention() -> tuple[nn.Module, Tensor]:
    """Add & Norm around attention, with reversed rows."""
    return seeded(lambda: ReversedInput(AddNormAttention())), random_vectors()


EQUIVARIANT = "swapping input rows swaps the output rows in the same way"

CLAIM = Claim(
    number=4,
    name="add_norm",
    statement="Add & Norm loses the order of the tokens: afterwards it makes no difference.",
    expected_verdict="refuted",
    exact_statement=(
        "Add & Norm acts on each row alone. The rows keep their order, so it loses no order, and no row depends on its "
        "index, so it adds none. Swapping two input rows gives a different matrix, with the same two rows swapped."
    ),
    conditions=(
        "the mean and the deviation run over the features of one token, as in LayerNorm and RMSNorm",
        "the sublayer acts on each row alone too; attention as the sublayer mixes rows",
    ),
    source="Vaswani et al. 2017, arXiv:1706.03762, section 3.1; Ba et al. 2016, arXiv:1607.06450",
    theorems=(
        "argument.rows.rows_equivariant",
        "argument.rows.residual_equivariant",
    ),
    checks=(
        ClaimCheck(
            statement="swapping input rows leaves the output matrix unchanged",
            make_subject=post_norm,
            method=output_unchanged,
            expected="fails",
            asserted_by_claim="holds",
            negative_control=norm_over_tokens,
        ),
        ClaimCheck(
            statement=EQUIVARIANT,
            make_subject=post_norm,
            method=LawCheck(PERMUTATION, pointwise=True),
            expected="holds",
            negative_control=add_norm_with_row_numbers,
        ),
        ClaimCheck(
            statement=EQUIVARIANT,
            make_subject=pre_norm,
            method=LawCheck(PERMUTATION, pointwise=True),
            expected="holds",
            negative_control=add_norm_with_row_numbers,
        ),
        ClaimCheck(
            statement="no row depends on a later row",
            make_subject=post_norm,
            method=LawCheck(CAUSAL, pointwise=True),
            expected="holds",
            negative_control=add_norm_attention,
        ),
        ClaimCheck(
            statement="no row depends on an earlier row",
            make_subject=reversed_add_norm,
            method=LawCheck(CAUSAL, pointwise=True),
            expected="holds",
            negative_control=reversed_add_norm_attention,
        ),
    ),
)
