"""Loops over an open range that change something from one iteration to the next, which two iterations do not show.

Each model is causal for fewer than 90 tokens; from then on, its outputs depend on all tokens.
"""

from __future__ import annotations

import array
import functools
import io
import itertools
import logging
import operator
import os
import types
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from orderproof import prove

LAST = 89
LONG = 400  # more iterations than a test of a theorem runs
STORED = torch.zeros(1)
STACK = torch.stack
OPERAND_OF_LONG = operator.attrgetter(".".join(["grad"] * LONG))
ONE = object()
GLOBAL = {"count": 0}


class Counter:
    count = 0


class Slots:
    __slots__ = ("count",)

    def __init__(self) -> None:
        self.count = 0


def counting() -> Iterator[int]:
    count = 0
    while True:
        count += 1
        yield count


def delegating() -> Iterator[bool]:
    def values() -> Iterator[bool]:
        yield from [False] * (LAST + 1) + [True] * 1000

    found = values()
    next(found)
    return found


def of_attribute(state: Any) -> bool:
    state.count += 1
    return bool(state.count > LAST)


def of_tensor(state: Tensor) -> bool:
    state += 1
    return bool(state > LAST)


def of_numpy(state: Any) -> bool:
    state += 1
    return bool(state[0] > LAST)


def of_items(state: Any) -> bool:
    state["count"] += 1
    return bool(state["count"] > LAST)


def of_global(_state: Any) -> bool:
    GLOBAL["count"] += 1
    return GLOBAL["count"] % 1000 > LAST


def of_length(state: Any) -> bool:
    state.append(1)
    return len(state) > LAST


def closure() -> Callable[[], bool]:
    count = 0

    def advance() -> bool:
        nonlocal count
        count += 1
        return count > LAST

    return advance


def popped(state: Any) -> bool:
    return bool(state.pop() < 1000 - LAST)


def in_a_loop() -> Iterator[bool]:
    yield False
    for leaks in [False] * LAST + [True] * 1000:  # noqa: UP028 - the iterator is on the stack of the frame
        yield leaks


def advanced_to_its_loop() -> Iterator[bool]:
    generator = in_a_loop()
    next(generator)
    return generator


class Link(int):
    """A number with another one behind it: all are zero."""

    behind: Link
    leaks = False


def links() -> list[Link]:
    first, *rest = found = [Link() for _ in range(LAST + 2)]
    for one, behind in zip(found, [*rest, found[-1]], strict=True):
        one.behind = behind
    found[-1].leaks = True
    return [first]


LINKS = links()


def of_links(state: list[Link]) -> bool:
    state[0] = state[0].behind
    return state[0].leaks


KEPT: dict[str, tuple[Callable[[], Any], Callable[[Any], bool]]] = {
    "attribute of an object": (lambda: types.SimpleNamespace(count=0), of_attribute),
    "slot": (Slots, of_attribute),
    "class attribute": (Counter, of_attribute),
    "tensor": (lambda: torch.zeros(()), of_tensor),
    "array of numpy": (lambda: np.zeros(1), of_numpy),
    "array": (lambda: array.array("q", [0]), of_length),
    "bytearray": (bytearray, of_length),
    "dictionary": (lambda: {"count": 0}, of_items),
    "nested dictionary": (lambda: [[[[{"count": 0}]]]], lambda s: of_items(s[0][0][0][0])),
    "global variable": (lambda: None, of_global),
    "list": (list, of_length),
    "deque": (deque, of_length),
    "set": (set, lambda s: s.add(len(s)) is None and len(s) > LAST),
    "closure": (closure, lambda s: s()),
    "iterator": (lambda: iter(range(1000)), lambda s: next(s) >= LAST),
    "itertools": (lambda: itertools.count(1), lambda s: next(s) > LAST),
    "generator": (counting, lambda s: next(s) > LAST),
    "loop of a generator": (advanced_to_its_loop, next),
    "number with attributes": (lambda: [LINKS[0]], of_links),
    "generator of a tuple": (lambda: (1, counting()), lambda s: next(s[1]) > LAST),
    "queue": (lambda: deque(range(1000)), popped),
    "list that shrinks": (lambda: list(range(1000)), popped),
    "file": (lambda: io.BytesIO(bytes(LAST) + b"1" * 1000), lambda s: s.read(1) == b"1"),
    "cycle": (lambda: itertools.cycle([0] * LAST + [1]), lambda s: next(s) > 0),
    "method of an iterator": (lambda: iter(range(1000)).__next__, lambda s: s() >= LAST),
    "method of a deque": (lambda: deque([False] * LAST + [True] * 1000).popleft, lambda s: s()),
    "iterator of a method": (lambda: iter(iter([False] * LAST + [True] * 1000).__next__, None), next),
    "delegating generator": (delegating, next),
    "partial": (lambda: functools.partial(([True] * 1000 + [False] * LAST).pop), lambda s: s()),
    "module": (nn.Identity, of_attribute),
}


