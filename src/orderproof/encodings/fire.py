"""FIRE: a small network reads the distance as a share of the farthest one.

    b(m, n) = MLP( psi(|m - n|) / psi(max(m, threshold)) )        psi(x) = ln(|c| x + 1)

    MLP(x) = W2 relu(W1 x + b1) + b2          from one number to one a head; all of W, b and c learn

A causal query m sees no key farther than m, so the share lies between 0 and 1 however long the row is. For m up to
the threshold the normaliser is one number: there b sees the distance only, and not its direction. Past it b depends
on m too: the encoding is relative, and symmetric, within the threshold and not beyond. In an encoder a key may be
farther than m is long, and a share above 1; that is defined, but not what the paper had in mind.
The paper lets the threshold learn. With ``learned_threshold`` it does (threshold * |multiplier|), and no claim of
relativity is left, because nobody can say up to where it holds.
Source: Li et al. 2023, "Functional Interpolation for Relative Positions Improves Long Context Transformers",
arXiv:2310.04418, section 3.2; initial values as in Zheng et al. 2024, "DAPE", arXiv:2405.14722.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

import torch
from torch import Tensor, nn
from torch.nn import functional

from orderproof.encodings._encoding import Claims, Content, PositionalEncoding, ScoreMod, Sizes
from orderproof.encodings._operands import check_dtype, check_flag, check_size, distances, exactly
from orderproof.encodings._registry import register

if TYPE_CHECKING:
    from jaxtyping import Float, Int

_FIRST_C = 0.1


@register("fire")
class Fire(PositionalEncoding):
    """A trained function of the share that a distance has of the longest one."""

    def __init__(self, heads: int, *, hidden: int = 32, threshold: int = 512, learned_threshold: bool = False) -> None:
        super().__init__()
        self.heads = check_size("Fire", "heads", heads)
        self.hidden = check_size("Fire", "hidden", hidden)
        self.threshold = check_size("Fire", "threshold", threshold)
        check_flag("Fire", "learned_threshold", learned_threshold)
        self.inner = nn.Linear(1, hidden)
        self.outer = nn.Linear(hidden, heads)
        self.c = nn.Parameter(torch.empty(()))
        self.multiplier = nn.Parameter(torch.empty(())) if learned_threshold else None
        fixed = not learned_threshold
        self.claims = Claims(site="bias", relative=fixed, symmetric=fixed, relative_within=threshold if fixed else None)
        self.reset_parameters()

    @classmethod
    def for_model(cls, sizes: Sizes) -> Self:
        """The sizes of the paper."""
        return cls(sizes.heads)

    def reset_parameters(self) -> None:
        """Draw the network anew; c is 0.1 and the threshold what was stated."""
        self.inner.reset_parameters()
        self.outer.reset_parameters()
        nn.init.constant_(self.c, _FIRST_C)
        if self.multiplier is not None:
            nn.init.ones_(self.multiplier)

    def bias(
        self,
        q_positions: Int[Tensor, "*batch query"],
        k_positions: Int[Tensor, "*batch key"],
        *,
        content: Content | None = None,
        dtype: torch.dtype = torch.float32,
    ) -> Float[Tensor, "batch head query key"]:
        """The network's answer for every query and key, rounded once to ``dtype``."""
        del content
        check_dtype("Fire", dtype)
        wide = torch.float64 if dtype == torch.float64 else torch.float32
        far = distances(q_positions, k_positions).abs().to(torch.float64)
        share = (self._psi(far) / self._psi(self._longest(q_positions))).to(wide).unsqueeze(-1)
        with exactly(far):
            inner = functional.linear(share, self.inner.weight.to(wide), self.inner.bias.to(wide)).relu()
            found = functional.linear(inner, self.outer.weight.to(wide), self.outer.bias.to(wide))
        return found.movedim(-1, 1).to(dtype)

    def score_mod(self, q_positions: Int[Tensor, "*batch query"], k_positions: Int[Tensor, "*batch key"]) -> ScoreMod:
        """The same bias, looked up: a kernel that makes one score has no room for a network."""
        table = self.bias(q_positions, k_positions)

        def look_up(score: Tensor, batch: Tensor, head: Tensor, query: Tensor, key: Tensor) -> Tensor:
            row = torch.zeros_like(batch) if table.shape[0] == 1 else batch
            return score + table[row, head, query, key]

        return look_up

    def _longest(self, q_positions: Int[Tensor, "*batch query"]) -> Float[Tensor, "batch query 1"]:
        """The distance that counts as 1: the query's own position, or the threshold where that is more."""
        rows = q_positions.unsqueeze(0) if q_positions.dim() == 1 else q_positions
        threshold = torch.full((), float(self.threshold), dtype=torch.float64, device=rows.device)
        if self.multiplier is not None:
            threshold = threshold * self.multiplier.abs().to(torch.float64)
        return torch.maximum(rows.to(torch.float64), threshold).unsqueeze(-1)

    def _psi(self, x: Float[Tensor, "*any"]) -> Float[Tensor, "*any"]:
        return torch.log1p(self.c.abs().to(torch.float64) * x)

    def extra_repr(self) -> str:
        """The arguments it was made with."""
        learned = "" if self.multiplier is None else ", learned_threshold=True"
        return f"{self.heads}, hidden={self.hidden}, threshold={self.threshold}{learned}"
