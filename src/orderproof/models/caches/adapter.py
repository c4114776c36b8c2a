"""Measured laws of a plain module with a cache: calls on it, and the edits that the form of the cache allows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

import torch
from torch import Tensor, nn

from orderproof.adapter import ModelOutput
from orderproof.errors import UnsupportedCallError, first_line
from orderproof.models.caches.cache_form import CacheForm, cache_form
from orderproof.models.caches.cache_values import set_contents
from orderproof.models.caches.cached_module import CACHE_CALL, CacheArgument, CacheCall, Values
from orderproof.models.own_errors import raise_own_error
from orderproof.models.plain_adapter import PlainModuleAdapter
from orderproof.models.roles.example_roles import ExampleRoles
from orderproof.models.roles.input_packing import float_dtype
from orderproof.models.roles.named_arguments import NamedArguments
from orderproof.models.roles.position_argument import PositionArgument
from orderproof.models.subject import Subject

TRIED_TOKENS = (3, 5)  # in the cache, before and after the call that shows its axes


@dataclass
class Cache:
    """A cache and the number of tokens in it."""

    values: Values
    tokens: int


class CachedModuleAdapter(PlainModuleAdapter):
    """A plain module with a cache."""

    def __init__(self, subject: Subject, arguments: NamedArguments, cache: CacheArgument, roles: ExampleRoles) -> None:
        super().__init__(subject, arguments, roles)
        self.cache = cache
        self.computed = {roles.names[place]: one for place, one in roles.computed.items()}
        self.supported_inputs = self.supported_inputs | {"cache"}
        self.repeats_cache = True
        self.owns_default = False
        self.default_held: tuple[int, torch.dtype | None] | None = None  # rows and dtype of the last call

    def with_module(self, module: nn.Module) -> Self:
        """A copy of the module has a default value of its own, if calls change that."""
        adapter = super().with_module(module)
        adapter.owns_default = True
        return adapter

    def call(
        self, tokens: Tensor, *, positions: Tensor | None = None, mask: Tensor | None = None, past: Any = None,
        keep: bool | None = None, documents: Sequence[int] | None = None,
    ) -> ModelOutput:  # fmt: skip
        if not self.packing.has_rows and len(tokens) != 1:
            raise UnsupportedCallError(f"its inputs have no axis of rows; it cannot be called with {len(tokens)} rows")
        cached = past.tokens if past is not None else 0
        arguments = self._computed(tokens, cached) if cached else {}
        if mask is not None and self.arguments.mask is not None:
            self.arguments.mask.check(mask)
            arguments[self.arguments.mask.name] = self._on_cache(self.arguments.mask.value(mask.long()), tokens, cached)
        if positions is not None and self.arguments.position_ids is not None:
            arguments[self.arguments.position_ids.name] = self.arguments.position_ids.value(positions)
        if documents is not None:
            arguments |= self._documents(documents, tokens, float_dtype(self.module))
        if past is None and self.cache.changes_default:
            past = self._default_cache(tokens)
        inputs = self.packing.unpack(tokens, float_dtype(self.module))
        call = CacheCall(None if past is None else past.values, keep, cached)
        result = self.module(*inputs, **arguments, **{CACHE_CALL: call})
        kept = None if call.kept is None or keep is False else Cache(call.kept, cached + tokens.shape[1])
        return ModelOutput(self._output(result, tokens.shape[1]), kept)

    def _default_cache(self, tokens: Tensor) -> Cache | None:
        """None for the default value that calls share, which is emptied where it cannot hold other rows or a dtype."""
        empty: Cache = self.initial_cache(*tokens.shape[:2])
        if self.owns_default:
            return empty
        held = (len(tokens), float_dtype(self.module))
        if held != self.default_held:
            set_contents(self.cache.default, empty.values[0])
            self.default_held = held
        return None

    # ------------------------------------------------------------ masks and position ids with a cache

    def _computed(self, tokens: Tensor, cached: int) -> dict[str, Tensor]:
        """The computed inputs of further tokens: position ids count on, and masks reach over the cached tokens."""
        rows, new = tokens.shape[:2]
        found = {}
        for name, one in self.computed.items():
            value = one.for_call(rows, cached + new, tokens.device)
            found[name] = (
                value[..., -new:] if isinstance(one, PositionArgument) else self._on_cache(value, tokens, cached)
            )
        return found

    def _on_cache(self, mask: Tensor, tokens: Tensor, cached: int) -> Tensor:
        """A mask of all tokens as a call of the last ones takes it; its axis before the last may run over queries."""
        new = tokens.shape[1]
        if mask.dim() > 2 or len(mask) != len(tokens):
            mask = mask[..., -new:, :]
        return mask if not cached or self.masks_cover_cache else mask[..., -new:]

    @cached_property
    def masks_cover_cache(self) -> bool:
        """True if a mask in a call on a cache is that of the cached tokens too; calls decide."""
        before, after = TRIED_TOKENS
        tokens = self.sample_tokens(self.batch_size, after, 0)
        everywhere = torch.ones(tokens.shape[:2], dtype=torch.bool)
        given = everywhere if self.arguments.mask is not None else None
        self.__dict__["masks_cover_cache"] = True
        try:
            with torch.no_grad():
                past = self.call(tokens[:, :before], keep=True).cache
                self.call(tokens[:, before:], mask=given, past=past, keep=True)
        except Exception as error:  # noqa: BLE001 - the module refuses such a mask in any way
            raise_own_error(error)
            return False
        return True

    # ------------------------------------------------------------ caches

    def initial_cache(self, rows: int, tokens: int) -> Any:
        start = self.cache.initial
        return None if start is None else Cache(start(rows), 0)

    @cached_property
    def form(self) -> CacheForm:
        """The axes of its cache, found by calls. Raises `UnsupportedCallError`."""
        before, after = TRIED_TOKENS
        try:
            with torch.no_grad():
                first, later = (self._filled(self.batch_size, count) for count in (before, after))
        except Exception as error:
            raise_own_error(error)
            raise UnsupportedCallError(f"calls that show the axes of its cache failed: {first_line(error)}") from error
        try:
            with torch.no_grad():
                more = self._filled(self.batch_size + 1, before).values
        except Exception as error:  # noqa: BLE001 - the user's forward: anything may come
            raise_own_error(error)
            more = None
        return cache_form(first.values, later.values, TRIED_TOKENS, more)

    def _filled(self, rows: int, tokens: int) -> Cache:
        most = self.sample_tokens(self.batch_size + 1, TRIED_TOKENS[1], 0) if self.packing.has_rows else None
        text = self.sample_tokens(rows, TRIED_TOKENS[1], 0) if most is None else most[:rows]
        past = self.initial_cache(rows, tokens)
        cache: Cache = self.call(text[:, :tokens], past=past, keep=True).cache
        return cache

    def crop_cache(self, cache: Any, tokens: int) -> Any:
        return Cache(self._edited(cache, "crop", tokens), cache.tokens - tokens)

    def reorder_cache(self, cache: Any, rows: Tensor) -> Any:
        return replace(cache, values=self._edited(cache, "reorder", rows))

    def repeat_cache(self, cache: Any, count: int) -> Any:
        return replace(cache, values=self._edited(cache, "repeat", count))

    def _edited(self, cache: Cache, edit: str, value: Any) -> Values:
        found = []
        for place, one in enumerate(cache.values):
            form = self.form.part(place)
            if edit == "crop":
                found.append(form.cropped(one, cache.tokens, value))
            elif edit == "reorder":
                found.append(form.reordered(one, value))
            else:
                found.append(form.repeated(one, value))
        return tuple(found)
