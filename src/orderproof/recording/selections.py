"""A call that computes every row: its tensors that stand for rows which a mask selects, and for their indices."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode
from torch.utils import _pytree as pytree
from torch.utils.weak import WeakTensorKeyDictionary

from orderproof.recording.row_functions import keeps_rows_apart
from orderproof.recording.selected_counts import Count, OpenCount, SomeCount, is_counted, refusals, refuse

_SIZES = {"__get__", "size", "numel", "nelement", "__len__"}
_SHAPE = Tensor.shape.__get__  # type: ignore[attr-defined]
_OF_MASKS = {
    "eq", "ne", "lt", "le", "gt", "ge", "__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__", "__invert__",
    "logical_not", "bitwise_not", "__and__", "__or__", "logical_and", "logical_or", "any", "all", "bool", "unsqueeze",
}  # fmt: skip
_WITH_SIZES = {"view", "reshape", "expand"}
PASSED = object()  # what a handler returns for a call that it leaves to torch


@dataclass(frozen=True, eq=False)
class Selection:
    """The true elements of a mask, in the order of its elements.

    Attributes:
        mask: The mask.
        given: The tensor that the model gave: itself, unless that is no mask, or a call is made without selected rows.

    """

    mask: Tensor
    given: Tensor

    @property
    def sizes(self) -> tuple[int, ...]:
        """The sizes of the axes of the mask."""
        return tuple(self.mask.shape)


@dataclass(frozen=True)
class Rows:
    """A tensor whose axis 0 runs over the elements of a selection."""

    selection: Selection


@dataclass(frozen=True)
class Places:
    """The indices of the elements of a selection along one axis of its mask."""

    selection: Selection
    axis: int


@dataclass(frozen=True)
class Listed:
    """The indices [element, 1] of a selection of a mask with one axis."""

    selection: Selection


@dataclass(frozen=True)
class AnyElement:
    """True if a mask has a true element."""

    mask: Tensor


class EveryRow(TorchFunctionMode):
    """The function mode of a call."""

    def __init__(self, handlers: Mapping[str, Handler], *, answer: bool | None = None) -> None:
        """Compute every row; ``answer`` is that to all questions if any row is selected, and then none is."""
        super().__init__()
        refusals.clear()
        self.handlers = handlers
        self.answer = answer
        self.found = WeakTensorKeyDictionary()  # what tensors stand for
        self.selections = WeakTensorKeyDictionary()  # by mask
        self.same = WeakTensorKeyDictionary()  # the first mask that a call computed in the same way
        self.computed: dict[Hashable, Tensor] = {}
        self.operands: list[object] = []  # of these, so that none of them gives its place to another object
        self.written_to: list[Selection] = []
        self.asked: list[Selection | None] = []  # of which a call asked if any row is selected; None: some selection

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        name = getattr(func, "__name__", "")
        if name in _SIZES and (name != "__get__" or func == _SHAPE) and (found := self.stands_for(args[0])) is not None:
            return self._size(name, args, kwargs, found)
        handler = self.handlers.get(name)
        if handler is not None and (result := handler(self, func, args, kwargs)) is not PASSED:
            return result
        if name not in _WITH_SIZES and any(map(is_counted, pytree.tree_leaves((args, kwargs)))):
            refuse("it computes with the number of rows that a mask selects")
        tensors = [x for x in pytree.tree_leaves((args, kwargs)) if isinstance(x, Tensor) and x in self.found]
        result = func(*args, **kwargs)
        if name in _OF_MASKS and isinstance(result, Tensor) and result.dtype is torch.bool:
            self._note_mask(result, (name, *pytree.tree_leaves((args, kwargs))))
        if not tensors:
            return result
        found = [self.found[x] for x in tensors]
        leaves = [x for x in pytree.tree_leaves(result) if isinstance(x, Tensor)]
        if leaves and not self._keeps_rows(name, args, kwargs, found, leaves):
            refuse(f"rows that a mask selects meet in `{name}`")
        for x in leaves:
            self.found[x] = found[0]
        return result

    def _size(self, name: str, args: Sequence[Any], kwargs: Mapping[str, Any], found: Any) -> Any:
        """A size of a tensor: along axis 0 it is a number of selected rows."""
        if name == "__len__" or isinstance(found, AnyElement):
            refuse("it computes with the number of rows that a mask selects")
        sizes = list(args[0].shape)
        if name in ("numel", "nelement"):
            return self.count(prod(sizes), found.selection)
        counted = [self.count(sizes[0], found.selection), *sizes[1:]]
        dims = [*args[1:], *kwargs.values()]
        return counted[dims[0]] if dims else tuple(counted)

    def count(self, number: Any, selection: Selection | None) -> Count:
        """A number of selected rows, where all are this many."""
        found = SomeCount(number) if type(number) is int else OpenCount()
        found.asks = lambda: self.ask(selection)
        return found

    def ask(self, selection: Selection | None) -> bool:
        """The answer to the question if any row is selected; None: of some selection."""
        self.asked.append(selection)
        return self.answer is not False

    def _keeps_rows(
        self,
        name: str,
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
        found: Sequence[object],
        leaves: Sequence[Tensor],
    ) -> bool:
        first = found[0]
        if not isinstance(first, Rows) or any(x != first for x in found):
            return False
        count = prod(first.selection.sizes)
        is_apart = keeps_rows_apart(name, args, kwargs, lambda x: x in self.found)
        return is_apart and all(x.dim() > 0 and x.shape[0] == count for x in leaves)

    def stands_for(self, x: object) -> object:
        """The rows or indices that a tensor stands for; None if for nothing else than itself."""
        return self.found[x] if isinstance(x, Tensor) and x in self.found else None

    def _note_mask(self, mask: Tensor, computation: Sequence[object]) -> None:
        """Note a mask: it is taken for the first one that was computed in the same way.

        If a write between the two made them unlike, the rows of one would not fit those of the other in most calls.
        """
        self.operands.append(computation)
        self.same[mask] = self.computed.setdefault(self._key(computation), mask)

    def _key(self, computation: Sequence[object]) -> Hashable:
        return tuple(id(self.first(x)) if isinstance(x, Tensor) else repr(x) for x in computation)

    def first(self, mask: Tensor) -> Tensor:
        """The first mask that was computed in the same way."""
        return self.same.get(mask, mask)  # type: ignore[no-any-return, no-untyped-call]

    def is_computed_so(self, mask: Tensor, *computation: object) -> bool:
        """True if a mask is what a function gives of these operands."""
        return self.computed.get(self._key(computation)) is self.first(mask)

    def selection(self, mask: Tensor) -> Selection:
        """The selection of a mask, the same for masks that are computed in the same way."""
        mask = self.first(mask)
        if mask not in self.selections:
            given = mask if mask.dtype is torch.bool else mask != 0
            self.selections[mask] = Selection(given if self.answer is None else torch.zeros_like(given), mask)
        return self.selections[mask]  # type: ignore[no-any-return]

    def indices(self, selection: Selection) -> tuple[Tensor, ...]:
        """The indices of all elements of the mask, along each of its axes."""
        sizes, places = selection.sizes, []
        for axis, size in enumerate(sizes):
            along = torch.arange(size, device=selection.mask.device)
            along = along.view([-1 if k == axis else 1 for k in range(len(sizes))]).expand(sizes).reshape(-1)
            self.found[along] = Places(selection, axis)
            places.append(along)
        return tuple(places)

    def rows(self, x: Tensor, places: Sequence[Places]) -> Tensor:
        """The rows of a tensor for all elements of a selection, whose first axes these places index."""
        selection, axes = places[0].selection, [place.axis for place in places]
        sizes, rest = selection.sizes, tuple(x.shape[len(axes) :])
        if x in self.found or len({*axes}) < len(axes) or any(place.selection is not selection for place in places):
            refuse("the indices of rows that a mask selects are used for other rows")
        if tuple(x.shape[: len(axes)]) != tuple(sizes[axis] for axis in axes):
            refuse("a mask selects rows of a tensor with another number of them")
        order = sorted(range(len(axes)), key=axes.__getitem__)
        x = x.permute(*order, *range(len(axes), x.dim()))
        x = x.reshape(*(size if axis in axes else 1 for axis, size in enumerate(sizes)), *rest)
        return self.tagged(x.expand(*sizes, *rest).clone().reshape(prod(sizes), *rest), selection)

    def tagged(self, x: Tensor, selection: Selection) -> Tensor:
        """The tensor, known as one with the rows of a selection."""
        self.found[x] = Rows(selection)
        return x

    def written(self, y: Tensor, places: Sequence[Places], value: Tensor | float, *, adds: bool) -> Tensor:
        """A tensor after a write to the rows of a selection, whose first axes these places index."""
        selection, axes = places[0].selection, [place.axis for place in places]
        sizes, others = selection.sizes, [axis for axis in range(len(selection.sizes)) if axis not in axes]
        if y in self.found or any(place.selection is not selection for place in places):
            refuse("the indices of rows that a mask selects are used for other rows")
        if tuple(y.shape[: len(axes)]) != tuple(sizes[axis] for axis in axes):
            refuse("a mask selects rows of a tensor with another number of them")
        rank = y.dim() - len(axes)
        if isinstance(value, Tensor) and value.dim():
            if self.stands_for(value) != Rows(selection) or value.dim() != rank + 1:
                refuse("rows that a mask selects get values of other rows")
            value = value.reshape(*sizes, *value.shape[1:])
        elif adds:
            refuse("rows that a mask selects get a number added")
        else:
            value = torch.full((), float(value), dtype=y.dtype, device=y.device).expand(*sizes, *([1] * rank))
        self.written_to.append(selection)
        is_row = selection.mask
        if adds:
            value = value.masked_fill(~is_row.reshape(*sizes, *([1] * rank)), 0)
            for axis in reversed(others):
                value = value.sum(axis)
            order = [sorted(axes).index(axis) for axis in axes]
            return y + value.permute(*order, *range(len(axes), value.dim()))
        if not all(type(sizes[axis]) is int for axis in others):
            refuse("a row is written where a mask may select it several times")
        value = value.permute(*axes, *others, *range(len(sizes), value.dim())).to(y.dtype)
        is_row = is_row.permute(*axes, *others)
        for place in product(*(range(sizes[axis]) for axis in others)):  # of several writes to one row, the last counts
            at: tuple[slice | int, ...] = (*[slice(None)] * len(axes), *place)
            y = torch.where(is_row[at].reshape(*y.shape[: len(axes)], *([1] * rank)), value[at], y)
        return y

    def check(self, output: object) -> None:
        """Refuse a call that asked if rows are selected and writes none of them, or whose output has selected rows."""
        if refusals:
            refuse(refusals[0])
        asked = self.asked if self.answer is None else ()
        if any(not self.written_to if one is None else one not in self.written_to for one in asked):
            refuse("it asks if a mask selects any row, and writes no rows that it selects")
        if any(self.stands_for(x) is not None for x in pytree.tree_leaves(output)):
            refuse("its output has the rows that a mask selects")


Handler = Callable[[EveryRow, Any, Sequence[Any], Mapping[str, Any]], Any]
