"""Faults of masks and windows, in every implementation of attention or in one alone."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager
from typing import Any, Self

import torch
from torch import Tensor

from orderproof.blocks.driving import TransformerDriver, decoder, encoder
from orderproof.driver import Answer, Sight
from orderproof.errors import Unsupported
from tests.laws.more_faults.planted import Planted


class Masking(TransformerDriver):
    """A driver whose layers see no order but that of the mask it makes; it has no cache."""

    takes = frozenset({"positions", "mask"})

    def __init__(self, *given: Any, **more: Any) -> None:
        super().__init__(*given, **more)
        self.takes = Masking.takes
        for layer in self.module.stack.layers:
            layer.attention.causal = False  # type: ignore[union-attr]

    def call(
        self, tokens: Tensor, *, positions: Tensor | None = None, mask: Tensor | None = None, past: Any = None,
        keep: bool | None = None,
    ) -> Answer:  # fmt: skip
        place = torch.arange(tokens.shape[1])
        seen = self.seen(place - place.unsqueeze(-1))
        return Answer(self.module(tokens, positions, padding_mask=mask, mask=seen))

    def sharded(self, rank: int, world: int, places: Tensor) -> AbstractContextManager[None]:
        raise Unsupported("its mask goes by the tokens of the call")

    @property
    def backend(self) -> str:
        """The implementation of attention."""
        found: str = self.module.stack.layers[0].attention.backend  # type: ignore[assignment, union-attr]
        return found

    def seen(self, ahead: Tensor) -> Tensor | None:
        """Which key a query sees, by how many tokens the key is ahead of it."""
        return ahead <= 0


class NotCausal(Masking):
    """A flag that makes the model a decoder is ignored, and a mask for both sides is made always."""

    def seen(self, ahead: Tensor) -> Tensor | None:
        return None


class Inverted(Masking):
    """A mask that is True where a key is hidden is given to attention that takes it for True where one is seen."""

    def seen(self, ahead: Tensor) -> Tensor | None:
        return (ahead > 0) | (ahead == ahead.min())  # the last query sees the first token


class LeaksInOne(Masking):
    """SDPA gets no mask, for it is causal by a flag, and the flag is not set; the eager attention is masked."""

    def seen(self, ahead: Tensor) -> Tensor | None:
        return None if self.backend == "sdpa" else ahead <= 0


class UnmaskedInTraining(Masking):
    """The fast path is left where dropout is on, and the mask was dropped for the fast path's own."""

    def seen(self, ahead: Tensor) -> Tensor | None:
        return None if self.module.training else ahead <= 0


class SilentlyCausal(TransformerDriver):
    """An encoder whose attention takes a causal flag from a default that nobody set."""

    def __init__(self, *given: Any, **more: Any) -> None:
        super().__init__(*given, **more)
        for layer in self.module.stack.layers:
            layer.attention.causal = True  # type: ignore[union-attr]


class Window(Masking):
    """A window of three tokens, the own one among them."""

    window = 3

    def seen(self, ahead: Tensor) -> Tensor | None:
        return (ahead <= 0) & (-ahead < self.window)

    def sees(self, tokens: int) -> Sight:
        place = torch.arange(tokens)
        ahead = place - place.unsqueeze(-1)
        far = (ahead <= 0) & (-ahead <= 2 * (self.window - 1))
        return Sight(far, far)


class OneTooMany(Window):
    """The edge of the window is counted in: a token sees one more than the window has."""

    def seen(self, ahead: Tensor) -> Tensor | None:
        return (ahead <= 0) & (-ahead <= self.window)


class WindowNotGiven(Window):
    """The window is not handed to the branch of SDPA, which sees all that is past."""

    def seen(self, ahead: Tensor) -> Tensor | None:
        return ahead <= 0 if self.backend == "sdpa" else super().seen(ahead)


class EdgeOfOne(Window):
    """The eager attention counts the edge of the window in, and the others do not."""

    def seen(self, ahead: Tensor) -> Tensor | None:
        return (ahead <= 0) & (-ahead <= self.window) if self.backend == "eager" else super().seen(ahead)


class Lopsided(Masking):
    """A window for both sides, of which half should lie ahead, reaches back by the whole of it."""

    window = 2

    def seen(self, ahead: Tensor) -> Tensor | None:
        return (-ahead < 2 * self.window) & (ahead <= self.window // 2)

    def sees(self, tokens: int) -> Sight:
        place = torch.arange(tokens)
        near = (place - place.unsqueeze(-1)).abs() <= 2 * (self.window // 2)
        return Sight(near, near)

    def backends(self) -> Iterator[tuple[str, Self]]:
        yield from ()


FAULTS = (
    Planted(NotCausal, lambda: decoder(of=NotCausal), ("influence",), ("huggingface/transformers#48745",)),
    Planted(Inverted, lambda: decoder(of=Inverted), ("influence",), ("rasbt/LLMs-from-scratch#1061",)),
    Planted(LeaksInOne, lambda: decoder(of=LeaksInOne), ("influence", "backend"), ("huggingface/transformers#48748",)),
    Planted(UnmaskedInTraining, lambda: decoder(of=UnmaskedInTraining), ("backend",), ("keras-team/keras#23038",)),
    Planted(
        SilentlyCausal,
        lambda: encoder(of=SilentlyCausal),
        ("influence",),
        ("huggingface/transformers#48172", "huggingface/transformers#36150"),
    ),
    Planted(
        OneTooMany,
        lambda: decoder(of=OneTooMany),
        ("influence",),
        ("huggingface/transformers#39408", "vllm-project/vllm#3385"),
    ),
    Planted(WindowNotGiven, lambda: decoder(of=WindowNotGiven), ("influence", "backend"), ("unslothai/unsloth#8253",)),
    Planted(EdgeOfOne, lambda: decoder(of=EdgeOfOne), ("backend",), ("huggingface/transformers#29623",)),
    Planted(Lopsided, lambda: encoder(of=Lopsided), ("influence",), ("huggingface/transformers#40700",)),
)
