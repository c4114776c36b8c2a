"""The cache of a module, found by calls.

A part of the output is the cache if an argument takes it back for further tokens, and the output then is another one.
Calls decide: the further tokens continue the text, or the cache grows by them. Where neither is seen, as in a module
with a fault, the name of the argument decides.
"""

from __future__ import annotations

import copy
import inspect
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

import torch
from torch import Tensor, nn

from orderproof.models.caches.arguments import CacheArguments
from orderproof.models.caches.cache_form import cache_form
from orderproof.models.caches.cache_values import are_equal, leaves, set_contents
from orderproof.models.caches.cached_module import CacheArgument, Part, entries_of
from orderproof.models.caches.first_values import Copied, Make, changing_default, emptied, first_values
from orderproof.models.caches.names import is_cache_name, is_state_name
from orderproof.models.caches.trials import Evidence, Trials
from orderproof.models.forward_arguments import arguments_of_forward
from orderproof.models.input_sampling import ExampleInputs
from orderproof.models.own_errors import raise_own_error
from orderproof.models.roles.example_roles import MASK_NAMES, STATED
from orderproof.models.roles.position_argument import POSITION_NAMES
from orderproof.recording.restored_state import restored_state
from orderproof.time_limit import TimeLimitExceeded, time_limit

MAX_SECONDS = 10.0  # of all calls that look for a cache
BY_TEXT = "calls: further tokens continue it"
BY_GROWTH = "calls: it grows by further tokens"
BY_NAME = "its name; calls take it back"


@dataclass(frozen=True)
class _Option:
    """Values of arguments in the first call: left out if there are none."""

    names: tuple[str, ...]
    make: Make | None = None
    default: Any = None

    def argument(self, flags: tuple[str, ...], offset: str, offset_dtype: Any) -> CacheArgument:
        """The cache with these values, whose parts are not known yet."""
        make = self.make
        start = make if make is None or len(self.names) > 1 else (lambda rows: (make(rows),))
        parts = (None,) * len(self.names)
        return CacheArgument(self.names, parts, flags, offset, offset_dtype, initial=start, default=self.default)


def find_cache(
    module: nn.Module,
    examples: ExampleInputs,
    taken: Mapping[str, Any],
    given: tuple[str, ...],
    roles: Mapping[str, str],
) -> tuple[CacheArgument | None, str]:
    """The cache of a module and, if there is none, why a call with an example of one was refused.

    ``taken`` are the examples of caches and of numbers of cached tokens, which are not among the inputs; ``given`` are
    the names of the inputs, and ``roles`` what is stated of arguments.
    """
    arguments = {
        name: one
        for name, one in arguments_of_forward(module).items()
        if name not in given and one.kind not in (one.VAR_KEYWORD, one.VAR_POSITIONAL, one.POSITIONAL_ONLY)
    }
    stated = frozenset(name for name, role in roles.items() if role == "cache")
    no_caches = {*MASK_NAMES, *POSITION_NAMES, *roles} - stated
    arguments = {name: one for name, one in arguments.items() if name not in no_caches}
    if not arguments and not taken:
        return None, ""
    trials = Trials(module, examples)
    try:
        with warnings.catch_warnings(), time_limit(MAX_SECONDS), restored_state(module), _restored_defaults(arguments):
            warnings.simplefilter("ignore")
            found = _first_found(trials, CacheArguments(arguments, dict(taken), stated))
    except TimeLimitExceeded:
        return None, f"calls that look for a cache took more than {MAX_SECONDS:g} s"
    return found, "" if found is not None or trials.error is None else str(trials.error).partition("\n")[0]


@contextmanager
def _restored_defaults(arguments: Mapping[str, inspect.Parameter]) -> Iterator[None]:
    """Undo what calls change in default values."""
    before = [
        (value, copy.deepcopy(value)) for one in arguments.values() if (value := changing_default(one)) is not None
    ]
    try:
        yield
    finally:
        for value, kept in before:
            set_contents(value, kept)


def _first_found(trials: Trials, arguments: CacheArguments) -> CacheArgument | None:
    flags = arguments.flags
    weak = None
    for offset, dtype in arguments.offsets:
        for asked in dict.fromkeys((flags, ())):
            for option in _options(trials.module, arguments):
                base = option.argument(asked, offset, dtype)
                for cache in _with_parts(trials, base):
                    seen = trials.evidence(cache)
                    known_by = _known_by(seen, cache, arguments.stated)
                    if seen.continues and seen.changes:
                        return _finished(trials, replace(cache, known_by=known_by))
                    if known_by and weak is None:
                        weak = replace(cache, known_by=known_by)
    return None if weak is None else _finished(trials, weak)


def _known_by(seen: Evidence, cache: CacheArgument, stated: frozenset[str]) -> str:
    """How a cache is known; empty if it is none."""
    if stated:
        return STATED if seen.accepted else ""
    named = all(map(is_cache_name, cache.names))
    if seen.changes and seen.continues:
        return BY_TEXT
    if seen.changes and seen.grows:
        return BY_GROWTH
    if seen.accepted and named and (seen.changes or seen.grows):
        return BY_NAME
    return BY_NAME if seen.changes and all(map(is_state_name, cache.names)) else ""


