"""Calls in which what a model computes for the rows that a mask selects is computed for every row.

A mixture of experts computes `y[mask] += expert(x[mask])`. The number of selected rows depends on data, and a recording
has no data. Where all functions between the selection and the write treat each row alone (see `row_functions.py`), the
same numbers follow from all rows: `y += where(mask, expert(x), 0)`. So a call under `every_row` gives the model all
rows, in their order, as those that a mask selects, and takes what it writes to them where the mask is true.

Indices from `torch.where(mask)` and `mask.nonzero()` stand for a selection too. A row is taken to be selected once at
most by those that a write without a sum gets. Questions if any row is selected are answered with yes: an expert without
rows is taken to write nothing. A recording that is made so is compared with the model as it is, and its reports say why
it was made so.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import torch
from torch import Tensor, nn

from orderproof.recording.model_namespaces import ModelNamespaces
from orderproof.recording.selected_counts import Counts, refuse
from orderproof.recording.selections import PASSED, AnyElement, EveryRow, Handler, Listed, Places, Rows
from orderproof.recording.size_functions import length_of

DEPENDS_ON_DATA = "depends on data"  # in the reason of a recording that may be possible with every row
OF_EVERY_ROW = (
    "what it computes for rows that a mask selects is computed for every row; a mask that selects none is taken to "
    "leave all rows as they are, and to have no other effect"
)  # compared in calls in which no mask selects a row, see `few_rows.py`


def _is_mask(x: object) -> bool:
    return isinstance(x, Tensor) and x.dtype is torch.bool and x.dim() > 0


def _where(mode: EveryRow, _func: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    if len(args) + len(kwargs) != 1 or args[0] in mode.found:
        return PASSED
    return mode.indices(mode.selection(args[0]))


def _nonzero(mode: EveryRow, _func: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    if args[0] in mode.found:
        return PASSED
    selection = mode.selection(args[0])
    if kwargs.get("as_tuple"):
        return mode.indices(selection)
    if len(selection.sizes) != 1:
        refuse("it uses a table of the elements that a mask selects")
    listed = torch.arange(selection.sizes[0], device=selection.mask.device).unsqueeze(1)
    mode.found[listed] = Listed(selection)
    return listed


def _of_list(mode: EveryRow, func: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """The indices of a list of them, without its second axis."""
    found = mode.stands_for(args[0]) if args else None
    if not isinstance(found, Listed):
        return PASSED
    with torch.overrides.BaseTorchFunctionMode():
        result = func(*args, **kwargs)
    if result.dim() != 1:
        refuse("it uses a table of the elements that a mask selects")
    return mode.indices(found.selection)[0]


def _iterate(mode: EveryRow, _func: Any, args: Sequence[Any], _kwargs: Mapping[str, Any]) -> Any:
    found = mode.stands_for(args[0])
    if not isinstance(found, Listed):
        return PASSED
    count = found.selection.sizes[0] if mode.answer is not False else 0
    return tuple(torch.full((1,), k, device=args[0].device) for k in range(count))


def _get(mode: EveryRow, func: Any, args: Sequence[Any], _kwargs: Mapping[str, Any]) -> Any:
    x, index = args
    parts = index if isinstance(index, tuple) else (index,)
    found = mode.stands_for(x)
    if isinstance(found, Listed):
        if parts[1:] == (0,) and _is_whole(parts[0]):
            return mode.indices(found.selection)[0]
        refuse("it uses a table of the elements that a mask selects")
    if isinstance(found, Rows):
        return _part_of_rows(mode, func, x, parts, found)
    places = _places(mode, parts)
    if not places:
        return PASSED
    rows, rest = mode.rows(x, places), parts[1 if _is_mask(parts[0]) else len(places) :]
    if all(part is None or _is_whole(part) for part in rest):
        for axis, part in enumerate(rest, start=1):
            rows = rows.unsqueeze(axis) if part is None else rows
        return mode.tagged(rows, places[0].selection)
    return mode.tagged(rows[(slice(None), *rest)], places[0].selection)


def _is_whole(part: object) -> bool:
    return isinstance(part, slice) and part == slice(None)


def _part_of_rows(mode: EveryRow, func: Any, x: Tensor, parts: Sequence[Any], found: Rows) -> Tensor:
    """A part of each row."""
    named = [part for part in parts if part is not None and part is not Ellipsis]
    keeps = (parts[0] is Ellipsis and len(named) < x.dim()) or _is_whole(parts[0])
    if not keeps or any(isinstance(part, Tensor) for part in parts):
        refuse("rows that a mask selects are indexed")
    return mode.tagged(func(x, tuple(parts)), found.selection)


def _places(mode: EveryRow, parts: Sequence[Any]) -> list[Places]:
    """The indices at the begin of an index that stand for a selection; those of a mask for all its axes."""
    if _is_mask(parts[0]) and parts[0] not in mode.found:
        selection = mode.selection(parts[0])
        return [Places(selection, axis) for axis in range(len(selection.sizes))]
    found = [mode.stands_for(part) for part in parts]
    count = next((k for k, x in enumerate(found) if not isinstance(x, Places)), len(found))
    if any(x is not None for x in found[count:]):
        refuse("an axis after the first is indexed by rows that a mask selects")
    return [x for x in found[:count] if isinstance(x, Places)]


def _set(mode: EveryRow, _func: Any, args: Sequence[Any], _kwargs: Mapping[str, Any]) -> Any:
    y, index, value = args
    parts = index if isinstance(index, tuple) else (index,)
    is_rows = isinstance(value, Tensor) and value in mode.found
    if not is_rows and not any(isinstance(part, Tensor) and part in mode.found for part in parts):
        return PASSED
    places = _places(mode, parts)
    if not places or parts[1 if _is_mask(parts[0]) else len(places) :]:
        refuse("rows that a mask selects are written to another place")
    y.copy_(mode.written(y, places, value, adds=False))
    return None


def _index_add(mode: EveryRow, func: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    given = dict(zip(("self", "dim", "index", "source"), args, strict=False)) | dict(kwargs)
    places = mode.stands_for(given["index"])
    if not isinstance(places, Places):
        return PASSED
    if given["dim"] % given["self"].dim() or given.keys() - {"self", "dim", "index", "source"}:
        refuse("rows that a mask selects are added along another axis")
    result = mode.written(given["self"], [places], given["source"], adds=True)
    return given["self"].copy_(result) if func.__name__.endswith("_") else result


def _index_select(mode: EveryRow, _func: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    given = dict(zip(("input", "dim", "index"), args, strict=False)) | dict(kwargs)
    places = mode.stands_for(given["index"])
    if not isinstance(places, Places):
        return PASSED
    if given["dim"] % given["input"].dim():
        refuse("an axis after the first is indexed by rows that a mask selects")
    return mode.rows(given["input"], [places])


def _index_put(mode: EveryRow, func: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    given = dict(zip(("self", "indices", "values", "accumulate"), args, strict=False)) | dict(kwargs)
    places = _places(mode, given["indices"])
    if not places or given["values"] not in mode.found:
        return PASSED
    result = mode.written(given["self"], places, given["values"], adds=bool(given.get("accumulate")))
    return given["self"].copy_(result) if func.__name__.endswith("_") else result


def _masked_scatter(mode: EveryRow, func: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    given = dict(zip(("self", "mask", "source"), args, strict=False)) | dict(kwargs)
    y, found = given["self"], mode.stands_for(given["source"])
    if not isinstance(found, Rows):
        return PASSED
    selection = found.selection
    if not mode.is_computed_so(given["mask"], "unsqueeze", selection.given, -1):
        refuse("rows that a mask selects are written to another place")
    places = [Places(selection, axis) for axis in range(len(selection.sizes))]
    result = mode.written(y, places, given["source"], adds=False)
    return y.copy_(result) if func.__name__.endswith("_") else result


def _any(mode: EveryRow, func: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    if len(args) != 1 or kwargs or not _is_mask(args[0]) or args[0] in mode.found:
        return PASSED
    result = func(*args)
    mode.found[result] = AnyElement(args[0])
    return result


def _bool(mode: EveryRow, _func: Any, args: Sequence[Any], _kwargs: Mapping[str, Any]) -> Any:
    found = mode.stands_for(args[0])
    if not isinstance(found, AnyElement):
        return PASSED
    return mode.ask(mode.selection(found.mask))


def _bincount(mode: EveryRow, _func: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    counts = kwargs.get("minlength", args[2] if len(args) > 2 else 0)
    if not counts or len(args) > 1 or "weights" in kwargs or args[0] in mode.found:
        return PASSED
    return Counts(mode.count(1, None) for _ in range(counts))


_HANDLERS: dict[str, Handler] = {
    "where": _where, "nonzero": _nonzero, "argwhere": _nonzero, "squeeze": _of_list, "flatten": _of_list,
    "view": _of_list, "reshape": _of_list, "unbind": _iterate, "__getitem__": _get, "__setitem__": _set,
    "index_add": _index_add, "index_add_": _index_add, "index_select": _index_select, "index_put_": _index_put,
    "masked_scatter": _masked_scatter, "masked_scatter_": _masked_scatter, "any": _any, "__bool__": _bool,
    "bincount": _bincount,
}  # fmt: skip


_every_row = ContextVar("every row is computed", default=False)


@contextmanager
def every_row() -> Iterator[None]:
    """Within this block, `called` computes for every row what a module computes for those that a mask selects."""
    token = _every_row.set(True)
    try:
        yield
    finally:
        _every_row.reset(token)


def computes_every_row() -> bool:
    """True within a block of `every_row`."""
    return _every_row.get()


def called(module: nn.Module, inputs: Iterable[Tensor], *, answer: bool | None = None) -> Any:
    """The output of a module.

    Within `every_row`, an ``answer`` to all questions if a mask selects any row makes a call in which no mask does.

    Raises:
        CaptureError: What `every_row` says cannot be kept.

    """
    if not _every_row.get():
        return module(*inputs)
    mode = EveryRow(_HANDLERS, answer=answer)
    spaces = [space for space in ModelNamespaces(module).spaces if "len" not in space]
    try:
        for space in spaces:
            space["len"] = length_of
        with mode:
            output = module(*inputs)
    finally:
        for space in spaces:
            del space["len"]
    mode.check(output)
    return output
