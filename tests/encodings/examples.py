"""Helpers for tests of encodings and blocks: every registered encoding, seeded tensors, derived tolerances."""

from __future__ import annotations

import math
from typing import Literal

import pytest
import torch
from torch import Tensor

from orderproof import encodings
from orderproof.blocks import raster_positions
from orderproof.encodings import AttentionContent, Claims, ModelSizes, PositionalEncoding
from orderproof.encodings.visibility_mask import visibility_mask
from tests.pairs import pairs_soon

torch.set_num_threads(1)  # small tensors do not benefit from threads

WIDTH, HEADS, LENGTH = 32, 4, 64
HEAD_WIDTH = WIDTH // HEADS

every_encoding = pytest.mark.parametrize("name", encodings.names())
SOON = {"rotary", "mrope", "sinusoidal", "t5", "forgetting"}  # of each site
one_encoding_of_each_site = pytest.mark.parametrize(  # and all with `-m slow`: each is compiled or exported
    "name", [pytest.param(name, marks=() if name in SOON else pytest.mark.slow) for name in encodings.names()]
)
every_mask = pytest.mark.parametrize("causal", [True, False], ids=["causal", "bidirectional"])
# torch.export copies a tree specification through a class it has itself marked as deprecated (torch 2.13).
exports = pytest.mark.filterwarnings("ignore:.*LeafSpec.*:FutureWarning")


def build(name: str, *, causal: bool = True, seed: int = 0) -> PositionalEncoding:
    """The encoding of a small model, with standard normal parameters."""
    torch.manual_seed(seed)
    sizes = ModelSizes(width=WIDTH, heads=HEADS, causal=causal, length=LENGTH)
    encoding = encodings.get(name).for_model(sizes)
    for parameter in encoding.parameters():
        torch.nn.init.normal_(parameter)
    return encoding


def usable(name: str, *, causal: bool) -> bool:
    """True if the encoding is defined for this kind of attention."""
    return causal or not build(name, causal=False).claims.causal_only


usable_encodings = [
    (name, causal) for name in encodings.names() for causal in (True, False) if usable(name, causal=causal)
]
every_encoding_and_mask = pytest.mark.parametrize(("name", "causal"), usable_encodings)
IN_ATTENTION = [(name, causal) for name, causal in usable_encodings if build(name).claims.site != "embed"]
every_encoding_in_attention = pytest.mark.parametrize(("name", "causal"), IN_ATTENTION)


def in_attention_with(argument: str, *values: object) -> pytest.MarkDecorator:
    """Every encoding, every mask and these values by pairs; the whole product with `-m slow`."""
    names = dict.fromkeys(name for name, _ in IN_ATTENTION)
    rows = pairs_soon(names, (True, False), values, allowed=lambda name, causal, _: (name, causal) in IN_ATTENTION)
    return pytest.mark.parametrize(("name", "causal", argument), rows)


HOOKS = {"embed": ("embed",), "rotate": ("rotate",), "bias": ("bias", "score_mod"), "none": ()}


def hooks(claims: Claims) -> tuple[str, ...]:
    """The hooks that an encoding must have; only content-independent ones have a score_mod."""
    own = HOOKS[claims.site]
    if claims.content_dependent or claims.adds_to_values:
        own = tuple(hook for hook in own if hook != "score_mod")
    return (*own, "value_bias") if claims.adds_to_values else own


def placed(encoding: PositionalEncoding, positions: Tensor, places: Literal["picture", "text"] = "picture") -> Tensor:
    """The positions on the encoding's axes: in raster order in an image 8 wide, or equal on all axes for text."""
    axes = encoding.claims.ndim
    if places == "text" and axes > 1:
        return positions.expand(axes, *positions.shape)
    return raster_positions(positions, axes=axes, side=8)


def content_of(encoding: PositionalEncoding, given: tuple[Tensor, ...], positions: Tensor) -> AttentionContent:
    """The `AttentionContent` of queries, keys and tokens in `given`."""
    _, q, k, x = given
    visible = visibility_mask(positions, positions, causal=encoding.claims.causal_only)
    return AttentionContent(
        q=q, k=k, scale=encoding.default_scale(q.shape[-1]), visible=visible, token_state=encoding.token_state(x)
    )


def normal(*shape: int, seed: int = 0, dtype: torch.dtype = torch.float64) -> Tensor:
    """Normal numbers, deterministic for a seed."""
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64).to(dtype)


def qkv(queries: int, keys: int, *, heads: int = HEADS, dtype: torch.dtype = torch.float64) -> list[Tensor]:
    """Queries, keys and values of two rows, with different seeds."""
    shapes = ((2, HEADS, queries), (2, heads, keys), (2, heads, keys))
    return [normal(*shape, HEAD_WIDTH, seed=seed, dtype=dtype) for seed, shape in enumerate(shapes)]


def token_state_of(encoding: PositionalEncoding, keys: int, *, dtype: torch.dtype = torch.float64) -> Tensor | None:
    """The encoding's token state of some tokens, or None."""
    return encoding.token_state(normal(2, keys, WIDTH, seed=7, dtype=dtype))


def tolerance(dtype: torch.dtype, *, terms: int, scale: float = 1.0) -> float:
    """The error bound of a result of this size after a sum of rounded terms."""
    return 4 * torch.finfo(dtype).eps * math.sqrt(terms) * max(scale, 1.0)


def operands(encoding: PositionalEncoding, tokens: int, *, dtype: torch.dtype = torch.float64) -> tuple[Tensor, ...]:
    """The arguments of the encoding's hook before the positions."""
    if encoding.claims.site == "embed":
        return (normal(2, tokens, WIDTH, dtype=dtype),)
    if encoding.claims.site == "rotate":
        q, k = (normal(2, HEADS, tokens, HEAD_WIDTH, seed=seed, dtype=dtype) for seed in (1, 2))
        return q, k
    if encoding.claims.content_dependent:
        q, k = (normal(2, HEADS, tokens, HEAD_WIDTH, seed=seed, dtype=dtype) for seed in (1, 2))
        return torch.zeros((), dtype=dtype), q, k, normal(2, tokens, WIDTH, seed=3, dtype=dtype)
    return (torch.zeros((), dtype=dtype),)


def call(encoding: PositionalEncoding, given: tuple[Tensor, ...], positions: Tensor) -> Tensor:
    """The output of the encoding's hook, as one tensor."""
    site = encoding.claims.site
    if site == "embed":
        return encoding.embed(given[0], positions)
    if site == "rotate":
        return torch.stack(encoding.rotate(given[0], given[1], positions))
    if site == "bias":
        content = content_of(encoding, given, positions) if encoding.claims.content_dependent else None
        return encoding.bias(positions, positions, content=content, dtype=given[0].dtype)
    return given[0]


def apply(encoding: PositionalEncoding, positions: Tensor, *, dtype: torch.dtype = torch.float64) -> Tensor:
    """The output of the encoding's hook on fixed inputs; for several axes on an image and on text."""
    given = operands(encoding, positions.shape[-1], dtype=dtype)
    found = call(encoding, given, placed(encoding, positions))
    if encoding.claims.ndim == 1 or encoding.claims.site != "rotate":
        return found
    return torch.cat([found, call(encoding, given, placed(encoding, positions, "text"))], dim=-1)
