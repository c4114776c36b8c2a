"""Modules that leave the recording: by memory, threads, other programs, state and answers from outside.

Each is another function for some input, call or parameter; a proof without a note would be false.
"""

from __future__ import annotations

import collections
import concurrent.futures
import itertools
import os
import random
import threading
import time
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch._C._profiler import _RecordFunctionFast
from torch.profiler import record_function

LIBRARY = torch.library.Library("orderproof_attacks", "DEF")
POOL = concurrent.futures.ThreadPoolExecutor(1)


def mixed(x: Tensor) -> Tensor:
    return x + x.mean(1, keepdim=True)


def flipped_if_large(x: Tensor) -> Tensor:
    return x.flip(1) if bool((x > 20).any()) else mixed(x)


def is_eager(x: Tensor) -> bool:
    return isinstance(x, torch.FloatTensor)


def in_a_named_range(x: Tensor) -> bool:
    with record_function("model::block"):
        return is_eager(x) and bool((x > 20).any())


def in_a_fast_range(x: Tensor) -> bool:
    with _RecordFunctionFast("orderproof::hidden"):
        return is_eager(x) and bool((x > 20).any())


def question(x: Tensor) -> bool:
    try:
        return bool((x > 20).any())
    except Exception:
        return False


def in_a_thread(x: Tensor) -> bool:
    answers: list[bool] = []
    thread = threading.Thread(target=lambda: answers.append(question(x)))
    thread.start()
    thread.join()
    return answers[0]


def operator(name: str, schema: str, cpu: Any, **other: Any) -> Any:
    LIBRARY.define(name + schema)
    LIBRARY.impl(name, cpu, "CPU")
    for key, function in other.items():
        LIBRARY.impl(name, function, key)
    return getattr(torch.ops.orderproof_attacks, name)


OPERATOR_WITH_TWO_PROGRAMS = operator(
    "two_programs", "(Tensor x) -> Tensor", flipped_if_large, CompositeImplicitAutograd=mixed
)
OPERATOR_THAT_ANSWERS = operator("answers", "(Tensor x) -> bool", lambda x: bool((x > 20).any()), Meta=lambda x: False)
OPERATOR_THAT_WRITES = operator(
    "writes", "(Tensor x, Tensor y) -> ()", lambda x, y: None if not (y > 20).any() else x.copy_(y.flip(1)) and None,
    Meta=lambda x, y: None,
)  # fmt: skip


def written(x: Tensor) -> Tensor:
    result = mixed(x)
    OPERATOR_THAT_WRITES(result, x)
    return result


def if_asked(question: Callable[[Tensor], bool]) -> Callable[[Tensor], Tensor]:
    return lambda x: x.flip(1) if question(x) else mixed(x)


ESCAPES: dict[str, Callable[[Tensor], Tensor]] = {
    "range of the profiler": if_asked(in_a_named_range),
    "range with the recorder's name": if_asked(in_a_fast_range),
    "new thread": if_asked(in_a_thread),
    "thread of a pool": if_asked(lambda x: POOL.submit(question, x).result()),
    "sparse tensor": if_asked(lambda x: (x > 20).to_sparse()._nnz() > 0),
    "operator with a kernel and a decomposition": OPERATOR_WITH_TWO_PROGRAMS,
    "operator that answers": if_asked(OPERATOR_THAT_ANSWERS),
    "operator that writes in silence": written,
}


def computed_in_a_thread(x: Tensor) -> Tensor:
    return POOL.submit(mixed, x).result()


class Counts(nn.Module):
    """Another function from the 60th call on; the count is wherever `count` keeps it."""

    def __init__(self, start: Callable[[], Any], count: Callable[[Any], int]) -> None:
        super().__init__()
        self.kept, self.count = start(), count

    def forward(self, x: Tensor) -> Tensor:
        return x.flip(1) if self.count(self.kept) > 60 else mixed(x)


class Slotted:
    """An object without a dictionary."""

    __slots__ = ("n",)

    def __init__(self) -> None:
        self.n = 0


