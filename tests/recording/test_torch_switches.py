"""Private parts of torch that act outside the modes of a recording: a model that gets one is not recorded."""

from __future__ import annotations

import operator
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack, suppress
from functools import partial
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.utils._mode_utils import no_dispatch

from orderproof import prove

LARGE = 100.0
KEY = torch._C.DispatchKey
ReadsFirst = tuple[Callable[[], AbstractContextManager[object]], ...]


def is_large(x: Tensor) -> bool:
    return bool((x > LARGE).any())


class ReadsUnder(nn.Module):
    """Reads a value in blocks in which a recording does not see it, and catches the error of the recording."""

    def __init__(self, blocks: ReadsFirst, read: Callable[[Tensor], bool], handle: Callable[[Tensor], object]) -> None:
        super().__init__()
        self.blocks, self.read, self.handle = blocks, read, handle

    def forward(self, x: Tensor) -> Tensor:
        y, large = x.cumsum(1), False
        try:
            with ExitStack() as stack:
                for block in self.blocks:
                    stack.enter_context(block())
                large = self.read(x)
        except Exception:
            self.handle(x)
        return y.flip(1) if large else y


REAL = torch.full((1,), 300.0)
CPU = torch._C.DispatchKeySet(KEY.CPU)
NO_FUNCTIONS = torch._C.DisableTorchFunction
PARTS = {"no functions": NO_FUNCTIONS, "module": torch._C}


def last(x: Tensor) -> Tensor:
    return x[0, -1, :1]


def listed(x: Tensor) -> bool:
    return bool(x.tolist()[0][-1][0] > LARGE)


def in_text(x: Tensor) -> bool:
    """Reads an attribute that it wrote as text, which torch's function modes refuse."""
    kept = torch.zeros(1)
    kept.copy_((x.amax() > LARGE).expand(1))
    return "1" in str(kept)


def negated(x: Tensor) -> bool:
    ones = torch.ones(1)
    torch._C._set_neg(ones, True)  # type: ignore[attr-defined]
    return bool(ones < 0) and is_large(x)


def without_function_modes(x: Tensor) -> bool:
    before = torch._C._get_torch_function_state()
    torch._C._set_torch_function_state(torch._C._TorchFunctionState.ALL_DISABLED)
    try:
        return listed(x)
    finally:
        torch._C._set_torch_function_state(before)


def by_name() -> Any:
    return getattr(torch._C, "Disable" + "TorchFunction")()


def of_a_dictionary() -> Any:
    return PARTS["no functions"]()


def of_a_module_in_a_dictionary() -> Any:
    return vars(PARTS["module"])["DisableTorchFunction"]()


SWITCHES: dict[str, nn.Module] = {
    "no dispatch to Python": ReadsUnder((torch._C._DisableTorchDispatch, NO_FUNCTIONS), is_large, id),
    "no dispatch": ReadsUnder((no_dispatch, NO_FUNCTIONS), is_large, id),
    "excluded key": ReadsUnder(
        (lambda: torch._C._ExcludeDispatchKeyGuard(torch._C.DispatchKeySet(KEY.Python)), NO_FUNCTIONS), is_large, id
    ),
    "forced keys": ReadsUnder(
        (
            lambda: torch._C._ForceDispatchKeyGuard(
                torch._C._dispatch_tls_local_include_set(),
                torch._C._dispatch_tls_local_exclude_set() | torch._C.DispatchKeySet(KEY.Python),
            ),
            NO_FUNCTIONS,
        ),
        is_large,
        id,
    ),
    "array with the operators of an array": ReadsUnder(
        (NO_FUNCTIONS,), lambda x: x.numpy().max() > LARGE, lambda x: (x.resolve_conj(), x.resolve_neg())
    ),
    "list": ReadsUnder((NO_FUNCTIONS,), listed, id),
    "text of a written tensor": ReadsUnder((NO_FUNCTIONS,), in_text, id),
    "part by its name": ReadsUnder((by_name,), listed, id),
    "part of a dictionary": ReadsUnder((of_a_dictionary,), listed, id),
    "part of a module in a dictionary": ReadsUnder((of_a_module_in_a_dictionary,), listed, id),
    "partial function": ReadsUnder((partial(operator.call, NO_FUNCTIONS),), listed, id),
    "redispatch": ReadsUnder(
        (),
        lambda x: torch.ops.aten.equal.default.redispatch(torch._C.DispatchKeySet(KEY.CPU), last(x), REAL),
        last,
    ),
    "redispatch by keys made before": ReadsUnder(
        (), lambda x: torch.ops.aten.equal.default.redispatch(CPU, last(x), REAL), last
    ),
    "bit of a negative view": ReadsUnder((), negated, id),
    "state of the modes": ReadsUnder((), without_function_modes, id),
}


