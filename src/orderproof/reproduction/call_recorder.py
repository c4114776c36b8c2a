"""The calls of a model, and what is done to its caches and copies, in the order in which a comparison does it."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.hooks import RemovableHandle

from orderproof.adapter import ModelAdapter

CACHE_FIELDS = ("past_key_values", "cache_params", "state", "mems")


@dataclass(eq=False)
class ModelCall:
    """One call: the model, its arguments with copies of their tensors, the cache given and returned, the outputs."""

    model: nn.Module
    arguments: dict[str, Any]
    cache_argument: str  # empty if the call neither takes nor returns a cache
    past: Any
    cache: Any
    outputs: dict[str, Tensor]  # by the name of the field; "" for a model that returns a tensor


@dataclass(eq=False)
class CacheChange:
    """A cache that was made from another one, or from nothing: the expression, with {past} for the other one."""

    source: Any
    result: Any
    lines: tuple[str, ...]


Event = ModelCall | CacheChange


class CallRecorder:
    """The events of a comparison, and how the models of its calls were made."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.models: list[tuple[nn.Module, tuple[str, ...]]] = []  # a model, and lines that make it from `model`
        self._kept: list[Any] = []  # caches, so that no other object gets their identity

    @contextmanager
    def watch(self, model: nn.Module, lines: tuple[str, ...] = ()) -> Iterator[None]:
        """Record the calls of a model."""
        self.models.append((model, lines))
        handles = self._hook(model)
        try:
            yield
        finally:
            for handle in handles:
                handle.remove()

    def add_model(self, model: nn.Module, lines: tuple[str, ...]) -> None:
        """Record the calls of a copy as well; `lines` make it. A deep copy has the hooks of its original."""
        self.models.append((model, lines))
        if not model._forward_pre_hooks:
            self._hook(model)

    def _hook(self, model: nn.Module) -> list[RemovableHandle]:
        """Functions and not methods: a deep copy of the model would copy the recorder with them."""

        def before(module: nn.Module, given: tuple[Any, ...], named: dict[str, Any]) -> None:
            self._before(module, given, named)

        def after(module: nn.Module, given: tuple[Any, ...], named: dict[str, Any], returned: Any) -> None:
            del given, named
            self._after(module, returned)

        return [
            model.register_forward_pre_hook(before, with_kwargs=True, prepend=True),
            model.register_forward_hook(after, with_kwargs=True),
        ]

    def change_cache(self, source: Any, result: Any, *lines: str) -> Any:
        """Record that a cache was made."""
        self._kept += [source, result]
        self.events.append(CacheChange(source, result, lines))
        return result

    def lines_of(self, model: nn.Module) -> tuple[str, ...] | None:
        """The lines that make a model from `model`; None if they are not known."""
        return next((lines for known, lines in self.models if known is model), None)

    def _before(self, module: nn.Module, given: tuple[Any, ...], named: dict[str, Any]) -> None:
        arguments = {**dict(zip(("", *["?"] * len(given)), given, strict=False)), **named}
        cache = next((name for name in CACHE_FIELDS if named.get(name) is not None), "")
        own = {k: _snapshot(v) for k, v in arguments.items() if v is not None and k not in CACHE_FIELDS}
        own.pop("return_dict", None)
        self._kept.append(named.get(cache))
        self.events.append(ModelCall(module, own, cache, named.get(cache), None, {}))

    def _after(self, module: nn.Module, returned: Any) -> None:
        call = next(e for e in reversed(self.events) if isinstance(e, ModelCall) and e.model is module)
        fields: Mapping[str, Any] = returned if isinstance(returned, Mapping) else {}
        if isinstance(returned, Tensor):
            fields = {"": returned}
        call.outputs = {k: v.detach().clone() for k, v in fields.items() if isinstance(v, Tensor)}
        name = call.cache_argument or next((n for n in CACHE_FIELDS if fields.get(n) is not None), "")
        call.cache, call.cache_argument = fields.get(name), name
        self._kept.append(call.cache)