class Kept(nn.Module):
    """A running sum whose iterations keep something between them."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.start, self.advance = KEPT[name]

    def forward(self, x: Tensor) -> Tensor:
        state, h, found = self.start(), torch.zeros_like(x[:, 0]), []
        if isinstance(state, nn.Module):
            state.count = 0
        for i in range(x.shape[1]):
            h = h + (x.mean(1) if self.advance(state) else x[:, i])
            found.append(h)
        return torch.stack(found, 1)


class Plain(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        h, found = torch.zeros_like(x[:, 0]), []
        for i in range(x.shape[1]):
            h = torch.tanh(h + x[:, i])
            found.append(h)
        return torch.stack(found, 1)


def causal(module: nn.Module) -> Any:
    return prove(module.eval(), "causal", inputs=torch.randn(2, 7, 6))


def test_a_loop_that_keeps_nothing_has_a_theorem() -> None:
    finding = causal(Plain())
    assert finding.verdict == "proved"
    assert finding.theorem is not None
    assert finding.theorem.proved
    assert finding.theorem.greatest_length is None


@pytest.mark.parametrize("name", KEPT)
def test_a_loop_that_keeps_a_count_has_no_theorem(name: str) -> None:
    finding = causal(Kept(name))
    assert finding.theorem is None or not finding.theorem.proved


class OnModule(nn.Module):
    """The same in the state of the module."""

    def __init__(self, step: Callable[[Any], bool]) -> None:
        super().__init__()
        self.step, self.count, self.items = step, 0, {"count": 0}
        self.register_buffer("seen", torch.zeros(()))

    def forward(self, x: Tensor) -> Tensor:
        h, found = torch.zeros_like(x[:, 0]), []
        self.count = 0
        for i in range(x.shape[1]):
            h = h + (x.mean(1) if self.step(self) else x[:, i])
            found.append(h)
        return torch.stack(found, 1)


def of_buffer(module: Any) -> bool:
    module.seen = module.seen + 1
    return bool(module.seen > LAST)


@pytest.mark.parametrize(
    "step", [of_attribute, of_buffer, lambda m: of_items(m.items)], ids=["attribute", "buffer", "item"]
)
def test_a_loop_that_counts_on_its_module_has_no_theorem(step: Callable[[Any], bool]) -> None:
    finding = causal(OnModule(step))
    assert finding.theorem is None or not finding.theorem.proved


class Reversed(TorchFunctionMode):
    """Stacks the second part of a long list in reverse."""

    def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if function is torch.stack:
            args = (args[0][:LONG] + args[0][LONG:][::-1], *args[1:])
        return function(*args, **(kwargs or {}))


class Keeping(TorchFunctionMode):
    """Keeps what a loop computes."""

    def __init__(self) -> None:
        super().__init__()
        self.kept: list[Tensor] = []

    def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = function(*args, **(kwargs or {}))
        if function is torch.tanh:
            self.kept.append(result)
        return result + self.kept[-1][:, None] if function is torch.stack and self.kept[LONG:] else result


class OtherTorch:
    """A name `torch` whose `stack` is not that of torch."""

    tanh = staticmethod(torch.tanh)

    @staticmethod
    def stack(tensors: list[Tensor], dim: int) -> Tensor:
        return STACK(tensors[:LONG] + tensors[LONG:][::-1], dim)


def under_a_mode_afterwards(x: Tensor) -> Tensor:
    h, found = torch.zeros_like(x[:, 0]), []
    for i in range(x.shape[1]):
        h = torch.tanh(h + x[:, i])
        found.append(h)
    with Reversed():
        return torch.stack(found, 1)


def under_a_mode(x: Tensor) -> Tensor:
    h, found = torch.zeros_like(x[:, 0]), []
    with Keeping():
        for i in range(x.shape[1]):
            h = torch.tanh(h + x[:, i])
            found.append(h)
        return torch.stack(found, 1)


def by_another_name(x: Tensor) -> Tensor:
    h, found = x[:, 0] * 0, []
    torch.stack = OtherTorch.stack  # type: ignore[assignment]
    try:
        for i in range(x.shape[1]):
            h = torch.tanh(h + x[:, i])
            found.append(h)
        return torch.stack(found, 1)
    finally:
        torch.stack = STACK


def with_another_torch(x: Tensor, torch: Any = OtherTorch) -> Tensor:
    h, found = x[:, 0] * 0, []
    for i in range(x.shape[1]):
        h = torch.tanh(h + x[:, i])
        found.append(h)
    return torch.stack(found, 1)  # type: ignore[no-any-return]


def with_a_list_on_its_state(x: Tensor) -> Tensor:
    h: Any = torch.zeros_like(x[:, 0])
    found, h.kept = [], []
    for i in range(x.shape[1]):
        kept = [*h.kept, h]
        h = torch.tanh(h + (x.mean(1) if kept[LONG:] else x[:, i]))
        h.kept = kept
        kept = None
        found.append(h)
    return torch.stack(found, 1)


def with_a_list_on_a_token(x: Tensor) -> Tensor:
    first: Any = x[:, 0]
    h, found, first.kept = torch.zeros_like(first), [], ()
    for i in range(x.shape[1]):
        first.kept = (*first.kept, None)
        h = torch.tanh(h + (x.mean(1) if first.kept[LONG:] else x[:, i]))
        found.append(h)
    return torch.stack(found, 1)


def with_a_list_on_a_storage(x: Tensor) -> Tensor:
    storage: Any = STORED.untyped_storage()
    h, found, storage.kept = torch.zeros_like(x[:, 0]), [], ()
    for i in range(x.shape[1]):
        storage.kept = (*storage.kept, None)
        h = torch.tanh(h + (x.mean(1) if storage.kept[LONG:] else x[:, i] + STORED))
        found.append(h)
    return torch.stack(found, 1)


def with_a_chain_of_gradients(x: Tensor) -> Tensor:
    h, found = torch.zeros_like(x[:, 0]), []
    for i in range(x.shape[1]):
        after = torch.tanh(h + x[:, i])
        after.grad = h
        h = after
        after = None  # type: ignore[assignment]
        found.append(h)
    y = torch.stack(found, 1)
    try:
        OPERAND_OF_LONG(h)
    except AttributeError:
        return y
    return y + h[:, None]


def with_hooks_of_a_tensor(x: Tensor) -> Tensor:
    h, found, STORED._backward_hooks = torch.zeros_like(x[:, 0]), [], {"kept": []}
    for i in range(x.shape[1]):
        h = torch.tanh(h + x[:, i] + STORED)
        STORED._backward_hooks["kept"] = [*STORED._backward_hooks["kept"], h]
        found.append(h)
    y = torch.stack(found, 1)
    late = STORED._backward_hooks["kept"][LONG:]
    STORED._backward_hooks = None
    return y + late[-1][:, None] if late else y


def in_the_environment(x: Tensor) -> Tensor:
    return in_a_library(x, os.environ._data)


def among_the_loggers(x: Tensor) -> Tensor:
    return in_a_library(x, logging.root.manager.loggerDict)


def in_a_library(x: Tensor, kept: Any) -> Tensor:
    h, found, kept["seen"] = torch.zeros_like(x[:, 0]), [], []
    for i in range(x.shape[1]):
        h = torch.tanh(h + x[:, i])
        kept["seen"] = [*kept["seen"], h]
        found.append(h)
    y = torch.stack(found, 1)
    late = kept.pop("seen")[LONG:]
    return y + late[-1][:, None] if late else y


class OnBuffer(nn.Module):
    """Keeps a list on a buffer."""

    scale: Any

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("scale", torch.ones(1))

    def forward(self, x: Tensor) -> Tensor:
        h, found, self.scale.kept = torch.zeros_like(x[:, 0]), [], ()
        for i in range(x.shape[1]):
            self.scale.kept = (*self.scale.kept, [ONE])
            h = torch.tanh(h + (x.mean(1) if self.scale.kept[LONG:] else x[:, i]))
            found.append(h)
        return torch.stack(found, 1)


class Function(nn.Module):
    def __init__(self, function: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: Tensor) -> Tensor:
        return self.function(x)


HIDDEN = (
    under_a_mode_afterwards, under_a_mode, by_another_name, with_another_torch, with_a_list_on_its_state,
    with_a_list_on_a_token, with_a_list_on_a_storage, with_a_chain_of_gradients, with_hooks_of_a_tensor,
    in_the_environment, among_the_loggers,
)  # fmt: skip


@pytest.mark.parametrize("function", HIDDEN)
def test_a_loop_that_keeps_a_list_out_of_sight_has_no_theorem(function: Callable[[Tensor], Tensor]) -> None:
    finding = causal(Function(function))
    assert finding.theorem is None or not finding.theorem.proved


def test_a_loop_that_keeps_a_list_on_a_buffer_has_no_theorem() -> None:
    finding = causal(OnBuffer())
    assert finding.theorem is None or not finding.theorem.proved
