"""Learned absolute positions: add row p of a trained table to the token at position p.

    y[m] = x[m] + weight[p[m]]

Nothing is known about a row that training never reached, and nothing at all past the table: a position there is
refused, never clamped to the last row. The encoding is neither relative nor symmetric.
Source: Gehring et al. 2017, "Convolutional Sequence to Sequence Learning", arXiv:1705.03122, section 3.1;
Devlin et al. 2018, "BERT", arXiv:1810.04805, section 3.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

import torch
from torch import Tensor, nn
from torch.nn import functional

from orderproof import positions as place
from orderproof.encodings._encoding import Claims, PositionalEncoding, Sizes
from orderproof.encodings._operands import check_features, check_most, check_size, working_dtype
from orderproof.encodings._registry import register
from orderproof.errors import EncodingError

if TYPE_CHECKING:
    from jaxtyping import Float, Int


@register("learned", called=("absolute",))
class Learned(PositionalEncoding):
    """A trained row for each position."""

    def __init__(self, length: int, width: int) -> None:
        super().__init__()
        self.length = check_size("Learned", "length", length)
        self.width = check_size("Learned", "width", width)
        self.claims = Claims(site="embed", relative=False, symmetric=False, max_position=length - 1)
        self.weight = nn.Parameter(torch.empty(length, width))
        self.reset_parameters()

    @classmethod
    def for_model(cls, sizes: Sizes) -> Self:
        """A table as long as the model's stated length."""
        if sizes.length is None:
            raise EncodingError("Learned: a table needs a length; state it, as in Transformer(..., length=512)")
        return cls(sizes.length, sizes.width)

    def reset_parameters(self) -> None:
        """Draw the table anew: normal, deviation 0.02, as BERT and GPT-2 do."""
        nn.init.normal_(self.weight, std=0.02)

    def embed(
        self, x: Float[Tensor, "batch token width"], positions: Int[Tensor, "*batch token"]
    ) -> Float[Tensor, "batch token width"]:
        """Add each position's row; a position past the table is an error."""
        check_features("Learned", x, self.width)
        positions = place.check(positions, batch=x.shape[0], tokens=x.shape[1], device=x.device)
        last = self.length - 1
        check_most(
            positions, last, f"Learned: position {{came}} is past the table, which ends at {last}; make it longer"
        )
        wide = working_dtype(x)
        rows = functional.embedding(positions, self.weight)
        return (x.to(wide) + rows.to(wide)).to(x.dtype)

    def extra_repr(self) -> str:
        """The arguments it was made with."""
        return f"{self.length}, {self.width}"
