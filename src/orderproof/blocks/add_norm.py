"""Residual and normalisation: what a sublayer finds is added to what was there.

    before   y = x + sublayer(norm(x))          "pre-norm": the sum is never normalised until the end of the stack
    after    y = norm(x + sublayer(x))          "post-norm": the paper's order

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
Order = Literal["before", "after"]

_norms: dict[str, type[LayerNorm | RMSNorm]] = {"layer": LayerNorm, "rms": RMSNorm}


class AddNorm(nn.Module):
    """A residual connection around a sublayer, with its normalisation."""

    def __init__(self, width: int, *, norm: Norm = "layer", order: Order = "before") -> None:
        super().__init__()
        if norm not in _norms:
            raise UsageError(f"norm: expected 'layer' or 'rms', got {norm!r}")
        if order not in ("before", "after"):
            raise UsageError(f"order: expected 'before' or 'after', got {order!r}")
        self.before = order == "before"
        self.norm = _norms[norm](width)

    def forward(
        self, x: Float[Tensor, "batch token width"], sublayer: Callable[[Tensor], Tensor]
    ) -> Float[Tensor, "batch token width"]:
        """Add what the sublayer makes of ``x`` to ``x``."""
        y: Tensor = x + sublayer(self.norm(x)) if self.before else self.norm(x + sublayer(x))
        return y
