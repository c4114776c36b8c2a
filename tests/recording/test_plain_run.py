"""A model that runs otherwise without the modes and settings of a recording is not proved by one."""

from __future__ import annotations

import functools
import gc
import logging
import sys
from collections.abc import Callable
from contextlib import ExitStack

import pytest
import torch
from torch import Tensor, nn
from torch.utils import _python_dispatch
from torch.utils.checkpoint import checkpoint

from orderproof import prove

Asks = Callable[[nn.Module, Tensor], object]


class Answers(nn.Module):
    """Flips tokens, for large sums that no sample has, if the answer is that of a plain run."""

    def __init__(self, ask: Asks) -> None:
        super().__init__()
        self.ask = ask
        self.weight = nn.Parameter(torch.ones(1))

    def forward(self, x: Tensor) -> Tensor:
        y = x.cumsum(1)
        return torch.where(y > 1000.0, (x * 1).flip(1 if self.ask(self, x) else 2), y)


class Copies(torch.autograd.Function):
    @staticmethod
    def forward(ctx: object, x: Tensor) -> Tensor:  # type: ignore[override]
        return x.clone()

    @staticmethod
    def backward(ctx: object, gradient: Tensor) -> Tensor:  # type: ignore[override]
        return gradient


def with_gradients(ask: Asks) -> Asks:
    def asked(module: nn.Module, x: Tensor) -> object:
        with torch.enable_grad():
            return ask(module, x)

    return asked


def packs(module: nn.Module, _x: Tensor) -> bool:
    found = []
    with torch.enable_grad(), torch.autograd.graph.saved_tensors_hooks(lambda x: found.append(1), lambda _: None):
        module.weight.exp()  # type: ignore[operator]
    return bool(found)


def without_a_mode(block: Callable[[], object]) -> Asks:
    def asked(_module: nn.Module, _x: Tensor) -> bool:
        try:
            with ExitStack() as stack:
                stack.enter_context(block())  # type: ignore[arg-type]
                return False
        except Exception:
            return True

    return asked


def of_a_traceback(_module: nn.Module, _x: Tensor) -> bool:
    try:
        raise ValueError
    except ValueError as error:
        return error.__traceback__.tb_frame.f_trace is None  # type: ignore[union-attr]


def generator() -> object:
    yield


of_modes = torch.no_grad()(torch._C._len_torch_dispatch_stack)
of_tracing = torch.no_grad()(sys.gettrace)
of_collections = torch.no_grad()(gc.isenabled)
of_frames = functools.singledispatch(sys._getframe)
PLAIN: dict[str, Asks] = {
    "gradient": with_gradients(lambda m, x: (m.weight * 1).requires_grad),  # type: ignore[operator]
    "function of a gradient": with_gradients(lambda m, x: (m.weight * 1).grad_fn is not None),  # type: ignore[operator]
    "leaf": with_gradients(lambda m, x: not (m.weight * 1).is_leaf),  # type: ignore[operator]
    "autograd function": with_gradients(lambda m, x: Copies.apply(m.weight * 1).grad_fn is not None),  # type: ignore[no-untyped-call]
    "checkpoint": with_gradients(lambda m, x: checkpoint(lambda w: w * 2, m.weight, use_reentrant=False).requires_grad),
    "saved tensors": packs,
    "function mode": without_a_mode(torch.overrides._pop_mode_temporarily),
    "dispatch mode": without_a_mode(_python_dispatch._pop_mode_temporarily),
    "traceback": of_a_traceback,
    "generator": lambda m, x: generator().gi_frame.f_trace is None,  # type: ignore[attr-defined]
    "frame of logging": lambda m, x: not logging.currentframe().f_trace_opcodes,
    "stack of modes": lambda m, x: of_modes() == 0,
    "trace function": lambda m, x: of_tracing() is None,
    "collections": lambda m, x: of_collections(),
    "frames": lambda m, x: of_frames(1).f_trace is None,
}

EXAMINES_FRAMES = ("traceback", "generator", "frame of logging")  # a theorem assumes that no model does


@pytest.mark.parametrize("name", PLAIN)
def test_a_model_that_answers_otherwise_in_a_plain_run_is_not_proved(name: str) -> None:
    assert prove(Answers(PLAIN[name]).eval(), "causal", inputs=torch.randn(2, 7, 6)).verdict == "undecided"


class AnswersLongCalls(Answers):
    """Asks only where there are more tokens than in the proved call."""

    def forward(self, x: Tensor) -> Tensor:
        y = x.cumsum(1)
        plain = x.shape[1] > 8 and self.ask(self, x)
        return torch.where(y > 1000.0, (x * 1).flip(1 if plain else 2), y)


@pytest.mark.parametrize("name", [n for n in PLAIN if n not in EXAMINES_FRAMES])
def test_nor_has_one_that_answers_so_in_longer_calls_a_theorem(name: str) -> None:
    theorem = prove(AnswersLongCalls(PLAIN[name]).eval(), "causal", inputs=torch.randn(2, 7, 6)).theorem
    assert theorem is not None
    assert not theorem.proved


def flipped(y: Tensor) -> Tensor:
    return torch.where(y.cumsum(1) > 1000.0, (y * 1).flip(1), y.cumsum(1))


class Compiled(nn.Module):
    """Is compiled by a backend that computes something else."""

    def __init__(self) -> None:
        super().__init__()
        self.call = torch.compile(
            lambda y: torch.where(y.cumsum(1) > 1000.0, (y * 1).flip(2), y.cumsum(1)),
            backend=lambda *_: lambda *tensors: (flipped(tensors[0]),),
            dynamic=False,
        )

    def forward(self, x: Tensor) -> Tensor:
        return self.call(x)  # type: ignore[no-any-return]


def test_code_of_the_compiler_is_off_and_named() -> None:
    finding = prove(Compiled().eval(), "causal", inputs=torch.randn(2, 7, 6))
    assert any(text.startswith("torch.compile off") for text in finding.scope.assumptions)
