"""State that no walk finds: the report names the line at which another call computes another result."""

from __future__ import annotations

import codecs
import functools
import itertools
import re
import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import Context, ContextVar, copy_context
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from orderproof import prove
from tests.pairs import first_soon

MANY = 3000


class Counts(nn.Module):
    """Behaves differently after many calls."""

    def __init__(self, count: Callable[[Any], int], kept: Any = None) -> None:
        super().__init__()
        self.count = count
        self.kept = kept

    def forward(self, x: Tensor) -> Tensor:
        y = x.cumsum(1)
        return y.flip(1) if self.count(self.kept) > MANY else y


def incremented(found: list[int]) -> int:
    found[0] += 1
    return found[0]


@functools.lru_cache
def cached_list() -> list[int]:
    return [0]


@functools.lru_cache(4)
def limited_list(_size: int) -> list[int]:
    return [0]


@torch.no_grad()
def with_a_default(_kept: Any, found: list[int] = [0]) -> int:  # noqa: B006 - which keeps the number of calls
    return incremented(found)


@contextmanager
def counted(found: list[int] = [0]) -> Iterator[int]:  # noqa: B006
    yield incremented(found)


def in_a_block(_kept: Any) -> int:
    with counted() as number:
        return number


@functools.singledispatch
def dispatched(_kept: Any, found: list[int] = [0]) -> int:  # noqa: B006
    return incremented(found)


def lists() -> Iterator[list[int]]:
    kept = [0]
    while True:
        yield kept


def growing() -> Iterator[list[int]]:
    kept: list[list[int]] = []
    while True:
        kept.append([len(kept)])
        yield kept[-1]
        assert kept


def turned(kept: dict[int, None]) -> dict[int, None]:
    first = next(iter(kept))
    kept[first] = kept.pop(first)
    return kept


def turned_in_place(kept: OrderedDict[int, None]) -> dict[int, None]:
    kept.move_to_end(next(iter(kept)))
    return kept


VARIABLE: ContextVar[list[int]] = ContextVar("variable")


def context() -> Context:
    found = copy_context()
    found.run(VARIABLE.set, [0])
    return found


def object_array() -> Any:
    found = np.empty(1, dtype=object)
    found[0] = [0]
    return found


def storage_with_attribute() -> Any:
    storage = torch.zeros(1).untyped_storage()
    storage.number = [0]
    return storage


codecs.register_error("orderproof.count", lambda error, n=0: n)  # type: ignore[arg-type, misc]
cached_list()
limited_list(3)

FOUND: dict[str, Callable[[], nn.Module]] = {
    "cached list": lambda: Counts(lambda _: incremented(cached_list())),
    "list in a cache of limited size": lambda: Counts(lambda _: incremented(limited_list(3))),
    "default of a decorated function": lambda: Counts(with_a_default),
    "default of a context manager": lambda: Counts(in_a_block),
    "default of a dispatched function": lambda: Counts(dispatched),
    "array of objects": lambda: Counts(lambda kept: incremented(kept[0]), object_array()),
    "attribute of a storage": lambda: Counts(lambda kept: incremented(kept.number), storage_with_attribute()),
    "order of a dictionary": lambda: Counts(lambda kept: next(iter(turned(kept))), dict.fromkeys(range(MANY + 5))),
    "order of an ordered dictionary": lambda: Counts(
        lambda kept: next(iter(turned_in_place(kept))), OrderedDict.fromkeys(range(MANY + 5))
    ),
}


@pytest.mark.parametrize("name", FOUND)
def test_state_that_an_object_keeps_is_named(name: str) -> None:
    finding = prove(FOUND[name]().eval(), "causal", inputs=torch.randn(2, 7, 6))
    assert finding.verdict == "proved"
    assert any(text.startswith("of one call: the call changes") for text in finding.scope.assumptions)


@pytest.mark.parametrize("kept", [itertools.cycle([[0], [0]]), growing()], ids=["iterator", "generator"])
def test_an_iterator_goes_on_after_a_recording(kept: Iterator[list[int]]) -> None:
    """What it holds fits its position, which nothing restores."""
    module = Counts(lambda lists: incremented(next(lists)), kept).eval()
    prove(module, "causal", inputs=torch.randn(2, 7, 6))
    assert module(torch.randn(2, 7, 6)).shape == (2, 7, 6)


class Registers(nn.Module):
    """Registers a buffer without a tensor at each call."""

    def forward(self, x: Tensor) -> Tensor:
        self.register_buffer(f"b{len(self._buffers)}", None)
        return x.cumsum(1).flip(1) if len(self._buffers) > MANY else x.cumsum(1)


def test_a_buffer_that_a_call_registers_is_named() -> None:
    finding = prove(Registers().eval(), "causal", inputs=torch.randn(2, 7, 6))
    assert "of one call: the call changes b0" in finding.scope.assumptions


