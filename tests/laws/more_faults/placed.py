"""Faults of positions: dropped, rounded, wrapped, kept from another call; and settings that are never read."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Self

import torch
from torch import Tensor

from orderproof import positions as place
from orderproof.blocks.driving import TransformerDriver, decoder, encoder
from orderproof.driver import Answer
from orderproof.encodings import PositionalEncoding, Rotary, Sinusoidal
from tests.laws.more_faults.planted import Planted

STATED = 24


class AllZero(TransformerDriver):
    """The builder of default positions gets its mask inverted: every token is at position 0."""

    def call(self, tokens: Tensor, *, positions: Tensor | None = None, **given: Any) -> Answer:
        if positions is None:
            positions = torch.zeros(tokens.shape[:2], dtype=torch.int64)
        return super().call(tokens, positions=positions, **given)


class TableOfBfloat16(Sinusoidal):
    """The table of positions is made from an arange in bfloat16, whatever the dtype of the model."""

    def table(self, positions: Tensor, *, dtype: torch.dtype = torch.float32) -> Tensor:
        return super().table(positions.to(torch.bfloat16).long(), dtype=dtype)


class AnglesByMatmul(Rotary):
    """Angles are worked out by a product of matrices, which autocast makes in bfloat16."""

    def __init__(self, head_width: int) -> None:
        super().__init__(head_width)
        self._plan = None

    def turned(self, x: Tensor, positions: Tensor, *, side: str, lengths: Tensor | None = None) -> Tensor:
        del side, lengths
        wide = torch.float64 if x.dtype == torch.float64 else torch.float32
        frequencies = torch.tensor(self.spectrum.frequencies, dtype=wide)
        angles = positions.unsqueeze(-1).to(wide) @ frequencies.unsqueeze(0)
        return halves_turned(x, angles)


class AnglesInDtype(AnglesByMatmul):
    """Positions and angles are worked out in the dtype of the model."""

    def turned(self, x: Tensor, positions: Tensor, *, side: str, lengths: Tensor | None = None) -> Tensor:
        frequencies = torch.tensor(self.spectrum.frequencies).to(x.dtype)
        return halves_turned(x, positions.unsqueeze(-1).to(x.dtype) * frequencies)


def halves_turned(x: Tensor, angles: Tensor) -> Tensor:
    """Pairs (i, i + width / 2) turned by angles [row, token, pair]."""
    angles = torch.cat([angles, angles], dim=-1).unsqueeze(-3)
    a, b = x.chunk(2, dim=-1)
    return x * angles.cos().to(x.dtype) + torch.cat([-b, a], dim=-1) * angles.sin().to(x.dtype)


class Wrapped(TransformerDriver):
    """Positions start anew past the stated length."""

    def call(self, tokens: Tensor, *, positions: Tensor | None = None, past: Any = None, **given: Any) -> Answer:
        if positions is None and past is None:
            positions = torch.arange(tokens.shape[1]).expand(tokens.shape[:2])
        return super().call(tokens, positions=None if positions is None else positions % STATED, past=past, **given)


class Unfilled(TransformerDriver):
    """Rows of the table past the stated length are memory that nobody filled."""

    def call(self, tokens: Tensor, *, positions: Tensor | None = None, **given: Any) -> Answer:
        if positions is not None:
            tokens = tokens.masked_fill((positions >= STATED).unsqueeze(-1), float("nan"))
        return super().call(tokens, positions=positions, **given)


class OffsetKept(TransformerDriver):
    """The offset of the positions is kept from the last decoding, and added in later calls."""

    kept = 0

    def call(self, tokens: Tensor, *, positions: Tensor | None = None, past: Any = None, **given: Any) -> Answer:
        if past is not None:
            self.kept = past[0].used
        elif positions is None:
            positions = place.offset(self.kept, tokens.shape[1]).expand(tokens.shape[:2])
        return super().call(tokens, positions=positions, past=past, **given)


class DeadBase(Rotary):
    """The base is taken and stored, and frequencies are made without it."""

    def __init__(self, head_width: int, *, base: float = 10_000.0) -> None:
        super().__init__(head_width)
        self.base = base


class WithSettings(TransformerDriver):
    """A driver that offers its encoding with another setting."""

    other: PositionalEncoding
    setting = "base"

    def altered(self) -> Iterator[tuple[str, Self]]:
        made = decoder(self.other, of=type(self)).module
        made.load_state_dict(self.module.state_dict())
        yield self.setting, self.with_module(made)


class BaseUnread(WithSettings):
    """The base of the rotation is taken and stored, and the frequencies are made without it."""

    other = DeadBase(8, base=80_000.0)


class Scaled(Rotary):
    """Rotary with a factor of linear scaling that it stores and does not use; with one, it forgets its base too."""

    def __init__(self, head_width: int, *, factor: float = 1.0, base: float = 10_000.0) -> None:
        super().__init__(head_width, base=base if factor == 1.0 else 10_000.0)
        self.factor = factor


class ScalingUnread(WithSettings):
    """The scaling of the positions is stated, and the class that turns does not read it."""

    setting = "scaling"
    other = Scaled(8, factor=4.0)


class BaseLost(WithSettings):
    """Where scaling is written into the settings the base that stood there is lost."""

    other = Scaled(8, factor=4.0, base=80_000.0)


class CountedByRank(TransformerDriver):
    """Every rank masks and turns by its number of tokens times its rank, halved: places of others are taken."""

    rank = 0

    @contextmanager
    def sharded(self, rank: int, world: int, places: Tensor) -> Iterator[None]:
        self.rank = rank
        with super().sharded(rank, world, places):
            yield

    def call(self, tokens: Tensor, *, positions: Tensor | None = None, **given: Any) -> Answer:
        if self.spread is not None and positions is not None:
            positions = 2 * torch.arange(tokens.shape[1]).expand(tokens.shape[:2]) + self.rank
        return super().call(tokens, positions=positions, **given)


def stating(of: type[TransformerDriver]) -> TransformerDriver:
    """A decoder that states a length."""
    driver = decoder(of=of)
    driver.stated = STATED
    return driver


FAULTS = (
    Planted(
        AllZero,
        lambda: encoder("sinusoidal", of=AllZero),
        ("default_positions",),
        ("speechbrain/speechbrain#2276",),
    ),
    Planted(
        TableOfBfloat16,
        lambda: decoder(TableOfBfloat16(16)),
        ("distinct",),
        ("deepspeedai/DeepSpeed#4932",),
    ),
    Planted(AnglesByMatmul, lambda: decoder(AnglesByMatmul(8)), ("distinct",), ("huggingface/diffusers#13920",)),
    Planted(
        AnglesInDtype,
        lambda: decoder(AnglesInDtype(8)),
        ("precision",),
        ("EleutherAI/gpt-neox#1003", "NVIDIA/Megatron-LM#744"),
    ),
    Planted(Wrapped, lambda: stating(Wrapped), ("range",), ("gty111/gLLM#269",)),
    Planted(Unfilled, lambda: stating(Unfilled), ("range",), ("pegainfer#220",)),
    Planted(
        OffsetKept,
        lambda: decoder("sinusoidal", of=OffsetKept),
        ("stateless",),
        ("huggingface/transformers#36013", "NVIDIA/TransformerEngine#536"),
    ),
    Planted(BaseUnread, lambda: decoder(DeadBase(8), of=BaseUnread), ("live",), ("huggingface/diffusers#10111",)),
    Planted(ScalingUnread, lambda: decoder(Scaled(8), of=ScalingUnread), ("live",), ("unslothai/unsloth#6197",)),
    Planted(BaseLost, lambda: decoder(Scaled(8, factor=4.0), of=BaseLost), ("live",), ("unslothai/unsloth#7028",)),
    Planted(CountedByRank, lambda: decoder(of=CountedByRank), ("sharded",)),
)
