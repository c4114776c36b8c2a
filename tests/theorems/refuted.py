"""Programs of which a law was proved once that they do not fulfil, each found by trying to get a false proof."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional as F

from tests.theorems.programs import Case, Program, attend


def _attend_real(m: Program, x: Tensor, mask: Tensor) -> Tensor:
    return attend(m, x, mask[:, None, :].bool(), fill=-1e9)


def _asks_all_but_last(m: Program, x: Tensor, mask: Tensor) -> Tensor:
    return attend(m, x, None) if bool(mask[:, :-1].all()) else _attend_real(m, x, mask)


def _asks_first_two(m: Program, x: Tensor, mask: Tensor) -> Tensor:
    return attend(m, x, None) if bool(mask[:, :2].all()) else _attend_real(m, x, mask)


def _counts_all_but_last(m: Program, x: Tensor, mask: Tensor) -> Tensor:
    part = mask.bool()[:, :-1]
    return attend(m, x, None) if bool(part.sum() == part.numel()) else _attend_real(m, x, mask)


def _same_part_twice(m: Program, x: Tensor) -> Tensor:
    """The first and the last part of a concatenation are one tensor."""
    zero = torch.zeros(1)
    return x + torch.cat([zero, torch.ones(x.shape[1] - 2), zero])[:, None] * x.flip(1)


def _bytes(m: Program, x: Tensor) -> Tensor:
    """Positions in one byte, which begin again after 127."""
    i = torch.arange(x.shape[1]).to(torch.int8)
    return attend(m, x, i[None, :] <= i[:, None])


def _sentinel(m: Program, x: Tensor) -> Tensor:
    """The largest integer plus one is the smallest."""
    i = torch.arange(x.shape[1])
    largest = torch.where(i >= 0, torch.iinfo(torch.int64).max, i)
    return torch.where((largest + 1 < 0)[:, None], x.flip(1), x)


def _falling(m: Program, x: Tensor) -> Tensor:
    """A stored count from two to zero, in one byte without sign."""
    stored = torch.tensor([2, 1, 0], dtype=torch.uint8)
    return torch.where((stored[2:] == 0)[:, None], x.flip(1), x)


def _large_counts(m: Program, x: Tensor) -> Tensor:
    """On the diagonal too the scores are as negative as a mask, from integers that grow."""
    i = torch.arange(x.shape[1])[:, None]
    scores = torch.where(i == i.mT, (-(i + 1) * 10**9).to(x.dtype), torch.full((), -1e9))
    return scores.expand(x.shape[0], -1, -1).softmax(-1) @ x


def _lower_part(m: Program, x: Tensor) -> Tensor:
    """A number on and below the diagonal, zeros above it."""
    i = torch.arange(x.shape[1])
    return torch.where(i <= i[:, None], m.sink, 0.0)


def _product_of_one(m: Program, x: Tensor) -> Tensor:
    """The cumulative product of one number is that number: the diagonal is as negative as the rest."""
    i = torch.arange(x.shape[1])
    diagonal = torch.full((x.shape[0], 1, 1), -1e9).cumprod(1)
    return torch.where(i == i[:, None], diagonal, torch.full((), -1e9)).softmax(-1) @ x


def _windows_of_one(m: Program, x: Tensor) -> Tensor:
    """Windows of a dimension of size one, before that of tokens."""
    reverse = torch.cat([x[:, :1], x.flip(1)[:, 1:]], 1)
    return reverse[:, None].unfold(1, 1, 1)[:, 0, ..., 0]


def _scores_as_bytes(m: Program, x: Tensor, mask: Tensor) -> Tensor:
    """The number that hides a pad becomes zero in one byte."""
    scores = (m.first(x) @ x.mT).masked_fill(mask[:, None] == 0, -1e9)
    return scores.to(torch.int8).float().softmax(-1) @ x


def _replaced_from_the_end(m: Program, x: Tensor) -> Tensor:
    """With fewer than four tokens the replaced index counts from the end."""
    n = x.shape[1]
    replaced = x.select_scatter(x[:, -1].flip(0).cumsum(0), 1, n - 4)
    return torch.where((torch.arange(n) == n - 4)[:, None], 0.0, replaced)


def _wrapping_power(m: Program, x: Tensor) -> Tensor:
    """Causal attention that also sees the keys at which a power wraps to a negative number."""
    n = x.shape[1]
    i = torch.arange(n)
    wraps = torch.maximum(i**10, torch.tensor(1)) * 3 < 3
    return torch.zeros(n, n).masked_fill(~((i <= i[:, None]) | wraps), -1e9).softmax(-1) @ x


def _wraps_in_steps(m: Program, x: Tensor) -> Tensor:
    """Products of positions in steps: the last one wraps to a negative number from 700 on."""
    factor = 375_001
    place = ((torch.arange(x.shape[1]) * factor) // 2 * factor) // 2 * factor
    return m.first(x) + torch.where((place < 0)[:, None], x.flip(0), 0.0)


def _powers_in_floats(m: Program, x: Tensor) -> Tensor:
    """Powers of positions, computed in float64, that an integer product lets wrap."""
    power = (torch.arange(x.shape[1]).double() ** 6).long()
    return m.first(x) + torch.where(((power >= 0) & (power * 16 < 0))[:, None], x.flip(0), 0.0)


def _least_integer(m: Program, x: Tensor) -> Tensor:
    """The least integer, which is its own negative."""
    least = ((torch.arange(x.shape[1]) > 20) * -1e30).long()
    return m.first(x) + torch.where(((least < 0) & (-least < 0))[:, None], x.flip(0), 0.0)


def _with_bias(x: Tensor, bias: Tensor) -> Tensor:
    """Attention whose masked scores get numbers that may be as large as the mask."""
    n = x.shape[1]
    return (x @ x.mT * 0.1 + torch.full((n, n), -1e9).triu(1) + bias).softmax(-1) @ x


def _copied_to_booleans(m: Program, x: Tensor) -> Tensor:
    n = x.shape[1]
    scores = x @ x.mT * 0.1 + torch.full((n, n), -1e9).triu(1)
    return torch.zeros(x.shape[0], n, n, dtype=torch.bool).copy_(scores).float().softmax(-1) @ x


def _copied_to_double(m: Program, x: Tensor) -> Tensor:
    n = x.shape[1]
    large = torch.full((n, n), 1e9).triu(1)
    return _with_bias(x, torch.zeros(n, n, dtype=torch.float64).copy_(large).float())


def _wide_kernel(m: Program, x: Tensor) -> Tensor:
    n = x.shape[1]
    return _with_bias(x, F.conv1d(torch.ones(n, n).triu(1)[:, None], torch.full((1, 1, 1), 1e9))[:, 0])


def _large_bias(m: Program, x: Tensor) -> Tensor:
    n = x.shape[1]
    rows = F.conv1d(torch.ones(n, 1, n), torch.zeros(1, 1, 1), torch.full((1,), 1e9))
    return _with_bias(x, rows[:, 0].triu(1))


def _powers_of_two(m: Program, x: Tensor) -> Tensor:
    n = x.shape[1]
    return _with_bias(x, torch.full((n, n), 2.0).cumprod(1).triu(1))


def _case(
    name: str, function: Callable[..., Tensor], *laws: str, masked: bool = False, least: int = 2,
    lengths: tuple[int, ...] = (),
) -> Case:  # fmt: skip
    return Case(name, function, frozenset(laws), masked, least=least, lengths=lengths)


REFUTED = [
    _case("products in steps that wrap", _wraps_in_steps, "causal", lengths=(720,)),
    _case("powers in floats that wrap", _powers_in_floats, "causal", lengths=(1000,)),
    _case("negative of the least integer", _least_integer, "causal", lengths=(40,)),
    _case("power that wraps", _wrapping_power, "batch", lengths=(90,)),
    _case("masked scores copied to booleans", _copied_to_booleans, "batch"),
    _case("large numbers copied to another dtype", _copied_to_double, "batch"),
    _case("convolution with a large weight", _wide_kernel, "batch"),
    _case("convolution with a large bias", _large_bias, "batch"),
    _case("powers of two by a cumulative product", _powers_of_two, "batch"),
    _case("index that counts from the end", _replaced_from_the_end),
    _case("hiding scores as bytes", _scores_as_bytes, "batch", masked=True),
    _case("windows of one", _windows_of_one, "batch"),
    _case("clamped below zero", lambda m, x: _lower_part(m, x).clamp(0.0, -5.0) @ x, "batch"),
    _case("hard tanh above zero", lambda m, x: F.hardtanh(_lower_part(m, x), 1.0, 2.0) @ x, "batch"),
    _case("product of one number", _product_of_one, "batch"),
    _case("large counts as scores", _large_counts, "batch"),
    _case("falling count in one byte", _falling, "batch"),
    _case("positions in one byte", _bytes, "batch", lengths=(140,)),
    _case("largest integer plus one", _sentinel, "batch"),
    _case("same part twice", _same_part_twice, "batch", least=3),
    _case("asks all tokens but the last", _asks_all_but_last, "batch", masked=True, least=3),
    _case("asks the first two tokens", _asks_first_two, "batch", masked=True, least=3),
    _case("counts all tokens but the last", _counts_all_but_last, "batch", masked=True, least=3),
]
