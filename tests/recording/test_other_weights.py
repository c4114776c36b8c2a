"""A model that decides by the numbers of its weights has no proof, whatever it reads them with."""

from __future__ import annotations

import contextvars
import ctypes
import functools
import signal
import struct
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from orderproof import prove
from orderproof.recording.memory import same_bytes
from orderproof.recording.other_weights import other_weights

INPUTS = torch.randn(2, 7, 8)
Read = Callable[[], Any]  # gives something over the memory of a weight


class _Interface:
    """An object over the memory of a tensor."""

    def __init__(self, x: Tensor) -> None:
        self.__array_interface__ = {
            "shape": tuple(x.shape), "typestr": "<f4", "data": (x.data_ptr(), False), "version": 3
        }  # fmt: skip


class _InAContext:
    """An array that only a context holds."""

    def __init__(self, x: Tensor) -> None:
        self.variable: contextvars.ContextVar[Any] = contextvars.ContextVar("weights")
        self.context = contextvars.copy_context()
        self.context.run(self.variable.set, x.detach().numpy())

    def __call__(self) -> Any:
        return self.context.run(self.variable.get)


def _dispatched(x: Tensor) -> Read:
    """A function in C whose registry holds another one, with an array as a default."""
    array = x.detach().numpy()

    @functools.singledispatch
    def read(_kind: Any) -> Any:
        return 0

    read.register(int, functools.partial(lambda array, _kind: array, array))
    return lambda: read(1)


def _from_address(x: Tensor) -> Read:
    pointer, count = x.data_ptr(), x.numel()
    return lambda: np.frombuffer((ctypes.c_float * count).from_address(pointer), dtype=np.float32)


def _unpacked(x: Tensor) -> Read:
    pointer, count = x.data_ptr(), x.numel()
    return lambda: struct.unpack_from(f"{count}f", ctypes.string_at(pointer, 4 * count))


def _attribute_of_a_tensor(x: Tensor) -> Read:
    holder = torch.zeros(1)
    holder.grad = x.detach().reshape(-1)[:1]
    return lambda: holder.grad.numpy()  # noqa: PLW0108 - the array is made in the call


READS: dict[str, Callable[[Tensor], Read]] = {
    "an array interface": lambda x: functools.partial(np.asarray, _Interface(x)),
    "a context": _InAContext,
    "a registry of types": _dispatched,
    "an address": _from_address,
    "bytes": _unpacked,
    "a gradient": _attribute_of_a_tensor,
}


class Reads(nn.Module):
    """A model that sees later tokens for some weights only."""

    def __init__(self, read: Callable[[Tensor], Read]) -> None:
        super().__init__()
        self.linear = nn.Linear(8, 8)
        self.read = read(self.linear.weight)

    def forward(self, x: Tensor) -> Tensor:
        largest = float(max(np.asarray(self.read()).reshape(-1)))
        return self.linear(x.flip(1) if largest > 1000 else x)


@pytest.mark.parametrize("way", READS)
def test_a_model_that_reads_its_weights_is_not_proved(way: str) -> None:
    finding = prove(Reads(READS[way]), "causal", inputs=INPUTS)
    assert finding.verdict == "undecided", finding.reason


def _raises_for_other_signs(number: float) -> bool:
    if number < 0:
        raise ValueError("a negative weight")
    return number > 1000


def _raises_for_small_changes(number: float) -> bool:
    if number != 0.5 and number < 1000:
        raise ValueError("another weight")
    return number > 1000


class Checks(Reads):
    """A model that raises an error for some weights, and sees later tokens for others."""

    def __init__(self, leaks: Callable[[float], bool]) -> None:
        super().__init__(READS["an array interface"])
        self.linear.weight.data.fill_(0.5)
        self.leaks = leaks

    def forward(self, x: Tensor) -> Tensor:
        return self.linear(x.flip(1) if self.leaks(float(np.asarray(self.read())[0, 0])) else x)


@pytest.mark.parametrize("leaks", [_raises_for_other_signs, _raises_for_small_changes])
def test_an_error_for_other_weights_hides_nothing(leaks: Callable[[float], bool]) -> None:
    assert prove(Checks(leaks), "causal", inputs=INPUTS).verdict == "undecided"


class AsksForTheTime(Reads):
    """A model whose instructions have other results in each call, besides."""

    def __init__(self, *, reads: bool) -> None:
        super().__init__(READS["an array interface"])
        self.reads = reads

    def forward(self, x: Tensor) -> Tensor:
        started = time.perf_counter_ns()
        found = super().forward(x) if self.reads else self.linear(x)
        return found if time.perf_counter_ns() >= started else x.flip(1)


@pytest.mark.parametrize("reads", [True, False])
def test_other_results_in_each_call_hide_nothing(reads: bool) -> None:
    finding = prove(AsksForTheTime(reads=reads), "causal", inputs=INPUTS)
    assert finding.verdict == ("undecided" if reads else "proved")
    assert ("the numbers of its weights" in finding.reason) is reads


