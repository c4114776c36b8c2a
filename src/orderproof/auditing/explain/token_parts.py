"""The part of a tensor that belongs to one token of a call, compared with that of another call."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from orderproof.auditing.explain.operator_steps import RecordedCall
from orderproof.tolerances import FLOAT32_TOLERANCE


class TokenOfCall(NamedTuple):
    """A token in a call."""

    call: RecordedCall
    row: int
    token: int
    tokens_first: bool = False  # an axis of rows and tokens together has the rows of a token in turn

    @property
    def given(self) -> Tensor:
        """The id or the vector of the token."""
        return self.call.given[self.row, self.token]

    @property
    def positions(self) -> Tensor | None:
        """The position id that the token is given."""
        return None if self.call.positions is None else self.call.positions[self.row, self.token]

    @property
    def flat_place(self) -> int:
        """The place of the token along an axis of rows and tokens together."""
        call, row, token = self.call, self.row, self.token
        return token * call.rows + row if self.tokens_first else row * call.tokens + token


def differ(first: Tensor | None, one: TokenOfCall, second: Tensor | None, other: TokenOfCall) -> bool | None:
    """True if the parts of two tensors for a token differ by more than rounding; None if they cannot be compared."""
    if first is None or second is None or first.dtype != second.dtype:
        return None
    a, b = _without_axes_of_one(first, second)
    if a.dim() != b.dim():
        return None
    if _lacks_the_token(a, one, b, other):
        return True
    pair = _parts(a, one, b, other)
    if pair is None or not pair[0].numel():
        return None
    return _differ(*pair) and not _agree_from_the_start(a, one, b, other)


def _differ(a: Tensor, b: Tensor) -> bool:
    same = torch.equal(a, b)  # of weights, both calls have one tensor
    if same or not a.is_floating_point():
        return not same
    gap = torch.where((a == b) | (a.isnan() & b.isnan()), 0.0, (a.double() - b.double()).abs())
    size = a.double().abs().nan_to_num(posinf=0.0).max()
    return bool(gap.max() > FLOAT32_TOLERANCE * size)


def _lacks_the_token(a: Tensor, one: TokenOfCall, b: Tensor, other: TokenOfCall) -> bool:
    """True if an axis of all tokens in the one call is one of the last tokens in the other, without this token."""
    left = other.call.tokens - other.token
    return any(m == one.call.tokens and 1 < k < left and m != k for m, k in zip(a.shape, b.shape, strict=True))


def _without_axes_of_one(first: Tensor, second: Tensor) -> tuple[Tensor, Tensor]:
    """Both tensors; of different ranks, without their axes of size 1."""
    return (first, second) if first.dim() == second.dim() else (first.squeeze(), second.squeeze())


def _agree_from_the_start(a: Tensor, one: TokenOfCall, b: Tensor, other: TokenOfCall) -> bool:
    """True if the keys up to a token of a call without a cache are the first of a cache with room for more."""
    sizes = zip(a.shape, b.shape, strict=True)
    axes = [d for d, (m, k) in enumerate(sizes) if m == one.call.tokens and k > max(m, other.call.tokens)]
    count = one.token + 1
    for d in axes[-1:]:
        pair = _parts(a.narrow(d, 0, count), one, b.narrow(d, 0, count), other)
        return pair is not None and bool(pair[0].numel()) and not _differ(*pair)
    return False


def _parts(a: Tensor, one: TokenOfCall, b: Tensor, other: TokenOfCall) -> tuple[Tensor, Tensor] | None:
    """The part of each tensor for the token, along the axes of rows and of tokens, and the keys up to the token."""
    rows, tokens = (one.call.rows, other.call.rows), (one.call.tokens, other.call.tokens)
    has_row = has_token = False
    for d in range(a.dim()):
        sizes = (a.shape[d], b.shape[d])
        before = sizes[0] - tokens[0]  # entries before the tokens, such as those of a learned prompt
        flat = sizes == (rows[0] * tokens[0], rows[1] * tokens[1])
        if sizes == rows and not has_row and (a.dim() > 1 or rows != tokens) and d < 2:
            has_row, places = True, (one.row, other.row)
        elif sizes == tokens and not has_token:
            has_token, places = True, (one.token, other.token)
        elif d == 1 and before > 0 and before == sizes[1] - tokens[1] and tokens[0] != tokens[1] and not has_token:
            has_token, places = True, (before + one.token, before + other.token)
        elif flat and not (has_row or has_token) and sizes != tokens:
            has_row = has_token = True
            places = (one.flat_place, other.flat_place)
        elif sizes[0] != sizes[1] or sizes == tokens:
            ends = (sizes[0] - tokens[0] + one.token + 1, sizes[1] - tokens[1] + other.token + 1)
            count = min(ends)
            if count < 1 or sizes[0] < tokens[0] or sizes[1] < tokens[1]:
                return None
            a, b = a.narrow(d, ends[0] - count, count), b.narrow(d, ends[1] - count, count)
            continue
        else:
            continue
        a, b = a.narrow(d, places[0], 1), b.narrow(d, places[1], 1)
    return (a, b) if a.shape == b.shape else None
