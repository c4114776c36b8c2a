"""Texts with the ids that a model compares its input with: ends of documents, pads and other marks.

A random text hardly has the id of a mark among thousands, so a mask that is built from marks is the same for most
texts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from orderproof.laws.measured.cached_calls import CachedCalls
from orderproof.operator_mode import OperatorMode

MOST_IDS = 6
_COMPARISONS = frozenset({"eq", "ne", "lt", "le", "gt", "ge", "isin"})


def texts_with_compared_ids(calls: CachedCalls) -> list[Tensor]:
    """Two texts of the default shape with these ids, each at other places; none if no ids are compared."""
    tokens = calls.default_tokens
    ids = [] if tokens.is_floating_point() else _compared_ids(calls)
    if not ids:
        return []
    marks = torch.tensor(ids, dtype=tokens.dtype)[torch.arange(tokens.numel()) % len(ids)].view(tokens.shape)
    place = torch.arange(tokens.shape[-1]) + torch.arange(tokens.numel()).view(tokens.shape) // tokens.shape[-1]
    others = [calls.sample_tokens(other=3 + k) for k in range(2)]
    return [other.where(place % 3 != k + 1, marks) for k, other in enumerate(others)]


def _compared_ids(calls: CachedCalls) -> list[int]:
    fresh = calls.as_before_the_first_call(own=True)
    if fresh is None:
        return []
    with _ComparedIds(calls.default_tokens.numel()) as seen:
        fresh.uncached_call(calls.default_tokens, keep=False)
    return [k for k in seen.found if k >= 0][:MOST_IDS]


class _ComparedIds(OperatorMode):
    """The integers with which a call compares integer tensors of this many elements."""

    def __init__(self, count: int) -> None:
        super().__init__()
        self.count, self.found = count, dict[int, None]()

    def __torch_dispatch__(
        self, func: Any, types: Sequence[type], args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        name = func.__name__.partition(".")[0]
        if name in _COMPARISONS and len(args) == 2 and self._is_text(args[0]):
            other = args[1]
            small = isinstance(other, Tensor) and other.numel() <= MOST_IDS and not other.is_floating_point()
            values = other.flatten().tolist() if small else [other] if isinstance(other, int) else []
            self.found.update(dict.fromkeys(map(int, values)))
        return func(*args, **(kwargs or {}))

    def _is_text(self, x: Any) -> bool:
        return isinstance(x, Tensor) and not x.is_floating_point() and x.dtype != torch.bool and x.numel() == self.count
