"""Learned absolute positions: row p of a learned table is added to the token at position p.

    y[m] = x[m] + weight[p[m]]

Rows that training never reached are arbitrary. A position beyond the table raises an error and is never clamped to the
last row. The encoding is neither relative nor symmetric.
Source: Gehring et al. 2017, "Convolutional Sequence to Sequence Learning", arXiv:1705.03122, section 3.1;
Devlin et al. 2018, "BERT", arXiv:1810.04805, section 3.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import torch
from torch import Tensor, nn
from torch.nn import functional

from orderproof.encodings._encoding import Claims, ModelSizes, PositionalEncoding
from orderproof.encodings._registry import register
from orderproof.encodings.checks import check_features, check_max_position, check_size, working_dtype
from orderproof.errors import EncodingError
from orderproof.positions import validate as validate_positions

if TYPE_CHECKING:
    from jaxtyping import Float, Int


@register("learned", aliases=("absolute",))
class LearnedAbsolute(PositionalEncoding):
    """A learned table with one row per position."""

    def __init__(self, length: int, width: int) -> None:
        super().__init__()
        self.length = check_size("LearnedAbsolute", "length", length)
        self.width = check_size("LearnedAbsolute", "width", width)
        self.claims = Claims(site="embed", relative=False, symmetric=False, max_position=length - 1)
        self.weight = nn.Parameter(torch.empty(length, width))
        self.reset_parameters()

    @classmethod
    def for_model(cls, sizes: ModelSizes, **options: Any) -> Self:
        """A table of the model's length."""
        if sizes.length is None:
            raise EncodingError("LearnedAbsolute: a table needs a length; pass it, as in Transformer(..., length=512)")
        return cls(sizes.length, sizes.width, **options)

    def reset_parameters(self) -> None:
        """Reinitialize the table: normal, standard deviation 0.02, like BERT and GPT-2."""
        nn.init.normal_(self.weight, std=0.02)

    def embed(
        self, x: Float[Tensor, "batch token width"], positions: Int[Tensor, "*batch token"]
    ) -> Float[Tensor, "batch token width"]:
        """Add each position's row. Raises `EncodingError` for a position beyond the table."""
        check_features("LearnedAbsolute", x, self.width)
        positions = validate_positions(positions, batch=x.shape[0], tokens=x.shape[1], device=x.device)
        last = self.length - 1
        check_max_position(
            positions,
            last,
            f"LearnedAbsolute: expected positions up to {last}, got {{came}}; use a longer table",
        )
        wide = working_dtype(x)
        rows = functional.embedding(positions, self.weight)
        return (x.to(wide) + rows.to(wide)).to(x.dtype)

    def extra_repr(self) -> str:
        """The constructor arguments."""
        return f"{self.length}, {self.width}"
