"""A stack of layers: an encoder, in which all tokens see each other, or a decoder, in which none sees ahead.

    x = layer[L](... layer[2](layer[1](x)))          and one last norm, where norms stand before the sublayers

The order of the tokens is kept from layer to layer. All layers share one encoding, or each has its own (see
`encodings.layers`): positions are alike in all.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from torch import Tensor, nn

from orderproof.blocks.add_norm import AddNorm, Norm, Order
from orderproof.blocks.cache import KeyValueCache
from orderproof.blocks.layer import Layer
from orderproof.blocks.spread import Spread
from orderproof.encodings import Backend, PositionalEncoding
from orderproof.errors import UsageError

if TYPE_CHECKING:
    from jaxtyping import Bool, Float, Int


class Stack(nn.Module):
    """Layers one after the other."""

    def __init__(
        self,
        width: int,
        heads: int,
        layers: int,
        *,
        causal: bool,
        hidden: int | None = None,
        norm: Norm = "layer",
        order: Order = "before",
        backend: Backend = "sdpa",
    ) -> None:
        super().__init__()
        if layers < 1:
            raise UsageError(f"layers: expected 1 or more, got {layers}")
        self.causal = causal
        self.layers = nn.ModuleList(
            Layer(width, heads, causal=causal, hidden=hidden, norm=norm, order=order, backend=backend)
            for _ in range(layers)
        )
        self.last_norm = AddNorm(width, norm=norm).norm if order == "before" else None

    def forward(
        self,
        x: Float[Tensor, "batch token width"],
        positions: Int[Tensor, "*batch token"],
        *,
        encoding: PositionalEncoding | Sequence[PositionalEncoding],
        documents: Int[Tensor, "*batch token"] | None = None,
        padding_mask: Bool[Tensor, "batch token"] | None = None,
        mask: Bool[Tensor, "*batch_and_head token key"] | None = None,
        caches: list[KeyValueCache] | None = None,
        spread: Spread | None = None,
        lengths: Int[Tensor, " batch"] | int | None = None,
    ) -> Float[Tensor, "batch token width"]:
        """Send the tokens through all layers; ``encoding`` is one for all or one a layer, ``caches`` one a layer.

        ``spread`` says how the tokens meet where a row is spread over ranks and this one has some of them.
        """
        each = [encoding] * len(self.layers) if isinstance(encoding, PositionalEncoding) else list(encoding)
        if len(each) != len(self.layers):
            raise UsageError(
                f"encoding: expected one for all layers, or one a layer, {len(self.layers)}; got {len(each)}"
            )
        depends = any(one.claims.state == "length" for one in each)
        if caches is not None and len(caches) != len(self.layers):
            raise UsageError(f"caches: expected one a layer, {len(self.layers)}, got {len(caches)}")
        for number, layer in enumerate(self.layers):
            cache = None if caches is None else caches[number]
            own = lengths if each[number].claims.state == "length" or not depends else None
            x = layer(
                x,
                positions,
                encoding=each[number],
                documents=documents,
                padding_mask=padding_mask,
                mask=mask,
                cache=cache,
                spread=spread,
                lengths=own,
            )
        return x if self.last_norm is None else self.last_norm(x)


class Encoder(Stack):
    """A stack in which every token sees every other."""

    def __init__(
        self,
        width: int,
        heads: int,
        layers: int,
        *,
        hidden: int | None = None,
        norm: Norm = "layer",
        order: Order = "before",
        backend: Backend = "sdpa",
    ) -> None:
        super().__init__(width, heads, layers, causal=False, hidden=hidden, norm=norm, order=order, backend=backend)


class Decoder(Stack):
    """A stack in which no token sees a later one."""

    def __init__(
        self,
        width: int,
        heads: int,
        layers: int,
        *,
        hidden: int | None = None,
        norm: Norm = "layer",
        order: Order = "before",
        backend: Backend = "sdpa",
    ) -> None:
        super().__init__(width, heads, layers, causal=True, hidden=hidden, norm=norm, order=order, backend=backend)
