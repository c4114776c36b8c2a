"""Calls of one model in one precision; calls that several laws make are cached."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cached_property, partial
from typing import Any, TypeVar

import torch
from torch import Tensor, nn

from orderproof.adapter import ModelAdapter, ModelOutput
from orderproof.cast_on_use import is_large
from orderproof.errors import OutputShapeError
from orderproof.laws.measured.model_state import PristineModel
from orderproof.recording.execution import relative_difference
from orderproof.recording.low_rank import low_rank_copy
from orderproof.recording.owned_state import OwnedState, owned_state
from orderproof.weight_bits import weight_bits

T = TypeVar("T")
FLOAT32 = ("float32",)  # the key of copies in float32


class CachedCalls:
    """A model adapter and the outputs of its calls."""

    def __init__(
        self, adapter: ModelAdapter, seed: int = 0, *, wide: torch.dtype | None = None,
        floats: torch.dtype | None = None,
        base: CachedCalls | None = None,
    ) -> None:  # fmt: skip
        self.adapter = adapter
        self.seed = seed
        self.base = base  # the calls with the default number of tokens, if these have another one
        self._by_length: dict[int, CachedCalls] = {}
        self.wide = wide  # the dtype of a copy in float32 or float64; None for the model itself
        self.float_dtype = wide or floats  # the dtype of tokens that are vectors
        self._outputs: dict[tuple[Any, ...], Tensor] = {}
        self._memo: dict[str, Any] = {}
        self._first: PristineModel | None = None
        self._owned: OwnedState | None = None
        self._changed_models: dict[tuple[str, ...], dict[str, tuple[ModelAdapter, PristineModel]]] = {}
        self._loaded: dict[torch.dtype, CachedCalls] = {}
        self._outputs_of_copies: dict[tuple[str, ...], dict[tuple[Any, ...], Tensor]] = {}  # by keys of the former
        self._used: dict[Any, list[dict[str, int]]] = {}  # keys of the two above, with the weights as they were made
        self._origin: tuple[CachedCalls, tuple[str, ...]] | None = None
        self.watches_state = False  # of the model and of the copies that laws make of it from then on
        self.draws_random_numbers: bool | None = None  # None if it has not been tried
        self.agreed_with_caches: set[frozenset[str]] = set()  # required inputs of laws of which a comparison held

    @property
    def default_length(self) -> int:
        """The number of tokens of the default call."""
        return self.adapter.default_length

    def at_length(self, tokens: int) -> CachedCalls:
        """The same calls with another number of tokens in the default call; both share models and their copies."""
        if self.base is not None:
            return self.base.at_length(tokens)
        if tokens == self.default_length:
            return self
        if tokens not in self._by_length:
            adapter = self.adapter.at_length(tokens)
            self._by_length[tokens] = CachedCalls(
                adapter, self.seed, wide=self.wide, floats=self.float_dtype, base=self
            )
        return self._by_length[tokens]

    @cached_property
    def default_tokens(self) -> Tensor:
        """The tokens of the default call: [row, token] or [row, token, feature]."""
        return self.sample_tokens()

    @cached_property
    def default_output(self) -> Tensor:
        """The output of the default call: no cache, no mask, no position ids."""
        return self.forward(self.default_tokens)

    @cached_property
    def repeat_difference(self) -> float:
        """The relative difference of two equal default calls."""
        return relative_difference(self.default_output, self.uncached_call(self.default_tokens, keep=False).output)

    def sample_tokens(self, tokens: int | None = None, *, rows: int | None = None, other: int = 0) -> Tensor:
        """Random tokens [row, token, ...]; each value of `other` gives other tokens at every place."""
        drawn = self.adapter.sample_tokens(
            rows or self.adapter.batch_size, tokens or self.default_length, self.seed + other
        )
        return drawn if self.float_dtype is None or not drawn.is_floating_point() else drawn.to(self.float_dtype)

    def default_position_ids(self, tokens: int, *, rows: int | None = None, start: int = 0) -> Tensor:
        """The documented position ids [row, token] of tokens from index `start` on."""
        first = self.adapter.first_position_id + start
        return torch.arange(first, first + tokens).expand(rows or self.adapter.batch_size, tokens)

    def forward(self, tokens: Tensor, *, positions: Tensor | None = None, mask: Tensor | None = None) -> Tensor:
        """The output of one call without a cache."""
        key = tuple(None if x is None else (tuple(x.shape), _raw_bytes(x)) for x in (tokens, positions, mask))
        if key not in self._outputs:
            self._outputs[key] = self.uncached_call(tokens, positions=positions, mask=mask, keep=False).output
        return self._outputs[key]

    def forward_at(self, tokens: Tensor, positions: Tensor) -> Tensor:
        """The output at explicit position ids [row, token].

        The call has an all-ones mask: without one some libraries read position ids with gaps as packed documents.
        """
        return self.forward(tokens, positions=positions, mask=self.all_ones_mask(tokens))

    def all_ones_mask(self, tokens: Tensor) -> Tensor | None:
        """An all-ones mask [row, token], or None if the model takes no mask."""
        return torch.ones(tokens.shape[:2], dtype=torch.bool) if "mask" in self.adapter.supported_inputs else None

    def uncached_call(self, tokens: Tensor, **arguments: Any) -> ModelOutput:
        """The output of one call that is not cached. The model gets copies of the tensors."""
        own: dict[str, Any] = {k: v.clone() if isinstance(v, Tensor) else v for k, v in arguments.items()}
        with torch.no_grad():
            return self.adapter.call(tokens.clone(), **own)

    def incremental_forward(
        self, tokens: Tensor, sizes: list[int], past: Any = None, **arguments: Any
    ) -> tuple[Tensor, Any]:
        """The outputs of calls with these numbers of tokens, each on the cache of the calls before it, and the cache.

        `positions` are those of all tokens; `mask` covers the tokens that `past` holds too. Raises `OutputShapeError`
        if a call does not give one output per token.
        """
        outputs, start, before = [], 0, 0
        past = self.adapter.initial_cache(*tokens.shape[:2]) if past is None else past
        mask: Tensor | None = arguments.get("mask")
        if mask is not None:
            before = mask.shape[1] - tokens.shape[1]
        for size in sizes:
            end = start + size
            more: dict[str, Any] = {} if mask is None else {"mask": mask[:, : before + end]}
            if arguments.get("positions") is not None:
                more["positions"] = arguments["positions"][:, start:end]
            answer = self.uncached_call(tokens[:, start:end], past=past, keep=True, **more)
            shape = list(answer.output.shape)
            if shape[:2] != [len(tokens), size]:
                raise OutputShapeError(
                    f"a call with {size} token{'s' * (size > 1)} on a cache gave an output of shape {shape}"
                )
            outputs.append(answer.output)
            past, start = answer.cache, end
        return torch.cat(outputs, dim=1), past

    def remember_first_state(self) -> None:
        """Keep the model as it is now, before its first call: a copy of all but its parameters."""
        try:
            self._owned = owned_state(self.adapter.module)
            self._first = PristineModel(self.adapter.module)
        except Exception:  # noqa: BLE001 - third-party code: a module may hold what cannot be copied
            self._first = None

    @property
    def remembers_first_state(self) -> bool:
        """True if the model before its first call is known."""
        return self._first is not None if self.base is None else self.base.remembers_first_state

    def restore_shared_state(self) -> None:
        """Put back what copies of the model share with it: values of classes, closures and global variables."""
        owned = self._owned if self.base is None else self.base._owned
        if owned is not None:
            owned.put_back()

    def is_in_first_state(self) -> bool:
        """True if the model, and each copy that a law made of it, is as before its first call; False if not known."""
        if self._first is None or not self._first.is_state_of(self.adapter.module):
            return False
        copies = (*vars(self).get("attention_backends", {}).values(), *self._loaded.values(), *self._memo.values())
        return all(x.is_in_first_state() for x in copies if isinstance(x, CachedCalls))

    def as_before_the_first_call(self, *, own: bool = False) -> CachedCalls | None:
        """The same calls of the model as it was before its first call; None if that is not known.

        ``own``: on a copy that the caller may change. Else the next caller gets the same copy, if it has not changed.
        """
        if self.base is not None:
            return self.base.as_before_the_first_call(own=own)
        if self._first is None:
            return None
        module = self._first.own() if own else self._first.shared()
        fresh = self.for_same_model(self.adapter.with_module(module))
        fresh._origin = None if own else self._origin or (self, ())
        return fresh

    @cached_property
    def float64(self) -> CachedCalls:
        """The same model in float64."""
        if self.base is not None:
            return self.base.float64.at_length(self.default_length)
        return self._changed_copies("float64", lambda: [("", self.adapter.in_float64())], wide=torch.float64)[""]

    @cached_property
    def float32(self) -> CachedCalls:
        """The same model in float32; these calls themselves unless the weights are in a narrower dtype."""
        if self.base is not None:
            return self.base.float32.at_length(self.default_length)
        if not self.is_narrow:
            return self
        make = partial(self.adapter.cast_to, torch.float32)
        return self._changed_copies("float32", lambda: [("", make())], wide=torch.float32)[""]

    @property
    def is_narrow(self) -> bool:
        """True if the weights are in a dtype that rounds more than float32."""
        return torch.finfo(self.weight_dtype).eps > torch.finfo(torch.float32).eps

    @property
    def weight_dtype(self) -> torch.dtype:
        """The dtype of the weights."""
        return weight_dtype(self.adapter.module)

    @cached_property
    def with_low_rank_weights(self) -> CachedCalls | None:
        """The same calls of a copy of a large model whose large matrices have low rank; None if there is none."""
        if self.base is not None:
            return self.base.with_low_rank_weights
        if not isinstance(self.adapter.module, nn.Module) or not is_large(self.adapter.module):
            return None
        try:
            calls = self.for_adapter(self.adapter.with_module(low_rank_copy(self.adapter.module)))
        except Exception:  # noqa: BLE001 - third-party code: a module may not be copied
            return None
        calls.remember_first_state()
        vars(calls)["with_low_rank_weights"] = calls
        return calls

    @cached_property
    def attention_backends(self) -> dict[str, CachedCalls]:
        """The same calls on other attention backends, by name."""
        if self.base is not None:
            return {name: calls.at_length(self.default_length) for name, calls in self.base.attention_backends.items()}
        return self._changed_copies("backend", self.adapter.attention_backends)

    def _changed_copies(
        self, what: str, make: Callable[[], Iterable[tuple[str, ModelAdapter]]], *, wide: torch.dtype | None = None
    ) -> dict[str, CachedCalls]:
        """The calls of changed copies of the model, by name.

        Of a model in its first state they are kept, and the next caller gets the same copies if they are unchanged.
        """
        if self._origin is None:
            return {name: self.for_adapter(adapter, wide=wide) for name, adapter in make()}
        origin, path = self._origin[0], (*self._origin[1], what)
        if path not in origin._changed_models:
            own = self.adapter.module
            origin._changed_models[path] = {
                name: (each, PristineModel(each.module, is_own=each.module is not own)) for name, each in make()
            }
        origin._note_use(path)
        copies = {}
        for name, (adapter, model) in origin._changed_models[path].items():
            copies[name] = self.for_adapter(adapter.with_module(model.shared()), wide=wide)
            copies[name]._origin = (origin, (*path, name))
            if wide is not None:  # many laws make the same calls of it
                copies[name]._outputs = origin._outputs_of_copies.setdefault(path, {})
        return copies

    def memoize(self, name: str, make: Callable[[], T]) -> T:
        """The value stored under this name; `make` computes it the first time."""
        if name not in self._memo:
            self._memo[name] = make()
        value: T = self._memo[name]
        return value

    def reloaded(self, name: str) -> CachedCalls:
        """The same calls of the model after it was copied, or saved and loaded, by this method."""
        if self.base is not None:
            return self.base.reloaded(name).at_length(self.default_length)
        return self.memoize(f"reloaded: {name}", lambda: self.for_adapter(self.adapter.reload_methods()[name]()))

    def loaded_in(self, dtype: torch.dtype) -> CachedCalls:
        """The same model as its library loads it in this dtype."""
        if self.base is not None:
            return self.base.loaded_in(dtype).at_length(self.default_length)
        if dtype not in self._loaded:
            # copies that only earlier laws used make room
            self._changed_models = {key: x for key, x in self._changed_models.items() if key in self._used}
            self._loaded[dtype] = CachedCalls(self.adapter.loaded_in(dtype), self.seed, floats=dtype)
            self._loaded[dtype].remember_first_state()
        self._note_use(dtype)
        return self._loaded[dtype]

    def free_models(self) -> None:
        """Free the models that a law built; each is as large as the model, and few laws need the same one.

        Copies in another dtype that the law used, and left as they were, are kept for the next one.
        """
        kept = {key for key, weights in self._used.items() if self._weights_of(key) == weights}
        self._memo.clear()
        self._loaded = {key: x for key, x in self._loaded.items() if key in kept and x.is_in_first_state()}
        self._changed_models = {key: x for key, x in self._changed_models.items() if key in kept}
        self._outputs_of_copies = {key: x for key, x in self._outputs_of_copies.items() if key in kept}
        self._used = {key: x for key, x in self._used.items() if key == FLOAT32 and key in kept}  # most laws use it
        for name in ("attention_backends", "float32", "float64"):
            vars(self).pop(name, None)
        low_rank = vars(self).get("with_low_rank_weights")
        copies = [low_rank] if low_rank is not None and low_rank is not self else []
        for calls in (*self._by_length.values(), *self._loaded.values(), *copies):
            calls.free_models()

    def _note_use(self, key: torch.dtype | tuple[str, ...]) -> None:
        """Note that a law uses this copy; the copies that laws make on other attention backends are not noted."""
        if key not in self._used and (isinstance(key, torch.dtype) or key in (FLOAT32, ("float64",))):
            self._used[key] = self._weights_of(key)

    def _weights_of(self, key: torch.dtype | tuple[str, ...]) -> list[dict[str, int]]:
        if isinstance(key, torch.dtype):
            return [weight_bits(self._loaded[key].adapter.module, own=True)]
        return [weight_bits(each.module, own=True) for each, _ in self._changed_models[key].values()]

    def for_adapter(
        self, adapter: ModelAdapter, *, wide: torch.dtype | None = None, first: PristineModel | None = None
    ) -> CachedCalls:
        """The same calls of another adapter; ``wide``: in this dtype; ``first``: its model before the first call."""
        wide = wide or self.wide
        calls = CachedCalls(adapter, self.seed, wide=wide, floats=None if wide else self.float_dtype)
        if first is None:
            return self._watched(calls)
        calls._first, calls._owned = first, self._owned
        return calls

    def for_same_model(self, adapter: ModelAdapter) -> CachedCalls:
        """The same calls by another adapter of this model, whose state before the first call is known."""
        return self.for_adapter(adapter, first=self._first)

    def _watched(self, calls: CachedCalls) -> CachedCalls:
        """The calls, with the first state of their model if that of this model is watched."""
        if self.watches_state:
            calls.remember_first_state()
        return calls


def weight_dtype(module: Any) -> torch.dtype:
    """The dtype of the first floating-point parameter; float32 without one."""
    parameters = module.parameters() if isinstance(module, nn.Module) else ()
    return next((p.dtype for p in parameters if p.is_floating_point()), torch.float32)


def _raw_bytes(x: Tensor) -> bytes:
    """The bytes of a tensor; numpy has no bfloat16."""
    return bytes(x.clone().contiguous().view(torch.uint8).numpy().tobytes())
