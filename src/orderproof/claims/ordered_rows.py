"""Claim 2: the rows of X are ordered, but self-attention without positions is permutation-equivariant.

A matrix has a first and a second row, but no operation of attention uses the index of a row:

    f(P X) = P f(X)

A word that moves to another row has the same output, in that other row: the order of the rows is preserved, and the
content of a row does not depend on it. So f(P X) and f(X) are different matrices with the same rows.
Source: Vaswani et al. 2017, "Attention Is All You Need", arXiv:1706.03762, section 3.5 ("no recurrence and no
convolution").
"""

from __future__ import annotations

from torch import Tensor, nn

from orderproof.claims.claim import Claim, ClaimCheck
from orderproof.claims.law_check import LawCheck
from orderproof.claims.numeric_check import output_unchanged
from orderproof.claims.small_models import AttentionBlock, WithRowNumbers, random_vectors, seeded
from orderproof.laws.proved.permutation import LAW as PERMUTATION


class AveragedAttention(AttentionBlock):
    """Attention with every output row replaced by the mean of all."""

    def forward(self, x: Tensor) -> Tensor:
        """Attend, then average over rows."""
        rows = super().forward(x)
        return rows.mean(1, keepdim=True).expand_as(rows)


def self_attention() -> tuple[nn.Module, Tensor]:
    """Self-attention without positions."""
    return seeded(AttentionBlock), random_vectors()


def attention_with_row_numbers() -> tuple[nn.Module, Tensor]:
    """Self-attention with row numbers added to its input."""
    return seeded(lambda: WithRowNumbers(AttentionBlock())), random_vectors()


def averaged_attention() -> tuple[nn.Module, Tensor]:
    """Self-attention with every output row replaced by the mean of all."""
    return seeded(AveragedAttention), random_vectors()


CLAIM = Claim(
    number=2,
    name="ordered_rows",
    statement="The rows of X are ordered, and yet the order is not used.",
    expected_verdict="proved",
    exact_statement=(
        "Permuting the rows of X permutes the output rows in the same way: f(PX) = P f(X). The order of the rows is "
        "preserved, and the content of no row depends on it. The two outputs are different matrices with the same rows."
    ),
    conditions=(
        "self-attention without positions, in which every row attends to every row",
        "for every X, every weight and every permutation P",
    ),
    source="Vaswani et al. 2017, arXiv:1706.03762, section 3.5",
    theorems=("argument.stack.transformer_equivariant",),
    checks=(
        ClaimCheck(
            statement="permuting the rows of X permutes the output rows in the same way, with unchanged content",
            make_subject=self_attention,
            method=LawCheck(PERMUTATION),
            expected="holds",
            asserted_by_claim="holds",
            negative_control=attention_with_row_numbers,
        ),
        ClaimCheck(
            statement="swapping rows of X leaves the output matrix unchanged",
            make_subject=self_attention,
            method=output_unchanged,
            expected="fails",
            asserted_by_claim="fails",
            negative_control=averaged_attention,
        ),
    ),
)
