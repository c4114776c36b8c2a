"""Loops over an open range that change something from one iteration to the next, which two iterations do not show.

Each model is causal for fewer than 90 tokens; from then on, its outputs depend on all tokens.
"""

from __future__ import annotations

import array
import functools
import io
import itertools
import types
from collections import deque
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from orderproof import prove
from tests.pairs import one_in

LAST = 89
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


@pytest.mark.parametrize("name", one_in(2, KEPT))
def test_a_loop_that_keeps_a_count_has_no_theorem(name: str) -> None:
    finding = causal(Kept(name))
    assert finding.theorem is None or not finding.theorem.proved


MOST = 1000  # more tokens than a recording is compared at


def numbers_of_the_first(x: Tensor) -> Tensor:
    h, found = torch.zeros_like(x[:, 0]), []
    for i in islice(range(x.shape[1]), MOST):
        h = h + x[:, i]
        found.append(h)
    return torch.stack(found, 1)


def parts_of_the_first(x: Tensor) -> Tensor:
    h, found = torch.zeros_like(x[:, 0]), []
    for part in itertools.islice(x.transpose(0, 1), MOST):
        h = h + part
        found.append(h)
    return torch.stack(found, 1)


def numbered_parts_of_the_first(x: Tensor) -> Tensor:
    h, found = torch.zeros_like(x[:, 0]), []
    for i, part in itertools.islice(enumerate(x.transpose(0, 1)), MOST):
        h = h + part + i
        found.append(h)
    return torch.stack(found, 1)


class OfTheFirst(nn.Module):
    """A running sum of the first tokens; all others get the mean of all tokens."""

    def __init__(self, sums: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.sums = sums

    def forward(self, x: Tensor) -> Tensor:
        y = self.sums(x)
        return torch.cat([y, x.mean(1, keepdim=True).expand(-1, x.shape[1] - y.shape[1], -1)], 1)


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


@pytest.mark.parametrize("sums", [numbers_of_the_first, parts_of_the_first, numbered_parts_of_the_first])
def test_a_loop_that_another_function_may_end_has_no_theorem(sums: Callable[[Tensor], Tensor]) -> None:
    finding = causal(OfTheFirst(sums))
    assert finding.theorem is None or not finding.theorem.proved
