"""Faults of caches: lost offsets, masks aligned to the wrong corner, windows that roll one step early."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

import torch
from torch import Tensor

from orderproof import positions as place
from orderproof.adapter import ModelOutput
from orderproof.blocks.kv_cache import KeyValueCache, KVCacheContents
from orderproof.blocks.transformer_adapter import TransformerAdapter, tiny_decoder
from orderproof.encodings import Claims, PositionalEncoding, Rotary
from orderproof.errors import UnsupportedCallError
from tests.laws.faults.fault import Planted
from tests.laws.faults.sinusoidal_model import AddedWaves


class QueriesFromZero(Rotary):
    """Queries are rotated as if each call started at position 0; keys are rotated by their positions."""

    def __init__(self, head_width: int) -> None:
        super().__init__(head_width)
        self._plan = None

    def encode(self, x: Tensor, positions: Tensor, *, side: str, lengths: Tensor | None = None) -> Tensor:
        if side == "q":
            positions = positions - positions[..., :1]
        return super().encode(x, positions, side=side, lengths=lengths)  # type: ignore[arg-type]


class RestartingTable(AddedWaves):
    """Each call reads the position table from row 0, even on a cache."""

    def counted(self, tokens: Tensor, mask: Tensor | None, past: Any) -> Tensor:
        return super().counted(tokens, None, None)


class TopLeft(TransformerAdapter):
    """The causal mask of a call on a cache is aligned to the first key and not to the last."""

    def call(self, tokens: Tensor, *, past: Any = None, **kwargs: Any) -> ModelOutput:
        if past is None or not past[0].length:
            return super().call(tokens, past=past, **kwargs)
        count = tokens.shape[1]
        first = torch.ones(count, past[0].length + count, dtype=torch.bool).tril()
        positions = kwargs.get("positions")
        if positions is None:
            positions = place.offset(past[0].length, count).expand(tokens.shape[:2])
        mask = kwargs.get("mask")
        now = None if mask is None else mask[:, -count:]
        return ModelOutput(self.module(tokens, positions, padding_mask=now, mask=first, caches=past), past)


class Penalty(PositionalEncoding):
    """A bias by distance, as a full matrix."""

    claims = Claims(site="bias", relative=True, symmetric=True)

    def bias(self, q_positions: Tensor, k_positions: Tensor, *, content: Any = None, dtype: Any = None) -> Tensor:
        del content
        rows = (x.reshape(-1, x.shape[-1]) for x in (q_positions, k_positions))
        rates = torch.tensor([0.5, 0.25], dtype=torch.float64).view(-1, 1, 1)
        return (-rates * self.gap(*rows).double().abs().unsqueeze(1)).to(dtype)

    def gap(self, q_positions: Tensor, k_positions: Tensor) -> Tensor:
        """Distances [row, query, key]."""
        return k_positions.unsqueeze(-2) - q_positions.unsqueeze(-1)


class BiasFromZero(Penalty):
    """The bias places the queries of each call at position 0, and the keys at their positions."""

    def gap(self, q_positions: Tensor, k_positions: Tensor) -> Tensor:
        return super().gap(q_positions - q_positions[..., :1], k_positions - k_positions[..., :1])


class BiasOfQueries(Penalty):
    """The bias covers only the queries of the call: for one token it is a single zero, broadcast over all keys."""

    def gap(self, q_positions: Tensor, k_positions: Tensor) -> Tensor:
        if q_positions.shape[-1] > 1:
            return super().gap(q_positions, k_positions)
        return super().gap(q_positions, q_positions).expand(-1, -1, k_positions.shape[-1])


class StaleBias(Penalty):
    """The bias of the longest call so far is kept, and sliced along one axis only."""

    kept: Tensor | None = None

    def gap(self, q_positions: Tensor, k_positions: Tensor) -> Tensor:
        made = super().gap(q_positions, k_positions)
        queries, keys = made.shape[-2:]
        if self.kept is None or self.kept.shape[-2] < queries or self.kept.shape[-1] < keys:
            self.kept = made[:1]
            return made
        return self.kept[:, :queries, -keys:]


class RollingEarly(TransformerAdapter):
    """A sliding window of three tokens whose cache drops tokens one step early: a decoded token attends to two."""

    window = 3
    early = 1

    def call(self, tokens: Tensor, *, past: Any = None, keep: bool | None = None, **kwargs: Any) -> ModelOutput:
        if past is None and keep:
            past = self.module.new_caches(len(tokens), tokens.shape[1] + 64)
        used, count = past[0].length if past else 0, tokens.shape[1]
        window = self.window - self.early if used else self.window
        gap = (used + torch.arange(count)).unsqueeze(-1) - torch.arange(used + count)
        mask = kwargs.get("mask")
        now = None if mask is None else mask[:, -count:]
        seen = (gap >= 0) & (gap < window)
        return ModelOutput(self.module(tokens, kwargs.get("positions"), padding_mask=now, mask=seen, caches=past), past)

    def attention_pattern(self, tokens: int) -> None:
        return None

    def sequence_parallel(self, rank: int, world: int, places: Tensor) -> AbstractContextManager[None]:
        raise UnsupportedCallError("its window goes by the tokens of the call")


class LongAndShort(Rotary):
    """Frequencies depend on the end of the call: long ones after four tokens, short ones before."""

    def __init__(self, head_width: int) -> None:
        super().__init__(head_width)
        self._plan = None
        self.long = Rotary(head_width, base=80.0)

    def encode(self, x: Tensor, positions: Tensor, *, side: str, lengths: Tensor | None = None) -> Tensor:
        chosen = self.long.encode if int(positions.max()) >= 4 else super().encode
        return chosen(x, positions, side=side, lengths=lengths)  # type: ignore[arg-type]


class OfAnother(KeyValueCache):
    """The cache of a layer that uses the keys and values of another layer."""

    source: KeyValueCache

    def append(self, keys: Tensor, values: Tensor, positions: Tensor, *more: Any, **named: Any) -> KVCacheContents:
        super().append(keys, values, positions, *more, **named)
        return self.source.contents()


class SharedByCache(TransformerAdapter):
    """The second layer gets the keys and values of the first through the cache; without a cache it computes its own."""

    def call(self, tokens: Tensor, *, past: Any = None, keep: bool | None = None, **kwargs: Any) -> ModelOutput:
        if past is None and keep:
            past = self.module.new_caches(len(tokens), tokens.shape[1] + 64)
            past[1].__class__ = OfAnother
            past[1].source = past[0]
        return super().call(tokens, past=past, keep=keep, **kwargs)


class KeyedByLength(Rotary):
    """Cosines are cached by the number of tokens of a call, without its first position."""

    def __init__(self, head_width: int) -> None:
        super().__init__(head_width)
        self._plan = None
        self.kept: dict[int, Tensor] = {}

    def encode(self, x: Tensor, positions: Tensor, *, side: str, lengths: Tensor | None = None) -> Tensor:
        known = self.kept.setdefault(positions.shape[-1], positions[:1].clone())
        positions = known.expand(positions.shape)
        return super().encode(x, positions, side=side, lengths=lengths)  # type: ignore[arg-type]


class CountedFromEnd(TransformerAdapter):
    """Without a cache the first position is the number of tokens."""

    def call(
        self, tokens: Tensor, *, positions: Tensor | None = None, keep: bool | None = None, **kwargs: Any
    ) -> ModelOutput:
        if keep is False and positions is None:
            positions = place.offset(tokens.shape[1], tokens.shape[1]).expand(tokens.shape[:2])
        return super().call(tokens, positions=positions, keep=keep, **kwargs)


FAULTS = (
    Planted(
        QueriesFromZero, lambda: tiny_decoder(QueriesFromZero(8)), ("cached_decoding",), ("RobertCsordas/moeut#6",)
    ),
    Planted(
        RestartingTable,
        lambda: tiny_decoder("none", of=RestartingTable),
        ("cached_decoding", "default_position_ids"),
        ("huggingface/transformers#22416", "pytorch/executorch#2010"),
    ),
    Planted(
        TopLeft,
        lambda: tiny_decoder(of=TopLeft),
        ("cached_decoding",),
        ("lucidrains/x-transformers#187", "Dao-AILab/flash-attention#282", "NVIDIA-NeMo/Megatron-Bridge#5259"),
    ),
    Planted(
        BiasFromZero,
        lambda: tiny_decoder(BiasFromZero()),
        ("cached_decoding",),
        ("huggingface/candle#899", "lucidrains/x-transformers#103"),
    ),
    Planted(BiasOfQueries, lambda: tiny_decoder(BiasOfQueries()), ("cached_decoding",), ("keras-team/keras-hub#2861",)),
    Planted(StaleBias, lambda: tiny_decoder(StaleBias()), ("stateless",), ("lucidrains/x-transformers#90",)),
    Planted(
        RollingEarly, lambda: tiny_decoder(of=RollingEarly), ("cached_decoding",), ("huggingface/transformers#37574",)
    ),
    Planted(LongAndShort, lambda: tiny_decoder(LongAndShort(8)), ("cached_decoding",), ("vllm-project/vllm#27431",)),
    Planted(
        SharedByCache,
        lambda: tiny_decoder(of=SharedByCache),
        ("use_cache",),
        ("huggingface/transformers#45242", "ml-explore/mlx-lm#322"),
    ),
    Planted(
        KeyedByLength,
        lambda: tiny_decoder(KeyedByLength(8)),
        ("cached_decoding",),
        ("lucidrains/rotary-embedding-torch#11",),
    ),
    Planted(
        CountedFromEnd,
        lambda: tiny_decoder("sinusoidal", of=CountedFromEnd),
        ("use_cache", "default_position_ids"),
        ("huggingface/candle#1517",),
    ),
)
