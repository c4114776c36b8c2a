"""FlexAttention with a bias as a matrix or as a score function.

On a GPU the kernel is compiled for each kind of score; on the CPU it runs eagerly and has no gradient for queries, keys
and values. Torch gives it no second derivatives, and silently leaves out its part of them: they are refused here.
Source: Dong et al. 2024, "Flex Attention", arXiv:2412.05496.
"""

from __future__ import annotations

import warnings
from functools import cache
from typing import Any

import torch
from torch import Tensor
from torch.nn.attention.flex_attention import flex_attention

from orderproof.encodings._encoding import ScoreMod
from orderproof.errors import UsageError

_LEAST_WIDTH = 16  # of torch's compiled kernel


def flex_attention_with_bias(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    bias: Tensor | None,
    visible: Tensor | None,
    *,
    score_mod: ScoreMod | None,
    scale: float,
) -> Tensor:
    """Attention with a bias matrix or a score function, where ``visible`` is True."""
    if q.device.type == "cpu" and torch.is_grad_enabled() and any(x.requires_grad for x in (q, k, v)):
        raise UsageError("backend: 'flex' has no gradient on the CPU; use 'sdpa', or call under torch.no_grad()")
    if q.is_cuda and (width := min(q.shape[-1], v.shape[-1])) < _LEAST_WIDTH:
        raise UsageError(
            f"backend: 'flex' on a GPU takes heads of at least {_LEAST_WIDTH} features, got {width}; use 'sdpa'"
        )

    def modify(score: Tensor, batch: Tensor, head: Tensor, query: Tensor, key: Tensor) -> Tensor:
        if score_mod is not None:
            score = score_mod(score, batch, head, query, key)
        if bias is not None:
            score = score + _index(bias, batch, head, query, key)
        if visible is not None:
            score = torch.where(_index(visible, batch, head, query, key), score, -float("inf"))
        return score

    run: Any = _compiled() if q.is_cuda and not torch.compiler.is_compiling() else flex_attention
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "flex_attention called without torch.compile", UserWarning)
        mixed: Tensor = run(q, k, v, score_mod=modify, scale=scale)
    if mixed.requires_grad and not torch.compiler.is_compiling():  # torch.compile refuses second derivatives itself
        return _FirstDerivativeOnly.apply(mixed)  # type: ignore[no-any-return, no-untyped-call]
    return mixed


class _FirstDerivativeOnly(torch.autograd.Function):
    """The identity, whose gradient cannot be differentiated."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        del ctx
        return x.view_as(x)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Tensor:
        del ctx
        if torch.is_grad_enabled():
            raise UsageError("backend: 'flex' has no second derivatives (create_graph=True); use 'eager'")
        return gradients[0]


def _index(x: Tensor, batch: Tensor, head: Tensor, query: Tensor, key: Tensor) -> Tensor:
    zero = torch.zeros_like(batch)
    index = (batch, head, query, key)
    return x[tuple(zero if size == 1 else i for size, i in zip(x.shape, index, strict=True))]


@cache
def _compiled() -> Any:
    return torch.compile(flex_attention, dynamic=True)
