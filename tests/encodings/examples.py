"""What the tests of encodings and blocks share: every registered encoding, seeded tensors, derived tolerances."""

from __future__ import annotations

import math
from typing import Literal

import pytest
import torch
from torch import Tensor

from orderproof import encodings
from orderproof.blocks import row_by_row
from orderproof.encodings import Claims, Content, PositionalEncoding, Sizes
from orderproof.encodings.sight import sight

torch.set_num_threads(1)  # the tensors here are so small that a second thread only waits

WIDTH, HEADS, LENGTH = 32, 4, 64
HEAD_WIDTH = WIDTH // HEADS

every_encoding = pytest.mark.parametrize("name", encodings.names())
every_mask = pytest.mark.parametrize("causal", [True, False], ids=["causal", "bidirectional"])
# torch.export copies a tree specification through a class it has itself marked as deprecated (torch 2.13).
exports = pytest.mark.filterwarnings("ignore:.*LeafSpec.*:FutureWarning")


def build(name: str, *, causal: bool = True, seed: int = 0) -> PositionalEncoding:
    """The encoding a small model would have, its parameters drawn with deviation 1."""
    torch.manual_seed(seed)
    sizes = Sizes(width=WIDTH, heads=HEADS, causal=causal, length=LENGTH)
    encoding = encodings.get(name).for_model(sizes)
    for parameter in encoding.parameters():
        torch.nn.init.normal_(parameter)
    return encoding


def usable(name: str, *, causal: bool) -> bool:
    """Whether the encoding is defined for attention of this kind."""
    return causal or not build(name, causal=False).claims.causal_only


usable_encodings = [
    (name, causal) for name in encodings.names() for causal in (True, False) if usable(name, causal=causal)
]
every_encoding_and_mask = pytest.mark.parametrize(("name", "causal"), usable_encodings)
IN_ATTENTION = [(name, causal) for name, causal in usable_encodings if build(name).claims.site != "embed"]
every_encoding_in_attention = pytest.mark.parametrize(("name", "causal"), IN_ATTENTION)


HOOKS = {"embed": ("embed",), "rotate": ("rotate",), "bias": ("bias", "score_mod"), "none": ()}


def hooks(claims: Claims) -> tuple[str, ...]:
    """The hooks that an encoding must have; one without claims on content can be said score by score."""
    own = HOOKS[claims.site]
    if claims.content or claims.values:
        own = tuple(hook for hook in own if hook != "score_mod")
    return (*own, "values") if claims.values else own


def placed(encoding: PositionalEncoding, positions: Tensor, places: Literal["picture", "text"] = "picture") -> Tensor:
    """The positions with as many axes as the encoding asks for: row by row in a picture 8 wide, or alike on all."""
    axes = encoding.claims.ndim
    if places == "text" and axes > 1:
        return positions.expand(axes, *positions.shape)
    return row_by_row(positions, axes=axes, side=8)


def content_of(encoding: PositionalEncoding, given: tuple[Tensor, ...], positions: Tensor) -> Content:
    """What the queries, keys and tokens in `given` are to an encoding that depends on them."""
    _, q, k, x = given
    visible = sight(positions, positions, causal=encoding.claims.causal_only)
    return Content(q=q, k=k, scale=encoding.scale(q.shape[-1]), visible=visible, notes=encoding.notes(x))


def normal(*shape: int, seed: int = 0, dtype: torch.dtype = torch.float64) -> Tensor:
    """Normal numbers, the same ones for the same seed."""
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64).to(dtype)


def qkv(queries: int, keys: int, *, heads: int = HEADS, dtype: torch.dtype = torch.float64) -> list[Tensor]:
    """Queries, keys and values of two rows, each drawn from a seed of its own."""
    shapes = ((2, HEADS, queries), (2, heads, keys), (2, heads, keys))
    return [normal(*shape, HEAD_WIDTH, seed=seed, dtype=dtype) for seed, shape in enumerate(shapes)]


def notes_on(encoding: PositionalEncoding, keys: int, *, dtype: torch.dtype = torch.float64) -> Tensor | None:
    """The notes an encoding makes of some keys' tokens, where it makes any."""
    return encoding.notes(normal(2, keys, WIDTH, seed=7, dtype=dtype))


def tolerance(dtype: torch.dtype, *, terms: int, scale: float = 1.0) -> float:
    """What a result of this size may be off by after a sum of so many rounded terms."""
    return 4 * torch.finfo(dtype).eps * math.sqrt(terms) * max(scale, 1.0)


def operands(encoding: PositionalEncoding, tokens: int, *, dtype: torch.dtype = torch.float64) -> tuple[Tensor, ...]:
    """What the encoding's hook takes before the positions."""
    if encoding.claims.site == "embed":
        return (normal(2, tokens, WIDTH, dtype=dtype),)
    if encoding.claims.site == "rotate":
        q, k = (normal(2, HEADS, tokens, HEAD_WIDTH, seed=seed, dtype=dtype) for seed in (1, 2))
        return q, k
    if encoding.claims.content:
        q, k = (normal(2, HEADS, tokens, HEAD_WIDTH, seed=seed, dtype=dtype) for seed in (1, 2))
        return torch.zeros((), dtype=dtype), q, k, normal(2, tokens, WIDTH, seed=3, dtype=dtype)
    return (torch.zeros((), dtype=dtype),)


def call(encoding: PositionalEncoding, given: tuple[Tensor, ...], positions: Tensor) -> Tensor:
    """Whatever the encoding's hook gives, as one tensor."""
    site = encoding.claims.site
    if site == "embed":
        return encoding.embed(given[0], positions)
    if site == "rotate":
        return torch.stack(encoding.rotate(given[0], given[1], positions))
    if site == "bias":
        content = content_of(encoding, given, positions) if encoding.claims.content else None
        return encoding.bias(positions, positions, content=content, dtype=given[0].dtype)
    return given[0]


def apply(encoding: PositionalEncoding, positions: Tensor, *, dtype: torch.dtype = torch.float64) -> Tensor:
    """Whatever the encoding's hook gives on fixed inputs; a rotation of several axes in a picture and on text."""
    given = operands(encoding, positions.shape[-1], dtype=dtype)
    found = call(encoding, given, placed(encoding, positions))
    if encoding.claims.ndim == 1 or encoding.claims.site != "rotate":
        return found
    return torch.cat([found, call(encoding, given, placed(encoding, positions, "text"))], dim=-1)
