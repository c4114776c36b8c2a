"""Arrays of numpy whose sizes are open: masks and tables that a model makes with numpy.

Numpy needs numbers for sizes, so that a mask of `np.tril(np.ones((n, n)))` would be one for the example only. While a
model is recorded with open sizes, `np` in its code is this stand-in. A call with an open size gives an `OpenArray`: a
tensor, computed by operators of torch in the dtypes of numpy. Without one, numpy answers as ever. What is not covered
is refused. That both compute the same is compared with eager calls at several lengths.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any, ClassVar, NoReturn

import numpy as np
import torch
from torch import Tensor
from torch.utils import _pytree as pytree

_GIVEN_TO_TORCH = ("from_numpy", "tensor", "as_tensor")
_NAMES = ("float64", "float32", "float16", "int64", "int32", "int16", "int8", "uint8", "bool")
_DTYPES = {np.dtype(name): getattr(torch, name) for name in _NAMES}
_OF_NUMPY = {dtype: name for name, dtype in _DTYPES.items()}


class OpenArray:
    """An array of open sizes."""

    __array_ufunc__ = None
    refuse: ClassVar[Callable[[str], NoReturn]]  # the recording

    def __init__(self, tensor: Tensor) -> None:
        self.tensor = tensor

    @property
    def shape(self) -> tuple[Any, ...]:
        """The size of each dimension."""
        return tuple(self.tensor.shape)

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype of numpy."""
        return _OF_NUMPY[self.tensor.dtype]

    @property
    def T(self) -> OpenArray:  # noqa: N802 - as numpy names it
        """The dimensions in reverse."""
        return OpenArray(self.tensor.permute(*range(self.tensor.dim() - 1, -1, -1)))

    def astype(self, dtype: Any) -> OpenArray:
        """The numbers in another dtype."""
        return OpenArray(self.tensor.to(_dtype(dtype), copy=True))

    def copy(self) -> OpenArray:
        """A copy."""
        return OpenArray(self.tensor.clone())

    def reshape(self, *shape: Any) -> OpenArray:
        """The same numbers in another shape."""
        return OpenArray(self.tensor.reshape(*shape))

    def __getitem__(self, place: Any) -> OpenArray:
        return OpenArray(self.tensor[_of_tensors(place)])

    def __setitem__(self, place: Any, value: Any) -> None:
        self.tensor[_of_tensors(place)] = _of_tensors(value)

    def __getattr__(self, name: str) -> Any:
        OpenArray.refuse(f"`{name}` of an array of numpy of open size: make it with torch")

    def __bool__(self) -> bool:  # noqa: PLE0304 - it refuses
        OpenArray.refuse("control flow depends on an array of numpy of open size")

    def __iter__(self) -> Any:
        OpenArray.refuse("an array of numpy of open size is read element by element: make it with torch")


def _of_tensors(value: Any) -> Any:
    return pytree.tree_map_only(OpenArray, lambda one: one.tensor, value)


def _dtype(dtype: Any) -> torch.dtype:
    """The dtype of torch for one of numpy."""
    found: torch.dtype | None = _DTYPES.get(np.dtype(dtype))
    return found or OpenArray.refuse(f"an array of numpy of open size and dtype {dtype}")


def _filled(number: Any, dtype: Any) -> torch.dtype:
    return _dtype(np.asarray(number).dtype if dtype is None else dtype)


def _real(value: Any) -> Any:
    """A tensor of floats in place of one of integers, as numpy divides and takes roots."""
    integers = isinstance(value, Tensor) and not value.is_floating_point()
    return value.double() if integers else value


def _of_real(function: Callable[[Any], Any], a: Any) -> Any:
    return function(_real(a))


def _ones(shape: Any, dtype: Any = None) -> Tensor:
    return torch.ones(shape, dtype=_filled(1.0, dtype))


def _zeros(shape: Any, dtype: Any = None) -> Tensor:
    return torch.zeros(shape, dtype=_filled(1.0, dtype))


def _full(shape: Any, fill_value: Any, dtype: Any = None) -> Tensor:
    return torch.full(
        shape if isinstance(shape, tuple | list) else (shape,), fill_value, dtype=_filled(fill_value, dtype)
    )


def _eye(N: Any, M: Any = None, k: int = 0, dtype: Any = float) -> Tensor:
    if k:
        OpenArray.refuse("numpy.eye of open size with another diagonal")
    return torch.eye(N, N if M is None else M, dtype=_dtype(dtype))


def _tri(N: Any, M: Any = None, k: int = 0, dtype: Any = float) -> Tensor:
    return torch.ones(N, N if M is None else M, dtype=_dtype(dtype)).tril(k)


def _arange(*places: Any, dtype: Any = None) -> Tensor:
    return torch.arange(*places, dtype=None if dtype is None else _dtype(dtype))


def _outer(a: Tensor, b: Any) -> Tensor:
    first, second = _common(a, torch.as_tensor(b))
    found: Tensor = first.reshape(-1, 1) * second.reshape(1, -1)
    return found


