"""Parameters that take no memory: in another dtype, where operators get their numbers cast, or of low rank.

A float64 copy of a model in bfloat16 is four times as large as the model. `CastOnUse` has the numbers of a parameter in
another dtype and holds the parameter itself. A view of it is another one, a row of an embedding is cast alone, and a
matrix is cast for one product, in parts that stay in the cache of a processor, into memory that all products use. The
results have the bits that those of a full copy have; products in float64 may differ from them in the last bits.

`LowRank` is a matrix by its factors, and a product with it takes a fraction of the time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self

import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_map

LARGE_MODEL = 2**27  # [bytes] of parameters: a smaller model is copied where a larger one shares its parameters
LEAST_ELEMENTS = 2**18  # of a parameter; a smaller one is cast once
MANY_ROWS = 64  # of a product with a matrix of low rank
MOST_CAST = 2**18  # elements of a matrix that are cast at once: 2 MB in float64, multiplied before they leave the cache
_aten = torch.ops.aten
_PRODUCTS: Mapping[Any, int] = {_aten.mm.default: 1, _aten.addmm.default: 2}  # the argument of the right matrix
_TRANSPOSED = frozenset({_aten.t.default, _aten.numpy_T.default})
_SAME = frozenset({_aten.detach.default, _aten.alias.default})
_OF_ROWS = frozenset({_aten.embedding.default, _aten.index_select.default, _aten.index.Tensor, _aten.gather.default})


class CastOnUse(Tensor):
    """The numbers of a tensor in another dtype, cast for each operator that reads them. It cannot be written."""

    source: Tensor

    @staticmethod
    def __new__(cls, source: Tensor, dtype: torch.dtype, *, requires_grad: bool = False) -> Self:
        """Make one; `source` must not change."""
        made: Self = Tensor._make_wrapper_subclass(
            cls, source.shape, strides=source.stride(), dtype=dtype, device=source.device, requires_grad=requires_grad
        )
        made.source = source.detach()
        return made

    __torch_function__ = torch._C._disabled_torch_function_impl  # type: ignore[assignment]

    def __deepcopy__(self, memo: dict[int, Any]) -> CastOnUse:
        memo[id(self)] = self
        return self

    def __repr__(self, *, tensor_contents: Any = None) -> str:  # type: ignore[override]
        return f"CastOnUse({list(self.shape)}, {self.source.dtype} as {self.dtype})"

    def cast(self) -> Tensor:
        """All its numbers in its dtype."""
        return self.source.to(self.dtype)

    @classmethod
    def __torch_dispatch__(  # type: ignore[override]
        cls, func: Any, types: Sequence[type], args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        if any(returned.alias_info is not None and returned.alias_info.is_write for returned in func._schema.returns):
            written = [x for x in (*args, *kwargs.values()) if isinstance(x, CastOnUse)]
            if written and args and args[0] is written[0]:
                raise RuntimeError("expected no write to a parameter that is cast where it is used")
        first = args[0] if args else None
        if isinstance(first, CastOnUse):
            if _is_view(func) and not any(isinstance(x, CastOnUse) for x in args[1:]):
                return _rewrapped(func(first.source, *args[1:], **kwargs), first)
            if func in _OF_ROWS and not any(isinstance(x, CastOnUse) for x in args[1:]):
                return func(first.source, *args[1:], **kwargs).to(first.dtype)
        place = _PRODUCTS.get(func)
        if place is not None and isinstance(args[place], CastOnUse):
            return _product(func, args, kwargs, place)
        return func(*tree_map(_cast, args), **tree_map(_cast, dict(kwargs)))


class LowRank(Tensor):
    """The matrix `left @ right.T`, which is never computed for a product or a row."""

    left: Tensor
    right: Tensor

    @property
    def source(self) -> Tensor:
        """A tensor with its numbers, for a quick test that they did not change."""
        return self.left

    @staticmethod
    def __new__(cls, left: Tensor, right: Tensor, dtype: torch.dtype) -> Self:
        """Make one from factors in float32, or float64."""
        made: Self = Tensor._make_wrapper_subclass(cls, (len(left), len(right)), dtype=dtype, device=left.device)
        made.left, made.right = left, right
        return made

    @classmethod
    def __torch_function__(
        cls, func: Any, types: Sequence[type], args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        with torch._C.DisableTorchFunctionSubclass():
            if not (torch._C._len_torch_dispatch_stack() or torch.is_autocast_enabled("cpu")):  # which see operators
                found = _of_factors(func, args, kwargs or {})
                if found is not None:
                    return found
            if func is nn.functional.linear and args[0].dim() > 2:  # some inputs would be multiplied by its numbers
                rows = func(args[0].reshape(-1, args[0].shape[-1]), *args[1:], **(kwargs or {}))
                return rows.reshape(*args[0].shape[:-1], -1)
            return func(*args, **(kwargs or {}))

    def __repr__(self, *, tensor_contents: Any = None) -> str:  # type: ignore[override]
        return f"LowRank({list(self.shape)}, {self.dtype})"

    @classmethod
    def __torch_dispatch__(  # type: ignore[override]
        cls, func: Any, types: Sequence[type], args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        found = _of_factors(func, args, kwargs)
        return func(*tree_map(_dense, args), **tree_map(_dense, dict(kwargs))) if found is None else found

    def in_dtype(self, dtype: torch.dtype) -> LowRank:
        """The same matrix in another dtype."""
        wide = torch.float64 if dtype is torch.float64 else self.left.dtype
        return LowRank(self.left.to(wide), self.right.to(wide), dtype)


def _of_factors(func: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    """The result of an operator on one matrix of low rank, from its factors; None if it needs the numbers."""
    if kwargs or not args:
        return None
    first = args[0]
    if isinstance(first, LowRank):
        if func in _SAME:
            return LowRank(first.left, first.right, first.dtype)
        if func in _TRANSPOSED or (func is _aten.transpose.int and first.dim() == 2):
            return LowRank(first.right, first.left, first.dtype)
        if func is _aten.embedding.default and not isinstance(args[1], LowRank):
            return (first.left[args[1]] @ first.right.t()).to(first.dtype)
        return None
    if func is nn.functional.linear and isinstance(args[1], LowRank):
        product = _product_of_factors(first, args[1].right, args[1].left, args[1].dtype)
        return (product if len(args) < 3 or args[2] is None else product + args[2]).to(args[1].dtype)
    place = _PRODUCTS.get(func)
    if place is None or not isinstance(args[place], LowRank) or isinstance(args[place - 1], LowRank):
        return None
    matrix = args[place]
    product = _product_of_factors(args[place - 1], matrix.left, matrix.right, matrix.dtype)
    return (product if place == 1 else product + first).to(matrix.dtype)


def product_of_low_rank(func: Any, args: tuple[Any, ...], replaced: Mapping[int, Tensor]) -> Tensor | None:
    """The product with the replacement of a matrix, which are given by its memory; None of another operator."""
    is_linear = func is _aten.linear.default
    place = 1 if is_linear else _PRODUCTS.get(func, 0)
    matrix: Any = args[place] if place else None
    low = replaced.get(matrix.data_ptr()) if type(matrix) in (Tensor, nn.Parameter) else None
    if low is None or matrix.numel() != low.numel():
        return None
    low = low if matrix.is_contiguous() else low.t()
    if low.shape != matrix.shape:
        return None
    known = nn.functional.linear if is_linear else func
    product: Tensor | None = _of_factors(known, (*args[:place], low, *args[place + 1 :]), {})
    return product


def _product_of_factors(x: Tensor, left: Tensor, right: Tensor, dtype: torch.dtype) -> Tensor:
    """The product of `x` and `left @ right.T`, in the dtype of the factors; of many rows in a narrow dtype in that."""
    inner = x.to(left.dtype) @ left
    if dtype is torch.bfloat16 and inner.numel() > MANY_ROWS * left.shape[1]:  # most of the time is the result's memory
        inner, right = inner.to(dtype), right.to(dtype)
    return inner @ right.t()


def _dense(x: Any) -> Any:
    return (x.left @ x.right.t()).to(x.dtype) if isinstance(x, LowRank) else x


_scratch: list[Tensor] = []  # the memory into which matrices are cast, in this process


def _cast(x: Any) -> Any:
    return x.cast() if isinstance(x, CastOnUse) else x


def _is_view(func: Any) -> bool:
    """True if each result of an operator is a view of its first argument, with the same elements in the same dtype."""
    returns = func._schema.returns
    views = bool(returns) and all(r.alias_info is not None and not r.alias_info.is_write for r in returns)
    return views and func is not _aten.view.dtype


def _rewrapped(found: Any, first: CastOnUse) -> Any:
    def wrap(x: Any) -> Any:
        return CastOnUse(x, first.dtype) if isinstance(x, Tensor) else x

    return tree_map(wrap, found)


def _product(func: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any], place: int) -> Tensor:
    """The product with a matrix, which is cast into memory that all products use, in parts."""
    before: list[Any] = [_cast(x) for x in args[:place]]
    right: CastOnUse = args[place]
    rows, columns = right.shape
    step = max(MOST_CAST // rows, 1)
    if columns <= step:
        result: Tensor = func(*before, _cast_into_scratch(right.source, right.dtype), **kwargs)
        return result
    result = torch.empty(before[-1].shape[0], columns, dtype=right.dtype, device=right.device)
    for start in range(0, columns, step):
        end = min(start + step, columns)
        part = _cast_into_scratch(right.source[:, start:end], right.dtype)
        added = [x[..., start:end] if x.shape[-1] == columns else x for x in before[:-1]]
        result[:, start:end] = func(*added, before[-1], part, **kwargs)
    return result


def _cast_into_scratch(source: Tensor, dtype: torch.dtype) -> Tensor:
    """A matrix in a dtype, with the strides that a cast gives it; until the next call."""
    if not _scratch or _scratch[0].numel() < source.numel() * dtype.itemsize:
        with torch.inference_mode(False):
            _scratch[:] = [torch.empty(source.numel() * dtype.itemsize, dtype=torch.uint8)]
    flat = _scratch[0][: source.numel() * dtype.itemsize].view(dtype)
    by_columns = source.stride(0) == 1 and source.stride(1) >= source.shape[0] and source.shape[1] > 1
    matrix = flat.view(source.shape[1], source.shape[0]).t() if by_columns else flat.view(source.shape)
    return matrix.copy_(source)


def cast_tensor(x: Tensor, dtype: torch.dtype) -> Tensor:
    """The numbers of a plain tensor in a dtype: a copy, but a large tensor is shared, or cast where it is used."""
    source = x.detach()
    if isinstance(source, LowRank):
        return source.in_dtype(dtype)
    if isinstance(source, CastOnUse):  # a cast to a narrower dtype rounds
        rounds = torch.promote_types(source.source.dtype, source.dtype) != source.dtype
        source = source.cast() if rounds else source.source
    if source.numel() < LEAST_ELEMENTS:
        return source.to(dtype, copy=True)
    return source if source.dtype == dtype else CastOnUse(source, dtype)


def is_large(module: nn.Module) -> bool:
    """True if another model with its weights shares them, because it has no place in memory besides it."""
    return sum(p.numel() * source_of(p).element_size() for p in module.parameters()) > LARGE_MODEL


def source_of(x: Tensor) -> Tensor:
    """The tensor that holds the numbers, before they are cast or multiplied."""
    return x.source if isinstance(x, (CastOnUse, LowRank)) else x
