"""Values of the arguments of a cache in the first call: an empty cache, made from an example, a class or a method."""

from __future__ import annotations

import copy
import inspect
import sys
import typing
from collections.abc import Callable, Container, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from orderproof.models.caches.cache_form import CacheForm
from orderproof.models.caches.cache_values import Path, mapped
from orderproof.models.caches.names import is_cache_name
from orderproof.models.forward_arguments import PassesKeywordsOn

Make = Callable[[int], Any]  # the value of an argument for a number of rows
CAPACITY = 256  # [tokens] of a cache that is made with a fixed size
_MAKERS = ("make_cache", "new_cache", "init_cache", "empty_cache", "init_state", "initial_state", "create_cache")
_ROWS = ("rows", "batch", "batch_size", "bsz", "max_batch_size", "n", "b")
_TOKENS = (
    "tokens",
    "length",
    "max_len",
    "max_length",
    "max_seq_len",
    "max_seq_length",
    "max_tokens",
    "capacity",
    "size",
)
_UPDATES = ("update", "update_and_fetch", "append")
_PLAIN = (list, dict, tuple, set, str, int, float, bool, Tensor, type(None), nn.Module)


def innermost(module: nn.Module) -> nn.Module:
    """The module of the user within wrappers."""
    while isinstance(module, PassesKeywordsOn):
        module = module.model
    return module


@dataclass(frozen=True)
class Copied:
    """Copies of an example; with other rows than it has, its rows are repeated along an axis."""

    example: Any
    row: int | None = None

    def __call__(self, rows: int) -> Any:
        """A copy for a number of rows."""
        value = copy.deepcopy(self.example)
        if self.row is None:
            return value
        axis = self.row

        def with_rows(path: Path, leaf: Tensor | int) -> Tensor | int:
            del path
            if not isinstance(leaf, Tensor) or leaf.dim() <= axis or leaf.shape[axis] == rows:
                return leaf
            return leaf.narrow(axis, 0, 1).repeat_interleave(rows, axis)

        return mapped(value, with_rows)


def first_values(module: nn.Module, name: str, example: Any) -> Iterator[Make]:
    """The values to try for an argument in a first call, the likely one first."""
    inner = innermost(module)
    if callable(example) and not isinstance(example, nn.Module) and not _updates(example):
        yield lambda rows: _made(example, inner, rows)
    elif example is not None:
        yield Copied(example)
    if example is not None:
        return
    yield from _annotated(inner, name)
    if is_cache_name(name):
        for method in _MAKERS:
            if callable(make := getattr(inner, method, None)):
                yield lambda rows, make=make: _made(make, inner, rows)  # type: ignore[misc]
        library = sys.modules.get("transformers")
        if library is not None:
            yield lambda _rows: library.DynamicCache()


def changing_default(parameter: inspect.Parameter | None) -> Any:
    """The default value of an argument, if calls can change it; None otherwise."""
    default = None if parameter is None else parameter.default
    if isinstance(default, list | dict) or _updates(default):
        return default
    return None


def _updates(value: Any) -> bool:
    return not isinstance(value, (*_PLAIN, type)) and has_update(value)


def has_update(value: Any) -> bool:
    """True for a class or an object with a method that adds tokens to it."""
    return any(hasattr(value, name) for name in _UPDATES)


def _made(make: Callable[..., Any], module: nn.Module, rows: int) -> Any:
    """The result of a function or class, with the arguments that the module or the call determines."""
    try:
        parameters = inspect.signature(make).parameters
    except (TypeError, ValueError):
        return make()
    given: dict[str, Any] = {}
    for name, parameter in parameters.items():
        if parameter.default is not parameter.empty or parameter.kind in (
            parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD,
        ):  # fmt: skip
            continue
        if name in _ROWS:
            given[name] = rows
        elif name in _TOKENS:
            given[name] = CAPACITY
        elif hasattr(module, name):
            given[name] = getattr(module, name)
        elif hasattr(getattr(module, "config", None), name):
            given[name] = getattr(module.config, name)
        elif name in ("model", "module"):
            given[name] = module
        elif name == "config":
            given[name] = getattr(module, "config")  # noqa: B009 - raises where there is none
        else:
            raise ValueError(f"its cache is made with an argument {name!r} whose value is not known")
    return make(**given)


def _annotated(module: nn.Module, name: str) -> Iterator[Make]:
    """The values that the annotation of an argument names: a class with `update`, or a list of them."""
    try:
        hint = typing.get_type_hints(module.forward).get(name)
    except Exception:  # noqa: BLE001 - an annotation that cannot be evaluated names nothing
        return
    counts = sorted({len(part) for part in module.modules() if isinstance(part, nn.ModuleList)}) or [1]
    for option in (
        typing.get_args(hint) if not isinstance(hint, type) and typing.get_origin(hint) is not list else [hint]
    ):
        if typing.get_origin(option) is list:
            of = typing.get_args(option)[0]
            if _is_cache_class(of):
                for count in counts:
                    yield lambda rows, of=of, count=count: [_made(of, module, rows) for _ in range(count)]  # type: ignore[misc]
        elif _is_cache_class(option):
            yield lambda rows, of=option: _made(of, module, rows)  # type: ignore[misc]


def _is_cache_class(kind: Any) -> bool:
    return (
        isinstance(kind, type)
        and not issubclass(kind, _PLAIN)
        and not inspect.isabstract(kind)
        and (has_update(kind) or "cache" in kind.__name__.lower())
    )


def emptied(value: Any, form: CacheForm, unchanged: Container[Path]) -> Any:
    """An example without the tokens in it: no entries along the axes of tokens, zeros elsewhere.

    A tensor that no call changes is no content: a table of slots, or frequencies. It stays.
    """

    def empty(path: Path, leaf: Tensor | int) -> Tensor | int:
        part = form.of(path)
        if not isinstance(leaf, Tensor):
            return 0 if part.counts else leaf
        if part.token is not None:
            return leaf.narrow(part.token, 0, 0)
        return leaf if path in unchanged else torch.zeros_like(leaf)

    return mapped(value, empty)
