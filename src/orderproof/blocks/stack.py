"""A stack of layers: a bidirectional encoder, or a causal decoder.

    x = layer[L](... layer[2](layer[1](x)))          then a final norm, if norms come before the sublayers

Tokens keep their order from layer to layer. All layers share one encoding, or each has its own (see
`encodings.layer_patterns`); positions are the same in all layers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Unpack

from torch import Tensor, nn

from orderproof.blocks.add_norm import AddNorm
from orderproof.blocks.attention_inputs import AttentionInputs
from orderproof.blocks.kv_cache import KeyValueCache
from orderproof.blocks.layer import LayerOptions, TransformerLayer
from orderproof.blocks.sequence_parallel import SequenceParallel
from orderproof.encodings import PositionalEncoding
from orderproof.errors import UsageError

if TYPE_CHECKING:
    from jaxtyping import Bool, Float, Int


class TransformerStack(nn.Module):
    """A sequence of layers."""

    def __init__(self, width: int, heads: int, layers: int, *, causal: bool, **options: Unpack[LayerOptions]) -> None:
        super().__init__()
        if layers < 1:
            raise UsageError(f"layers: expected 1 or more, got {layers}")
        self.causal = causal
        self.layers = nn.ModuleList(TransformerLayer(width, heads, causal=causal, **options) for _ in range(layers))
        pre_norm = options.get("norm_placement", "before") == "before"
        self.last_norm = AddNorm(width, norm=options.get("norm", "layer")).norm if pre_norm else None

    def forward(
        self,
        x: Float[Tensor, "batch token width"],
        positions: Int[Tensor, "*batch token"],
        *,
        encoding: PositionalEncoding | Sequence[PositionalEncoding],
        document_ids: Int[Tensor, "*batch token"] | None = None,
        padding_mask: Bool[Tensor, "batch token"] | None = None,
        mask: Bool[Tensor, "*batch_and_head token key"] | None = None,
        caches: list[KeyValueCache] | None = None,
        sequence_parallel: SequenceParallel | None = None,
        lengths: Int[Tensor, " batch"] | int | None = None,
    ) -> Float[Tensor, "batch token width"]:
        """Apply all layers. ``encoding`` is one for all layers or one per layer, ``caches`` one per layer.

        For the other arguments see `AttentionInputs`.
        """
        count = len(self.layers)
        encodings = [encoding] * count if isinstance(encoding, PositionalEncoding) else list(encoding)
        if len(encodings) != count:
            raise UsageError(f"encoding: expected one for all layers or one per layer, {count}; got {len(encodings)}")
        if caches is not None and len(caches) != count:
            raise UsageError(f"caches: expected one per layer, {count}, got {len(caches)}")
        any_uses_lengths = any(one.claims.decode_state == "length" for one in encodings)
        layer_caches: Sequence[KeyValueCache | None] = [None] * count if caches is None else caches
        for layer, own, cache in zip(self.layers, encodings, layer_caches, strict=True):
            # If no encoding uses the lengths, attention rejects them; otherwise only those layers get them that do.
            inputs = AttentionInputs(
                encoding=own,
                positions=positions,
                document_ids=document_ids,
                padding_mask=padding_mask,
                mask=mask,
                cache=cache,
                sequence_parallel=sequence_parallel,
                lengths=lengths if own.claims.decode_state == "length" or not any_uses_lengths else None,
            )
            x = layer(x, inputs)
        return x if self.last_norm is None else self.last_norm(x)


class Encoder(TransformerStack):
    """A bidirectional stack."""

    def __init__(self, width: int, heads: int, layers: int, **options: Unpack[LayerOptions]) -> None:
        super().__init__(width, heads, layers, causal=False, **options)


class Decoder(TransformerStack):
    """A causal stack."""

    def __init__(self, width: int, heads: int, layers: int, **options: Unpack[LayerOptions]) -> None:
        super().__init__(width, heads, layers, causal=True, **options)
