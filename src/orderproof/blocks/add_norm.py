"""Residual connection and normalisation: a sublayer's output is added to its input.

    before   y = x + sublayer(norm(x))          pre-norm: the sum is normalised only at the end of the stack
    after    y = norm(x + sublayer(x))          post-norm, as in the paper

Source: Vaswani et al. 2017, arXiv:1706.03762, section 3.1; Xiong et al. 2020, "On Layer Normalization in the
Transformer Architecture", arXiv:2002.04745.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Literal

from torch import Tensor, nn

from orderproof.blocks.norm import LayerNorm, RMSNorm
from orderproof.errors import UsageError

if TYPE_CHECKING:
    from jaxtyping import Float

Norm = Literal["layer", "rms"]
NormPlacement = Literal["before", "after"]

_norms: dict[str, type[LayerNorm | RMSNorm]] = {"layer": LayerNorm, "rms": RMSNorm}


class AddNorm(nn.Module):
    """A residual connection around a sublayer, with normalisation before or after it."""

    def __init__(self, width: int, *, norm: Norm = "layer", norm_placement: NormPlacement = "before") -> None:
        super().__init__()
        if norm not in _norms:
            raise UsageError(f"norm: expected 'layer' or 'rms', got {norm!r}")
        if norm_placement not in ("before", "after"):
            raise UsageError(f"norm_placement: expected 'before' or 'after', got {norm_placement!r}")
        self.before = norm_placement == "before"
        self.norm = _norms[norm](width)

    def forward(
        self, x: Float[Tensor, "batch token width"], sublayer: Callable[[Tensor], Tensor]
    ) -> Float[Tensor, "batch token width"]:
        """Add the sublayer's output to ``x``, with normalisation."""
        y: Tensor = x + sublayer(self.norm(x)) if self.before else self.norm(x + sublayer(x))
        return y