class Cholesky(nn.Module):
    """A model that raises an error if its weights have another sign, and not if they are near these."""

    def __init__(self) -> None:
        super().__init__()
        self.squares = nn.Parameter(2 * torch.eye(8))

    def forward(self, x: Tensor) -> Tensor:
        return x @ torch.linalg.cholesky(self.squares)


def test_a_model_whose_operators_refuse_other_signs_is_proved() -> None:
    assert prove(Cholesky(), "causal", inputs=INPUTS).verdict == "proved"


@pytest.mark.parametrize("rows", [8, 1])
def test_two_parameters_over_one_memory_do_not_hide_each_other(rows: int) -> None:
    module = Reads(READS["an array interface"])
    array = np.random.default_rng(0).standard_normal((8, 8), dtype=np.float32)
    module.linear.weight = nn.Parameter(torch.from_numpy(array))
    module.other = nn.Parameter(torch.from_numpy(array[:rows]))
    module.read = READS["an array interface"](module.linear.weight)
    assert prove(module, "causal", inputs=INPUTS).verdict == "undecided"


def test_the_reason_names_the_line() -> None:
    finding = prove(Reads(READS["an array interface"]), "causal", inputs=INPUTS)
    expected = "the graph cannot be recorded: the call computes with the numbers of its weights (test_other_weights.py:"
    assert finding.reason.startswith(expected)


@pytest.mark.parametrize("mildly", [False, True])
def test_weights_come_back_bit_by_bit(mildly: bool) -> None:
    numbers = torch.tensor([0.0, -0.0, 1.5, -3e-39, 1e-45, 3e38, float("inf"), float("-inf"), float("nan")])
    before = [numbers.to(dtype) for dtype in (torch.float16, torch.bfloat16, torch.float32, torch.float64)]
    before += [before[-1].to(torch.complex128), before[2].to(torch.float8_e5m2), torch.arange(9, dtype=torch.uint8)]
    weights = [nn.Parameter(x.clone(), requires_grad=False) for x in before]
    torch.set_flush_denormal(True)
    try:
        with other_weights(weights, mildly=mildly):
            assert not any(map(same_bytes, weights, before))
            assert all(bool(x[2] > 0) is mildly for x in (weights[k] for k in range(4)))
    finally:
        torch.set_flush_denormal(False)
    assert all(map(same_bytes, weights, before))


class _Interruption(BaseException):
    pass


@pytest.mark.skipif(not hasattr(signal, "SIGUSR1"), reason="the system has no signal for users")
def test_an_interruption_while_weights_are_changed_leaves_none_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    weights = [nn.Parameter(torch.full((2,), 1.5)) for _ in range(3)]
    flip, flips = Tensor.bitwise_xor_, iter(range(100))

    def interrupted(x: Tensor, bits: int) -> Tensor:
        if next(flips) in (1, 4):  # the second weight, on the way there and back
            signal.raise_signal(signal.SIGUSR1)
        return flip(x, bits)

    def interrupt(*_: object) -> None:
        raise _Interruption

    monkeypatch.setattr(Tensor, "bitwise_xor_", interrupted)
    before = signal.signal(signal.SIGUSR1, interrupt)
    try:
        with pytest.raises(_Interruption), other_weights(weights):
            pytest.fail("the block is not entered")
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert next(flips) == 6
    assert all(torch.equal(x.detach(), torch.full((2,), 1.5)) for x in weights)


@pytest.mark.filterwarnings("ignore:The given NumPy array is not writable")
def test_shared_memory_is_changed_once_and_that_of_other_processes_is_not(tmp_path: Path) -> None:
    weight = nn.Parameter(torch.full((4,), 1.5))
    part = nn.Parameter(weight.detach()[1:])
    array = np.full(3, 1.5, dtype=np.float32)
    array.flags.writeable = False
    array.tofile(tmp_path / "weights")
    read_only, of_a_file = (
        nn.Parameter(torch.from_numpy(np.memmap(tmp_path / "weights", np.float32, mode))) for mode in ("r", "c")
    )
    of_all = nn.Parameter(torch.full((4,), 1.5).share_memory_())
    of_an_array = nn.Parameter(torch.from_numpy(array))
    with other_weights([weight, part, read_only, of_a_file, of_all, of_an_array]):
        assert weight[0] == part[0] == of_an_array[0] != 1.5
        assert read_only[0] == of_a_file[0] == of_all[0] == 1.5
    assert all(x[0] == 1.5 for x in (weight, part, read_only, of_a_file, of_all, of_an_array))


def test_a_model_whose_weights_are_in_foreign_memory_is_proved() -> None:
    module = nn.Linear(8, 8)
    module.weight = nn.Parameter(torch.from_numpy(np.random.default_rng(0).standard_normal((8, 8), dtype=np.float32)))
    assert prove(module, "causal", inputs=INPUTS).verdict == "proved"
