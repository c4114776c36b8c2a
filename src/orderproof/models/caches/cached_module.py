"""A module whose cache is no output: it is called without one, or continues the cache that a call gives.

The cache of a call is given by the keyword `CACHE_CALL`, which every wrapper passes on, and is returned in it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from typing import Any

from torch import Tensor, nn

from orderproof.models.forward_arguments import PassesKeywordsOn
from orderproof.models.input_sampling import ExampleInputs
from orderproof.models.module_calls import row_layouts

CACHE_CALL = "_orderproof_cache"
Key = int | str
Values = tuple[Any, ...]  # of the arguments of a cache, in their order


@dataclass
class CacheCall:
    """The cache of one call.

    Attributes:
        values: What the arguments of the cache take; None for what they take in the first call.
        keep: Flags such as `use_cache` are given as True or False; None: they are left out. Without True, no call
            begins with a cache that can be left out.
        tokens: The number of tokens in the cache.
        kept: After the call, the cache with the tokens of the call; None if there is none.

    """

    values: Values | None = None
    keep: bool | None = True
    tokens: int = 0
    kept: Values | None = None


@dataclass(frozen=True)
class Part:
    """The part of the output that an argument takes back: one entry, or several as a tuple."""

    keys: tuple[Key, ...]
    joined: bool = False

    def of(self, entries: Mapping[Key, Any]) -> Any:
        """The part of an output with these entries. Raises `KeyError`."""
        found = tuple(entries[key] for key in self.keys)
        return found if self.joined else found[0]


@dataclass(frozen=True)
class CacheArgument:
    """How a module takes and returns its cache.

    Attributes:
        names: The arguments that take it.
        parts: For each of them, the part of the output that it takes back; None: the given object, changed in place.
        flags: Flags that ask for a cache.
        offset: The argument that takes the number of cached tokens; empty if there is none.
        offset_dtype: The dtype of that argument, if it takes a tensor.
        initial: The values of the first call for a number of rows; None: the arguments are left out.
        is_required: The module cannot be called without them.
        default: The default value of the argument, if calls change it; `initial` gives copies of what it was.
        dropped: The entries of the output that are its cache, in a call that keeps it.
        dropped_plain: The same in a call that does not.
        known_by: How it is known.

    """

    names: tuple[str, ...]
    parts: tuple[Part | None, ...]
    flags: tuple[str, ...] = ()
    offset: str = ""
    offset_dtype: Any = None
    initial: Callable[[int], Values] | None = None
    is_required: bool = False
    default: Any = None
    dropped: tuple[Key, ...] = ()
    dropped_plain: tuple[Key, ...] = ()
    known_by: str = ""

    @property
    def changes_default(self) -> bool:
        """True if calls that leave the argument out share a cache."""
        return self.default is not None

    @property
    def own_arguments(self) -> frozenset[str]:
        """All arguments that are given for it."""
        return frozenset((*self.names, *self.flags, *([self.offset] if self.offset else [])))

    def keywords(self, values: Values | None, tokens: int, like: Tensor, *, keep: bool | None) -> dict[str, Any]:
        """The arguments of a call on a cache of this number of tokens."""
        flags = {} if keep is None else dict.fromkeys(self.flags, keep)
        given = {} if values is None else dict(zip(self.names, values, strict=True))
        if self.offset:
            offset = tokens if self.offset_dtype is None else like.new_tensor(tokens, dtype=self.offset_dtype)
            given[self.offset] = offset
        return {**flags, **given}

    def kept(self, result: Any, values: Values | None) -> Values | None:
        """The cache after a call with these values; None if the output has none."""
        found = entries_of(result)
        try:
            return tuple(
                part.of(found) if part is not None else (values or ())[place] for place, part in enumerate(self.parts)
            )
        except LookupError:
            return None


class CachedModule(PassesKeywordsOn):
    """A module with a cache, whose outputs do not have it."""

    def __init__(self, model: nn.Module, cache: CacheArgument, inputs: int, rows: tuple[int, int] | None) -> None:
        """Take the module, its cache, the number of its inputs, and the input and the axis that have rows."""
        super().__init__()
        self.model = model
        self.cache = cache
        self.inputs = inputs
        self.rows = rows

    def _gives(self, name: str, place: int) -> bool:
        positional = not isinstance(self.model, PassesKeywordsOn) and place < self.inputs
        return positional or name in self.cache.own_arguments

    def forward(self, *inputs: Tensor, **keywords: Any) -> Any:
        """Call the module; with a `CacheCall` on the cache in it, else without one."""
        call: CacheCall | None = keywords.pop(CACHE_CALL, None)
        values = None if call is None else call.values
        cache = self.cache
        keep = False if call is None else call.keep
        given = keep or cache.is_required or (cache.changes_default and call is None)
        if values is None and cache.initial is not None and given:
            rows = 1 if self.rows is None else inputs[self.rows[0]].shape[self.rows[1]]
            values = cache.initial(rows)
        arguments = cache.keywords(values, 0 if call is None else call.tokens, inputs[0], keep=keep)
        result = self.model(*inputs, **keywords, **arguments)
        if call is not None:
            call.kept = cache.kept(result, values)
        return without_entries(result, cache.dropped if keep or values is not None else cache.dropped_plain)


def entries_of(result: Any) -> dict[Key, Any]:
    """The entries of an output by place or key; none of a tensor."""
    if isinstance(result, Mapping):
        return dict(result)
    if isinstance(result, list | tuple):
        return dict(enumerate(result))
    if is_dataclass(result) and not isinstance(result, type):
        return {one.name: getattr(result, one.name) for one in fields(result)}
    return {}


def without_entries(result: Any, keys: Sequence[Key]) -> Any:
    """The output without some entries, and without what is None; the entry itself if one is left of a sequence."""
    found = entries_of(result)
    if not keys or not any(key in found for key in keys):
        return result
    left = {key: value for key, value in found.items() if key not in keys and value is not None}
    if not isinstance(result, list | tuple):
        return left
    return next(iter(left.values())) if len(left) == 1 else tuple(left.values())


def cached_module(module: nn.Module, cache: CacheArgument, examples: ExampleInputs) -> CachedModule:
    """The module without the cache among its outputs."""
    rows = next(row_layouts(examples)).row_axes
    place = next((place for place, axis in enumerate(rows) if axis is not None), None)
    axis = None if place is None else rows[place]
    size = None if place is None or axis is None else (place, axis)
    return CachedModule(module, cache, len(examples.tensors), size)
