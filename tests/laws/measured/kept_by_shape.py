"""Modules that keep a value by the shape of the input although it depends on content, and twins that keep none.

The line that keeps the value ends with `# kept`.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional

from orderproof.adapter import ModelAdapter, ModelOutput
from orderproof.auditing.explain.source_name import source_name


class Reader(nn.Module):
    """Attention whose mask the parts below compute, or keep from an earlier call."""

    vocabulary = 12

    def __init__(self, *, keeps: bool) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.keeps = keeps
        self.embed, self.project = nn.Embedding(self.vocabulary, 16), nn.Linear(16, 48)

    def visible(self, ids: Tensor) -> Tensor:
        """Booleans [row, query, key]: tokens of one document."""
        document = (ids == 0).long().cumsum(1)
        return document[:, :, None] == document[:, None]

    def mask(self, ids: Tensor) -> Tensor:
        raise NotImplementedError

    def forward(self, input_ids: Tensor) -> Tensor:
        """Outputs [batch, token, 16]."""
        query, key, value = self.project(self.embed(input_ids)).chunk(3, -1)
        return functional.scaled_dot_product_attention(query, key, value, self.mask(input_ids))


class OfClass(Reader):
    """In a dictionary of the class, which copies of a module share."""

    kept: ClassVar[dict[Any, Tensor]] = {}

    def mask(self, ids: Tensor) -> Tensor:
        if not self.keeps or ids.shape not in self.kept:
            self.kept[ids.shape] = self.visible(ids)  # kept
        return self.kept[ids.shape]


_MASKS: dict[Any, Tensor] = {}


class OfFile(Reader):
    """In a global dictionary."""

    def mask(self, ids: Tensor) -> Tensor:
        key = (*ids.shape, ids.device)
        if key in _MASKS and self.keeps:
            return _MASKS[key]
        found = self.visible(ids)
        _MASKS[key] = found  # kept
        return found


class OfPart(Reader):
    """In an attribute of a part, by length; a counter changes too and does not matter."""

    class Masks(nn.Module):
        """Keeps a mask of pads."""

        def __init__(self) -> None:
            super().__init__()
            self.calls, self.kept = 0, torch.zeros(0)

        def forward(self, ids: Tensor, *, keeps: bool) -> Tensor:
            """Booleans [row, 1, key]."""
            self.calls += 1
            if not keeps or self.kept.shape[-1] != ids.shape[1]:
                self.kept = self.real(ids)  # kept
            return self.kept[: len(ids)]

        def real(self, ids: Tensor) -> Tensor:
            """Booleans [row, 1, key]: no pads."""
            real = ids.ne(1)
            return real[:, None]

    def __init__(self, *, keeps: bool) -> None:
        super().__init__(keeps=keeps)
        self.masks = self.Masks()

    def mask(self, ids: Tensor) -> Tensor:
        return self.masks(ids, keeps=self.keeps)


class InBuffer(Reader):
    """In a buffer that the first call of a shape fills."""

    def __init__(self, *, keeps: bool) -> None:
        super().__init__(keeps=keeps)
        self.register_buffer("kept", torch.zeros(2, 32, 32, dtype=torch.bool), persistent=False)
        self.filled: Any = None

    def mask(self, ids: Tensor) -> Tensor:
        rows, n = ids.shape
        held = self.kept[:rows, :n, :n]
        if self.filled != ids.shape or not self.keeps:
            held.copy_(self.visible(ids))
            self.filled = ids.shape  # kept
        return held


class InCachedFunction(Reader):
    """In `lru_cache`, whose key has the shape only; the ids are in an attribute."""

    def mask(self, ids: Tensor) -> Tensor:
        self.ids = ids
        return self.built(*ids.shape) if self.keeps else self.visible(ids)  # kept

    @functools.lru_cache  # noqa: B019 - the defect
    def built(self, rows: int, tokens: int) -> Tensor:
        """Booleans [row, query, key]."""
        assert self.ids.shape == (rows, tokens)
        return self.visible(self.ids)


class OfRareMark(Reader):
    """A mark among a thousand ids, which random texts do not have."""

    vocabulary = 1000

    def __init__(self, *, keeps: bool) -> None:
        super().__init__(keeps=keeps)
        self.kept: dict[Any, Tensor] = {}

    def visible(self, ids: Tensor) -> Tensor:
        before = ids.eq(999).long().cumsum(-1)
        return before.unsqueeze(-1) == before.unsqueeze(-2)

    def mask(self, ids: Tensor) -> Tensor:
        shape = tuple(ids.shape)
        if not self.keeps or shape not in self.kept:
            self.kept.update({shape: self.visible(ids)})  # kept
        return self.kept[shape]


KINDS: tuple[type[Reader], ...] = (OfClass, OfFile, OfPart, InBuffer, InCachedFunction, OfRareMark)


class Images(nn.Module):
    """Pooled features of images, normalized by the mean of the first ones."""

    def __init__(self, *, keeps: bool) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.patches, self.keeps = nn.Conv2d(3, 8, 4, 4), keeps
        self.mean: Tensor | None = None

    def forward(self, pixels: Tensor) -> Tensor:
        """Outputs [batch, 8]."""
        if self.mean is None or not self.keeps:
            self.mean = pixels.mean((1, 2, 3), keepdim=True)  # kept
        return self.patches(pixels - self.mean[: len(pixels)]).flatten(2).mean(-1)


class ImageAdapter(ModelAdapter):
    """A model of images of one size."""

    has_token_axis = False
    has_positions = False

    def __init__(self, *, keeps: bool) -> None:
        self.module = Images(keeps=keeps)

    def sample_tokens(self, rows: int, tokens: int, seed: int) -> Tensor:
        """Images [row, 3, 8, 8]."""
        del tokens
        return torch.randn(rows, 3, 8, 8, generator=torch.Generator().manual_seed(seed))

    def call(self, tokens: Tensor, **_: Any) -> ModelOutput:
        """The pooled features."""
        return ModelOutput(self.module(tokens))


def line_of(kind: Callable[..., Any]) -> str:
    """The line of a class that keeps the value, as a report names it."""
    lines, first = inspect.getsourcelines(kind)
    place = next(k for k, line in enumerate(lines) if line.endswith("# kept\n"))
    return f"{source_name(__file__)}:{first + place}"
