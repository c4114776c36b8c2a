"""The axes of the tensors in a cache, found by calls, and what follows from them: crop, reorder and repeat.

An axis runs over tokens if it is longer by the tokens of a further call, and over rows if it is longer by one with one
row more. In a tensor of fixed size, an axis has slots for tokens if a further call changes the slots of its tokens
only. An integer that is larger by the tokens of a further call counts tokens. What else a call changes is a state: it
has no parts for single tokens, so a cache with a state cannot be cropped.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from orderproof.errors import UnsupportedCallError
from orderproof.models.caches.cache_values import Path, has_objects, leaves, mapped

_CROP, _TRIM = "crop", "trim"  # methods of libraries: crop(tokens that stay), trim(tokens that go)
_REORDER, _REPEAT = "reorder_cache", "batch_repeat_interleave"


@dataclass(frozen=True)
class Leaf:
    """One tensor or integer of a cache."""

    row: int | None = None
    token: int | None = None
    slots: int | None = None
    counts: bool = False
    is_state: bool = False


@dataclass(frozen=True)
class CacheForm:
    """The axes of a cache by the paths of its tensors."""

    parts: Mapping[Path, Leaf] = field(default_factory=dict)

    def of(self, path: Path) -> Leaf:
        """The axes of one tensor."""
        return self.parts.get(path, Leaf())

    def cropped(self, cache: Any, cached: int, tokens: int) -> Any:
        """The cache of `cached` tokens without its last ones. Raises `UnsupportedCallError`."""
        if has_objects(cache):
            return _by_method(
                cache, {_CROP: lambda one: one.crop(cached - tokens), _TRIM: lambda one: one.trim(tokens)}
            )
        if any(leaf.is_state for leaf in self.parts.values()):
            raise UnsupportedCallError("its cache holds a state, which cannot be cropped")
        if not any(leaf.token is not None or leaf.slots is not None for leaf in self.parts.values()):
            raise UnsupportedCallError("its cache cannot be cropped: no axis of it is seen to run over tokens")

        def cut(path: Path, value: Tensor | int) -> Tensor | int:
            leaf = self.of(path)
            if leaf.counts:
                return value - tokens
            if leaf.token is not None and isinstance(value, Tensor):
                return value.narrow(leaf.token, 0, value.shape[leaf.token] - tokens)
            return value

        return mapped(cache, cut)

    def reordered(self, cache: Any, rows: Tensor) -> Any:
        """The cache with its rows indexed. Raises `UnsupportedCallError`."""
        if hasattr(cache, _REORDER):
            return _by_method(cache, {_REORDER: lambda one: one.reorder_cache(rows)})
        return self._with_rows(cache, lambda x, axis: x.index_select(axis, rows))

    def repeated(self, cache: Any, count: int) -> Any:
        """The cache with each row ``count`` times. Raises `UnsupportedCallError`."""
        if hasattr(cache, _REPEAT):
            return _by_method(cache, {_REPEAT: lambda one: one.batch_repeat_interleave(count)})
        return self._with_rows(cache, lambda x, axis: x.repeat_interleave(count, axis))

    def _with_rows(self, cache: Any, select: Callable[[Tensor, int], Tensor]) -> Any:
        if not any(leaf.row is not None for leaf in self.parts.values()):
            raise UnsupportedCallError("no axis of its cache is seen to run over rows")

        def edit(path: Path, value: Tensor | int) -> Tensor | int:
            row = self.of(path).row
            return value if row is None or not isinstance(value, Tensor) else select(value, row)

        return mapped(cache, edit)

    def part(self, place: int) -> CacheForm:
        """The form of one of several values."""
        return CacheForm({path[1:]: leaf for path, leaf in self.parts.items() if path[0] == str(place)})


def _by_method(cache: Any, methods: Mapping[str, Callable[[Any], Any]]) -> Any:
    """A copy of the cache, edited by the first of these methods that it has, or each object in it."""
    cache = copy.deepcopy(cache)
    objects = list(cache) if isinstance(cache, list | tuple) else [cache]
    for name, edit in methods.items():
        if objects and all(hasattr(one, name) for one in objects):
            for one in objects:
                edit(one)
            return cache
    raise UnsupportedCallError(f"its cache has no method {' or '.join(methods)}")


def cache_form(first: Any, later: Any, tokens: tuple[int, int], more_rows: Any = None) -> CacheForm:
    """The axes of a cache, from one of some tokens, one of more tokens, and one of the former with one row more."""
    a, b, c = leaves(first), leaves(later), {} if more_rows is None else leaves(more_rows)
    return CacheForm({path: _leaf(value, b.get(path), c.get(path), tokens) for path, value in a.items()})


def _leaf(first: Tensor | int, later: Any, more_rows: Any, tokens: tuple[int, int]) -> Leaf:
    new = tokens[1] - tokens[0]
    if not isinstance(first, Tensor):
        return Leaf(counts=isinstance(later, int) and later - first == new)
    if not isinstance(later, Tensor) or later.dim() != first.dim():
        return Leaf(is_state=True)
    row = longer(first, more_rows, 1) if isinstance(more_rows, Tensor) else None
    token = longer(first, later, new)
    if token is not None:
        return Leaf(row, token)
    if first.shape != later.shape:
        return Leaf(row, is_state=True)
    if torch.equal(first, later):
        return Leaf(row)
    if not first.is_floating_point() and first.dtype is not torch.bool and bool((later - first == new).all()):
        return Leaf(row, counts=True)
    slots = next((axis for axis in range(first.dim()) if axis != row and _written(first, later, axis, tokens)), None)
    return Leaf(row, slots=slots, is_state=slots is None)


def longer(first: Tensor, later: Tensor, by: int) -> int | None:
    """The axis that is longer by this number of entries, if no other one differs."""
    if later.dim() != first.dim():
        return None
    changed = [axis for axis in range(first.dim()) if later.shape[axis] != first.shape[axis]]
    return changed[0] if len(changed) == 1 and later.shape[changed[0]] - first.shape[changed[0]] == by else None


def _written(first: Tensor, later: Tensor, axis: int, tokens: tuple[int, int]) -> bool:
    """True if only the slots of the further tokens along an axis differ, and all of them do."""
    size = first.shape[axis]
    changed = (first != later).movedim(axis, 0).reshape(size, -1).any(1).nonzero().flatten()
    return changed.tolist() == list(range(*tokens))
