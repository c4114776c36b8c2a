"""The adapter of `Transformer` for measured laws, and two tiny models to try those laws on."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Self, get_args

import torch
from safetensors import torch as safetensors
from torch import Tensor

from orderproof.adapter import AttentionPattern, ModelAdapter, ModelOutput
from orderproof.blocks.sequence_parallel import AllGatherKV, SequenceParallel
from orderproof.blocks.transformer import Transformer
from orderproof.encodings import AttentionBackend, PositionalEncoding, Rotary
from orderproof.errors import UnsupportedCallError
from orderproof.positions import offset as offset_positions
from orderproof.seeded_random import seeded_random

FILL_BEFORE_LOADING = 0  # the value of memory before loading, so that missing entries are deterministic
CACHE_HEADROOM = 64  # [tokens] of cache capacity beyond the longest first call; more than any law appends


class TransformerAdapter(ModelAdapter):
    """Calls a `Transformer` with positions, padding masks and caches."""

    supported_inputs = frozenset({"positions", "mask", "cache"})
    output_name = "output"
    sequence_parallel_attention: SequenceParallel | None = None  # set while ranks share its rows

    def __init__(self, module: Transformer, *, causal: bool, length: int = 7, vocabulary: int | None = None) -> None:
        self.module: Transformer = module.eval()
        self.causal = causal
        self.default_length = length
        self.vocabulary = vocabulary
        last = module.encoding.claims.max_position
        self.max_positions = None if last is None else last + 1
        if not causal:
            self.supported_inputs = self.supported_inputs - {"cache"}

    def sample_tokens(self, rows: int, tokens: int, seed: int) -> Tensor:
        generator = torch.Generator().manual_seed(seed)
        if self.vocabulary is None:
            return torch.randn((rows, tokens, self.module.width), generator=generator)
        return torch.randint(0, self.vocabulary, (rows, tokens), generator=generator)

    def call(
        self, tokens: Tensor, *, positions: Tensor | None = None, mask: Tensor | None = None, past: Any = None,
        keep: bool | None = None,
    ) -> ModelOutput:  # fmt: skip
        if past is None and keep:
            past = self.module.new_caches(len(tokens), tokens.shape[1] + CACHE_HEADROOM)
        now = None if mask is None else mask[:, -tokens.shape[1] :]
        if (axes := self.module.encoding.claims.ndim) > 1:
            positions = self._expand_to_axes(axes, tokens, positions, past)
        return ModelOutput(
            self.module(
                tokens, positions, padding_mask=now, caches=past, sequence_parallel=self.sequence_parallel_attention
            ),
            past,
        )

    def attention_pattern(self, tokens: int) -> AttentionPattern:
        full = torch.ones(tokens, tokens, dtype=torch.bool)
        visible = full.tril() if self.causal else full
        return AttentionPattern(visible, visible)

    def _expand_to_axes(self, axes: int, tokens: Tensor, positions: Tensor | None, past: Any) -> Tensor:
        """Text positions on several axes: the same on each."""
        if positions is None:
            before = past[0].num_real_tokens if past else 0
            positions = offset_positions(before, tokens.shape[1]).expand(tokens.shape[:2])
        return positions.expand(axes, *positions.shape)

    def crop_cache(self, cache: Any, tokens: int) -> Any:
        cache = copy.deepcopy(cache)
        for layer in cache:
            layer.crop(layer.length - tokens)
        return cache

    def reorder_cache(self, cache: Any, rows: Tensor) -> Any:
        cache = copy.deepcopy(cache)
        if len(rows) != len(cache[0].padding_mask):
            raise UnsupportedCallError("the number of rows of its cache is fixed")
        for layer in cache:
            layer.reorder(rows)
        return cache

    def reload_methods(self) -> Mapping[str, Callable[[], Self]]:
        kept = next(self.module.parameters()).dtype
        return {**super().reload_methods(), "saved, copied on meta and loaded": lambda: self.loaded_in(kept)}

    def loaded_in(self, dtype: torch.dtype) -> Self:
        """Saved as safetensors and loaded into a copy of the model without memory, in a dtype."""
        serialized = safetensors.save({name: value.contiguous() for name, value in self.module.state_dict().items()})
        copied = copy.deepcopy(self.module).to("meta").to_empty(device="cpu")
        with torch.no_grad():
            for value in (*copied.parameters(), *copied.buffers()):
                value.fill_(FILL_BEFORE_LOADING)
        for parameter in copied.parameters():
            parameter.data = parameter.data.to(dtype)
        copied.load_state_dict(safetensors.load(serialized))
        return self.with_module(copied)

    @contextmanager
    def sequence_parallel(self, rank: int, world: int, places: Tensor) -> Iterator[None]:
        self.sequence_parallel_attention = AllGatherKV()
        try:
            yield
        finally:
            self.sequence_parallel_attention = None

    def config_variants(self) -> Iterator[tuple[str, Self]]:
        """The model with another rotary base, if its encoding is rotary."""
        encoding = self.module.encoding
        if type(encoding) is Rotary:
            copied = copy.deepcopy(self.module)
            copied.encoding = type(encoding)(encoding.head_width, base=8 * encoding.base)
            yield "base", self.with_module(copied)

    def attention_backends(self) -> Iterator[tuple[str, Self]]:
        for name in get_args(AttentionBackend):
            copied = copy.deepcopy(self.module)
            for layer in copied.stack.layers:
                layer.attention.backend = name  # type: ignore[union-attr]
            yield name, self.with_module(copied)


def tiny_decoder(
    encoding: str | PositionalEncoding = "rotary", *, layers: int = 2, of: type[TransformerAdapter] = TransformerAdapter
) -> TransformerAdapter:
    """A small causal transformer, deterministic."""
    return of(_tiny(encoding, layers, causal=True), causal=True)


def tiny_encoder(
    encoding: str | PositionalEncoding = "rotary", *, layers: int = 2, of: type[TransformerAdapter] = TransformerAdapter
) -> TransformerAdapter:
    """A small bidirectional transformer, deterministic."""
    return of(_tiny(encoding, layers, causal=False), causal=False)


def _tiny(encoding: str | PositionalEncoding, layers: int, *, causal: bool) -> Transformer:
    with seeded_random(0):
        model = Transformer(
            16, 2, layers, encoding=encoding, causal=causal, length=CACHE_HEADROOM if encoding == "learned" else None
        )
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.add_(torch.randn_like(parameter), alpha=0.2)
    return model
