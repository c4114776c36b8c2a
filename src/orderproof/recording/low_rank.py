"""Weights of low rank in place of those of a large module, for calls whose numbers do not matter.

A recording and the module that was recorded must compute the same with any weights, which shapes the outputs of a call
have is taken not to depend on them, and a law that is proved for all weights holds for these. With matrices of rank
`RANK` a call takes a fraction of the time.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any, Self

import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_map

from orderproof.cast_on_use import LEAST_ELEMENTS, is_large

RANK = 4
_aten = torch.ops.aten
_TRANSPOSED = frozenset({_aten.t.default, _aten.numpy_T.default})
_SAME = frozenset({_aten.detach.default, _aten.alias.default})


class LowRank(Tensor):
    """The matrix `left @ right.T`, which is never computed for a product or a row."""

    left: Tensor
    right: Tensor

    @staticmethod
    def __new__(cls, left: Tensor, right: Tensor, dtype: torch.dtype) -> Self:
        """Make one from factors in float32, or float64."""
        made: Self = Tensor._make_wrapper_subclass(cls, (len(left), len(right)), dtype=dtype, device=left.device)
        made.left, made.right = left, right
        return made

    __torch_function__ = torch._C._disabled_torch_function_impl  # type: ignore[assignment]

    def __repr__(self, *, tensor_contents: Any = None) -> str:  # type: ignore[override]
        return f"LowRank({list(self.shape)}, {self.dtype})"

    @classmethod
    def __torch_dispatch__(  # type: ignore[override]
        cls, func: Any, types: Sequence[type], args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        first = args[0] if args else None
        if isinstance(first, LowRank) and func in _SAME:
            return LowRank(first.left, first.right, first.dtype)
        if isinstance(first, LowRank) and (func in _TRANSPOSED or (func is _aten.transpose.int and first.dim() == 2)):
            return LowRank(first.right, first.left, first.dtype)
        if isinstance(first, LowRank) and func is _aten.embedding.default:
            return (first.left[args[1]] @ first.right.t()).to(first.dtype)
        if func is _aten.mm.default and isinstance(args[1], LowRank) and not isinstance(args[0], LowRank):
            return _product(args[0], args[1]).to(args[1].dtype)
        if func is _aten.addmm.default and isinstance(args[2], LowRank) and not isinstance(args[1], LowRank):
            if not kwargs:
                return (_product(args[1], args[2]) + args[0]).to(args[2].dtype)
        return func(*tree_map(_dense, args), **tree_map(_dense, dict(kwargs)))

    def in_dtype(self, dtype: torch.dtype) -> LowRank:
        """The same matrix in another dtype."""
        wide = torch.float64 if dtype is torch.float64 else self.left.dtype
        return LowRank(self.left.to(wide), self.right.to(wide), dtype)


def _product(x: Tensor, matrix: LowRank) -> Tensor:
    return (x.to(matrix.left.dtype) @ matrix.left) @ matrix.right.t()


def _dense(x: Any) -> Any:
    return (x.left @ x.right.t()).to(x.dtype) if isinstance(x, LowRank) else x


@contextmanager
def low_rank_weights(module: nn.Module) -> Iterator[Mapping[int, Tensor]]:
    """In this block, large matrices of a module have low rank; the replacements by the memory of the matrices."""
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
                factors = [torch.randn(size, RANK, generator=generator) for size in value.shape]
                spread = float(value.detach()[0].float().std()) / RANK**0.5
                matrix = LowRank(factors[0], spread * factors[1], value.dtype)
                replaced[value.data_ptr()] = nn.Parameter(matrix, requires_grad=False)
            places.append((part, name, value))
    try:
        for part, name, value in places:
            part._parameters[name] = replaced[value.data_ptr()]
        yield replaced
    finally:
        for part, name, value in places:
            part._parameters[name] = value


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
    with torch.no_grad():
        if is_large(module):
            with suppress(Exception), low_rank_weights(module):
                return module(*inputs)
        return module(*inputs)
