"""Swin v2 continuous window bias: a small network of the log-spaced offset of two patches.

    b(m, n) = 16 sigmoid( W2 relu(W1 x + b1) )          x = (x_down, x_across), one per axis:
    x = sign(d) log2(1 + 8 |d| / (size - 1)) / log2(8)      d = m - n along the axis

``size`` is the size of the window, or of the window in which the weights were trained (``trained``): a larger window
then evaluates the network at unseen offsets instead of lacking table entries. The bias depends only on the offset, so
it is relative; it distinguishes directions. Its quality at unseen offsets is not guaranteed.
Source: Liu et al. 2021, "Swin Transformer V2", arXiv:2111.09883, section 3.3.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Self

import torch
from torch import Tensor, nn
from torch.nn import functional

from orderproof.encodings._encoding import ModelSizes
from orderproof.encodings._registry import register
from orderproof.encodings._relative_bias_2d import RelativeBias2D, check_grid, smallest_square_grid
from orderproof.encodings.checks import autocast_disabled, check_size

if TYPE_CHECKING:
    from jaxtyping import Float


@register("grid_mlp")
class SwinV2Bias(RelativeBias2D):
    """A learned function of the patch offset."""

    def __init__(
        self, heads: int, *, window: tuple[int, int], trained: tuple[int, int] | None = None, hidden: int = 512
    ) -> None:
        super().__init__(heads, window=window)
        self.trained = check_grid("SwinV2Bias", "trained", window if trained is None else trained)
        self.hidden = check_size("SwinV2Bias", "hidden", hidden)
        self.inner = nn.Linear(2, hidden)
        self.outer = nn.Linear(hidden, heads, bias=False)

    @classmethod
    def for_model(cls, sizes: ModelSizes, **options: Any) -> Self:
        """A square window that holds the model's length."""
        return cls(sizes.heads, **{"window": smallest_square_grid("SwinV2Bias", sizes), **options})

    def reset_parameters(self) -> None:
        """Reinitialize the network."""
        self.inner.reset_parameters()
        self.outer.reset_parameters()

    def bias_table(self) -> Float[Tensor, "offset head"]:
        """The network's output for every offset, in float64, evaluated once per offset."""
        weight = self.inner.weight
        axes = [
            _log_spaced(torch.arange(1 - size, size, device=weight.device), trained)
            for size, trained in zip(self.window, self.trained, strict=True)
        ]
        offsets = torch.stack(torch.meshgrid(*axes, indexing="ij"), dim=-1).flatten(0, 1)
        with autocast_disabled(weight):
            inner = functional.linear(offsets, weight.to(torch.float64), self.inner.bias.to(torch.float64)).relu()
            return 16 * torch.sigmoid(functional.linear(inner, self.outer.weight.to(torch.float64)))

    def extra_repr(self) -> str:
        """The constructor arguments."""
        return f"{super().extra_repr()}, trained={self.trained}, hidden={self.hidden}"


def _log_spaced(offset: Tensor, size: int) -> Tensor:
    """Log-spaced offsets, from -1 to 1 in the trained window."""
    share = 8 * offset.abs().to(torch.float64) / max(size - 1, 1)
    return offset.sign() * torch.log2(share + 1) / math.log2(8)
