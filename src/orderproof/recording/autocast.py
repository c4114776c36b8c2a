"""Casts of operands under `torch.autocast`, which torch leaves out for meta tensors.

Which operands of an operator are cast, to which dtype and in which order, is asked of torch: the operator is called on
tensors of one element each, and stopped after the casts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any
from unittest import mock

import torch
from torch import Tensor
from torch._ops import OpOverload

from orderproof.operator_mode import OperatorMode
from orderproof.recording.arguments import leaves, map_leaves

Cast = Callable[[Tensor, torch.dtype], Tensor]


class Autocast:
    """The state of `torch.autocast` in a recording.

    Attributes:
        kind: The kind of the device of the recording: `cpu`.
        dtype: The dtype of the block in which the model calls torch; None outside of one.

    """

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.dtype: torch.dtype | None = None
        self._casts: dict[tuple[int, torch.dtype], tuple[Tensor, Tensor]] = {}  # of parameters, as torch keeps them
        self._inside = False
        self._available = torch.amp.is_autocast_available(kind)

    def follow(self) -> None:
        """Note the state, as it is where the model calls torch. Within an operator with casts, torch turns it off."""
        enabled = self._available and torch.is_autocast_enabled(self.kind)
        self.dtype = torch.get_autocast_dtype(self.kind) if enabled else None

    def is_open(self, func: OpOverload) -> bool:
        """True if torch computes an operator by others, whose operands are cast."""
        outside = self.dtype is not None and not self._inside
        return outside and not _has_casts(func, self.kind) and func._can_decompose()

    def again(self, func: OpOverload) -> AbstractContextManager[Any]:
        """A block in which torch casts the operands of the operators by which it computes this one.

        Below a mode it does not.
        """
        return torch.autocast(self.kind, self.dtype) if self.is_open(func) else nullcontext()

    @contextmanager
    def operands(self, func: OpOverload, args: Any, kwargs: Any, cast: Cast) -> Iterator[tuple[Any, Any]]:
        """The operands of an operator after the casts, and a block in which the operator runs without further ones."""
        if self.dtype is None or self._inside or not _has_casts(func, self.kind):
            yield args, kwargs
            return
        self._inside = True
        try:
            tensors = [x for x in leaves((args, kwargs)) if isinstance(x, Tensor)]
            for place, dtype in _casts(func, args, kwargs, self.kind, self.dtype):
                tensors[place] = self._cast(tensors[place], dtype, cast)
            rest = iter(tensors)
            yield map_leaves(Tensor, lambda _: next(rest), (args, kwargs))
        finally:
            self._inside = False

    def _cast(self, x: Tensor, dtype: torch.dtype, cast: Cast) -> Tensor:
        if not (x.requires_grad and x.is_leaf and torch.is_autocast_cache_enabled()):
            return cast(x, dtype)
        key = (id(x), dtype)
        if key not in self._casts:
            self._casts[key] = (x, cast(x, dtype))
        return self._casts[key][1]

    @contextmanager
    def cache(self) -> Iterator[None]:
        """A block in which casts of parameters are kept as long as torch keeps them."""

        def clear() -> None:
            self._casts.clear()
            before()

        before = torch.clear_autocast_cache
        with mock.patch.object(torch, "clear_autocast_cache", clear):
            yield


def _has_casts(func: OpOverload, kind: str) -> bool:
    return torch._C._dispatch_has_kernel_for_dispatch_key(func.name(), f"Autocast{kind.upper()}")  # type: ignore[no-untyped-call]


class _Stopped(BaseException):
    """The operator is reached."""


class _Casts(OperatorMode):
    """Notes which tensors are cast before an operator, and stops there."""

    def __init__(self, func: OpOverload, places: dict[int, int]) -> None:
        super().__init__()
        self.func, self.places = func, places
        self.found: list[tuple[int, torch.dtype]] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func is self.func:
            raise _Stopped
        result = func(*args, **(kwargs or {}))
        if args and id(args[0]) in self.places and result is not args[0]:
            self.found.append((self.places[id(args[0])], result.dtype))
        return result


def _casts(func: OpOverload, args: Any, kwargs: Any, kind: str, dtype: torch.dtype) -> list[tuple[int, torch.dtype]]:
    """The casts before an operator, in order: the place of the tensor among the operands, and the dtype."""
    small: list[Tensor] = []

    def made(x: Tensor) -> Tensor:
        small.append(torch.empty([1] * x.dim(), dtype=x.dtype, device=kind))
        return small[-1]

    given, options = map_leaves(Tensor, made, (args, kwargs))
    mode = _Casts(func, {id(x): place for place, x in enumerate(small)})
    try:
        with torch.autocast(kind, dtype, cache_enabled=False), mode:
            func(*given, **options)
    except _Stopped:
        pass  # raised by `mode` at the operator, before which all its casts are made
    return mode.found
