"""Claim 2: the rows of X are ordered, and yet the order is not used.

A matrix has a first row and a second. But no step of attention reads the number of a row:

    f(P X) = P f(X)

A word that is moved to another row finds its output in that other row, and it is the same output: the rows of the
result carry the order along, and nothing that stands *in* a row knows it. So f(P X) and f(X) are different matrices,
made of the same rows.
Source: Vaswani et al. 2017, "Attention Is All You Need", arXiv:1706.03762, section 3.5 ("no recurrence and no
convolution").
"""

from __future__ import annotations

from torch import Tensor, nn

from orderproof.claims.by_law import ByLaw
from orderproof.claims.by_numbers import unchanged
from orderproof.claims.claim import Claim, Ground
from orderproof.claims.models import Mixing, Numbered, seeded, vectors


class Averaged(Mixing):
    """Attention whose output is the mean of its rows, in every row."""

    def forward(self, x: Tensor) -> Tensor:
        """Mix, and forget which row is which."""
        mixed = super().forward(x)
        return mixed.mean(1, keepdim=True).expand_as(mixed)


def self_attention() -> tuple[nn.Module, Tensor]:
    """Self-attention without positions, from rows to rows."""
    return seeded(Mixing), vectors()


def numbered() -> tuple[nn.Module, Tensor]:
    """Self-attention of rows to which their numbers were added."""
    return seeded(lambda: Numbered(Mixing())), vectors()


def averaged() -> tuple[nn.Module, Tensor]:
    """Self-attention that gives every row the mean of all."""
    return seeded(Averaged), vectors()


CLAIM = Claim(
    number=2,
    name="ordered_rows",
    statement="The rows of X are ordered, and yet the order is not used.",
    documented="proved",
    exact=(
        "Exchange rows of X, and the output's rows are exchanged in the same way: f(PX) = P f(X). The order of "
        "the rows is carried along, and no row's content depends on it. The two outputs are different matrices "
        "with the same rows."
    ),
    conditions=(
        "self-attention without positions, in which every row sees every row",
        "for every X, every weight and every permutation P",
    ),
    source="Vaswani et al. 2017, arXiv:1706.03762, section 3.5",
    grounds=(
        Ground(
            what="exchange rows of X, and the output's rows are exchanged alike, their content unchanged",
            subject=self_attention, test=ByLaw("order_blind"), expected="holds", asserted="holds", broken=numbered,
        ),
        Ground(
            what="exchange rows of X, and the output is the same matrix as before",
            subject=self_attention, test=unchanged, expected="fails", asserted="fails", broken=averaged,
        ),
    ),
)  # fmt: skip
