"""Faults of caches: offsets that are lost, masks aligned to the wrong corner, windows that roll early."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

import torch
from torch import Tensor

from orderproof import positions as place
from orderproof.blocks.cache import Cached, KeyValueCache
from orderproof.blocks.driving import TransformerDriver, decoder
from orderproof.driver import Answer
from orderproof.encodings import Claims, PositionalEncoding, Rotary
from orderproof.errors import Unsupported
from tests.laws.more_faults.added import AddedWaves
from tests.laws.more_faults.planted import Planted


class QueriesFromZero(Rotary):
    """Queries of every call are turned as if the call began the row; keys are turned by their places in it."""

    def __init__(self, head_width: int) -> None:
        super().__init__(head_width)
        self._plan = None

    def turned(self, x: Tensor, positions: Tensor, *, side: str, lengths: Tensor | None = None) -> Tensor:
        if side == "q":
            positions = positions - positions[..., :1]
        return super().turned(x, positions, side=side, lengths=lengths)  # type: ignore[arg-type]


class RestartingTable(AddedWaves):
    """Rows of the position table are counted anew in every call, whatever is in the cache."""

    def counted(self, tokens: Tensor, mask: Tensor | None, past: Any) -> Tensor:
        return super().counted(tokens, None, None)


class TopLeft(TransformerDriver):
    """The causal mask of a call on a cache is aligned to the first key and not to the last."""

    def call(self, tokens: Tensor, *, past: Any = None, **given: Any) -> Answer:
        if past is None or not past[0].used:
            return super().call(tokens, past=past, **given)
        count = tokens.shape[1]
        first = torch.ones(count, past[0].used + count, dtype=torch.bool).tril()
        positions = given.get("positions")
        if positions is None:
            positions = place.offset(past[0].used, count).expand(tokens.shape[:2])
        mask = given.get("mask")
        now = None if mask is None else mask[:, -count:]
        return Answer(self.module(tokens, positions, padding_mask=now, mask=first, caches=past), past)


class Penalty(PositionalEncoding):
    """A penalty for distance, given as a whole matrix."""

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
    """The bias takes the queries of every call for the first of the row, and the keys for what they are."""

    def gap(self, q_positions: Tensor, k_positions: Tensor) -> Tensor:
        return super().gap(q_positions - q_positions[..., :1], k_positions - k_positions[..., :1])


class BiasOfQueries(Penalty):
    """The bias is built over the queries of the call alone: for one token it is one zero, spread over all keys."""

    def gap(self, q_positions: Tensor, k_positions: Tensor) -> Tensor:
        if q_positions.shape[-1] > 1:
            return super().gap(q_positions, k_positions)
        return super().gap(q_positions, q_positions).expand(-1, -1, k_positions.shape[-1])


class StaleBias(Penalty):
    """The bias of the longest row so far is kept, and cut for the next from the end of one side alone."""

    kept: Tensor | None = None

    def gap(self, q_positions: Tensor, k_positions: Tensor) -> Tensor:
        made = super().gap(q_positions, k_positions)
        queries, keys = made.shape[-2:]
        if self.kept is None or self.kept.shape[-2] < queries or self.kept.shape[-1] < keys:
            self.kept = made[:1]
            return made
        return self.kept[:, :queries, -keys:]


class RollingEarly(TransformerDriver):
    """A window of three tokens whose cache forgets one step early: a token that is decoded sees two."""

    window = 3
    early = 1

    def call(self, tokens: Tensor, *, past: Any = None, keep: bool | None = None, **given: Any) -> Answer:
        if past is None and keep:
            past = self.module.new_caches(len(tokens), tokens.shape[1] + 64)
        used, count = past[0].used if past else 0, tokens.shape[1]
        window = self.window - self.early if used else self.window
        gap = (used + torch.arange(count)).unsqueeze(-1) - torch.arange(used + count)
        mask = given.get("mask")
        now = None if mask is None else mask[:, -count:]
        seen = (gap >= 0) & (gap < window)
        return Answer(self.module(tokens, given.get("positions"), padding_mask=now, mask=seen, caches=past), past)

    def sees(self, tokens: int) -> None:
        return None

    def sharded(self, rank: int, world: int, places: Tensor) -> AbstractContextManager[None]:
        raise Unsupported("its window goes by the tokens of the call")


class LongAndShort(Rotary):
    """Frequencies are chosen by the end of the call: long ones past four tokens, short ones up to there."""

    def __init__(self, head_width: int) -> None:
        super().__init__(head_width)
        self._plan = None
        self.long = Rotary(head_width, base=80.0)

    def turned(self, x: Tensor, positions: Tensor, *, side: str, lengths: Tensor | None = None) -> Tensor:
        chosen = self.long.turned if int(positions.max()) >= 4 else super().turned
        return chosen(x, positions, side=side, lengths=lengths)  # type: ignore[arg-type]


class OfAnother(KeyValueCache):
    """The cache of a layer that uses the keys and values of another."""

    source: KeyValueCache

    def append(self, keys: Tensor, values: Tensor, positions: Tensor, *more: Any, **named: Any) -> Cached:
        super().append(keys, values, positions, *more, **named)
        return self.source.contents()


class SharedByCache(TransformerDriver):
    """The second layer gets the keys and values of the first by way of the cache; without one it makes its own."""

    def call(self, tokens: Tensor, *, past: Any = None, keep: bool | None = None, **given: Any) -> Answer:
        if past is None and keep:
            past = self.module.new_caches(len(tokens), tokens.shape[1] + 64)
            past[1].__class__ = OfAnother
            past[1].source = past[0]
        return super().call(tokens, past=past, keep=keep, **given)


class KeyedByLength(Rotary):
    """Cosines are kept under the number of tokens of a call, without the place where it starts."""

    def __init__(self, head_width: int) -> None:
        super().__init__(head_width)
        self._plan = None
        self.kept: dict[int, Tensor] = {}

    def turned(self, x: Tensor, positions: Tensor, *, side: str, lengths: Tensor | None = None) -> Tensor:
        known = self.kept.setdefault(positions.shape[-1], positions[:1].clone())
        positions = known.expand(positions.shape)
        return super().turned(x, positions, side=side, lengths=lengths)  # type: ignore[arg-type]


class CountedFromEnd(TransformerDriver):
    """Without a cache the start of the row is taken for its end: positions go on from the number of tokens."""

    def call(
        self, tokens: Tensor, *, positions: Tensor | None = None, keep: bool | None = None, **given: Any
    ) -> Answer:
        if keep is False and positions is None:
            positions = place.offset(tokens.shape[1], tokens.shape[1]).expand(tokens.shape[:2])
        return super().call(tokens, positions=positions, keep=keep, **given)


FAULTS = (
    Planted(QueriesFromZero, lambda: decoder(QueriesFromZero(8)), ("cache",), ("RobertCsordas/moeut#6",)),
    Planted(
        RestartingTable,
        lambda: decoder("none", of=RestartingTable),
        ("cache", "default_positions"),
        ("huggingface/transformers#22416", "pytorch/executorch#2010"),
    ),
    Planted(
        TopLeft,
        lambda: decoder(of=TopLeft),
        ("cache",),
        ("lucidrains/x-transformers#187", "Dao-AILab/flash-attention#282", "NVIDIA-NeMo/Megatron-Bridge#5259"),
    ),
    Planted(
        BiasFromZero,
        lambda: decoder(BiasFromZero()),
        ("cache",),
        ("huggingface/candle#899", "lucidrains/x-transformers#103"),
    ),
    Planted(BiasOfQueries, lambda: decoder(BiasOfQueries()), ("cache",), ("keras-team/keras-hub#2861",)),
    Planted(StaleBias, lambda: decoder(StaleBias()), ("stateless",), ("lucidrains/x-transformers#90",)),
    Planted(RollingEarly, lambda: decoder(of=RollingEarly), ("cache",), ("huggingface/transformers#37574",)),
    Planted(LongAndShort, lambda: decoder(LongAndShort(8)), ("cache",), ("vllm-project/vllm#27431",)),
    Planted(
        SharedByCache,
        lambda: decoder(of=SharedByCache),
        ("cache_switch",),
        ("huggingface/transformers#45242", "ml-explore/mlx-lm#322"),
    ),
    Planted(KeyedByLength, lambda: decoder(KeyedByLength(8)), ("cache",), ("lucidrains/rotary-embedding-torch#11",)),
    Planted(
        CountedFromEnd,
        lambda: decoder("sinusoidal", of=CountedFromEnd),
        ("cache_switch", "default_positions"),
        ("huggingface/candle#1517",),
    ),
)
