"""An operator that reads memory to which it writes: what it gives depends on the order in which it visits elements.

Torch copies forwards, in vectors and on several threads, so the results of such a call change with its size.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from orderproof import prove
from orderproof.errors import CaptureError
from orderproof.recording.open_recording import OpenInput, record_open
from tests.function_module import Function

Forward = Callable[[Tensor], Tensor]


def _summed(x: Tensor, change: Callable[[Tensor], object]) -> Tensor:
    y = x.cumsum(1)
    change(y)
    return y


def _delayed(x: Tensor) -> Tensor:
    """Its parts meet from 250 tokens on."""
    z = torch.cat([x.flip(1), x.new_zeros(len(x), 250, x.shape[2]), x], 1)
    z[:, 250:] = z[:, :-250]
    return z[:, x.shape[1] + 250 :]


def _added_out(x: Tensor) -> Tensor:
    y = x.cumsum(1)
    torch.add(y[:, :-1], 1, out=y[:, 1:])
    return y


def _strided(y: Tensor) -> Tensor:
    rows, tokens, width = y.shape
    return y.as_strided((rows, tokens - 1, 2 * width), (tokens * width, width, 1))


OVERLAPPING: dict[str, Forward] = {
    "copied one place on": lambda x: _summed(x, lambda y: y[:, 1:].copy_(y[:, :-1])),
    "copied one place back": lambda x: _summed(x, lambda y: y[:, :-1].copy_(y[:, 1:])),
    "assigned": lambda x: _summed(x, lambda y: y.__setitem__((slice(None), slice(1, None)), y[:, :-1])),
    "added": lambda x: _summed(x, lambda y: y[:, 1:].add_(y[:, :-1])),
    "multiplied": lambda x: _summed(x, lambda y: y[:, 1:].mul_(y[:, :-1])),
    "added in part": lambda x: _summed(x, lambda y: y[:, 1:].addcmul_(x[:, 1:], y[:, :-1])),
    "reduced": lambda x: _summed(x, lambda y: y[:, 1:].clamp_(max=y[:, :-1])),
    "features": lambda x: _summed(x, lambda y: y[..., 1:].copy_(y[..., :-1])),
    "steps that meet": lambda x: _summed(x, lambda y: y[..., ::2].copy_(y[..., :3])),
    "one token for all": lambda x: _summed(x, lambda y: y.copy_(y[:, 3:4])),
    "transposed": lambda x: _summed(x, lambda y: y[:, :6].copy_(y[:, :6].transpose(1, 2))),
    "the tensor of a product": lambda x: _summed(x, lambda y: y[0, :6].addmm_(y[0, :6], y[0, :6])),
    "into an output": _added_out,
    "indices": lambda x: _summed(x, lambda y: y.index_copy_(1, torch.tensor([1, 2]), y[:, :2])),
    "the last feature by two numbers": lambda x: _summed(x, lambda y: y[..., -1].copy_(y[..., 5][:, :1])),
    "from many tokens on": _delayed,
    "a negative start": lambda x: _summed(x, lambda y: y.narrow(1, -3, 3).copy_(y.narrow(1, -4, 3))),
    "windows": lambda x: _summed(x, lambda y: y.unfold(1, 3, 1).select(1, 1).copy_(y.unfold(1, 3, 1).select(1, 0))),
    "strides": lambda x: _summed(x, lambda y: _strided(y)[:, 1].copy_(_strided(y)[:, 0])),
}


@pytest.mark.parametrize("name", OVERLAPPING)
def test_it_is_not_proved(name: str) -> None:
    finding = prove(Function(OVERLAPPING[name]).eval(), "causal", inputs=torch.randn(2, 7, 6))
    assert finding.verdict != "proved"
    assert "it reads memory to which it writes" in finding.reason


@pytest.mark.parametrize("name", ["copied one place on", "added", "features", "the last feature by two numbers"])
def test_it_is_refused_where_the_length_is_open(name: str) -> None:
    tokens = OpenInput("x", ("batch", "tokens", 6), torch.float32)
    with pytest.raises(CaptureError, match="it reads memory to which it writes"):
        record_open(Function(OVERLAPPING[name]), (tokens,), {"batch": 3, "tokens": 13})


APART: dict[str, Forward] = {
    "halves": lambda x: _summed(x, lambda y: y[..., :3].copy_(y[..., 3:])),
    "steps between": lambda x: _summed(x, lambda y: y[..., ::2].copy_(y[..., 1::2])),
    "a copy": lambda x: _summed(x, lambda y: y[:, 1:].copy_(y[:, :-1].clone())),
    "a new tensor": lambda x: _summed(x, lambda y: y[:, 1:].copy_(y[:, :-1] * 2)),
    "the tensor itself": lambda x: _summed(x, lambda y: y.add_(y)),
    "the same part": lambda x: _summed(x, lambda y: y[..., 1:].mul_(y[..., 1:])),
}


@pytest.mark.parametrize("name", APART)
def test_what_does_not_meet_is_proved(name: str) -> None:
    assert prove(Function(APART[name]).eval(), "causal", inputs=torch.randn(2, 7, 6)).verdict == "proved"


def _from_another_layer(x: Tensor) -> Tensor:
    z = torch.stack([x, x.cumsum(1), x])
    z[0, ..., 1:4] = z[1, ..., 1:4]
    first, second = z[1:].unbind(0)
    first[..., :2] = second[..., :2]
    return z[0] + z[1].cumsum(1)


def _in_place(x: Tensor) -> Tensor:
    z = torch.stack([x, x])
    z[1:] += x.cumsum(1)
    return z.sum(0)


FOR_EVERY_LENGTH: dict[str, Forward] = {
    name: APART[name] for name in ("halves", "a copy", "a new tensor", "the tensor itself", "the same part")
} | {
    "other layers": _from_another_layer,
    "in place": _in_place,
    "the last features": lambda x: _summed(x, lambda y: y.narrow(2, -2, 2).copy_(y.narrow(2, 0, 2))),
    "parts": lambda x: _summed(x, lambda y: y.split([2, 4], -1)[0].copy_(y.split([2, 4], -1)[1][..., 2:])),
    "the first token": lambda x: _summed(x, lambda y: y[:, 1:].mul_(y[:, :1])),
    "one token and another": lambda x: _summed(x, lambda y: y[:, -1].add_(y[:, x.shape[1] // 2])),
    "the last token": lambda x: _summed(x, lambda y: y[:, :-1].copy_(y[:, :-1])),
}


@pytest.mark.parametrize("name", FOR_EVERY_LENGTH)
def test_what_does_not_meet_at_any_length_has_a_theorem(name: str) -> None:
    theorem = prove(Function(FOR_EVERY_LENGTH[name]).eval(), "causal", inputs=torch.randn(2, 7, 6)).theorem
    assert theorem is not None
    assert (theorem.proved, theorem.reason) == (True, "")


def test_what_meets_from_some_length_on_has_no_theorem() -> None:
    finding = prove(Function(OVERLAPPING["from many tokens on"]).eval(), "causal", inputs=torch.randn(2, 7, 6))
    assert finding.theorem is None or not finding.theorem.proved
