"""One layer of a transformer: attention between tokens, then a feed-forward network on each token.

    x = add_norm(x, attention)
    x = add_norm(x, feed_forward)

Source: Vaswani et al. 2017, arXiv:1706.03762, section 3.1.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypedDict

from torch import Tensor, nn

from orderproof.blocks.add_norm import AddNorm, Norm, NormPlacement
from orderproof.blocks.attention import SelfAttention
from orderproof.blocks.attention_inputs import AttentionInputs
from orderproof.blocks.feed_forward import FeedForward
from orderproof.encodings import AttentionBackend

if TYPE_CHECKING:
    from jaxtyping import Float


class LayerOptions(TypedDict, total=False):
    """The keyword options of `TransformerLayer`, which stacks and transformers pass through."""

    hidden: int | None
    """Features of the feed-forward network; None: four times the width."""
    norm: Norm
    norm_placement: NormPlacement
    backend: AttentionBackend


class TransformerLayer(nn.Module):
    """Attention and feed-forward, each with its residual connection and normalisation."""

    def __init__(
        self,
        width: int,
        heads: int,
        *,
        causal: bool,
        hidden: int | None = None,
        norm: Norm = "layer",
        norm_placement: NormPlacement = "before",
        backend: AttentionBackend = "sdpa",
    ) -> None:
        super().__init__()
        self.attention = SelfAttention(width, heads, causal=causal, backend=backend)
        self.feed_forward = FeedForward(width, 4 * width if hidden is None else hidden)
        self.around_attention = AddNorm(width, norm=norm, norm_placement=norm_placement)
        self.around_feed_forward = AddNorm(width, norm=norm, norm_placement=norm_placement)

    def forward(
        self, x: Float[Tensor, "batch token width"], inputs: AttentionInputs
    ) -> Float[Tensor, "batch token width"]:
        """Transform the tokens; each one depends on the tokens visible to it."""
        x = self.around_attention(x, lambda y: self.attention(y, inputs))
        return self.around_feed_forward(x, self.feed_forward)  # type: ignore[no-any-return]
