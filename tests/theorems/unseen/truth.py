"""Runs that hold the claims about the modules of this folder to what they compute, in float64."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor, nn

from tests.theorems.unseen.claims import WIDTH, Written

RUNS = 4
DIFFERS = 1e-7  # relative to the largest entry; rounding of float64 is some 1e-14


def contradicted(one: Written, law: str) -> bool:
    """If some pair of runs violates a law of a module."""
    dtype = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        torch.manual_seed(0)
        module = one.kind().eval()
        with torch.no_grad():
            return any(
                found
                for rows, tokens in ((2, 7), (3, one.tokens))
                for found in (
                    _padding(module, rows, tokens, right=one.right)
                    if law == "padding"
                    else LAWS[law](module, one.masked, rows, tokens)
                )
            )
    finally:
        torch.set_default_dtype(dtype)


def _differs(a: Tensor, b: Tensor) -> bool:
    return float((a - b).abs().max()) > DIFFERS * float(a.abs().max().clamp(min=1e-30)) if a.numel() else False


def _runs(rows: int, tokens: int) -> Iterator[tuple[Tensor, Tensor]]:
    for run in range(RUNS):
        yield torch.randn(rows, tokens, WIDTH), (1.0 + 3 * (run % 2)) * torch.randn(rows, tokens, WIDTH)


def _call(module: nn.Module, masked: bool, x: Tensor, mask: Tensor | None = None) -> Tensor:
    real = torch.ones(x.shape[:2], dtype=torch.long) if mask is None else mask
    return module(x, real) if masked else module(x)


def _causal(module: nn.Module, masked: bool, rows: int, tokens: int) -> Iterator[bool]:
    for x, other in _runs(rows, tokens):
        for cut in range(1, tokens):
            mixed = torch.cat([x[:, :cut], other[:, cut:]], 1)
            yield _differs(_call(module, masked, x)[:, :cut], _call(module, masked, mixed)[:, :cut])


def _permutation(module: nn.Module, masked: bool, rows: int, tokens: int) -> Iterator[bool]:
    for x, _ in _runs(rows, tokens):
        order = torch.randperm(tokens)
        before, after = _call(module, masked, x), _call(module, masked, x[:, order])
        yield _differs(before[:, order] if before.shape[:2] == x.shape[:2] and before.dim() == 3 else before, after)


def _batch(module: nn.Module, masked: bool, rows: int, tokens: int) -> Iterator[bool]:
    for x, other in _runs(rows, tokens):
        for row in range(rows):
            kept = torch.arange(rows) != row
            mixed = torch.where(kept[:, None, None], x, other)
            yield _differs(_call(module, masked, x)[kept], _call(module, masked, mixed)[kept])


def _padding(module: nn.Module, rows: int, tokens: int, *, right: bool) -> Iterator[bool]:
    for x, other in _runs(rows, tokens):
        for pads in range(1, tokens - 1):
            mask = torch.ones(rows, tokens, dtype=torch.long)
            mask[1::2, :pads] = 0
            mask[::2, tokens - pads :] = 0
            mask = mask.sort(1, descending=True).values if right else mask
            mixed = torch.where(mask[..., None].bool(), x, other)
            before, after = _call(module, True, x, mask), _call(module, True, mixed, mask)
            yield _differs(before[mask.bool()], after[mask.bool()]) if before.dim() == 3 else _differs(before, after)


LAWS = {"causal": _causal, "permutation": _permutation, "batch": _batch}
