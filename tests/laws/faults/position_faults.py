"""Faults of positions: dropped, rounded, wrapped, kept from another call; and settings that are never read."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Self

import torch
from torch import Tensor

from orderproof import positions as place
from orderproof.adapter import ModelOutput
from orderproof.blocks.transformer_adapter import TransformerAdapter, tiny_decoder, tiny_encoder
from orderproof.encodings import PositionalEncoding, Rotary, Sinusoidal
from tests.laws.faults.fault import Planted

STATED = 24


class AllZero(TransformerAdapter):
    """Default positions are counted from an inverted mask: every token is at position 0."""

    def call(self, tokens: Tensor, *, positions: Tensor | None = None, **kwargs: Any) -> ModelOutput:
        if positions is None:
            positions = torch.zeros(tokens.shape[:2], dtype=torch.int64)
        return super().call(tokens, positions=positions, **kwargs)


class TableOfBfloat16(Sinusoidal):
    """The table of positions is computed from an arange in bfloat16, for any dtype of the model."""

    def encoding_table(self, positions: Tensor, *, dtype: torch.dtype = torch.float32) -> Tensor:
        return super().encoding_table(positions.to(torch.bfloat16).long(), dtype=dtype)


class AnglesByMatmul(Rotary):
    """Angles are computed by a matrix product, which autocast runs in bfloat16."""

    def __init__(self, head_width: int) -> None:
        super().__init__(head_width)
        self._plan = None

    def encode(self, x: Tensor, positions: Tensor, *, side: str, lengths: Tensor | None = None) -> Tensor:
        del side, lengths
        wide = torch.float64 if x.dtype == torch.float64 else torch.float32
        frequencies = torch.tensor(self.spectrum.frequencies, dtype=wide)
        angles = positions.unsqueeze(-1).to(wide) @ frequencies.unsqueeze(0)
        return halves_turned(x, angles)


class AnglesInDtype(AnglesByMatmul):
    """Positions and angles are computed in the dtype of the model."""

    def encode(self, x: Tensor, positions: Tensor, *, side: str, lengths: Tensor | None = None) -> Tensor:
        frequencies = torch.tensor(self.spectrum.frequencies).to(x.dtype)
        return halves_turned(x, positions.unsqueeze(-1).to(x.dtype) * frequencies)


def halves_turned(x: Tensor, angles: Tensor) -> Tensor:
    """Rotate the pairs (i, i + width / 2) by angles [row, token, pair]."""
    angles = torch.cat([angles, angles], dim=-1).unsqueeze(-3)
    a, b = x.chunk(2, dim=-1)
    return x * angles.cos().to(x.dtype) + torch.cat([-b, a], dim=-1) * angles.sin().to(x.dtype)


class Wrapped(TransformerAdapter):
    """Positions wrap around at the stated length."""

    def call(self, tokens: Tensor, *, positions: Tensor | None = None, past: Any = None, **kwargs: Any) -> ModelOutput:
        if positions is None and past is None:
            positions = torch.arange(tokens.shape[1]).expand(tokens.shape[:2])
        return super().call(tokens, positions=None if positions is None else positions % STATED, past=past, **kwargs)


class Unfilled(TransformerAdapter):
    """Rows of the table beyond the stated length are uninitialised memory."""

    def call(self, tokens: Tensor, *, positions: Tensor | None = None, **kwargs: Any) -> ModelOutput:
        if positions is not None:
            tokens = tokens.masked_fill((positions >= STATED).unsqueeze(-1), float("nan"))
        return super().call(tokens, positions=positions, **kwargs)


class OffsetKept(TransformerAdapter):
    """The position offset of the last decoding is kept, and added in later calls."""

    kept = 0

    def call(self, tokens: Tensor, *, positions: Tensor | None = None, past: Any = None, **kwargs: Any) -> ModelOutput:
        if past is not None:
            self.kept = past[0].length
        elif positions is None:
            positions = place.offset(self.kept, tokens.shape[1]).expand(tokens.shape[:2])
        return super().call(tokens, positions=positions, past=past, **kwargs)


class DeadBase(Rotary):
    """The base is stored, and the frequencies are computed without it."""

    def __init__(self, head_width: int, *, base: float = 10_000.0) -> None:
        super().__init__(head_width)
        self.base = base


class WithSettings(TransformerAdapter):
    """An adapter that offers a variant of its encoding with another setting."""

    other: PositionalEncoding
    setting = "base"

    def config_variants(self) -> Iterator[tuple[str, Self]]:
        made = tiny_decoder(self.other, of=type(self)).module
        made.load_state_dict(self.module.state_dict())
        yield self.setting, self.with_module(made)


class BaseUnread(WithSettings):
    """The base of the rotation is stored, and the frequencies are computed without it."""

    other = DeadBase(8, base=80_000.0)


class Scaled(Rotary):
    """Rotary with a linear scaling factor that it stores and does not use; with a factor it ignores its base too."""

    def __init__(self, head_width: int, *, factor: float = 1.0, base: float = 10_000.0) -> None:
        super().__init__(head_width, base=base if factor == 1.0 else 10_000.0)
        self.factor = factor


class ScalingUnread(WithSettings):
    """The scaling of positions is configured, and the rotation does not read it."""

    setting = "scaling"
    other = Scaled(8, factor=4.0)


class BaseLost(WithSettings):
    """Writing a scaling into the configuration drops the base."""

    other = Scaled(8, factor=4.0, base=80_000.0)


class CountedByRank(TransformerAdapter):
    """Each rank masks and rotates by positions that belong to other ranks."""

    rank = 0

    @contextmanager
    def sequence_parallel(self, rank: int, world: int, places: Tensor) -> Iterator[None]:
        self.rank = rank
        with super().sequence_parallel(rank, world, places):
            yield

    def call(self, tokens: Tensor, *, positions: Tensor | None = None, **kwargs: Any) -> ModelOutput:
        if self.sequence_parallel_attention is not None and positions is not None:
            positions = 2 * torch.arange(tokens.shape[1]).expand(tokens.shape[:2]) + self.rank
        return super().call(tokens, positions=positions, **kwargs)


def stating(of: type[TransformerAdapter]) -> TransformerAdapter:
    """A decoder with a stated context length."""
    driver = tiny_decoder(of=of)
    driver.config_max_positions = STATED
    return driver


FAULTS = (
    Planted(
        AllZero,
        lambda: tiny_encoder("sinusoidal", of=AllZero),
        ("default_position_ids",),
        ("speechbrain/speechbrain#2276",),
    ),
    Planted(
        TableOfBfloat16,
        lambda: tiny_decoder(TableOfBfloat16(16)),
        ("distinct_positions",),
        ("deepspeedai/DeepSpeed#4932",),
    ),
    Planted(
        AnglesByMatmul,
        lambda: tiny_decoder(AnglesByMatmul(8)),
        ("distinct_positions",),
        ("huggingface/diffusers#13920",),
    ),
    Planted(
        AnglesInDtype,
        lambda: tiny_decoder(AnglesInDtype(8)),
        ("position_precision",),
        ("EleutherAI/gpt-neox#1003", "NVIDIA/Megatron-LM#744"),
    ),
    Planted(Wrapped, lambda: stating(Wrapped), ("context_length",), ("gty111/gLLM#269",)),
    Planted(Unfilled, lambda: stating(Unfilled), ("context_length",), ("pegainfer#220",)),
    Planted(
        OffsetKept,
        lambda: tiny_decoder("sinusoidal", of=OffsetKept),
        ("stateless",),
        ("huggingface/transformers#36013", "NVIDIA/TransformerEngine#536"),
    ),
    Planted(
        BaseUnread,
        lambda: tiny_decoder(DeadBase(8), of=BaseUnread),
        ("ignored_arguments",),
        ("huggingface/diffusers#10111",),
    ),
    Planted(
        ScalingUnread,
        lambda: tiny_decoder(Scaled(8), of=ScalingUnread),
        ("ignored_arguments",),
        ("unslothai/unsloth#6197",),
    ),
    Planted(
        BaseLost,
        lambda: tiny_decoder(Scaled(8, factor=4.0), of=BaseLost),
        ("ignored_arguments",),
        ("unslothai/unsloth#7028",),
    ),
    Planted(CountedByRank, lambda: tiny_decoder(of=CountedByRank), ("sequence_parallel",)),
)
