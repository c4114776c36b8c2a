"""FIRE: a small network of the distance relative to the longest distance of the query.

    b(m, n) = MLP( psi(|m - n|) / psi(max(m, threshold)) )        psi(x) = ln(|c| x + 1)

    MLP(x) = W2 relu(W1 x + b1) + b2          from one number to one per head; all of W, b and c are learned

A causal query m sees no key farther than m, so the ratio is between 0 and 1 at any length. For m up to the threshold
the normaliser is constant: there b depends only on the distance, not on its direction. Beyond it b depends on m too:
the encoding is relative and symmetric up to the threshold only. In a bidirectional encoder the ratio can exceed 1,
which is defined, but not intended by the paper.
The paper learns the threshold. With ``learned_threshold`` it is threshold * |multiplier|, and the encoding does not
claim to be relative, because the range is not known.
Source: Li et al. 2023, "Functional Interpolation for Relative Positions Improves Long Context Transformers",
arXiv:2310.04418, section 3.2; initial values as in Zheng et al. 2024, "DAPE", arXiv:2405.14722.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import torch
from torch import Tensor, nn
from torch.nn import functional

from orderproof.encodings._encoding import AttentionContent, Claims, ModelSizes, PositionalEncoding, ScoreMod
from orderproof.encodings._registry import register
from orderproof.encodings.checks import autocast_disabled, check_dtype, check_flag, check_size, distances

if TYPE_CHECKING:
    from jaxtyping import Float, Int

_INITIAL_C = 0.1


@register("fire")
class FIRE(PositionalEncoding):
    """A learned function of the distance relative to the longest one."""

    def __init__(self, heads: int, *, hidden: int = 32, threshold: int = 512, learned_threshold: bool = False) -> None:
        super().__init__()
        self.heads = check_size("FIRE", "heads", heads)
        self.hidden = check_size("FIRE", "hidden", hidden)
        self.threshold = check_size("FIRE", "threshold", threshold)
        check_flag("FIRE", "learned_threshold", learned_threshold)
        self.inner = nn.Linear(1, hidden)
        self.outer = nn.Linear(hidden, heads)
        self.c = nn.Parameter(torch.empty(()))
        self.multiplier = nn.Parameter(torch.empty(())) if learned_threshold else None
        fixed = not learned_threshold
        self.claims = Claims(site="bias", relative=fixed, symmetric=fixed, relative_up_to=threshold if fixed else None)
        self.reset_parameters()

    @classmethod
    def for_model(cls, sizes: ModelSizes, **options: Any) -> Self:
        """The sizes of the paper."""
        return cls(sizes.heads, **options)

    def reset_parameters(self) -> None:
        """Reinitialize the network; c is 0.1 and the threshold its initial value."""
        self.inner.reset_parameters()
        self.outer.reset_parameters()
        nn.init.constant_(self.c, _INITIAL_C)
        if self.multiplier is not None:
            nn.init.ones_(self.multiplier)

    def bias(
        self,
        q_positions: Int[Tensor, "*batch query"],
        k_positions: Int[Tensor, "*batch key"],
        *,
        content: AttentionContent | None = None,
        dtype: torch.dtype = torch.float32,
    ) -> Float[Tensor, "batch head query key"]:
        """The network's output for every query and key, rounded once to ``dtype``."""
        del content
        check_dtype("FIRE", dtype)
        wide = torch.float64 if dtype == torch.float64 else torch.float32
        far = distances(q_positions, k_positions).abs().to(torch.float64)
        share = (self._psi(far) / self._psi(self._normalizer(q_positions))).to(wide).unsqueeze(-1)
        with autocast_disabled(far):
            inner = functional.linear(share, self.inner.weight.to(wide), self.inner.bias.to(wide)).relu()
            bias = functional.linear(inner, self.outer.weight.to(wide), self.outer.bias.to(wide))
        return bias.movedim(-1, 1).to(dtype)

    def score_mod(self, q_positions: Int[Tensor, "*batch query"], k_positions: Int[Tensor, "*batch key"]) -> ScoreMod:
        """The precomputed bias, indexed: a score kernel cannot evaluate a network."""
        table = self.bias(q_positions, k_positions)

        def look_up(score: Tensor, batch: Tensor, head: Tensor, query: Tensor, key: Tensor) -> Tensor:
            row = torch.zeros_like(batch) if table.shape[0] == 1 else batch
            return score + table[row, head, query, key]

        return look_up

    def _normalizer(self, q_positions: Int[Tensor, "*batch query"]) -> Float[Tensor, "batch query 1"]:
        """The distance with ratio 1: the larger of the query's position and the threshold."""
        rows = q_positions.unsqueeze(0) if q_positions.dim() == 1 else q_positions
        threshold = torch.full((), float(self.threshold), dtype=torch.float64, device=rows.device)
        if self.multiplier is not None:
            threshold = threshold * self.multiplier.abs().to(torch.float64)
        return torch.maximum(rows.to(torch.float64), threshold).unsqueeze(-1)

    def _psi(self, x: Float[Tensor, "*any"]) -> Float[Tensor, "*any"]:
        return torch.log1p(self.c.abs().to(torch.float64) * x)

    def extra_repr(self) -> str:
        """The constructor arguments."""
        learned = "" if self.multiplier is None else ", learned_threshold=True"
        return f"{self.heads}, hidden={self.hidden}, threshold={self.threshold}{learned}"
