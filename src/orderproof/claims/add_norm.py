"""Claim 4: "Add & Norm loses the order". It does not: it neither adds order nor loses it.

    y_m = norm(x_m + sublayer(x)_m)          for each row m on its own

The sum adds row m to row m. The norm takes mean and deviation over the features of row m. No row sees another and no
row sees its number, so Add & Norm(P X) = P Add & Norm(X): the rows come out in the order in which they went in. The
order of the rows was not lost there. It was never in the rows: attention before it did not read it either (claim 2).
A norm does forget something, the scale of a row: x and 2x may come out alike. That is about what a row says, not about
where it stands.
Source: Vaswani et al. 2017, "Attention Is All You Need", arXiv:1706.03762, section 3.1; Ba et al. 2016, "Layer
Normalization", arXiv:1607.06450.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from orderproof.blocks import AddNorm, FeedForward
from orderproof.blocks.add_norm import Norm, Order
from orderproof.claims.by_law import ByLaw
from orderproof.claims.by_numbers import unchanged
from orderproof.claims.claim import Claim, Ground
from orderproof.claims.models import WIDTH, Mixing, Numbered, seeded, vectors


class Around(nn.Module):
    """Add & Norm around a feed-forward network."""

    def __init__(self, norm: Norm = "layer", order: Order = "after") -> None:
        super().__init__()
        self.add_norm = AddNorm(WIDTH, norm=norm, order=order)
        self.feed_forward = FeedForward(WIDTH, 2 * WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        """Add what the network makes of each row to it, and normalise."""
        y: Tensor = self.add_norm(x, self.feed_forward)
        return y


class AroundAttention(Around):
    """Add & Norm around attention, in which rows do see each other."""

    def __init__(self) -> None:
        super().__init__()
        self.mixing = Mixing()

    def forward(self, x: Tensor) -> Tensor:
        """Add what attention makes of each row to it, and normalise."""
        y: Tensor = self.add_norm(x, self.mixing)
        return y


class OverTokens(Around):
    """The same with a norm that runs over the tokens, sums them up, and gives each row the sum."""

    def forward(self, x: Tensor) -> Tensor:
        """Add up all rows."""
        return super().forward(x).sum(1, keepdim=True).expand_as(x)


class FromTheBack(nn.Module):
    """A module that is given its rows from the last to the first, and whose rows are turned back."""

    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, x: Tensor) -> Tensor:
        """Turn, work, turn back."""
        return torch.flip(self.inner(torch.flip(x, (1,))), (1,))


def add_and_norm() -> tuple[nn.Module, Tensor]:
    """Add & Norm around a feed-forward network, as in the paper: norm(x + sublayer(x))."""
    return seeded(Around), vectors()


def norm_first() -> tuple[nn.Module, Tensor]:
    """Add & Norm as many models have it today: x + sublayer(RMSNorm(x))."""
    return seeded(lambda: Around("rms", "before")), vectors()


def from_the_back() -> tuple[nn.Module, Tensor]:
    """Add & Norm, its rows given from the last to the first."""
    return seeded(lambda: FromTheBack(Around())), vectors()


def over_tokens() -> tuple[nn.Module, Tensor]:
    """Add & Norm that sums over tokens in place of features."""
    return seeded(OverTokens), vectors()


def numbered() -> tuple[nn.Module, Tensor]:
    """Add & Norm of rows to which their numbers were added."""
    return seeded(lambda: Numbered(Around())), vectors()


def around_attention() -> tuple[nn.Module, Tensor]:
    """Add & Norm around attention, in which rows see each other."""
    return seeded(AroundAttention), vectors()


def around_attention_from_the_back() -> tuple[nn.Module, Tensor]:
    """Add & Norm around attention, its rows given from the last to the first."""
    return seeded(lambda: FromTheBack(AroundAttention())), vectors()


ALIKE = "exchange rows going in, and the rows coming out are exchanged alike"

CLAIM = Claim(
    number=4,
    name="add_norm",
    statement="Add & Norm loses the order of the tokens: afterwards it makes no difference.",
    documented="refuted",
    exact=(
        "Add & Norm works on each row alone. Rows come out in the order in which they went in, so it loses no "
        "order; and no row is told its number, so it adds none. Exchange two rows, and the output is another "
        "matrix: its rows are exchanged too."
    ),
    conditions=(
        "the mean and the deviation run over the features of one token, as in LayerNorm and RMSNorm",
        "the sublayer between works on each row alone too; around attention the rows mix, in the attention",
    ),
    source="Vaswani et al. 2017, arXiv:1706.03762, section 3.1; Ba et al. 2016, arXiv:1607.06450",
    grounds=(
        Ground(
            what="exchange rows going in, and what comes out is the same matrix", subject=add_and_norm, test=unchanged,
            expected="fails", asserted="holds", broken=over_tokens,
        ),
        Ground(
            what=ALIKE, subject=add_and_norm, test=ByLaw("order_blind", alone=True), expected="holds", broken=numbered,
        ),
        Ground(
            what=ALIKE, subject=norm_first, test=ByLaw("order_blind", alone=True), expected="holds", broken=numbered,
        ),
        Ground(
            what="no row depends on a later row", subject=add_and_norm, test=ByLaw("causal", alone=True),
            expected="holds", broken=around_attention,
        ),
        Ground(
            what="no row depends on an earlier row", subject=from_the_back, test=ByLaw("causal", alone=True),
            expected="holds", broken=around_attention_from_the_back,
        ),
    ),
)  # fmt: skip