def incremented(kept: Any, name: Any = 0) -> int:
    kept[name] += 1
    return int(kept[name])


def incremented_attribute(kept: Any) -> int:
    kept.n += 1
    return int(kept.n)


def appended(kept: Any) -> int:
    kept.append(1)
    return len(kept)


def rarely(number: float) -> int:
    return 61 * (number < 0.003)


class OnTheClass(nn.Module):
    """The count is a class attribute."""

    calls = 0

    def forward(self, x: Tensor) -> Tensor:
        type(self).calls += 1
        return x.flip(1) if self.calls > 60 else mixed(x)


class InADefault(nn.Module):
    """The count is in a default argument."""

    def forward(self, x: Tensor, seen: list[int] = [0]) -> Tensor:  # noqa: B006
        return x.flip(1) if incremented(seen) > 60 else mixed(x)


class InAGlobal(nn.Module):
    """The count is a global variable."""

    def forward(self, x: Tensor) -> Tensor:
        global CALLS
        CALLS += 1
        return x.flip(1) if CALLS > 60 else mixed(x)


class InTheModules(nn.Module):
    """The count is the number of submodules."""

    def __init__(self) -> None:
        super().__init__()
        self.parts = nn.ModuleList()

    def forward(self, x: Tensor) -> Tensor:
        self.parts.append(nn.Identity())
        return x.flip(1) if len(self.parts) > 60 else mixed(x)


CALLS = 0


def with_a_hook() -> nn.Module:
    module, calls = nn.Linear(4, 4), itertools.count()
    module.register_forward_hook(lambda _module, _args, y: y.flip(1) if next(calls) > 60 else None)
    return module


KEPT: dict[str, Callable[[], nn.Module]] = {
    "nested list": lambda: Counts(lambda: {"a": [0]}, lambda kept: incremented(kept["a"])),
    "object": lambda: Counts(lambda: types.SimpleNamespace(n=0), incremented_attribute),
    "slots": lambda: Counts(Slotted, incremented_attribute),
    "deque": lambda: Counts(collections.deque, appended),
    "counter": lambda: Counts(collections.Counter, lambda kept: incremented(kept, "a")),
    "array of numpy": lambda: Counts(lambda: np.zeros(1), incremented),
    "iterator": lambda: Counts(itertools.count, next),
    "generator": lambda: Counts(lambda: (k for k in itertools.count()), next),
    "random generator of its own": lambda: Counts(lambda: random.Random(0), lambda kept: rarely(kept.random())),
    "numpy generator": lambda: Counts(lambda: np.random.default_rng(0), lambda kept: rarely(kept.random())),
    "class": OnTheClass,
    "default argument": InADefault,
    "global variable": InAGlobal,
    "submodules": InTheModules,
    "hook": with_a_hook,
}
OUTSIDE: dict[str, Callable[[], bool]] = {
    "clock": lambda: time.time() > 4e9,
    "entropy": lambda: os.urandom(3) == b"\0\0\0",
    "file": lambda: Path(__file__).stat().st_size == 0,
}


class Trained(nn.Module):
    """Adds a table that may be trained, though it is no parameter of the module."""

    def __init__(self, table: Callable[[nn.Module], Callable[[], Tensor]]) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(5, 4))
        self.table = table(self)
        self.cache: Tensor | None = None

    def forward(self, x: Tensor) -> Tensor:
        return mixed(x) + self.table()


def held(value: Any) -> Callable[[], Any]:
    return lambda: value


def cached(module: Any) -> Callable[[], Tensor]:
    def table() -> Tensor:
        if module.cache is None:
            module.cache = module.weight.detach() * 2
        return module.cache  # type: ignore[no-any-return]

    return table


def from_array(module: Any) -> Callable[[], Tensor]:
    array = module.weight.detach().numpy()
    return lambda: torch.from_numpy(array)


TRAINED: dict[str, Callable[[nn.Module], Callable[[], Tensor]]] = {
    "tensor that requires gradients": lambda module: held(torch.zeros(5, 4, requires_grad=True)),
    "array on the memory of a parameter": from_array,
    "product kept by the first call": cached,
}
