"""Large positions, and one model in several precisions, for the laws distinct_positions and position_precision.

Position ids reach large positions with few tokens. Powers of two are avoided: they are exact in every precision, which
hides rounding.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple

import torch
from torch import Tensor

from orderproof.cast_on_use import is_large
from orderproof.errors import UnsupportedCallError
from orderproof.laws.measured.bfloat16_products import float32_products
from orderproof.laws.measured.cached_calls import CachedCalls, weight_dtype

DEFAULT_POSITION_COUNT = 4096  # positions to test if the model states no number
NEIGHBOURS = (3, 4)  # positions of a single token

PositionedForward = Callable[[Tensor, Tensor], Tensor]  # from tokens and position ids to an output


class DtypeMode(NamedTuple):
    """One precision: its description, its unit of rounding, and the call of the model in it."""

    description: str
    eps: float
    forward: PositionedForward


def position_count(calls: CachedCalls) -> int:
    """The number of positions to test: the rows of a table, else a default if the model accepts the last of them.

    A model that states no context length and refuses the last one has as many as calls accept.
    """
    adapter = calls.adapter
    if adapter.max_positions is not None:
        return adapter.max_positions
    usual = adapter.family_max_positions or DEFAULT_POSITION_COUNT
    stated = adapter.config_max_positions
    if stated is not None and stated >= usual:
        return stated
    if _accepts_position(calls, usual - 1):
        return usual
    return stated or calls.memoize("position count", lambda: _accepted_positions(calls, usual))


def _accepted_positions(calls: CachedCalls, refused: int) -> int:
    """The number of positions below a refused one that calls accept, up to the first that is refused."""
    accepted = calls.default_length
    while refused - accepted > 1:
        middle = (accepted + refused) // 2
        if _accepts_position(calls, middle - 1):
            accepted = middle
        else:
            refused = middle
    return accepted


def _accepts_position(calls: CachedCalls, position: int) -> bool:
    try:
        calls.forward_at(calls.sample_tokens(1, rows=1), calls.default_position_ids(1, rows=1, start=position))
    except Exception:  # noqa: BLE001 - third-party code: a call may fail in any way
        return False
    return True


def may_have_table(calls: CachedCalls, reach: int) -> bool:
    """True if a table of positions may be among the weights: the output of a single token depends on its position."""
    if "table" in calls.adapter.mechanisms:
        return True
    try:
        near = single_token_outputs(calls, [*NEIGHBOURS, reach - 1])
    except Exception:  # noqa: BLE001 - third-party code: a call may fail in any way
        return True
    return not bool((near == near[:1]).all())


def single_token_outputs(calls: CachedCalls, places: list[int]) -> Tensor:
    """The outputs [position, number] of a single token at each position."""
    tokens = torch.cat([calls.sample_tokens(1, rows=1)] * len(places))
    positions = calls.adapter.first_position_id + torch.tensor(places).unsqueeze(-1)
    return calls.forward_at(tokens, positions).reshape(len(places), -1)


def dtype_modes(calls: CachedCalls) -> Iterator[DtypeMode]:
    """The dtype in use, loaded in bfloat16, and autocast to bfloat16."""
    in_use = weight_dtype(calls.adapter.module)
    yield DtypeMode(f"in {str(in_use).removeprefix('torch.')}", torch.finfo(in_use).eps, calls.forward_at)
    eps = torch.finfo(torch.bfloat16).eps
    if in_use != torch.bfloat16:
        yield DtypeMode("in bfloat16", eps, _forward_in_bfloat16(calls))
        yield DtypeMode("under autocast to bfloat16", eps, partial(_forward_under_autocast, calls))


def float64_reference(calls: CachedCalls, precision: DtypeMode | None = None) -> CachedCalls:
    """The model loaded in float64, with tables and frequencies computed in float64, not converted from rounded ones.

    If it does not run in float64 or gives NaN or infinity, float32 is the reference for narrower dtypes. Raises
    `UnsupportedCallError` for the others. Of a large model float32 is the reference for narrower dtypes.
    """
    narrow = precision is not None and precision.eps > torch.finfo(torch.float32).eps
    if narrow and is_large(calls.adapter.module):
        return calls.loaded_in(torch.float32)
    wide = calls.loaded_in(torch.float64)
    try:
        if not bool(
            wide.forward_at(wide.default_tokens, wide.default_position_ids(wide.default_length)).isfinite().all()
        ):
            raise UnsupportedCallError("it gives NaN or infinity in float64")
    except Exception as error:
        wide = calls.loaded_in(torch.float32)
        if precision is not None and not narrow:
            raise UnsupportedCallError("it does not run in float64, the reference") from error
    return wide


def _forward_in_bfloat16(calls: CachedCalls) -> PositionedForward:
    def call(tokens: Tensor, positions: Tensor) -> Tensor:
        inputs = tokens.to(torch.bfloat16) if tokens.is_floating_point() else tokens
        loaded = calls.loaded_in(torch.bfloat16)
        with float32_products():
            return loaded.forward_at(inputs, positions)

    return call


def _forward_under_autocast(calls: CachedCalls, tokens: Tensor, positions: Tensor) -> Tensor:
    with torch.autocast("cpu", torch.bfloat16), float32_products():
        return calls.uncached_call(tokens, positions=positions, mask=calls.all_ones_mask(tokens), keep=False).output