def _snapshot(value: Any) -> Any:
    """The value, with copies of its tensors."""
    if isinstance(value, Tensor):
        return value.detach().clone()
    if isinstance(value, Mapping):
        return {key: _snapshot(item) for key, item in value.items() if item is not None}
    return [_snapshot(item) for item in value] if isinstance(value, (tuple, list)) else value


def cache_lines(kind: str, tokens: int) -> tuple[str, ...]:
    """The lines that make an empty cache of a kind of `ModelAdapter.new_cache`."""
    if kind == "static":
        return (f"{{past}} = transformers.StaticCache(config=model.config, max_cache_len={tokens})",)
    if kind == "recording":
        return ("{past} = transformers.DynamicCache(config=model.config)", "{past}.activate_past_recording()")
    return ("{past} = transformers.DynamicCache()",)


def watched_adapter(adapter: ModelAdapter, recorder: CallRecorder, inner: Callable[[Any], Any]) -> ModelAdapter:
    """The same adapter, whose caches and copies of the model are recorded; `inner` finds the model in its module."""
    kind: Any = type(adapter)

    def crop_cache(self: Any, cache: Any, tokens: int) -> Any:
        lines = ("{past} = copy.deepcopy({source})", f"{{past}}.crop(-{tokens})")
        return recorder.change_cache(cache, kind.crop_cache(self, cache, tokens), *lines)

    def reorder_cache(self: Any, cache: Any, rows: Tensor) -> Any:
        lines = (
            "{past} = copy.deepcopy({source})",
            f"{{past}}.reorder_cache(torch.tensor({rows.tolist()}))",
        )
        return recorder.change_cache(cache, kind.reorder_cache(self, cache, rows), *lines)

    def copy_cache(self: Any, cache: Any) -> Any:
        return recorder.change_cache(cache, kind.copy_cache(self, cache), "{past} = copy.deepcopy({source})")

    def repeat_cache(self: Any, cache: Any, count: int) -> Any:
        lines = ("{past} = copy.deepcopy({source})", f"{{past}}.batch_repeat_interleave({count})")
        return recorder.change_cache(cache, kind.repeat_cache(self, cache, count), *lines)

    def new_cache(self: Any, name: str, rows: int, tokens: int) -> Any:
        made = kind.new_cache(self, name, rows, tokens)
        return recorder.change_cache(None, made, *cache_lines(name, tokens))

    def attention_backends(self: Any) -> Iterator[tuple[str, ModelAdapter]]:
        for name, other in kind.attention_backends(self):
            lines = (f"{name} = copy.deepcopy(model)", f'{name}.set_attn_implementation("{name}")')
            recorder.add_model(inner(other.module), lines)
            yield name, other

    def loaded_in(self: Any, dtype: torch.dtype) -> ModelAdapter:
        other: ModelAdapter = kind.loaded_in(self, dtype)
        lines = (
            "with tempfile.TemporaryDirectory() as folder:", "    model.save_pretrained(folder)",
            f"    loaded = type(model).from_pretrained(folder, dtype={dtype}).eval()",
        )  # fmt: skip
        recorder.add_model(inner(other.module), lines)
        return other

    def config_variants(self: Any) -> Iterator[tuple[str, ModelAdapter]]:
        for name, other in kind.config_variants(self):
            before, after = (inner(x.module).config.to_dict() for x in (self, other))
            changes = {k: v for k, v in after.items() if before.get(k) != v and k[0] != "_"}
            lines = (
                "config = copy.deepcopy(model.config)",
                *(f"config.{key} = {value!r}" for key, value in changes.items()),
                "variant = type(model)(config).eval()", "variant.load_state_dict(model.state_dict())",
            )  # fmt: skip
            recorder.add_model(inner(other.module), lines)
            yield name, other

    watched = copy.copy(adapter)
    changes = (crop_cache, reorder_cache, copy_cache, repeat_cache, new_cache)
    own = {f.__name__: f for f in (*changes, attention_backends, loaded_in, config_variants)}
    watched.__class__ = type(kind.__name__, (kind,), own)
    return watched