def _options(module: nn.Module, arguments: CacheArguments) -> Iterator[_Option]:
    """Values of the first call to try: several arguments together that take states, then each one."""
    names = arguments.caches
    in_order = [name for name in arguments.free if name in names and is_state_name(name)]
    if len(in_order) > 1 and all(map(arguments.is_optional, in_order)):
        yield _Option(tuple(in_order))
    if len(in_order) > 1 and all(isinstance(arguments.taken.get(name), Tensor) for name in in_order):
        yield _Option(tuple(in_order), Copied(tuple(arguments.taken[name] for name in in_order)))
    for name in names:
        parameter = arguments.free.get(name)
        if (default := changing_default(parameter)) is not None:
            yield _Option((name,), Copied(copy.deepcopy(default)), default=default)
        elif arguments.is_optional(name) and arguments.taken.get(name) is None:
            yield _Option((name,))
        for make in first_values(module, name, arguments.taken.get(name)):
            yield _Option((name,), make)


def _with_parts(trials: Trials, base: CacheArgument) -> Iterator[CacheArgument]:
    """The cache with each part of the output that its arguments may take back."""
    try:
        start = trials.start(base)
        untouched = copy.deepcopy(start)
        result = trials.call(base, 0, trials.first_part, start, masks=False)
    except (Exception, SystemExit) as error:  # noqa: BLE001 - the user's forward: anything may come
        if isinstance(error, Exception):
            raise_own_error(error)
            trials.error = error
        return
    entries = {key: value for key, value in entries_of(result).items() if value is not None and _holds(value)}
    keys = list(entries)
    if start is not None and not are_equal(start, untouched):
        same = tuple(key for key in keys if entries[key] is start[0])
        yield replace(base, dropped=same)
    if len(keys) < 2:
        return
    count = len(base.names)
    if count > 1:
        named = [key for key in base.names if key in entries]
        chosen = named if len(named) == count else keys[-count:] if len(keys) > count else []
        if chosen:
            yield replace(base, parts=tuple(Part((key,)) for key in chosen), dropped=tuple(chosen))
        return
    likely = sorted(keys, key=lambda key: (key != base.names[0], key == keys[0]))
    for key in likely:
        yield replace(base, parts=(Part((key,)),), dropped=(key,))
    if len(keys) > 2:
        rest = tuple(keys[1:])
        yield replace(base, parts=(Part(rest, joined=True),), dropped=rest)


def _holds(value: Any) -> bool:
    return any(isinstance(leaf, Tensor) for leaf in leaves(value).values())


def _finished(trials: Trials, cache: CacheArgument) -> CacheArgument:
    """The cache with the entries that a call without it has of it, and with an example emptied."""
    cache = _emptied(trials, cache)
    with_it = entries_of(trials.call(cache, 0, trials.tokens, trials.start(cache)))
    plain = None if cache.changes_default else trials.plain(cache)
    if plain is None:
        return replace(cache, is_required=not cache.changes_default, dropped_plain=cache.dropped)
    if list(plain) == list(with_it):
        return replace(cache, dropped_plain=cache.dropped)
    named = tuple(key for key in cache.dropped if isinstance(key, str) and key in plain)
    return replace(cache, dropped_plain=named)


def _emptied(trials: Trials, cache: CacheArgument) -> CacheArgument:
    """The cache whose first call gets an example without tokens, with any number of rows, if the module takes it."""
    start = trials.start(cache)
    if start is None or cache.changes_default or not _holds(start):
        return cache
    try:
        a, n = trials.first_part, trials.tokens
        first = cache.kept(trials.call(cache, 0, a, trials.start(cache)), start)
        first = copy.deepcopy(first)
        begun = trials.start(cache)
        later = cache.kept(trials.call(cache, 0, n, begun), begun)
    except Exception as error:  # noqa: BLE001 - the user's forward: anything may come
        raise_own_error(error)
        return cache
    form = cache_form(first, later, (a, n))
    before, after = leaves(trials.start(cache)), leaves(later)
    unchanged = {path for path, value in before.items() if path in after and are_equal(value, after[path])}
    empty = emptied(trials.start(cache), form, unchanged)
    for value in (empty, start):
        for row in chain(_row_axes(value, trials.rows), [None]):
            made = replace(cache, initial=Copied(value, row))
            if not trials.evidence(made).accepted:
                continue
            if row is None or _takes_rows(trials, made):
                return made
    return cache


def _row_axes(value: Any, rows: int) -> list[int]:
    """The axes that have as many entries as there are rows in every tensor with axes."""
    tensors = [x for x in leaves(value).values() if isinstance(x, Tensor) and x.dim()]
    most = min((x.dim() for x in tensors), default=0)
    return [axis for axis in range(most) if all(x.shape[axis] == rows for x in tensors)]


def _takes_rows(trials: Trials, cache: CacheArgument) -> bool:
    if trials.examples.row_count is None:
        return True
    rows = trials.rows + 1
    more = trials.with_rows(rows)
    try:
        assert cache.initial is not None
        with torch.no_grad():
            more.call(cache, 0, trials.first_part, cache.initial(rows))
    except Exception as error:  # noqa: BLE001 - the user's forward: anything may come
        raise_own_error(error)
        return False
    return True
