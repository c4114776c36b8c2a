"""Claim 3: Q, K and V are three projections of one X.

    Q = X Wq + bq        K = X Wk + bk        V = X Wv + bv

In self-attention all three read the same X: they are three views of the same tokens, one row a token. They are not
equal, because their weights are not. In cross-attention Q reads one sequence and K and V another.
Source: Vaswani et al. 2017, "Attention Is All You Need", arXiv:1706.03762, section 3.2.3.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from orderproof.claims.bench import Bench
from orderproof.claims.by_graph import OUTPUTS, keys_and_values_from_elsewhere, projections_of_one_input
from orderproof.claims.by_numbers import apart, judged, made_in_float64
from orderproof.claims.claim import Claim, Ground, Make, Outcome
from orderproof.claims.models import BATCH, WIDTH, AttentionSteps, seeded, vectors
from orderproof.report import words


class Cross(AttentionSteps):
    """Cross-attention: queries of one sequence, keys and values of another."""

    def forward(self, x: Tensor, memory: Tensor) -> dict[str, Tensor]:  # type: ignore[override]
        """The three projections."""
        a = self.attention
        return {"Q": a.to_query(x), "K": a.to_key(memory), "V": a.to_value(memory)}


class Shifted(AttentionSteps):
    """Self-attention whose keys are those of the row before."""

    def forward(self, x: Tensor) -> dict[str, Tensor]:
        """The three projections."""
        a = self.attention
        return {"Q": a.to_query(x), "K": a.to_key(x.roll(1, dims=1)), "V": a.to_value(x)}


class Tied(AttentionSteps):
    """Self-attention with one projection for all three."""

    def forward(self, x: Tensor) -> dict[str, Tensor]:
        """The three projections, which are one."""
        return dict.fromkeys(OUTPUTS, self.attention.to_query(x))


def self_attention() -> tuple[nn.Module, Tensor]:
    """Self-attention."""
    return seeded(AttentionSteps), vectors()


def shifted() -> tuple[nn.Module, Tensor]:
    """Self-attention whose keys are those of the row before."""
    return seeded(Shifted), vectors()


def tied() -> tuple[nn.Module, Tensor]:
    """Self-attention with one projection for all three."""
    return seeded(Tied), vectors()


def cross_attention() -> tuple[nn.Module, tuple[Tensor, Tensor]]:
    """Cross-attention from one sequence to another."""
    return seeded(Cross), (vectors(), torch.ones(BATCH, 3, WIDTH))


@torch.no_grad()
def all_equal(make: Make, bench: Bench) -> Outcome:
    """Whether Q, K and V are the same matrix."""
    module, x = made_in_float64(make)
    steps = module(x)
    gaps = {f"{a} and {b}": apart(steps[a], steps[b]) for a, b in (("Q", "K"), ("K", "V"), ("Q", "V"))}
    return judged(max(gaps.values()), tuple(f"{pair} differ by {words.size(gap)}" for pair, gap in gaps.items()))


CLAIM = Claim(
    number=3,
    name="three_projections",
    statement="Q, K and V are three projections of one X.",
    documented="shown",
    exact=(
        "In self-attention Q, K and V are each one linear map of the same X, row by row, with weights of their "
        "own. They need not be equal. In cross-attention Q comes from one sequence, K and V from another."
    ),
    conditions=(
        "true by how the layer is built: it is read off the recorded graph of this layer, not of every model",
        "self-attention; in cross-attention K and V come from elsewhere",
    ),
    source="Vaswani et al. 2017, arXiv:1706.03762, section 3.2.3",
    grounds=(
        Ground(
            what="Q, K and V are each one linear map of the very same tensor", subject=self_attention,
            test=projections_of_one_input, expected="holds", asserted="holds", broken=shifted,
        ),
        Ground(
            what="Q, K and V are the same matrix", subject=self_attention, test=all_equal, expected="fails",
            broken=tied,
        ),
        Ground(
            what="K and V are linear maps of one tensor, Q of another", subject=cross_attention,
            test=keys_and_values_from_elsewhere, expected="holds", broken=self_attention,
        ),
    ),
)  # fmt: skip
