"""The line of a model that keeps a value which a later call reads, for a violation of the law stateless.

The comparison is run on fresh copies: to see what a call leaves behind; to see which of it matters, without which the
difference is gone; and to see after which line it is there.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from types import FrameType
from typing import Any

from torch import Tensor, nn

from orderproof.adapter import ModelOutput
from orderproof.auditing.explain.entries import Frame, frame_at
from orderproof.auditing.explain.first_difference import Place
from orderproof.laws.measured import CachedCalls, Comparison
from orderproof.laws.mixing_kinds import OTHER
from orderproof.recording.contents import EmptyDictionaries, State, Variables, items, restore_items
from orderproof.recording.execution import relative_difference
from orderproof.recording.owned_state import owned_state
from orderproof.recording.source import is_model_code
from orderproof.tolerances import ZERO_TOLERANCE

MOST_KEPT = 12  # values that are tried
Around = Callable[[list[State]], AbstractContextManager[None]]
_Kept = tuple[int, Any]  # the place of a state in the list of a model, and a key of its contents


def kept_value_place(comparison: Comparison, calls: CachedCalls, length: int) -> Place | None:
    """Where a value is kept that a later call reads; None if no such line is seen."""
    found: dict[_Kept, str] = {}
    _run(comparison, calls, length, lambda states: _noted(states, found))
    for (index, key), path in list(found.items())[:MOST_KEPT]:
        size = _run(comparison, calls, length, functools.partial(_put_back, index=index, key=key))
        if size is None or size > ZERO_TOLERANCE:
            continue
        lines: list[Frame] = []
        _run(comparison, calls, length, functools.partial(_watched, index=index, key=key, lines=lines))
        return Place(_module_path(calls.adapter.module, path), lines[0], OTHER) if lines else None
    return None


def _run(comparison: Comparison, calls: CachedCalls, length: int, around: Around) -> float | None:
    """The difference in a comparison whose calls are made inside `around`; None if it cannot be made."""
    fresh = calls.as_before_the_first_call(own=True)
    if fresh is None:
        return None
    kind, known = type(fresh.adapter), dict[int, tuple[nn.Module, list[State]]]()

    def call(self: Any, *arguments: Any, **options: Any) -> ModelOutput:
        _, states = known.setdefault(id(self.module), (self.module, _states(self.module)))
        with around(states):
            return kind.call(self, *arguments, **options)

    watched = fresh.adapter.with_module(fresh.adapter.module)
    watched.__class__ = type(kind.__name__, (kind,), {"call": call})
    calls.restore_shared_state()
    try:
        expected, actual = comparison.run(fresh.for_same_model(watched).at_length(length))[:2]
    except Exception:  # noqa: BLE001 - third-party code: it may fail in any way in a state that is put back
        return None
    return relative_difference(expected, actual) if expected.shape == actual.shape else None


def _states(module: nn.Module) -> list[State]:
    """The contents of the objects that a model owns, and of its tensors."""
    owned, states = owned_state(module), list[State]()
    for state in owned.states:
        if isinstance(state, EmptyDictionaries):
            states += [_state_of_dictionary(path, held) for path, held in state.found]
        elif isinstance(state, Variables):
            states.append(_state_of_variables(state))
        else:
            states.append(state)
    names = {id(x): name for name, x in module.named_buffers()}
    return states + [_state_of_tensor(names.get(id(x), ""), x) for x in owned.tensors]


def _state_of_dictionary(path: str, held: dict[Any, Any]) -> State:
    return State(path, functools.partial(items, held), functools.partial(restore_items, held), items(held))


def _state_of_variables(variables: Variables) -> State:
    names = tuple(variables.paths)

    def restore(old: tuple[tuple[str, ...], tuple[Any, ...]]) -> None:
        variables.variables.update(zip(*old, strict=True))

    return State("", lambda: (names, variables.read()), restore, (names, variables.before))


def _state_of_tensor(path: str, tensor: Tensor) -> State:
    """The numbers in a tensor, by the count of writes into it."""
    numbers, written = tensor.detach().clone(), tensor._version

    def restore(_: int) -> None:
        nonlocal written
        tensor.detach().copy_(numbers)
        written = tensor._version

    return State(path, lambda: tensor._version - written, restore, 0)


@contextmanager
def _noted(states: list[State], found: dict[_Kept, str]) -> Iterator[None]:
    """Note what the call in this block leaves behind."""
    yield
    for index, state in enumerate(states):
        found.update({(index, key): state.path for key in state.other_keys()})


@contextmanager
def _put_back(states: list[State], *, index: int, key: Any) -> Iterator[None]:
    """Put one value back after the call in this block."""
    yield
    if index < len(states) and key in states[index].other_keys():
        states[index].put_back(key)


@contextmanager
def _watched(states: list[State], *, index: int, key: Any, lines: list[Frame]) -> Iterator[None]:
    """Note the line after which a value is another one than before the call in this block."""
    if lines or index >= len(states) or key in states[index].other_keys():
        yield
        return
    last, before = [Frame()], sys.gettrace()

    def note() -> None:
        if not lines and key in states[index].other_keys():
            lines.append(last[0])

    def in_frame(frame: FrameType, event: str, _: Any) -> Any:
        note()
        here: FrameType | None = frame.f_back if event == "return" else frame
        while here is not None and not _is_model_code(here.f_code.co_filename):
            here = here.f_back
        if here is not None:
            last[0] = frame_at(here.f_code.co_filename, here.f_lineno)
        return None if lines else in_frame

    def in_call(frame: FrameType, _event: str, _: Any) -> Any:
        return in_frame if not lines and _is_model_code(frame.f_code.co_filename) else None

    sys.settrace(in_call)
    try:
        yield
    finally:
        sys.settrace(before)
        note()


_is_model_code = functools.cache(is_model_code)


def _module_path(module: nn.Module, path: str) -> str:
    """The path of the module that holds an object: the longest beginning of its path that is one."""
    modules = {name for name, _ in module.named_modules()}
    parts = path.split(".")
    return next((name for k in range(len(parts), 0, -1) if (name := ".".join(parts[:k])) in modules), "")
