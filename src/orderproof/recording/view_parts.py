"""Which views of one storage have elements in common, by the operators that made them.

This is known for every size of a dimension whose size is open, where elements cannot be listed.
"""

from __future__ import annotations

from typing import Any

from orderproof.recording.operator_names import operator_name
from orderproof.recording.recorded_graph import Alias
from orderproof.recording.views import end_of_narrow, positional_arguments

_Part = tuple[int, int, float]  # a dimension, the first index, and the one after the last
_OF_OTHER_ELEMENTS = {  # views in which no element of their base is more than once
    "select", "slice", "narrow", "unbind", "split", "split_with_sizes", "chunk", "tensor_split", "diagonal",
    "unsafe_chunk",
    "view", "reshape", "_unsafe_view", "flatten", "unflatten", "squeeze", "unsqueeze", "view_as", "ravel",
    "transpose", "swapaxes", "swapdims", "t", "mT", "permute", "movedim", "moveaxis", "detach", "alias",
}  # fmt: skip
_NO_END = 1 << 62  # an end of a slice that stands for the size


def are_same_or_apart(first: Alias, second: Alias) -> bool:
    """True if two views are made by the same operators, which may select other indices of a dimension.

    They have the same elements in the same order, or none in common.
    """
    one, other = _chain(first), _chain(second)
    steps = [_is_same_step(a, b) or _select_other_indices(a, b) for a, b in zip(one, other, strict=False)]
    return len(one) == len(other) and all(steps) and all(map(_has_each_element_once, one))


def are_apart(first: Alias, second: Alias) -> bool:
    """True if two views are of different parts of a dimension of one tensor; False if that is not plain."""
    for one, other in zip(_chain(first), _chain(second), strict=False):
        if not (_has_each_element_once(one) and _has_each_element_once(other)):
            return False
        if not _is_same_step(one, other):
            a, b = _part(one), _part(other)
            return a is not None and b is not None and a[0] == b[0] and (a[2] <= b[1] or b[2] <= a[1])
    return False


def _chain(alias: Alias) -> list[Alias]:
    """The tensor of which all are views, and each view down to this one, without slices of everything."""
    found: list[Alias] = []
    current: Alias | None = alias
    while current is not None:
        if not _is_everything(current):
            found.append(current)
        current = current.parent
    return found[::-1]


def _is_everything(alias: Alias) -> bool:
    """True of the slice `[:]`, which torch makes for each dimension before one with an open index."""
    if alias.view is None or operator_name(alias.view[0]) != "slice":
        return False
    arguments = positional_arguments(*alias.view[:3])
    if arguments is None or not _are_numbers(arguments):
        return False
    _, start, end, step = arguments
    return start in (None, 0) and (end is None or end >= _NO_END) and step == 1


def _is_same_step(one: Alias, other: Alias) -> bool:
    """True if two tensors are one, or views of the same tensor by the same operator with the same numbers."""
    if one is other:
        return True
    if one.view is None or other.view is None:
        return False
    (func, rest, options, place), (func2, rest2, options2, place2) = one.view, other.view
    numbers, others = [*rest, *options.items()], [*rest2, *options2.items()]
    return func is func2 and place == place2 and _are_numbers(numbers) and _are_numbers(others) and numbers == others


def _select_other_indices(one: Alias, other: Alias) -> bool:
    """True if two tensors are those at an index of the same dimension; both are views of the same tensor."""
    if one.view is None or other.view is None:
        return False
    selects = all(operator_name(func) == "select" and len(rest) == 2 for func, rest, *_ in (one.view, other.view))
    return selects and _are_numbers([one.view[1][0], other.view[1][0]]) and one.view[1][0] == other.view[1][0]


def _has_each_element_once(alias: Alias) -> bool:
    """False of a view such as `unfold`, whose parts share elements."""
    return alias.view is None or operator_name(alias.view[0]) in _OF_OTHER_ELEMENTS


def _are_numbers(values: Any) -> bool:
    """True if values can be compared: open sizes would ask for a decision."""
    if isinstance(values, list | tuple):
        return all(map(_are_numbers, values))
    return values is None or isinstance(values, int | str)


def _part(alias: Alias) -> _Part | None:
    """The part of a dimension of its base that a view is, for every size of that dimension; None if it is not known."""
    if alias.view is None or alias.parent is None:
        return None
    func, rest, options, place = alias.view
    arguments = positional_arguments(func, rest, options)
    if arguments is None or not _are_numbers(arguments):
        return None
    shape = alias.parent.tensor.shape
    match operator_name(func), arguments:
        case "select", (dim, index):
            start, end = index, index + 1 if index != -1 else None
        case "slice", (dim, start, end, _):
            pass
        case "narrow", (dim, start, length):
            end = end_of_narrow(start, length)
        case "unbind", (dim,):
            start, end = place, (place or 0) + 1
        case "split_with_sizes", (sizes, dim):
            start, end = sum(sizes[:place]), sum(sizes[: (place or 0) + 1])
        case "split", (int(each), dim):
            start, end = (place or 0) * each, ((place or 0) + 1) * each
        case (("chunk" | "unsafe_chunk"), (int(chunks), dim)) if isinstance(shape[dim], int):
            each = -(-shape[dim] // chunks)
            start, end = (place or 0) * each, ((place or 0) + 1) * each
        case _:
            return None
    dim %= len(shape)
    size = shape[dim] if isinstance(shape[dim], int) else None
    first, last = _end(start, size, 0), _end(end, size, float("inf"))
    return None if first is None or last is None else (dim, int(first), last)


def _end(index: int | None, size: int | None, default: float) -> float | None:
    """An end of a part; None if it is counted from an end that is not known."""
    if index is None or index >= _NO_END:
        return default
    if index < 0:
        return None if size is None else max(index + size, 0)
    return index
