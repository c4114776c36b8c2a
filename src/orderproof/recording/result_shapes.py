"""Results of operators on meta tensors with open sizes, computed once for operands of the same shapes.

Torch computes the shape of a result in Python if a size is symbolic, which takes most of the time of an open recording.
Layers call the same operators on the same shapes, and ask the same questions about sizes: only the first is computed.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import torch
from torch import Tensor
from torch._ops import OpOverload

from orderproof.operator_mode import OperatorMode
from orderproof.recording import recurrent_layers
from orderproof.recording.arguments import tensors_in
from orderproof.recording.late_dynamo import late_dynamo
from orderproof.recording.operator_names import is_of_torch
from orderproof.recording.shape_rules import Layout, ShapeRules, key_of


class ResultShapes:
    """The layouts of results by operator and operands.

    Args:
        views: Also of views, which are then made by another operator than the model calls.

    """

    def __init__(self, *, views: bool = True) -> None:
        self._views = views
        self._layouts: dict[Hashable, Layout | None] = {}
        self._rules = ShapeRules()

    def call(self, func: OpOverload, *args: Any, **kwargs: Any) -> Any:
        """The operator's result on meta tensors, or a tensor of the same layout."""
        if not is_of_torch(func):  # the layout of a custom operator may follow from more than its operands
            return func(*args, **kwargs)
        if func in recurrent_layers.LAYERS:
            return recurrent_layers.empty_results(*args)
        try:
            key: Hashable = (func, _key(args), _key(kwargs))
            found = self._layouts.get(key)
        except TypeError:  # an argument that has no hash
            return func(*args, **kwargs)
        if found is not None:
            return _tensor(found, args[0] if args else None)
        operands = tensors_in((args, kwargs))
        read_off = None if key in self._layouts else self._rules.result(func, args, kwargs)
        if read_off is not None and (self._views or not read_off.is_view):
            self._layouts[key] = read_off
            return _tensor(read_off, args[0] if args else None)
        with late_dynamo():
            result = func(*args, **kwargs)
        if key not in self._layouts:
            layout = _layout(result, args, operands)
            self._layouts[key] = layout if self._views or layout is None or not layout.is_view else None
        return result


class KnownShapes(OperatorMode):
    """A mode for calls without values: on the meta device, an operator on the same shapes is computed once.

    There, torch computes the shape of each result in Python.
    """

    def __init__(self) -> None:
        super().__init__()
        self._results = ResultShapes()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        operands = tensors_in((args, kwargs))
        known = isinstance(func, OpOverload) and not func._schema.is_mutable and "device" not in kwargs
        if known and operands and all(x.is_meta for x in operands):
            return self._results.call(func, *args, **kwargs)
        return func(*args, **kwargs)


def _key(value: Any) -> Hashable:
    if type(value) is torch.SymInt:
        return key_of(value)  # type: ignore[no-any-return]
    if isinstance(value, list | tuple):
        return (type(value), *map(_key, value))
    if isinstance(value, dict):
        return (dict, *((name, _key(x)) for name, x in value.items()))
    if isinstance(value, Tensor):
        if type(value) is not Tensor and type(value) is not torch.nn.Parameter:
            raise TypeError
        return (value.dtype, value.layout, _keys(value.shape), _keys(value.stride()), _key(value.storage_offset()))
    if isinstance(value, torch.SymFloat | torch.SymBool):
        raise TypeError
    return (type(value), value)


def _keys(sizes: Any) -> tuple[Hashable, ...]:
    return tuple(map(key_of, sizes))


def _layout(result: Any, args: tuple[Any, ...], operands: list[Tensor]) -> Layout | None:
    """The layout of a result that is one new tensor or a view of the first argument; None for another one."""
    if type(result) is not Tensor or any(result is x for x in operands):
        return None
    storage = result.untyped_storage()._cdata
    sharing = [x for x in operands if x.untyped_storage()._cdata == storage]
    if sharing:
        base = sharing[0]
        if base is not args[0] or result.dtype != base.dtype or result.is_conj() or result.is_neg():
            return None
    places = tuple(result.shape), tuple(result.stride()), result.dtype, result.storage_offset()
    return Layout(*places, is_view=bool(sharing))


def _tensor(layout: Layout, base: Any) -> Tensor:
    places = (*layout.sizes, *layout.strides, layout.offset)
    if not layout.is_view and all(type(place) is int for place in places) and layout.offset == 0:
        return torch.empty_strided(layout.sizes, layout.strides, dtype=layout.dtype, device="meta")
    # Torch's kernel in C++, which takes half as long as that in Python.
    with torch._C._DisablePythonDispatcher():
        if layout.is_view:
            view: Tensor = base.as_strided(layout.sizes, layout.strides, layout.offset)
            return view
        # A storage of its own, without bytes: `empty_strided` computes their number in Python where a size is symbolic,
        # which takes 16 times as long.
        return torch.empty(0, dtype=layout.dtype, device="meta").as_strided(layout.sizes, layout.strides, layout.offset)