def test_a_model_with_the_same_results_has_no_such_assumption() -> None:
    finding = prove(Counts(len, [0]).eval(), "causal", inputs=torch.randn(2, 7, 6))
    assert not any(text.startswith("of one call") for text in finding.scope.assumptions)


MASKS: dict[int, Tensor] = {}


def mask_in_a_dictionary(size: int, device: torch.device) -> Tensor:
    if size not in MASKS:
        MASKS[size] = torch.ones(size, size, dtype=torch.bool, device=device).tril()
    return MASKS[size]


@functools.lru_cache(maxsize=8)
def cached_mask(size: int, device: torch.device) -> Tensor:
    return torch.ones(size, size, dtype=torch.bool, device=device).tril()


class Masked(nn.Module):
    def __init__(self, mask: Callable[[int, torch.device], Tensor]) -> None:
        super().__init__()
        self.qkv = nn.Linear(6, 18)
        self.mask = mask

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.qkv(x).chunk(3, -1)
        return nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=self.mask(x.size(1), x.device))


@pytest.mark.parametrize(
    "mask", first_soon([functools.lru_cache(None)(cached_mask), mask_in_a_dictionary, cached_mask])
)
def test_a_cache_of_masks_holds_no_tensor_of_a_recording_afterwards(mask: Callable[..., Tensor]) -> None:
    module = Masked(mask).eval()
    for law in ("causal", "batch", "prompt_permutation"):
        assert prove(module, law, inputs=torch.randn(2, 7, 6)).verdict == "proved"
    for size in (7, 23):
        assert module(torch.randn(2, size, 6)).device.type == "cpu"
    assert all(type(key) is int and value.device.type == "cpu" for key, value in MASKS.items())


class Caches(nn.Module):
    """Keeps a mask for each length in a container, and what it needs for that."""

    def __init__(self, kept: Any, mask: Callable[[Any, int], Tensor]) -> None:
        super().__init__()
        self.qkv = nn.Linear(6, 18)
        self.kept = kept
        self.mask = mask

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.qkv(x).chunk(3, -1)
        return nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=self.mask(self.kept, x.size(1)))


def lower(size: int) -> Tensor:
    return torch.ones(size, size, dtype=torch.bool).tril()


def in_order(kept: OrderedDict[int, Tensor], size: int) -> Tensor:
    if size not in kept:
        kept[size] = lower(size)
    kept.move_to_end(size)
    while len(kept) > 4:
        kept.popitem(last=False)
    return kept[size]


def known_by_a_set(kept: tuple[set[int], dict[int, Tensor]], size: int) -> Tensor:
    if size not in kept[0]:
        kept[1][size] = lower(size)
        kept[0].add(size)
    return kept[1][size]


def counted_lengths(kept: Counter[int], size: int) -> Tensor:
    kept[size] += 1
    return lower(size)


class Slots:
    __slots__ = ("mask", "size")

    def __init__(self) -> None:
        self.mask, self.size = lower(1), 1

    def __repr__(self) -> str:
        return f"{self.size}, {self.mask.shape}"


def in_slots(kept: Slots, size: int) -> Tensor:
    if kept.size < size:
        kept.mask, kept.size = lower(size), size
    return kept.mask[:size, :size]


CACHES: dict[str, Callable[[], Caches]] = {
    "ordered dictionary": lambda: Caches(OrderedDict(), in_order),
    "set and dictionary": lambda: Caches(({1}, {}), known_by_a_set),
    "slots": lambda: Caches(Slots(), in_slots),
    "counter": lambda: Caches(Counter({7: 1}), counted_lengths),
}


@pytest.mark.parametrize("name", first_soon(CACHES, 2))
def test_a_cache_by_length_is_as_before(name: str) -> None:
    module = CACHES[name]().eval()
    module(torch.randn(2, 7, 6))
    before = repr(module.kept)
    for law in ("causal", "batch"):
        assert prove(module, law, inputs=torch.randn(2, 7, 6)).verdict == "proved"
    assert repr(module.kept) == before
    for size in (5, 7, 23):
        assert module(torch.randn(2, size, 6)).shape == (2, size, 6)


class Searching(nn.Module):
    """Uses another pattern of `re` in each call, which keeps those that it compiled."""

    calls = 0

    def forward(self, x: Tensor) -> Tensor:
        self.calls += 1
        return x.cumsum(1) * len(re.findall(f"b|{time.perf_counter_ns()}x", "banana"))


def test_patterns_that_python_keeps_are_no_state() -> None:
    found = prove(Searching(), "causal", inputs=torch.randn(2, 7, 6))
    (assumption,) = [text for text in found.scope.assumptions if "the call changes" in text]
    assert "re._cache" not in assumption
