"""What the tests of encodings and blocks share: every registered encoding, seeded tensors, derived tolerances.

Positions are written as text, one number a token. An encoding whose positions have several axes gets them on all
axes alike (`on_axes(..., "text")`) and as the numbers of the cells of a grid (`"grid"`), so that all that is tested of
text is tested of both.
"""

from __future__ import annotations

import math
from typing import Literal

import pytest
import torch
from torch import Tensor

from orderproof import encodings, positions
from orderproof.blocks import KeyValueCache, Transformer
from orderproof.encodings import PositionalEncoding, Sizes

torch.set_num_threads(1)  # the tensors here are so small that a second thread only waits

WIDTH, HEADS, LENGTH = 32, 4, 64
HEAD_WIDTH = WIDTH // HEADS


def looks_ahead(name: str) -> bool:
    """Whether a bidirectional model may have this encoding."""
    sizes = Sizes(width=WIDTH, heads=HEADS, causal=False, length=LENGTH)
    return not encodings.get(name).for_model(sizes).claims.causal_only


every_encoding = pytest.mark.parametrize("name", encodings.names())
every_encoding_that_looks_ahead = pytest.mark.parametrize("name", [*filter(looks_ahead, encodings.names())])
every_mask = pytest.mark.parametrize("causal", [True, False], ids=["causal", "bidirectional"])
every_encoding_and_mask = pytest.mark.parametrize(
    ("name", "causal"),
    [
        pytest.param(name, causal, id=f"{name}-{'causal' if causal else 'bidirectional'}")
        for name in encodings.names()
        for causal in (True, False)
        if causal or looks_ahead(name)
    ],
)
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


def normal(*shape: int, seed: int = 0, dtype: torch.dtype = torch.float64) -> Tensor:
    """Normal numbers, the same ones for the same seed."""
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64).to(dtype)


def tolerance(dtype: torch.dtype, *, terms: int, scale: float = 1.0) -> float:
    """What a result of this size may be off by after a sum of so many rounded terms."""
    return 4 * torch.finfo(dtype).eps * math.sqrt(terms) * max(scale, 1.0)


def on_axes(encoding: PositionalEncoding, p: Tensor, places: Literal["text", "grid"] = "text") -> Tensor:
    """Positions of as many axes as the encoding has: alike on all, or those of cell p of a grid three cells wide."""
    axes = encoding.claims.ndim
    if axes == 1:
        return p
    if places == "text":
        return p.expand(axes, *p.shape)
    return torch.stack([p // 3**a % (3 if a < axes - 1 else LENGTH) for a in reversed(range(axes))])


def run(
    block: Transformer,
    x: Tensor,
    p: Tensor | None = None,
    *,
    padding_mask: Tensor | None = None,
    caches: list[KeyValueCache] | None = None,
) -> Tensor:
    """What the block makes of text; its positions are counted here where the block would not count them."""
    if block.encoding.claims.ndim > 1:
        if p is None:
            past = caches[0].seen if caches else 0
            if padding_mask is None:
                p = positions.offset(past, x.shape[1])
            else:
                before = past.unsqueeze(-1) if isinstance(past, Tensor) else past
                p = positions.from_mask(padding_mask) + before
        p = on_axes(block.encoding, p)
    return block(x, p, padding_mask=padding_mask, caches=caches)


def stated(block: Transformer, tokens: int) -> dict[str, Tensor]:
    """The positions as a keyword, where the block does not count them itself."""
    axes = block.encoding.claims.ndim
    return {} if axes == 1 else {"positions": on_axes(block.encoding, positions.arange(tokens)).contiguous()}


def operands(encoding: PositionalEncoding, tokens: int, *, dtype: torch.dtype = torch.float64) -> tuple[Tensor, ...]:
    """What the encoding's hook takes before the positions."""
    if encoding.claims.site == "embed":
        return (normal(2, tokens, WIDTH, dtype=dtype),)
    if encoding.claims.site == "rotate":
        q, k = (normal(2, HEADS, tokens, HEAD_WIDTH, seed=seed, dtype=dtype) for seed in (1, 2))
        return q, k
    return (torch.zeros((), dtype=dtype),)


def call(encoding: PositionalEncoding, given: tuple[Tensor, ...], positions: Tensor) -> Tensor:
    """Whatever the encoding's hook gives, as one tensor."""
    site = encoding.claims.site
    if site == "embed":
        return encoding.embed(given[0], positions)
    if site == "rotate":
        return torch.stack(encoding.rotate(given[0], given[1], positions))
    if site == "bias":
        return encoding.bias(positions, positions, dtype=given[0].dtype)
    return given[0]


def apply(encoding: PositionalEncoding, p: Tensor, *, dtype: torch.dtype = torch.float64) -> Tensor:
    """Whatever the encoding's hook gives on fixed inputs; on text and on a grid side by side, where it has axes."""
    given = operands(encoding, p.shape[-1], dtype=dtype)
    if encoding.claims.ndim == 1:
        return call(encoding, given, p)
    return torch.cat([call(encoding, given, on_axes(encoding, p, places)) for places in ("text", "grid")], dim=-1)
