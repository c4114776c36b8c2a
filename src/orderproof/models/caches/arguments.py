"""The arguments of a module that may take its cache, flags that ask for one, and numbers of cached tokens."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from orderproof.models.caches.first_values import changing_default
from orderproof.models.caches.names import OFFSET_NAMES, is_cache_name, is_flag_name, is_state_name

MAX_UNKNOWN = 4  # arguments with other names that are tried


@dataclass(frozen=True)
class CacheArguments:
    """The arguments of a module that its inputs do not give, and the examples for them."""

    free: Mapping[str, inspect.Parameter]
    taken: Mapping[str, Any]
    stated: frozenset[str] = frozenset()  # those that are caches

    @property
    def flags(self) -> tuple[str, ...]:
        """The flags that ask for a cache."""
        return tuple(name for name in self.free if is_flag_name(name) and name not in self.taken)

    @property
    def offsets(self) -> list[tuple[str, Any]]:
        """The arguments that may count cached tokens, with the dtype of a tensor, and none."""
        found: list[tuple[str, Any]] = []
        for name in (*self.free, *(name for name in self.taken if name not in self.free)):
            value = self.taken.get(name, getattr(self.free.get(name), "default", None))
            if type(value) is int and value == 0:
                found.append((name, None))
            elif isinstance(value, Tensor) and value.dim() == 0 and not value.is_floating_point() and int(value) == 0:
                found.append((name, value.dtype))
            elif name in OFFSET_NAMES and value is None:
                found.append((name, None))
        return [*found, ("", None)] if any(name in self.taken for name, _ in found) else [("", None), *found]

    @property
    def caches(self) -> list[str]:
        """The arguments that may be caches, the likely ones first; only the stated ones if there are any."""
        offsets = {name for name, _ in self.offsets}
        names = [name for name in dict.fromkeys((*self.taken, *self.free)) if name not in (*self.flags, *offsets)]
        possible = [name for name in names if name in self.taken or self._may_be_left_out(name)]
        if self.stated:
            return [name for name in names if name in self.stated]
        known = [name for name in possible if is_cache_name(name)]
        states = [name for name in possible if name not in known and is_state_name(name)]
        others = [name for name in possible if name not in known and name not in states]
        return [*known, *states, *others[:MAX_UNKNOWN]]

    def _may_be_left_out(self, name: str) -> bool:
        one = self.free[name]
        return one.default is None or changing_default(one) is not None or is_cache_name(name)

    def is_optional(self, name: str) -> bool:
        """True if the argument can be left out."""
        one = self.free.get(name)
        return one is not None and one.default is not one.empty
