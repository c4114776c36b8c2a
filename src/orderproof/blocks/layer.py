"""One layer of a transformer: attention lets tokens exchange, feed-forward lets each one think.

    x = add_norm(x, attention)
    x = add_norm(x, feed_forward)

Source: Vaswani et al. 2017, arXiv:1706.03762, section 3.1.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from torch import Tensor, nn

from orderproof.blocks.add_norm import AddNorm, Norm, Order
from orderproof.blocks.attention import SelfAttention
from orderproof.blocks.cache import KeyValueCache
from orderproof.blocks.feed_forward import FeedForward
from orderproof.blocks.spread import Spread
from orderproof.encodings import Backend, PositionalEncoding

if TYPE_CHECKING:
    from jaxtyping import Bool, Float, Int


class Layer(nn.Module):
    """Attention, then feed-forward, each with its residual connection and normalisation."""

    def __init__(
        self,
        width: int,
        heads: int,
        *,
        causal: bool,
        hidden: int | None = None,
        norm: Norm = "layer",
        order: Order = "before",
        backend: Backend = "sdpa",
    ) -> None:
        super().__init__()
        self.attention = SelfAttention(width, heads, causal=causal, backend=backend)
        self.feed_forward = FeedForward(width, 4 * width if hidden is None else hidden)
        self.around_attention = AddNorm(width, norm=norm, order=order)
        self.around_feed_forward = AddNorm(width, norm=norm, order=order)

    def forward(
        self,
        x: Float[Tensor, "batch token width"],
        positions: Int[Tensor, "*batch token"],
        *,
        encoding: PositionalEncoding,
        documents: Int[Tensor, "*batch token"] | None = None,
        padding_mask: Bool[Tensor, "batch token"] | None = None,
        mask: Bool[Tensor, "*batch_and_head token key"] | None = None,
        cache: KeyValueCache | None = None,
        spread: Spread | None = None,
        lengths: Int[Tensor, " batch"] | int | None = None,
    ) -> Float[Tensor, "batch token width"]:
        """Transform the tokens, each in the light of those it may see."""

        def attend(y: Tensor) -> Tensor:
            found: Tensor = self.attention(
                y,
                positions,
                encoding=encoding,
                documents=documents,
                padding_mask=padding_mask,
                mask=mask,
                cache=cache,
                spread=spread,
                lengths=lengths,
            )
            return found

        x = self.around_attention(x, attend)
        return self.around_feed_forward(x, self.feed_forward)  # type: ignore[no-any-return]
