"""Kernels that do what no recording sees: hidden writes, Python kernels for other keys, and dispatch switched off."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import nullcontext
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils._python_dispatch import TorchDispatchMode, _disable_current_modes

from orderproof import prove
from orderproof.recording.eager_check import profiled_operators, seen_by_a_mode

LARGE = 100.0


def is_large(x: Tensor) -> bool:
    return bool((x > LARGE).any())


def reversed_if_large(x: Tensor) -> Tensor:
    return x.flip(1) if is_large(x) else x * 1


class Calls(nn.Module):
    def __init__(self, function: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: Tensor) -> Tensor:
        return self.function(x).cumsum(1)


class Statistics(nn.Module):
    """Uses running statistics that an operator updates against its schema."""

    def __init__(self, update: Callable[[Tensor, Tensor, Tensor], object], *, registered: bool) -> None:
        super().__init__()
        self.update = update
        self.registered = registered
        self.register_buffer("mean", torch.zeros(6))
        self.register_buffer("var", torch.ones(6))

    def forward(self, x: Tensor) -> Tensor:
        mean, var = (self.mean, self.var) if self.registered else (torch.zeros(6), torch.ones(6))
        self.update(x, mean, var)
        return x.cumsum(1) + (mean - LARGE).relu()


UPDATES: dict[str, Callable[[Tensor, Tensor, Tensor], object]] = {
    "batch_norm": lambda x, mean, var: F.batch_norm(x.mT, mean, var, training=True, momentum=1.0),
    "instance_norm": lambda x, mean, var: F.instance_norm(x.mT, mean, var, use_input_stats=True, momentum=1.0),
    "native_batch_norm": lambda x, mean, var: torch.native_batch_norm(x.mT, None, None, mean, var, True, 1.0, 1e-5),
    "update of statistics": lambda x, mean, var: torch.batch_norm_update_stats(x.mT, mean, var, 1.0),
}


@pytest.mark.parametrize("registered", [True, False])
@pytest.mark.parametrize("name", UPDATES)
def test_statistics_that_a_call_updates_are_not_constants(name: str, registered: bool) -> None:
    finding = prove(Statistics(UPDATES[name], registered=registered).eval(), "causal", inputs=torch.randn(2, 7, 6))
    assert finding.verdict != "proved"


def test_statistics_that_are_only_used_are_constants() -> None:
    module = Calls(lambda x: F.batch_norm(x.mT, torch.zeros(6), torch.ones(6)).mT).eval()
    assert prove(module, "causal", inputs=torch.randn(2, 7, 6)).verdict == "proved"


@pytest.fixture(scope="module")
def library() -> Iterator[torch.library.Library]:
    made = torch.library.Library("orderproof_kernels", "FRAGMENT")
    for name, keys in {
        "of_autograd": ("CompositeImplicitAutograd", "AutogradCPU"),
        "of_any_autograd": ("CPU", "Autograd"),
        "of_no_backend": ("CompositeImplicitAutograd",),
        "without_key": ("",),
    }.items():
        made.define(f"{name}(Tensor x) -> Tensor")
        for key in keys:
            made.impl(name, reversed_if_large, key)
        if "CPU" in keys:
            torch.library.register_fake(f"orderproof_kernels::{name}", torch.empty_like, lib=made)
    yield made
    made._destroy()


@pytest.mark.parametrize("name", ["of_autograd", "of_any_autograd", "of_no_backend", "without_key"])
def test_a_kernel_in_python_that_is_not_followed_is_refused(name: str, library: torch.library.Library) -> None:
    module = Calls(getattr(torch.ops.orderproof_kernels, name)).eval()
    finding = prove(module, "causal", inputs=torch.randn(2, 7, 6))
    assert finding.verdict == "undecided"
    assert f"a kernel in Python that is not followed (orderproof_kernels.{name}.default" in finding.reason


@pytest.mark.filterwarnings("ignore:Warning only once for all operators")
@pytest.mark.parametrize(
    ("name", "key", "by_method"),
    [
        ("special_bessel_j1", "CPU", True),
        ("special_bessel_j1", "AutogradCPU", True),
        ("special_bessel_j1", "Autograd", True),
        ("special_bessel_y1", "CPU", False),
    ],
)
def test_a_kernel_of_torch_that_python_replaces_is_refused(name: str, key: str, by_method: bool) -> None:
    made = torch.library.Library("aten", "IMPL")
    try:
        if by_method:
            made.impl(name, reversed_if_large, key)
        else:
            made.m.impl(name, key, reversed_if_large)  # which the library does not list
        finding = prove(Calls(getattr(torch.ops.aten, name)).eval(), "causal", inputs=torch.randn(2, 7, 6))
    finally:
        made._destroy()
    assert finding.verdict == "undecided"
    assert f"a kernel in Python that is not followed (aten.{name}.default" in finding.reason


def test_code_that_only_the_first_call_executes_is_no_difference() -> None:
    assert prove(Calls(_lazily_scaled).eval(), "causal", inputs=torch.randn(2, 7, 6)).verdict == "proved"


_TABLES: dict[int, Tensor] = {}


def _lazily_scaled(x: Tensor) -> Tensor:
    if x.shape[1] not in _TABLES:
        _TABLES[x.shape[1]] = torch.ones(x.shape[1], 1)
    return x * _TABLES[x.shape[1]]


class WritesUnseen(nn.Module):
    """Writes to a buffer where no mode sees it."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("peak", torch.zeros(()))

    def forward(self, x: Tensor) -> Tensor:
        with _disable_current_modes():
            self.peak.copy_(x.amax())
        return x.cumsum(1) + (self.peak - LARGE).relu()


def test_a_write_without_modes_is_refused() -> None:
    finding = prove(WritesUnseen().eval(), "causal", inputs=torch.randn(2, 7, 6))
    assert finding.verdict == "undecided"
    assert "it examines the modes of torch (`_disable_current_modes`)" in finding.reason


@pytest.mark.parametrize("seen", [False, True])
def test_a_write_that_no_mode_sees_is_noticed(seen: bool) -> None:
    unseen: list[str] = []
    with profiled_operators(unseen=unseen):
        written = torch.zeros(3).add(1)
        with _Sees() if seen else nullcontext():
            written.copy_(torch.ones(3))
    assert unseen == ([] if seen else ["aten::copy_"])


class _Sees(TorchDispatchMode):
    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        with seen_by_a_mode():
            return func(*args, **(kwargs or {}))


def test_the_text_of_a_constant_may_be_made() -> None:
    def checked(x: Tensor) -> Tensor:
        sizes = torch.tensor([[x.shape[1], 3.5]])
        assert sizes.numel(), f"no sizes: {sizes}"
        return x * len(f"{sizes[:, 1]}")

    assert prove(Calls(checked), "causal", inputs=torch.randn(2, 7, 6)).verdict == "proved"


@pytest.mark.parametrize("around", [True, False])
def test_a_read_is_seen_if_a_mode_is_around_it(*, around: bool) -> None:
    unseen: list[str] = []
    with profiled_operators(unseen=unseen), seen_by_a_mode() if around else nullcontext():
        torch.ones(1).item()
    assert unseen == ([] if around else ["aten::item"])