def _common(*values: Any) -> list[Any]:
    """Tensors in the dtype that numpy takes for them: of a number of Python only its kind counts."""
    tensors = [torch.as_tensor(x) if isinstance(x, np.ndarray) else x for x in values]
    if any(isinstance(x, float) for x in tensors):
        tensors = [_real(x) for x in tensors]
    dtypes = [x.dtype for x in tensors if isinstance(x, Tensor)]
    if len(set(dtypes)) < 2:
        return tensors
    common = _dtype(np.result_type(*(_OF_NUMPY[x] for x in dtypes)))
    return [x.to(common) if isinstance(x, Tensor) else x for x in tensors]


def _tensors(*values: Any) -> list[Any]:
    """Tensors of one dtype: of a number of Python next to an array only its kind counts."""
    found = _common(*values)
    dtype = next((x.dtype for x in found if isinstance(x, Tensor) and x.dtype is not torch.bool), None)
    return _common(*(torch.as_tensor(np.asarray(x)).to(dtype) if isinstance(x, int | float) else x for x in found))


def _where(condition: Tensor, first: Any, second: Any) -> Tensor:
    a, b = _tensors(first, second)
    return torch.where(condition, a, b)


_FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    "ones": _ones, "zeros": _zeros, "full": _full, "eye": _eye, "identity": _eye, "tri": _tri, "arange": _arange,
    "ones_like": torch.ones_like, "zeros_like": torch.zeros_like,
    "tril": lambda m, k=0: m.tril(k), "triu": lambda m, k=0: m.triu(k),
    "expand_dims": lambda a, axis: a.unsqueeze(axis), "transpose": lambda a, axes: a.permute(axes),
    "logical_not": torch.logical_not, "logical_and": torch.logical_and, "logical_or": torch.logical_or,
    "where": _where, "outer": _outer, "abs": torch.abs,
    "minimum": lambda a, b: torch.minimum(*_tensors(a, b)), "maximum": lambda a, b: torch.maximum(*_tensors(a, b)),
    **{name: partial(_of_real, getattr(torch, name)) for name in ("sin", "cos", "exp", "log", "sqrt")},
}  # fmt: skip

_CREATES = {"ones", "zeros", "full", "eye", "identity", "tri", "arange"}


def _operator(name: str, *, reflected: bool = False) -> Callable[..., OpenArray]:
    function = getattr(operator, name)
    divides = name in ("__truediv__", "__pow__")

    def method(self: OpenArray, *other: Any) -> OpenArray:
        values = _common(self.tensor, *_of_tensors(other))
        values = list(map(_real, values)) if divides else values
        return OpenArray(function(*reversed(values) if reflected else values))

    return method


for _name in ("add", "sub", "mul", "truediv", "pow", "and", "or", "xor", "floordiv", "mod"):
    setattr(OpenArray, f"__{_name}__", _operator(f"__{_name}__"))
    setattr(OpenArray, f"__r{_name}__", _operator(f"__{_name}__", reflected=True))
for _name in ("eq", "ne", "lt", "le", "gt", "ge", "neg", "invert"):
    setattr(OpenArray, f"__{_name}__", _operator(f"__{_name}__"))


class OpenNumpy:
    """Numpy, some of whose functions know open sizes."""

    def __getattr__(self, name: str) -> Any:
        function = getattr(np, name)
        is_function = callable(function) and not isinstance(function, type)
        return _open_function(name, function) if is_function else function


def _open_function(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of numpy; with an open size or array that of torch."""
    of_tensors = _FUNCTIONS.get(name)

    def call(*args: Any, **kwargs: Any) -> Any:
        leaves = pytree.tree_leaves((args, kwargs))
        kinds = (OpenArray, torch.SymInt) if name in _CREATES else OpenArray
        if not any(isinstance(x, kinds) for x in leaves):
            return function(*args, **kwargs)
        if of_tensors is None:
            OpenArray.refuse(f"numpy.{name} of an array of open size: compute it with torch")
        given, options = _of_tensors((args, kwargs))
        return OpenArray(of_tensors(*given, **options))

    return call


def _takes_arrays(function: Callable[..., Any], *, copy: bool) -> Callable[..., Any]:
    """A function of torch that makes a tensor of an array: of the same memory, or a copy."""

    def call(data: Any, *args: Any, **kwargs: Any) -> Any:
        if not isinstance(data, OpenArray):
            return function(data, *args, **kwargs)
        dtype = kwargs.get("dtype") or data.tensor.dtype
        return data.tensor.to(dtype, copy=copy)

    return call


@contextmanager
def arrays_given_to_torch(refuse: Callable[[str], NoReturn]) -> Iterator[None]:
    """Under this, torch makes tensors of open arrays; `refuse` gets what is not covered."""
    OpenArray.refuse = staticmethod(refuse)
    before = {name: getattr(torch, name) for name in _GIVEN_TO_TORCH}
    for name, function in before.items():
        setattr(torch, name, _takes_arrays(function, copy=name == "tensor"))
    try:
        yield
    finally:
        for name, function in before.items():
            setattr(torch, name, function)
