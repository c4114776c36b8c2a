"""Operators of TorchScript on numbers, texts, lists and tuples, as functions of Python, which keep open sizes open."""

from __future__ import annotations

import math
import operator as op
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

DTYPES = dict(
    enumerate(
        (
            torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.float16, torch.float32, torch.float64,
            torch.complex32, torch.complex64, torch.complex128, torch.bool, torch.qint8, torch.quint8, torch.qint32,
            torch.bfloat16,
        )
    )
)  # fmt: skip
NUMBERS = {dtype: number for number, dtype in DTYPES.items()}
MEMORY = (torch.contiguous_format, torch.preserve_format, torch.channels_last, torch.channels_last_3d)


class RaisedError(RuntimeError):
    """An exception that the code of a file raises."""


def _raise(text: Any, kind: Any = "", *rest: Any) -> None:
    del kind, rest
    raise RaisedError(str(text))


def _quotient(a: Any, b: Any, rounding: str | None = None) -> Any:
    if rounding is None:
        return a / b
    return a // b if rounding == "floor" or (a >= 0) == (b > 0) else -(-a // b)


def _as_whole(x: Any) -> Any:
    return int(x) if isinstance(x, float | bool | str) else x


def _set_item(items: Any, key: Any, value: Any) -> Any:
    items[key] = value
    return items


def _added_to(items: Any, other: Any, alpha: Any = 1) -> Any:
    """A list with more entries, or a number that a trace adds to."""
    if isinstance(items, list):
        items.extend(other)
        return items
    return items + alpha * other


def _changed(function: Callable[..., Any]) -> Callable[..., Any]:
    """A change of a list, which is the result."""

    def change(items: Any, *given: Any) -> Any:
        function(items, *given)
        return items

    return change


def _range_length(start: Any, end: Any, step: Any) -> Any:
    return max(0, -((start - end) // step))


# With no tensor among the arguments; a number that a trace keeps in a tensor is a number here.
FUNCTIONS: dict[str, Callable[..., Any]] = {
    "aten::add": lambda a, b, alpha=1: a + b if type(alpha) is int and alpha == 1 else a + alpha * b,
    "aten::sub": lambda a, b, alpha=1: a - b if type(alpha) is int and alpha == 1 else a - alpha * b,
    "aten::mul": op.mul, "aten::div": _quotient, "aten::floordiv": op.floordiv, "aten::floor_divide": op.floordiv,
    "aten::remainder": op.mod, "aten::pow": op.pow, "aten::neg": op.neg, "aten::abs": abs, "prim::abs": abs,
    "aten::eq": op.eq, "aten::ne": op.ne, "aten::lt": op.lt, "aten::le": op.le, "aten::gt": op.gt, "aten::ge": op.ge,
    "aten::__and__": op.and_, "aten::__or__": op.or_, "aten::__xor__": op.xor, "aten::__not__": op.not_,
    "aten::__is__": op.is_, "aten::__isnot__": op.is_not, "aten::__contains__": op.contains,
    "aten::__getitem__": op.getitem, "aten::_set_item": _set_item, "aten::len": len,
    "aten::Int": _as_whole, "aten::Float": lambda x: x if isinstance(x, float) else x * 1.0, "aten::Bool": bool,
    "aten::floor": math.floor, "aten::ceil": math.ceil, "aten::sqrt": math.sqrt, "aten::log": math.log,
    "aten::exp": math.exp, "prim::min": min, "prim::max": max,
    "aten::slice": lambda items, start, end, step: items[slice(start, end, step)],
    "aten::append": _changed(list.append), "aten::extend": _changed(list.extend), "aten::insert": _changed(list.insert),
    "aten::reverse": _changed(list.reverse), "aten::clear": _changed(list.clear), "aten::pop": list.pop,
    "aten::add_": _added_to,
    "aten::copy": lambda items: items.copy(), "aten::list": list, "aten::keys": lambda x: list(x.keys()),
    "aten::values": lambda x: list(x.values()), "aten::items": lambda x: list(x.items()),
    "aten::get": lambda items, key, default=None: items.get(key, default),
    "aten::format": lambda text, *given: text.format(*given), "aten::str": str,
    "prim::type": lambda device: device.type, "aten::is_grad_enabled": lambda: True,
    "aten::__range_length": _range_length, "aten::__derive_index": lambda k, start, step: start + k * step,
    "aten::warn": lambda *_: None, "prim::Print": lambda *_: None,
    "prim::RaiseException": _raise, "prim::Uninitialized": lambda: None, "prim::unchecked_cast": lambda x: x,
    "aten::_unwrap_optional": lambda x: x, "prim::NumToTensor": lambda x: x, "aten::ScalarImplicit": lambda x: x,
    "aten::IntImplicit": lambda x: x, "aten::FloatImplicit": lambda x: x,
    "prim::ListConstruct": lambda *x: list(x), "prim::TupleConstruct": lambda *x: x,
    "prim::TupleIndex": op.getitem, "prim::DictConstruct": lambda *x: dict(zip(x[::2], x[1::2], strict=True)),
}  # fmt: skip

# Of a tensor, most without an operator. Gradients are said to be on: then no fast path is taken that is one operator.
OF_TENSOR: dict[str, Callable[..., Any]] = {
    "aten::size": lambda x, *d: x.shape[d[0]] if d else list(x.shape),
    "aten::dim": lambda x: x.dim(), "aten::len": lambda x: x.shape[0], "aten::numel": lambda x: x.numel(),
    "prim::shape": lambda x: list(x.shape), "prim::dtype": lambda x: NUMBERS[x.dtype], "prim::layout": lambda x: 0,
    "prim::device": lambda x: x.device, "prim::is_cuda": lambda x: x.is_cuda, "prim::data": lambda x: x.detach(),
    "prim::requires_grad": lambda x: True, "aten::is_floating_point": lambda x: x.is_floating_point(),
    "prim::unchecked_cast": lambda x: x, "aten::_unwrap_optional": lambda x: x, "prim::NumToTensor": lambda x: x,
    "aten::__is__": op.is_, "aten::__isnot__": op.is_not, "aten::Bool": bool, "aten::Int": lambda x: x.item(),
    "aten::Float": lambda x: x.item(), "aten::ScalarImplicit": lambda x: x.item(),
    "aten::IntImplicit": lambda x: x.item(), "aten::FloatImplicit": lambda x: x.item(),
    "aten::_convolution": lambda *given: torch.ops.aten.convolution.default(*given[:9]),
    "prim::is_nested": lambda x: x.is_nested, "prim::ndim": lambda x: x.dim(),
}  # fmt: skip


def argument(value: Any, kind: str) -> Any:
    """A value as an operator of torch takes it: the number of a dtype, a layout or a memory format is one itself."""
    if value is None or isinstance(value, Tensor):
        return value
    if "ScalarType" in kind and type(value) is int:
        return DTYPES[value]
    if "MemoryFormat" in kind and type(value) is int:
        return MEMORY[value]
    if "Layout" in kind and type(value) is int:
        return torch.strided
    if kind != "Tensor":
        return value
    return torch.scalar_tensor(value, dtype=None if isinstance(value, float) else torch.int64)
