"""Calls of a module in two parts, from which a cache is known: the second part continues the cache of the first."""

from __future__ import annotations

import copy
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import torch
from torch import Tensor, nn

from orderproof.models.caches.cache_form import longer
from orderproof.models.caches.cache_values import leaves
from orderproof.models.caches.cached_module import CacheArgument, Key, Values, entries_of, without_entries
from orderproof.models.input_sampling import ExampleInputs
from orderproof.models.module_calls import row_layouts
from orderproof.models.own_errors import raise_own_error
from orderproof.recording.captured_graph import leaves_by_name
from orderproof.seeded_random import seeded_random

LEAST_TOKENS = 5  # two parts of unequal size, each of several tokens
TOLERANCE = 1e-4  # relative to the largest number of an output, in float32


@dataclass(frozen=True)
class Evidence:
    """The facts that two calls show of a cache.

    Attributes:
        accepted: The second call takes the cache of the first.
        changes: Its output is another one than without the cache.
        continues: It is the output of one call of all tokens.
        grows: The cache is longer by the tokens of the second call.

    """

    accepted: bool = False
    changes: bool = False
    continues: bool = False
    grows: bool = False


class Trials:
    """Calls of a module with its example inputs, drawn for a few tokens, whole and in two parts."""

    def __init__(self, module: nn.Module, examples: ExampleInputs) -> None:
        self.module = module
        self.examples = next(row_layouts(examples))
        self.tokens = max(examples.length, LEAST_TOKENS)
        self.first_part = self.tokens // 2 + 1
        self.error: Exception | None = None  # of the last call that failed

    @property
    def rows(self) -> int:
        """The number of rows of the examples."""
        return self.examples.row_count or 1

    @cached_property
    def inputs(self) -> tuple[Tensor, ...]:
        """The inputs of a call of all tokens."""
        return self.examples.draw(None, self.tokens, 0).inputs

    def with_rows(self, rows: int) -> Trials:
        """The same calls with another number of rows."""
        other = copy.copy(self)
        vars(other)["inputs"] = self.examples.draw(rows, self.tokens, 0).inputs
        return other

    def call(
        self,
        cache: CacheArgument,
        begin: int,
        end: int,
        values: Values | None,
        *,
        keep: bool = True,
        masks: bool = False,
    ) -> Any:
        """The result for some of the tokens, of which those before are in the cache.

        ``masks``: inputs of zeros and ones, or booleans, are those of all tokens up to the last.
        """
        inputs = []
        for place, (x, axis) in enumerate(zip(self.inputs, self.examples.axes, strict=True)):
            start = 0 if masks and place and _is_mask(x) else begin
            inputs.append(x.clone() if axis is None else x.narrow(axis, start, end - start).clone())
        given = cache.keywords(values, begin, inputs[0], keep=keep)
        with torch.no_grad(), seeded_random(0):
            return self.module(*inputs, **given)

    def start(self, cache: CacheArgument) -> Values | None:
        """The values of a first call."""
        return None if cache.initial is None else cache.initial(self.rows)

    def plain(self, cache: CacheArgument) -> dict[Key, Any] | None:
        """The entries of the output of a call that is given no cache; None if it is refused."""
        try:
            return entries_of(self.call(cache, 0, self.tokens, None, keep=False))
        except Exception as error:  # noqa: BLE001 - the user's forward: anything may come
            raise_own_error(error)
            return None

    def evidence(self, cache: CacheArgument) -> Evidence:
        """The facts that calls show of this cache; the error of a refused call is kept."""
        found = Evidence()
        for masks in (False, True) if any(map(_is_mask, self.inputs[1:])) else (False,):
            try:
                found = self._evidence(cache, self.first_part, masks=masks)
                if found.accepted and not found.changes:  # a module may restart in every call of several tokens
                    single = self._evidence(cache, self.tokens - 1, masks=masks)
                    found = replace(single, grows=found.grows)
            except SystemExit:
                continue
            except Exception as error:  # noqa: BLE001 - the user's forward: anything may come
                raise_own_error(error)
                self.error = error
                continue
            if found.changes:
                break
        return found

    def _evidence(self, cache: CacheArgument, a: int, *, masks: bool) -> Evidence:
        """The facts that a call of `a` tokens and one of the others show."""
        n = self.tokens
        start = self.start(cache)
        first = cache.kept(self.call(cache, 0, a, start, masks=masks), start)
        if first is None or not any(isinstance(x, Tensor) for x in leaves(first).values()):
            return Evidence()
        before = leaves(copy.deepcopy(first))
        result = self.call(cache, a, n, first, masks=masks)
        kept = cache.kept(result, first)
        alone = self._from_the_start(cache, a, masks=masks)
        whole = _outputs(self.call(cache, 0, n, self.start(cache), masks=masks), cache)
        later = _outputs(result, cache)
        if not later or kept is None:
            return Evidence()
        after = leaves(kept)
        grows = any(
            isinstance(x, Tensor) and isinstance(y := after.get(path), Tensor) and longer(x, y, n - a) is not None
            for path, x in before.items()
        )
        return Evidence(True, alone is None or _differ(later, alone), _continue(whole, later, a), grows)

    def _from_the_start(self, cache: CacheArgument, a: int, *, masks: bool) -> list[Tensor] | None:
        """The outputs of the tokens from `a` on without those before; None if such a call is refused."""
        later = copy.copy(self)
        vars(later)["inputs"] = tuple(
            x if axis is None else x.narrow(axis, a, self.tokens - a)
            for x, axis in zip(self.inputs, self.examples.axes, strict=True)
        )
        try:
            return _outputs(later.call(cache, 0, self.tokens - a, self.start(cache), masks=masks), cache)
        except Exception as error:  # noqa: BLE001 - the user's forward: anything may come
            raise_own_error(error)
            return None


def _is_mask(x: Tensor) -> bool:
    return x.dtype is torch.bool or bool(((x == 0) | (x == 1)).all())


def _outputs(result: Any, cache: CacheArgument) -> list[Tensor]:
    left = leaves_by_name(without_entries(result, cache.dropped))
    return [x for x in left.values() if isinstance(x, Tensor) and x.is_floating_point()]


def _near(x: Tensor, y: Tensor) -> bool:
    return x.shape == y.shape and bool((x - y).abs().max() <= TOLERANCE * y.abs().max()) if x.numel() else True


def _differ(first: list[Tensor], second: list[Tensor]) -> bool:
    return len(first) != len(second) or any(not _near(x, y) for x, y in zip(first, second, strict=True))


def _continue(whole: list[Tensor], later: list[Tensor], begin: int) -> bool:
    """True if the later outputs are the last tokens of the whole ones."""
    if len(whole) != len(later):
        return False
    for x, y in zip(whole, later, strict=True):
        axis = longer(y, x, begin)
        if not _near(x if axis is None else x.narrow(axis, begin, x.shape[axis] - begin), y):
            return False
    return True
