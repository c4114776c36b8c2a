"""How our own transformers are called by measured laws, and two small ones to try those laws on."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Self, get_args

import torch
from safetensors import torch as safetensors
from torch import Tensor

from orderproof import positions as place
from orderproof.blocks.spread import Gather, Spread
from orderproof.blocks.transformer import Transformer
from orderproof.driver import Answer, Driver, Sight
from orderproof.encodings import Backend, PositionalEncoding, Rotary
from orderproof.errors import Unsupported

UNLOADED = 0  # what memory is set to before loading, so that what is not loaded is the same every time
ROOM = 64  # [tokens] more than any law asks a cache to hold beyond what the longest call had


class TransformerDriver(Driver):
    """A `Transformer`, called with positions, with a padding mask, and on from its caches."""

    takes = frozenset({"positions", "mask", "cache"})
    output = "output"
    spread: Spread | None = None  # while it is spread over ranks

    def __init__(self, module: Transformer, *, causal: bool, length: int = 7, vocabulary: int | None = None) -> None:
        self.module: Transformer = module.eval()
        self.causal = causal
        self.length = length
        self.vocabulary = vocabulary
        last = module.encoding.claims.max_position
        self.longest = None if last is None else last + 1
        if not causal:
            self.takes = self.takes - {"cache"}

    def draw(self, rows: int, tokens: int, seed: int) -> Tensor:
        generator = torch.Generator().manual_seed(seed)
        if self.vocabulary is None:
            return torch.randn((rows, tokens, self.module.width), generator=generator)
        return torch.randint(0, self.vocabulary, (rows, tokens), generator=generator)

    def call(
        self, tokens: Tensor, *, positions: Tensor | None = None, mask: Tensor | None = None, past: Any = None,
        keep: bool | None = None,
    ) -> Answer:  # fmt: skip
        if past is None and keep:
            past = self.module.new_caches(len(tokens), tokens.shape[1] + ROOM)
        now = None if mask is None else mask[:, -tokens.shape[1] :]
        if (axes := self.module.encoding.claims.ndim) > 1:
            positions = self._along(axes, tokens, positions, past)
        return Answer(self.module(tokens, positions, padding_mask=now, caches=past, spread=self.spread), past)

    def sees(self, tokens: int) -> Sight:
        everything = torch.ones(tokens, tokens, dtype=torch.bool)
        seen = everything.tril() if self.causal else everything
        return Sight(seen, seen)

    def _along(self, axes: int, tokens: Tensor, positions: Tensor | None, past: Any) -> Tensor:
        """The positions on so many axes, alike on all: how text is placed among images."""
        if positions is None:
            before = past[0].seen if past else 0
            positions = place.offset(before, tokens.shape[1]).expand(tokens.shape[:2])
        return positions.expand(axes, *positions.shape)

    def cropped(self, cache: Any, tokens: int) -> Any:
        cache = copy.deepcopy(cache)
        for layer in cache:
            layer.crop(layer.used - tokens)
        return cache

    def reordered(self, cache: Any, rows: Tensor) -> Any:
        cache = copy.deepcopy(cache)
        if len(rows) != len(cache[0].real):
            raise Unsupported("its cache keeps its number of rows")
        for layer in cache:
            layer.reorder(rows)
        return cache

    def remade(self) -> Mapping[str, Callable[[], Self]]:
        kept = next(self.module.parameters()).dtype
        return {**super().remade(), "saved, made on meta and loaded": lambda: self.loaded(kept)}

    def loaded(self, dtype: torch.dtype) -> Self:
        """Stored as safetensors, and loaded into a model that was made without memory."""
        stored = safetensors.save({name: value.contiguous() for name, value in self.module.state_dict().items()})
        made = copy.deepcopy(self.module).to("meta").to_empty(device="cpu")
        with torch.no_grad():
            for value in (*made.parameters(), *made.buffers()):
                value.fill_(UNLOADED)
        for parameter in made.parameters():
            parameter.data = parameter.data.to(dtype)
        made.load_state_dict(safetensors.load(stored))
        return self.with_module(made)

    @contextmanager
    def sharded(self, rank: int, world: int, places: Tensor) -> Iterator[None]:
        self.spread = Gather()
        try:
            yield
        finally:
            self.spread = None

    def altered(self) -> Iterator[tuple[str, Self]]:
        """The same with another base of its waves, where the encoding has one."""
        encoding = self.module.encoding
        if type(encoding) is Rotary:
            made = copy.deepcopy(self.module)
            made.encoding = type(encoding)(encoding.head_width, base=8 * encoding.base)
            yield "base", self.with_module(made)

    def backends(self) -> Iterator[tuple[str, Self]]:
        for name in get_args(Backend):
            made = copy.deepcopy(self.module)
            for layer in made.stack.layers:
                layer.attention.backend = name  # type: ignore[union-attr]
            yield name, self.with_module(made)


def decoder(
    encoding: str | PositionalEncoding = "rotary", *, layers: int = 2, of: type[TransformerDriver] = TransformerDriver
) -> TransformerDriver:
    """A small causal transformer, the same one every time."""
    return of(_small(encoding, layers, causal=True), causal=True)


def encoder(
    encoding: str | PositionalEncoding = "rotary", *, layers: int = 2, of: type[TransformerDriver] = TransformerDriver
) -> TransformerDriver:
    """A small transformer whose tokens all see each other, the same one every time."""
    return of(_small(encoding, layers, causal=False), causal=False)


def _small(encoding: str | PositionalEncoding, layers: int, *, causal: bool) -> Transformer:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        made = Transformer(
            16, 2, layers, encoding=encoding, causal=causal, length=ROOM if encoding == "learned" else None
        )
        with torch.no_grad():
            for parameter in made.parameters():
                parameter.add_(torch.randn_like(parameter), alpha=0.2)
    return made