@pytest.mark.parametrize("name", SWITCHES)
def test_a_model_that_gets_a_private_part_of_the_dispatch_is_not_recorded(name: str) -> None:
    finding = prove(SWITCHES[name].eval(), "causal", inputs=torch.randn(2, 7, 6))
    assert finding.verdict == "undecided"
    assert "it uses a private part of torch's dispatch" in finding.reason


def negated_if_large(set_bit: Callable[..., object]) -> Callable[[Tensor], bool]:
    """Reads by a bit that a private function sets."""

    def read(x: Tensor) -> bool:
        ones = torch.ones(1)
        set_bit(ones, True)
        return bool(ones < 0) and is_large(x)

    return read


SET_BIT = torch._C._set_neg  # type: ignore[attr-defined]
HELD: dict[str, nn.Module] = {
    "partial function": ReadsUnder((), negated_if_large(partial(SET_BIT)), id),
    "partial function of another": ReadsUnder((), negated_if_large(partial(partial(SET_BIT))), id),
    "decorator of torch": ReadsUnder((), negated_if_large(torch.no_grad()(SET_BIT)), id),
    "keys in a partial function": ReadsUnder(
        (), lambda x: EQUAL(last(x), REAL), last
    ),
    "block in a decorator": ReadsUnder((), lambda x: bool(LISTED(last(x))[0] > LARGE), id),
}  # fmt: skip
EQUAL = partial(torch.ops.aten.equal.default.redispatch, CPU)
LISTED = torch.utils._contextlib.context_decorator(partial(NO_FUNCTIONS), Tensor.tolist)


@pytest.mark.parametrize("name", HELD)
def test_nor_is_one_that_gets_what_holds_such_a_part(name: str) -> None:
    finding = prove(HELD[name].eval(), "causal", inputs=torch.randn(2, 7, 6))
    assert finding.verdict == "undecided"
    assert "it uses a private part of torch's dispatch" in finding.reason


class ReadsNoMemory(nn.Module):
    """Reads memory that a meta tensor does not have, which would end the process."""

    def forward(self, x: Tensor) -> Tensor:
        with torch._C.DisableTorchFunction():
            large = x[0, -1, :1].tolist()[0] > LARGE
        return x.cumsum(1).flip(1) if large else x.cumsum(1)


class ReadsNoMemoryWithoutAMode(nn.Module):
    """The same under a function of torch that takes a mode away."""

    def forward(self, x: Tensor) -> Tensor:
        large = False
        with suppress(RuntimeError), torch.overrides._pop_mode_temporarily():
            large = x[0, -1, :1].tolist()[0] > LARGE
        return x.cumsum(1).flip(1) if large else x.cumsum(1)


@pytest.mark.parametrize(
    ("module", "reason"),
    [
        (ReadsNoMemory(), "it uses a private part of torch's dispatch (`DisableTorchFunction`)"),
        (ReadsNoMemoryWithoutAMode(), "it examines the modes of torch (`_pop_mode_temporarily`)"),
    ],
)
def test_the_process_lives(module: nn.Module, reason: str) -> None:
    finding = prove(module.eval(), "causal", inputs=torch.randn(2, 7, 6))
    assert finding.verdict == "undecided"
    assert f"{reason}, test_torch_switches.py:" in finding.reason
