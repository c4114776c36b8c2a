"""Layouts of results that follow from the sizes of the operands as expressions, without a question about a size.

Torch derives the layout of a result with symbolic sizes in Python and asks many questions, each of which is answered by
a solver. For the operators of this module the layout is read off the operands. Whatever is not plain, such as sizes
that are equal only under a condition, is left to torch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cache
from math import prod
from typing import Any

import torch
from torch import Tensor
from torch._ops import OpOverload

from orderproof.recording.arguments import leaves, map_leaves

Size = int | torch.SymInt
Sizes = tuple[Size, ...]
_ATEN = torch.ops.aten


@dataclass(frozen=True)
class Layout:
    """The layout of a result: a view of the first operand, or a new tensor."""

    sizes: Sizes
    strides: Sizes
    dtype: torch.dtype
    offset: Size = 0
    is_view: bool = False


@dataclass
class ShapeRules:
    """The rules, and the strides of contiguous tensors by their sizes, of one recording."""

    _strides: dict[Any, Sizes] = field(default_factory=dict)

    def result(self, func: OpOverload, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Layout | None:
        """The layout of a result that is one new tensor or a view of the first argument; None: torch has to decide."""
        if func in _VIEWS:
            return self._view(args, kwargs)
        if func in _COPIES:
            return self._clone(args, kwargs)
        if func in _SCATTERS:
            return _scatter(args)
        if func is _ATEN.einsum.default:
            return self._einsum(args, kwargs)
        if func is _ATEN.unsqueeze.default:
            return self._unsqueeze(args, kwargs)
        if func in _CONTIGUOUS_RESULTS:
            found = _CONTIGUOUS_RESULTS[func](args, kwargs)
            if found is None or (func in _OF_CONTIGUOUS_OPERANDS and not self._is_contiguous(args[0])):
                return None
            return Layout(found[0], self._contiguous_strides(found[0]), found[1])
        return self._pointwise(func, args, kwargs) if _is_pointwise(func) else None

    def _clone(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Layout | None:
        """A copy without gaps. Its axes are in the order in memory of those of the tensor, if that is plain."""
        (x,) = args
        dtype = kwargs.get("dtype") or x.dtype
        order = kwargs.get("memory_format", torch.preserve_format)
        if set(kwargs) - {"dtype", "device", "non_blocking", "memory_format"}:
            return None
        if order is torch.contiguous_format:
            return Layout(tuple(x.shape), self._contiguous_strides(tuple(x.shape)), dtype)
        strides = self._strides_without_gaps(x) if order is torch.preserve_format else None
        return None if strides is None else Layout(tuple(x.shape), strides, dtype)

    def _unsqueeze(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Layout | None:
        """An axis of size one, whose stride is that of the axes behind it."""
        x, dim = args
        place = dim + x.dim() + 1 if dim < 0 else dim
        if kwargs or not 0 <= place <= x.dim():  # torch raises
            return None
        sizes, strides = tuple(x.shape), tuple(x.stride())
        stride = sizes[place] * strides[place] if place < x.dim() else 1
        return Layout(
            (*sizes[:place], 1, *sizes[place:]),
            (*strides[:place], stride, *strides[place:]),
            x.dtype,
            x.storage_offset(),
            is_view=True,
        )

    def _einsum(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Layout | None:
        """The sizes are those of the letters; the order of the axes in memory is that of the example."""
        equation, operands = args[0].replace(" ", ""), args[1]
        inputs, arrow, output = equation.partition("->")
        indices = inputs.split(",")
        if kwargs or len(args) != 2 or not arrow or "." in equation or len(indices) != len(operands):
            return None
        sizes: dict[str, Size] = {}
        for letters, x in zip(indices, operands, strict=True):
            if len(letters) != x.dim() or any(
                key_of(sizes.setdefault(c, size)) != key_of(size) for c, size in zip(letters, x.shape, strict=True)
            ):
                return None
        examples = _examples(sizes.values())
        if examples is None or 1 in examples:
            return None
        example = torch.einsum(equation, *map(_example_tensor, operands))
        if example.stride() != self._strides_like(example.stride(), tuple(example.shape)):  # it has gaps
            return None
        found = tuple(sizes[c] for c in output)
        return Layout(found, self._strides_like(example.stride(), found), example.dtype)

    def _strides_like(self, examples: Sequence[int], sizes: Sizes) -> Sizes:
        """The strides without gaps of axes that are in memory in the order of these strides."""
        order = sorted(range(len(sizes)), key=examples.__getitem__, reverse=True)
        strides = self._contiguous_strides(tuple(sizes[axis] for axis in order))
        return tuple(strides[order.index(axis)] for axis in range(len(order)))

    def _pointwise(self, func: OpOverload, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Layout | None:
        given = leaves((args, kwargs))
        operands = [x for x in given if isinstance(x, Tensor)]
        if not operands or any(isinstance(x, torch.SymInt | torch.SymFloat | torch.SymBool) for x in given):
            return None
        sizes = broadcast([tuple(x.shape) for x in operands])
        strides = None if sizes is None else self._pointwise_strides(sizes, operands)
        dtype = None if strides is None else _result_dtype(func, args, kwargs)
        return None if sizes is None or strides is None or dtype is None else Layout(sizes, strides, dtype)

    def _view(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Layout | None:
        """The sizes of a view of a contiguous tensor, or of one with an axis that is split, are those of the call."""
        if kwargs or len(args) != 2:
            return None
        x, sizes = args
        found = _split(x, tuple(sizes))
        if found is not None:
            return Layout(*found, x.dtype, x.storage_offset(), is_view=True)
        viewed = _viewed_sizes(tuple(x.shape), tuple(sizes)) if self._is_contiguous(x) else None
        if viewed is None:
            return None
        return Layout(viewed, self._contiguous_strides(viewed), x.dtype, x.storage_offset(), is_view=True)

    def _pointwise_strides(self, sizes: Sizes, operands: Sequence[Tensor]) -> Sizes | None:
        """The order of the axes in memory is that of the first operand if it has all of them."""
        first = operands[0]
        if _same(first.shape, sizes) and not any(map(_is_one, sizes)):
            return self._strides_without_gaps(first)
        return self._contiguous_strides(sizes) if all(map(self._is_contiguous, operands)) else None

    def _strides_without_gaps(self, x: Tensor) -> Sizes | None:
        """The strides of a tensor of its sizes with the axes in the same order in memory; None if that is not plain."""
        if self._is_dense(x):
            return tuple(x.stride())
        examples = _examples(x.stride())
        if examples is None or 0 in examples:
            return None
        if examples == sorted(examples, reverse=True):
            return self._contiguous_strides(tuple(x.shape))
        return self._strides_like(examples, tuple(x.shape)) if len(set(examples)) == len(examples) else None

    def _is_dense(self, x: Tensor) -> bool:
        """True if x is contiguous with its axes in some order; false if that is not plain."""
        if self._is_contiguous(x):
            return True
        examples = _examples(x.stride())
        return examples is not None and _same(x.stride(), self._strides_like(examples, tuple(x.shape)))

    def _is_contiguous(self, x: Tensor) -> bool:
        return _same(x.stride(), self._contiguous_strides(tuple(x.shape)))

    def _contiguous_strides(self, sizes: Sizes) -> Sizes:
        key = tuple(map(key_of, sizes))
        if key not in self._strides:
            self._strides[key] = tuple(torch.empty(sizes, device="meta").stride())
        return self._strides[key]


def key_of(size: Size) -> Any:
    """A size as a value with a hash: sizes with the same key are equal."""
    return size.node.expr if isinstance(size, torch.SymInt) else size


def _examples(sizes: Iterable[Size]) -> list[int] | None:
    """The values of sizes in the example of the recording, without a question about them; None if it has none."""
    found = [size.node.hint if isinstance(size, torch.SymInt) else size for size in sizes]
    return None if None in found else found


def _example_tensor(x: Tensor) -> Tensor:
    """A tensor with the layout that a tensor has in the example of the recording."""
    sizes, strides = _examples(x.shape), _examples(x.stride())
    assert sizes is not None
    assert strides is not None
    return torch.empty(0, dtype=x.dtype, device="meta").as_strided(sizes, strides)


@cache
def _is_pointwise(func: OpOverload) -> bool:
    results = func._schema.returns
    return (
        (torch.Tag.pointwise in func.tags or func in _UNTAGGED)
        and len(results) == 1
        and results[0].alias_info is None
        and not any(argument.name == "memory_format" for argument in func._schema.arguments)
    )


def broadcast(shapes: Sequence[Sizes]) -> Sizes | None:
    """The common shape; None if there is none, or only under a condition on the sizes."""
    result: list[Size] = []
    for place in range(1, max(map(len, shapes), default=0) + 1):
        sizes = [shape[-place] for shape in shapes if len(shape) >= place]
        others = {key_of(size): size for size in sizes if not _is_one(size)}
        if len(others) > 1:
            return None
        result.append(next(iter(others.values()), 1))
    return tuple(reversed(result))


def _is_one(size: Size) -> bool:
    return isinstance(size, int) and size == 1


def _result_dtype(func: OpOverload, args: tuple[Any, ...], kwargs: dict[str, Any]) -> torch.dtype | None:
    """The dtype of the result, from a call on operands with one element each; None if it is not one tensor."""
    given = ((x.dtype, x.dim()) if isinstance(x, Tensor) else (type(x), x) for x in leaves((args, kwargs)))
    key = (func, len(args), *kwargs, *given)
    if key not in _dtypes:
        try:
            result = _of_ones(func, args, kwargs, "cpu")  # on meta, torch's Python would import its compiler
        except RuntimeError:  # no kernel for this dtype
            result = _of_ones(func, args, kwargs, "meta")
        _dtypes[key] = result.dtype if isinstance(result, Tensor) else None
    return _dtypes[key]


def _of_ones(func: OpOverload, args: tuple[Any, ...], kwargs: dict[str, Any], device: str) -> Any:
    def ones(x: Tensor) -> Tensor:
        return torch.ones([1] * x.dim(), dtype=x.dtype, device=device)

    small_args, small_kwargs = map_leaves(Tensor, ones, (args, kwargs))
    return func(*small_args, **small_kwargs)


_dtypes: dict[Any, torch.dtype | None] = {}  # by operator and by what `_result_dtype` looks at


def _linear(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Sizes, torch.dtype] | None:
    x, weight, *biases = args
    plain = x.dim() >= 2 and weight.dim() == 2 and not kwargs and key_of(x.shape[-1]) == key_of(weight.shape[1])
    fits = all(b is None or (b.dim() == 1 and key_of(b.shape[0]) == key_of(weight.shape[0])) for b in biases)
    return ((*x.shape[:-1], weight.shape[0]), x.dtype) if plain and fits and _one_dtype(args) else None


def _layer_norm(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Sizes, torch.dtype] | None:
    x, normalised, *parameters = args
    last = [key_of(size) for size in x.shape[len(x.shape) - len(normalised) :]]
    affine = [p for p in parameters if isinstance(p, Tensor)]
    plain = last == [key_of(size) for size in normalised] and all(list(map(key_of, p.shape)) == last for p in affine)
    return (tuple(x.shape), x.dtype) if plain and not kwargs and _one_dtype(args) else None


def _matmul(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Sizes, torch.dtype] | None:
    x, y = args
    fits = x.dim() >= 2 and y.dim() in (2, x.dim()) and key_of(x.shape[-1]) == key_of(y.shape[-2])
    if kwargs or not fits or not _one_dtype(args) or not (y.dim() == 2 or _same(x.shape[:-2], y.shape[:-2])):
        return None
    return (*x.shape[:-1], y.shape[-1]), x.dtype


def _cumsum(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Sizes, torch.dtype] | None:
    x, dim = args
    if set(kwargs) - {"dtype"} or not -x.dim() <= dim < x.dim():  # torch raises
        return None
    plain = x.dtype.is_floating_point or x.dtype.is_complex
    return tuple(x.shape), kwargs.get("dtype") or (x.dtype if plain else torch.int64)


def _triangle(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Sizes, torch.dtype] | None:
    x, diagonal = (*args, kwargs.get("diagonal", 0))[:2]
    return (tuple(x.shape), x.dtype) if x.dim() >= 2 and type(diagonal) is int else None


def _arange(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Sizes, torch.dtype] | None:
    """Whole numbers, or those from zero to an open size, which is not negative."""
    dtype = kwargs.get("dtype") or torch.int64
    if all(type(arg) is int for arg in args):
        count = len(range(*args)) if 0 not in args[2:] else 0
        return ((count,), dtype) if count else None
    start, end = (0, *args)[-2:]
    opens = len(args) <= 2 and type(start) is int and start == 0 and isinstance(end, torch.SymInt)
    return ((end,), dtype) if opens and end.node.expr.is_Symbol else None


def _max_pool1d(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Sizes, torch.dtype] | None:
    """Windows along the last axis; torch computes their number on sizes that are known only."""
    x, *given = args
    numbers = [one[0] if isinstance(one, list | tuple) and len(one) == 1 else one for one in given]
    if kwargs or len(numbers) > 4 or not all(type(n) is int for n in numbers) or x.dim() != 3:
        return None
    width, stride, padding, dilation = [*numbers, *[numbers[0], 0, 1][len(numbers) - 1 :]]
    if min(width, stride, dilation) < 1 or not 0 <= padding <= width // 2:  # torch raises
        return None
    last = x.shape[-1] + 2 * padding - dilation * (width - 1) - 1
    return ((*x.shape[:-1], last // stride + 1), x.dtype) if last >= 0 else None


def _cat(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Sizes, torch.dtype] | None:
    operands, dim = (*args, 0)[:2]
    dims = {x.dim() for x in operands}
    if kwargs or len(dims) != 1 or not dims <= {2, 3, 4} or not -min(dims) <= dim < min(dims):
        return None
    dim %= min(dims)
    shapes = [(*x.shape[:dim], *x.shape[dim + 1 :]) for x in operands]
    if not _one_dtype(operands) or not all(_same(shape, shapes[0]) for shape in shapes):
        return None
    if dims == {4} and not all(map(_is_no_image, operands)):
        return None
    joined = sum((x.shape[dim] for x in operands[1:]), start=operands[0].shape[dim])
    return (*shapes[0][:dim], joined, *shapes[0][dim:]), operands[0].dtype


def _is_no_image(x: Tensor) -> bool:
    """True if the channels of an image with these axes are not next to each other in memory."""
    strides = _examples(x.stride())
    return strides is not None and strides[-1] == 1 and strides[1] > 1


def _reduction(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Sizes, torch.dtype] | None:
    x, dims, keep, *_ = (*args, False, False)
    if set(kwargs) - {"keepdim"} or not isinstance(dims, list | tuple) or not dims or not x.dtype.is_floating_point:
        return None
    reduced = {dim + x.dim() if dim < 0 else dim for dim in dims}
    if len(reduced) < len(dims) or not reduced <= set(range(x.dim())):  # torch raises
        return None
    keep = kwargs.get("keepdim", keep)
    return tuple(1 if k in reduced else n for k, n in enumerate(x.shape) if keep or k not in reduced), x.dtype


def _attention(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Sizes, torch.dtype] | None:
    query, key, value, mask, *_ = (*args, None)
    mask = kwargs.get("attn_mask", mask)
    if not query.dim() == key.dim() == value.dim() == 4 or not _one_dtype((query, key, value)):
        return None
    batch, heads, queries, width = query.shape
    shared = key.shape[1]
    grouped = kwargs.get("enable_gqa", False) and isinstance(heads, int) and isinstance(shared, int)
    expected_key = (batch, shared if grouped and heads % shared == 0 else heads, key.shape[2], width)
    expected_value = (*expected_key[:3], value.shape[3])
    if not _same(key.shape, expected_key) or not _same(value.shape, expected_value):
        return None
    scores = (batch, heads, queries, key.shape[2])
    if mask is not None:
        joined = broadcast([tuple(mask.shape), scores])
        if joined is None or not _same(joined, scores):
            return None
    return (batch, heads, queries, value.shape[3]), query.dtype


def _scatter(args: tuple[Any, ...]) -> Layout | None:
    """A tensor with another part keeps its layout, unless its elements share memory."""
    x = args[0]
    examples = _examples(x.stride())
    if examples is None or 0 in examples:
        return None
    return Layout(tuple(x.shape), tuple(x.stride()), x.dtype, x.storage_offset())


def _split(x: Tensor, sizes: Sizes) -> tuple[Sizes, Sizes] | None:
    """The sizes and strides of a view that splits one axis into several; None if it is not plainly such a view."""
    equal = [key_of(old) == key_of(new) for old, new in zip(x.shape, sizes, strict=False)]
    before = equal.index(False) if False in equal else x.dim()
    after = x.dim() - before - 1
    if after < 0 or len(sizes) < x.dim() or not _same(x.shape[before + 1 :], sizes[len(sizes) - after :]):
        return None
    parts = _viewed_sizes((x.shape[before],), sizes[before : len(sizes) - after])
    if parts is None:
        return None
    strides = [x.stride(before) * prod(parts[k + 1 :]) for k in range(len(parts))]
    return (
        (*x.shape[:before], *parts, *x.shape[before + 1 :]),
        (*x.stride()[:before], *strides, *x.stride()[before + 1 :]),
    )


def _viewed_sizes(shape: Sizes, sizes: Sizes) -> Sizes | None:
    """The sizes of a view with as many elements as a shape; None if that they are as many is not plain."""
    places = [place for place, size in enumerate(sizes) if isinstance(size, int) and size < 0]
    if any(sizes[place] != -1 for place in places) or len(places) > 1:  # torch raises
        return None
    if any(isinstance(size, int) and size == 0 for size in shape):
        return None
    dividend, divisors = list(shape), []
    for place, size in enumerate(sizes):
        equal = next((at for at, x in enumerate(dividend) if key_of(x) == key_of(size)), None)
        if equal is not None:
            del dividend[equal]  # not `remove`, which asks for the equality of other sizes
        elif place not in places:
            divisors.append(size)
    if any(isinstance(size, torch.SymInt) for size in divisors):
        return None
    divisor: int = prod(int(size) for size in divisors)
    rest = prod(dividend)
    if not places:
        return sizes if key_of(rest) == divisor else None
    if divisor == 0 or rest % divisor != 0:
        return None
    missing = rest // divisor
    return (*sizes[: places[0]], missing, *sizes[places[0] + 1 :])


def _same(first: Sequence[Size], second: Sequence[Size]) -> bool:
    return list(map(key_of, first)) == list(map(key_of, second))


def _one_dtype(args: tuple[Any, ...]) -> bool:
    return len({x.dtype for x in args if isinstance(x, Tensor)}) == 1


_CONTIGUOUS_RESULTS: dict[OpOverload, Callable[..., tuple[Sizes, torch.dtype] | None]] = {
    _ATEN.linear.default: _linear,
    _ATEN.layer_norm.default: _layer_norm,
    _ATEN.scaled_dot_product_attention.default: _attention,
    _ATEN.mean.dim: _reduction,
    _ATEN.sum.dim_IntList: _reduction,
    _ATEN.matmul.default: _matmul,
    _ATEN.cumsum.default: _cumsum,
    _ATEN.cat.default: _cat,
    _ATEN.tril.default: _triangle,
    _ATEN.triu.default: _triangle,
    _ATEN.arange.default: _arange,
    _ATEN.arange.start: _arange,
    _ATEN.arange.start_step: _arange,
    _ATEN.max_pool1d.default: _max_pool1d,
}
_OF_CONTIGUOUS_OPERANDS = {
    _ATEN.linear.default, _ATEN.layer_norm.default, _ATEN.mean.dim, _ATEN.sum.dim_IntList, _ATEN.cumsum.default,
}  # fmt: skip
_COPIES = {_ATEN.clone.default, _ATEN._to_copy.default}
_SCATTERS = {_ATEN.slice_scatter.default, _ATEN.select_scatter.default}
_UNTAGGED = {_ATEN.__and__.Tensor, _ATEN.__or__.Tensor}  # pointwise operators without the tag
_VIEWS = {_ATEN.view.default, _ATEN.reshape.default, _ATEN._unsafe_view.default}
