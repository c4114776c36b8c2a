"""Claim 3: Q, K and V are three projections of one X.

    Q = X Wq + bq        K = X Wk + bk        V = X Wv + bv

In self-attention all three are linear maps of the same X, with one row per token. They differ because their weights
differ. In cross-attention, Q is computed from one sequence, K and V from another.
Source: Vaswani et al. 2017, "Attention Is All You Need", arXiv:1706.03762, section 3.2.3.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from orderproof.claims.audit_cache import AuditCache, SubjectFactory
from orderproof.claims.claim import CheckOutcome, Claim, ClaimCheck
from orderproof.claims.graph_check import PROJECTIONS, cross_attention_projections, projections_of_one_input
from orderproof.claims.numeric_check import build_subject_float64, classify_difference, max_relative_difference
from orderproof.claims.small_models import BATCH, WIDTH, AttentionSteps, random_vectors, seeded
from orderproof.report import phrases


class Cross(AttentionSteps):
    """Cross-attention: queries of one sequence, keys and values of another."""

    def forward(self, x: Tensor, memory: Tensor) -> dict[str, Tensor]:  # type: ignore[override]
        """The three projections."""
        a = self.attention
        return {"Q": a.to_query(x), "K": a.to_key(memory), "V": a.to_value(memory)}


class ShiftedKeys(AttentionSteps):
    """Self-attention with the keys shifted by one row."""

    def forward(self, x: Tensor) -> dict[str, Tensor]:
        """The three projections."""
        a = self.attention
        return {"Q": a.to_query(x), "K": a.to_key(x.roll(1, dims=1)), "V": a.to_value(x)}


class TiedProjections(AttentionSteps):
    """Self-attention with one projection for all three."""

    def forward(self, x: Tensor) -> dict[str, Tensor]:
        """The three projections, all equal."""
        return dict.fromkeys(PROJECTIONS, self.attention.to_query(x))


def self_attention() -> tuple[nn.Module, Tensor]:
    """Self-attention."""
    return seeded(AttentionSteps), random_vectors()


def shifted_keys() -> tuple[nn.Module, Tensor]:
    """Self-attention with the keys shifted by one row."""
    return seeded(ShiftedKeys), random_vectors()


def tied_projections() -> tuple[nn.Module, Tensor]:
    """Self-attention with one projection for all three."""
    return seeded(TiedProjections), random_vectors()


def cross_attention() -> tuple[nn.Module, tuple[Tensor, Tensor]]:
    """Cross-attention from one sequence to another."""
    return seeded(Cross), (random_vectors(), torch.ones(BATCH, 3, WIDTH))


@torch.no_grad()
def all_equal(make_subject: SubjectFactory, audits: AuditCache) -> CheckOutcome:
    """Check that Q, K and V are the same matrix."""
    module, x = build_subject_float64(make_subject)
    steps = module(x)
    differences = {
        f"{a} and {b}": max_relative_difference(steps[a], steps[b]) for a, b in (("Q", "K"), ("K", "V"), ("Q", "V"))
    }
    return classify_difference(
        max(differences.values()),
        tuple(f"{pair} differ by {phrases.format_difference(value)}" for pair, value in differences.items()),
    )


CLAIM = Claim(
    number=3,
    name="three_projections",
    statement="Q, K and V are three projections of one X.",
    expected_verdict="shown",
    exact_statement=(
        "In self-attention Q, K and V are three linear maps of the same X, row by row, with separate weights. They "
        "need not be equal. In cross-attention Q comes from one sequence, K and V from another."
    ),
    conditions=(
        "by construction of the layer: read from the recorded graph of this layer, not of every model",
        "self-attention; in cross-attention K and V come from another sequence",
    ),
    source="Vaswani et al. 2017, arXiv:1706.03762, section 3.2.3",
    theorems=(
        "argument.attention.attention_equivariant",
        "argument.cross_attention.cross_attention_invariant",
    ),
    checks=(
        ClaimCheck(
            statement="Q, K and V are linear maps of one tensor",
            make_subject=self_attention,
            method=projections_of_one_input,
            expected="holds",
            asserted_by_claim="holds",
            negative_control=shifted_keys,
        ),
        ClaimCheck(
            statement="Q, K and V are the same matrix",
            make_subject=self_attention,
            method=all_equal,
            expected="fails",
            negative_control=tied_projections,
        ),
        ClaimCheck(
            statement="K and V are linear maps of one tensor, Q of another",
            make_subject=cross_attention,
            method=cross_attention_projections,
            expected="holds",
            negative_control=self_attention,
        ),
    ),
)
