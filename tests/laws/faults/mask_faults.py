"""Faults of masks and sliding windows, in all attention backends or in one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager
from typing import Any, Self

import torch
from torch import Tensor

from orderproof.adapter import AttentionPattern, ModelOutput
from orderproof.blocks.transformer_adapter import TransformerAdapter, tiny_decoder, tiny_encoder
from orderproof.errors import UnsupportedCallError
from tests.laws.faults.fault import Planted


class Masking(TransformerAdapter):
    """An adapter whose layers get order only from its mask; it has no cache."""

    supported_inputs = frozenset({"positions", "mask"})

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.supported_inputs = Masking.supported_inputs
        for layer in self.module.stack.layers:
            layer.attention.causal = False  # type: ignore[union-attr]

    def call(
        self, tokens: Tensor, *, positions: Tensor | None = None, mask: Tensor | None = None, past: Any = None,
        keep: bool | None = None,
    ) -> ModelOutput:  # fmt: skip
        place = torch.arange(tokens.shape[1])
        seen = self.seen(place - place.unsqueeze(-1))
        return ModelOutput(self.module(tokens, positions, padding_mask=mask, mask=seen))

    def sequence_parallel(self, rank: int, world: int, places: Tensor) -> AbstractContextManager[None]:
        raise UnsupportedCallError("its mask goes by the tokens of the call")

    @property
    def backend(self) -> str:
        """The attention backend."""
        found: str = self.module.stack.layers[0].attention.backend  # type: ignore[assignment, union-attr]
        return found

    def seen(self, ahead: Tensor) -> Tensor | None:
        """The mask of pairs, by key position minus query position."""
        return ahead <= 0


class NotCausal(Masking):
    """The flag `is_decoder` is ignored: the mask is always bidirectional."""

    def seen(self, ahead: Tensor) -> Tensor | None:
        return None


class Inverted(Masking):
    """A mask that is True at masked keys is passed to attention that expects True at visible keys."""

    def seen(self, ahead: Tensor) -> Tensor | None:
        return (ahead > 0) | (ahead == ahead.min())  # the last query sees the first token


class LeaksInOne(Masking):
    """SDPA gets no mask and relies on a causal flag that is not set; eager attention has a mask."""

    def seen(self, ahead: Tensor) -> Tensor | None:
        return None if self.backend == "sdpa" else ahead <= 0


class UnmaskedInTraining(Masking):
    """The mask was dropped for a fast path that train mode does not take."""

    def seen(self, ahead: Tensor) -> Tensor | None:
        return None if self.module.training else ahead <= 0


class SilentlyCausal(TransformerAdapter):
    """An encoder whose attention has a causal flag that defaults to true."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for layer in self.module.stack.layers:
            layer.attention.causal = True  # type: ignore[union-attr]


class Window(Masking):
    """A sliding window of three tokens, including the token itself."""

    window = 3

    def seen(self, ahead: Tensor) -> Tensor | None:
        return (ahead <= 0) & (-ahead < self.window)

    def attention_pattern(self, tokens: int) -> AttentionPattern:
        place = torch.arange(tokens)
        ahead = place - place.unsqueeze(-1)
        far = (ahead <= 0) & (-ahead <= 2 * (self.window - 1))
        return AttentionPattern(far, far)


class OneTooMany(Window):
    """The window includes its edge: a token attends to one token too many."""

    def seen(self, ahead: Tensor) -> Tensor | None:
        return (ahead <= 0) & (-ahead <= self.window)


class WindowNotGiven(Window):
    """The window is not passed to SDPA, which attends to all earlier tokens."""

    def seen(self, ahead: Tensor) -> Tensor | None:
        return ahead <= 0 if self.backend == "sdpa" else super().seen(ahead)


class EdgeOfOne(Window):
    """Eager attention includes the edge of the window, and the other backends do not."""

    def seen(self, ahead: Tensor) -> Tensor | None:
        return (ahead <= 0) & (-ahead <= self.window) if self.backend == "eager" else super().seen(ahead)


class Lopsided(Masking):
    """A bidirectional window extends backwards by its full size instead of half."""

    window = 2

    def seen(self, ahead: Tensor) -> Tensor | None:
        return (-ahead < 2 * self.window) & (ahead <= self.window // 2)

    def attention_pattern(self, tokens: int) -> AttentionPattern:
        place = torch.arange(tokens)
        near = (place - place.unsqueeze(-1)).abs() <= 2 * (self.window // 2)
        return AttentionPattern(near, near)

    def attention_backends(self) -> Iterator[tuple[str, Self]]:
        yield from ()


FAULTS = (
    Planted(NotCausal, lambda: tiny_decoder(of=NotCausal), ("attention_pattern",), ("huggingface/transformers#48745",)),
    Planted(Inverted, lambda: tiny_decoder(of=Inverted), ("attention_pattern",), ("rasbt/LLMs-from-scratch#1061",)),
    Planted(
        LeaksInOne,
        lambda: tiny_decoder(of=LeaksInOne),
        ("attention_pattern", "attention_backend"),
        ("huggingface/transformers#48748",),
    ),
    Planted(
        UnmaskedInTraining,
        lambda: tiny_decoder(of=UnmaskedInTraining),
        ("attention_backend",),
        ("keras-team/keras#23038",),
    ),
    Planted(
        SilentlyCausal,
        lambda: tiny_encoder(of=SilentlyCausal),
        ("attention_pattern",),
        ("huggingface/transformers#48172", "huggingface/transformers#36150"),
    ),
    Planted(
        OneTooMany,
        lambda: tiny_decoder(of=OneTooMany),
        ("attention_pattern",),
        ("huggingface/transformers#39408", "vllm-project/vllm#3385"),
    ),
    Planted(
        WindowNotGiven,
        lambda: tiny_decoder(of=WindowNotGiven),
        ("attention_pattern", "attention_backend"),
        ("unslothai/unsloth#8253",),
    ),
    Planted(EdgeOfOne, lambda: tiny_decoder(of=EdgeOfOne), ("attention_backend",), ("huggingface/transformers#29623",)),
    Planted(Lopsided, lambda: tiny_encoder(of=Lopsided), ("attention_pattern",), ("huggingface/transformers#40700",)),
)
