"""Weights of low rank in place of those of a large module, for calls whose numbers do not matter.

A recording and the module that was recorded must compute the same with any weights, which shapes the outputs of a call
have is taken not to depend on them, and a law that is proved for all weights holds for these. With matrices of rank
`RANK` a call takes a fraction of the time.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from typing import Any, TypeVar

import torch
from torch import Tensor, nn

from orderproof.cast_on_use import LEAST_ELEMENTS, LowRank, is_large
from orderproof.recording.late_dynamo import late_dynamo
from orderproof.recording.result_shapes import KnownShapes

RANK = 4
T = TypeVar("T")


def low_rank_matrices(module: nn.Module) -> tuple[dict[int, nn.Parameter], list[tuple[nn.Module, str, nn.Parameter]]]:
    """Matrices of low rank for the large ones of a module, by the memory of these; and where these are."""
    generator = torch.Generator().manual_seed(0)
    replaced: dict[int, nn.Parameter] = {}
    places: list[tuple[nn.Module, str, nn.Parameter]] = []
    for part in module.modules():
        for name, value in part._parameters.items():
            if type(value) is not nn.Parameter or value.dim() != 2 or value.numel() < LEAST_ELEMENTS:
                continue
            if not value.is_floating_point() or value.is_meta:
                continue
            if value.data_ptr() not in replaced:
                # by columns, as products read them
                factors = [torch.randn(RANK, size, generator=generator).t() for size in value.shape]
                spread = float(value.detach()[0].float().std()) / RANK**0.5
                matrix = LowRank(factors[0], spread * factors[1], value.dtype)
                replaced[value.data_ptr()] = nn.Parameter(matrix, requires_grad=False)
            places.append((part, name, value))
    return replaced, places


@contextmanager
def low_rank_weights(module: nn.Module) -> Iterator[Mapping[int, Tensor]]:
    """In this block, large matrices of a module have low rank; the replacements by the memory of the matrices."""
    replaced, places = low_rank_matrices(module)
    try:
        for part, name, value in places:
            part._parameters[name] = replaced[value.data_ptr()]
        yield replaced
    finally:
        for part, name, value in places:
            part._parameters[name] = value


def with_replacements(values: Mapping[str, Tensor], replaced: Mapping[int, Tensor]) -> dict[str, Tensor]:
    """Tensors by name, each with its replacement of low rank, if it has one."""
    return {name: replaced.get(x.data_ptr(), x) for name, x in values.items()}


def low_rank_copy(module: nn.Module, dtype: torch.dtype | None = None) -> nn.Module:
    """A copy of a module with these weights, the same ones in each dtype; None is that of the module."""
    with low_rank_weights(module):
        matrices = {id(p): p for p in module.parameters() if isinstance(p, LowRank)}
        made: dict[int, Any] = {
            key: nn.Parameter(p if dtype is None else p.in_dtype(dtype), requires_grad=False)
            for key, p in matrices.items()
        }
        copied = copy.deepcopy(module, made)  # deepcopy takes the values of its memo as made
    return copied if dtype is None else copied.to(dtype)


def call_for_shapes(module: nn.Module, inputs: Sequence[Tensor]) -> Any:
    """The outputs of a call of which only the shapes matter; of a large module with weights of low rank.

    A call that fails is made with the weights of the module. Raises what that call raises.
    """
    return of_any_weights(module, lambda: module(*inputs))


def of_any_weights(module: nn.Module, call: Callable[[], T]) -> T:
    """The result of `call`, with weights of low rank in a large module; with its own if it raises with these."""
    on_meta = any(p.is_meta for p in module.parameters())
    with torch.no_grad(), late_dynamo(), KnownShapes() if on_meta else nullcontext():
        if is_large(module):
            with suppress(Exception), low_rank_weights(module):
                return call()
        return call()
