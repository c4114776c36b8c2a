"""Continuous window bias of Swin v2: a small network says what each offset of two patches adds to a score.

    b(m, n) = 16 sigmoid( W2 relu(W1 x + b1) )          x = (x_down, x_across), one for each axis:
    x = sign(d) log2(1 + 8 |d| / (size - 1)) / log2(8)      d = m - n along the axis

``size`` is the window's, or that of the window the weights were trained in (``trained``): with it a larger window
asks the network about offsets it has not seen instead of having no row for them. b sees the offset only, so it is
relative; it tells right from left. What does not follow: that what it says of unseen offsets is any good.
Source: Liu et al. 2021, "Swin Transformer V2", arXiv:2111.09883, section 3.3.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Self

import torch
from torch import Tensor, nn
from torch.nn import functional

from orderproof.encodings._encoding import Sizes
from orderproof.encodings._grid import WindowBias, check_window, square
from orderproof.encodings._operands import check_size, exactly
from orderproof.encodings._registry import register

if TYPE_CHECKING:
    from jaxtyping import Float


@register("grid_mlp")
class GridMlp(WindowBias):
    """A trained function of the offset of two patches."""

    def __init__(
        self, heads: int, *, window: tuple[int, int], trained: tuple[int, int] | None = None, hidden: int = 512
    ) -> None:
        super().__init__(heads, window=window)
        self.trained = check_window("GridMlp", "trained", window if trained is None else trained)
        self.hidden = check_size("GridMlp", "hidden", hidden)
        self.inner = nn.Linear(2, hidden)
        self.outer = nn.Linear(hidden, heads, bias=False)

    @classmethod
    def for_model(cls, sizes: Sizes) -> Self:
        """A square window of the model's stated length."""
        return cls(sizes.heads, window=square("GridMlp", sizes))

    def reset_parameters(self) -> None:
        """Draw the network anew."""
        self.inner.reset_parameters()
        self.outer.reset_parameters()

    def table(self) -> Float[Tensor, "offset head"]:
        """What the network says of every offset, in float64: it is asked once for each, not for each pair."""
        weight = self.inner.weight
        axes = [
            _spaced(torch.arange(1 - size, size, device=weight.device), trained)
            for size, trained in zip(self.window, self.trained, strict=True)
        ]
        offsets = torch.stack(torch.meshgrid(*axes, indexing="ij"), dim=-1).flatten(0, 1)
        with exactly(weight):
            inner = functional.linear(offsets, weight.to(torch.float64), self.inner.bias.to(torch.float64)).relu()
            return 16 * torch.sigmoid(functional.linear(inner, self.outer.weight.to(torch.float64)))

    def extra_repr(self) -> str:
        """The arguments it was made with."""
        return f"{super().extra_repr()}, trained={self.trained}, hidden={self.hidden}"


def _spaced(offset: Tensor, size: int) -> Tensor:
    """Offsets from -1 to 1 in the trained window, spread where they are small."""
    share = 8 * offset.abs().to(torch.float64) / max(size - 1, 1)
    return offset.sign() * torch.log2(share + 1) / math.log2(8)
