"""The state of a model between calls: whether it is the one before the first call, and a copy that has that state.

Many comparisons need the model as it was before its first call. Few models change, and comparing two models takes a
fraction of the time of a copy, so one copy serves all comparisons until a call changes it.
"""

from __future__ import annotations

import functools
from collections import OrderedDict
from types import MethodType
from typing import Any

import torch
from torch import Tensor, nn

from orderproof.adapter import copy_sharing_parameters

_SCALARS = (int, float, complex, str, bytes, bool, type(None), torch.dtype, torch.device, torch.Size)
_COPIED_BY_ATTRIBUTES = ("__reduce_ex__", "__reduce__", "__getstate__")  # a class that defines one may hold more
_CONTENTS = ("__deepcopy__", "__getnewargs__", "__getnewargs_ex__")  # of classes with contents besides attributes


class PristineModel:
    """A model in the state in which it was given, as often as it is asked for."""

    def __init__(self, module: nn.Module, *, is_own: bool = False) -> None:
        """Copy the module, but for its parameters. Raises what copying it raises.

        ``is_own``: the module has no other user, so it can serve as the first model in this state.
        """
        self._first = copy_sharing_parameters(module)
        self._shared: nn.Module | None = module if is_own else None

    def shared(self) -> nn.Module:
        """A model in the first state, for calls; the next caller gets the same one if these calls do not change it."""
        if self._shared is None or not has_same_state(self._shared, self._first):
            self._shared = self.own()
        return self._shared

    def own(self) -> nn.Module:
        """A copy in the first state, for a caller that changes it."""
        return copy_sharing_parameters(self._first)

    def is_state_of(self, module: nn.Module) -> bool:
        """True if a module is in the first state, as far as its attributes show."""
        return has_same_state(module, self._first)


def has_same_state(one: Any, other: Any) -> bool:
    """True if a value and a copy of it have the same contents: attributes, containers and tensors, at every depth.

    False for whatever cannot be compared this way: objects of C, generators of random numbers, iterators.
    """
    return _Comparison().same(one, other)


class _Comparison:
    """One comparison; each pair of objects is visited once."""

    def __init__(self) -> None:
        self._seen: dict[int, int] = {}

    def same(self, one: Any, other: Any) -> bool:
        if one is other:
            return True
        kind = type(one)
        if kind is not type(other):
            return False
        if kind in _SCALARS:
            return bool(one == other)
        if id(one) in self._seen:
            return self._seen[id(one)] == id(other)
        self._seen[id(one)] = id(other)
        if isinstance(one, Tensor):
            return _equal(one, other) and self._same_items(one.__dict__, other.__dict__)
        if kind is dict or kind is OrderedDict:
            return self._same_items(one, other)
        if kind is list or kind is tuple:
            return len(one) == len(other) and all(map(self.same, one, other))
        if kind is set or kind is frozenset:
            return all(type(x) in _SCALARS for x in one) and bool(one == other)
        return self._same_object(one, other)

    def _same_object(self, one: Any, other: Any) -> bool:
        if isinstance(one, MethodType):
            return one.__func__ is other.__func__ and self.same(one.__self__, other.__self__)
        if type(one) is functools.partial:
            return self.same((one.func, one.args, one.keywords), (other.func, other.args, other.keywords))
        attributes = getattr(one, "__dict__", None)
        kind: type = type(one)
        if attributes is None or not _is_copied_by(kind, nn.Module if isinstance(one, nn.Module) else object):
            return False
        return self._same_items(attributes, other.__dict__)

    def _same_items(self, one: dict[Any, Any], other: dict[Any, Any]) -> bool:
        if not one and not other:
            return True
        if len(one) != len(other) or list(one) != list(other):
            return False
        return all(x is y or self.same(x, y) for x, y in zip(one.values(), other.values(), strict=True))


def _equal(one: Tensor, other: Tensor) -> bool:
    """True for equal tensors of one kind; a NaN equals none."""
    if one.dtype != other.dtype or one.shape != other.shape or one.device != other.device:
        return False
    return one.layout == other.layout == torch.strided and not one.is_meta and torch.equal(one, other)


@functools.cache
def _is_copied_by(kind: type, base: type) -> bool:
    """True if `copy` handles instances as those of a base: by their attributes, without a method of their own."""
    if any(hasattr(kind, name) for name in _CONTENTS) or issubclass(kind, (list, set, dict)):
        return False
    slots = any(vars(part).get("__slots__") for part in kind.__mro__)
    return not slots and all(getattr(kind, name) is getattr(base, name) for name in _COPIED_BY_ATTRIBUTES)
