"""Modules that run the operators of their recording, but not its program; none is equivariant for every input.

Each asks a question whose answer is another one in a recording, and acts through an argument of an operator.
"""

from __future__ import annotations

import ctypes
import threading
import weakref
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any

import torch
from torch import Tensor, nn

from tests.recording.attacks_outside import is_eager, mixed

Question = Callable[["Asks", Tensor], Any]


def positions(x: Tensor) -> Tensor:
    return torch.arange(x.shape[1], dtype=x.dtype)[:, None]


def another_dimension(x: Tensor, answer: Any) -> Tensor:
    return torch.where((x > 20).any(), torch.cumsum(x, 1 if answer else 2), mixed(x))


def another_constant(x: Tensor, answer: Any) -> Tensor:
    return mixed(x) + (x > 20).any() * positions(x) * torch.tensor(float(bool(answer)))


def another_operand(x: Tensor, answer: Any) -> Tensor:
    return mixed(x) + (x > 20).any() * (positions(x) * 0, positions(x) * 1)[bool(answer)]


def another_result(x: Tensor, answer: Any) -> Tensor:
    return (mixed(x), mixed(x) + (x > 20).any() * positions(x))[bool(answer)]


class Asks(nn.Module):
    """Acts as its question says."""

    def __init__(self, question: Question, act: Callable[[Tensor, Any], Tensor] = another_dimension) -> None:
        super().__init__()
        self.question, self.act = question, act
        self.weight = nn.Parameter(torch.ones(4))
        self.weight.flag = True  # type: ignore[attr-defined]
        self.number, self.scales = id(self.weight), {self.weight: 1.0}
        self.held = [self.weight]
        self.reference = weakref.ref(self.weight)

    def forward(self, x: Tensor) -> Tensor:
        return self.act(x, self.question(self, x))


ACTS = (another_dimension, another_constant, another_operand, another_result)


QUESTIONS: dict[str, Question] = {
    "instance of a tensor type": lambda m, x: is_eager(x),
    "dispatch keys": lambda m, x: "CPU" in str(torch._C._dispatch_keys(x)),
    "id": lambda m, x: id(m.weight) == m.number,
    "hash": lambda m, x: hash(m.weight) == m.number,
    "key of a dictionary": lambda m, x: m.scales.get(m.weight, 0.0),
    "identity": lambda m, x: m.held[0] is m.weight,
    "weak reference": lambda m, x: m.reference() is m.weight,
    "attribute of a parameter": lambda m, x: getattr(m.weight, "flag", False),
    "hooks of all modules": lambda m, x: not nn.modules.module._global_forward_pre_hooks,
}


class Order(nn.Module):
    """Reverses the tokens if an argument says so, which has a default."""

    def forward(self, x: Tensor, reverse: bool = False, mask: Tensor | None = None) -> Tensor:
        return x.flip(1) if reverse or mask is not None else mixed(x)


class SharesMemory(nn.Module):
    """Reads its weight through an object that is no tensor."""

    def __init__(self, view: Callable[[Any], Any]) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(5))
        self.view = view(self.weight.detach().numpy())

    def forward(self, x: Tensor) -> Tensor:
        return mixed(x) + float(self.view[1]) * positions(x)


VIEWS: dict[str, Callable[[Any], Any]] = {
    "array": lambda array: array,
    "part of an array": lambda array: array[1:],
    "memory view": memoryview,
}


class Counts(nn.Module):
    """Another function from the 60th call on."""

    def __init__(self, count: Callable[[Counts], int]) -> None:
        super().__init__()
        self.count = count
        self.tensor, self.memory, self.number = torch.zeros(1), memoryview(bytearray(4)), ctypes.c_int(0)
        self.weight = nn.Parameter(torch.ones(4))

    def forward(self, x: Tensor) -> Tensor:
        return x.flip(1) if self.count(self) > 60 else mixed(x)


def counted(holder: Any, name: str) -> int:
    setattr(holder, name, getattr(holder, name, 0) + 1)
    return int(getattr(holder, name))


def in_memory(module: Counts) -> int:
    module.memory[0] += 1
    return module.memory[0]


COUNTS: dict[str, Callable[[Counts], int]] = {
    "attribute of a tensor": lambda m: counted(m.tensor, "calls"),
    "attribute of a parameter": lambda m: counted(m.weight, "calls"),
    "memory view": in_memory,
}


class ReachesMuch(nn.Module):
    """Its counter lies behind more objects than are compared."""

    def __init__(self) -> None:
        super().__init__()
        self.many = [[] for _ in range(30_000)]  # type: ignore[var-annotated]
        self.nested = {"a": {"b": {"c": [0]}}}

    def forward(self, x: Tensor) -> Tensor:
        self.nested["a"]["b"]["c"][0] += 1
        return x.flip(1) if self.nested["a"]["b"]["c"][0] > 60 else mixed(x)


class Server:
    """A thread that runs before the call, and answers it."""

    def __init__(self) -> None:
        self.asked: SimpleQueue[Tensor | None] = SimpleQueue()
        self.answers: SimpleQueue[bool] = SimpleQueue()
        self.thread = threading.Thread(target=self._serve, daemon=True)
        self.thread.start()

    def _serve(self) -> None:
        while (asked := self.asked.get()) is not None:
            try:
                self.answers.put(bool((asked > 20).any()))
            except RuntimeError:
                self.answers.put(False)

    def ask(self, x: Tensor) -> bool:
        self.asked.put(x)
        return self.answers.get()

    def end(self) -> None:
        self.asked.put(None)
        self.thread.join()
