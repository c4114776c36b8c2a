"""The user's table of positions: a function of positions only."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from orderproof.conventions.positions.function import LENGTH, PositionTable
from orderproof.errors import SubjectError, first_line
from orderproof.models.own_errors import raise_own_error

NAMES = ("positions", "position_ids", "position", "pos")


def own_table(function: Callable[..., Any], name: str, version: str) -> PositionTable | None:
    """The function in the common form; None if its first argument is not one of positions.

    Raises `SubjectError` if it gives no vector for each position.
    """
    arguments = list(inspect.signature(function).parameters)
    if not arguments or arguments[0] not in NAMES:
        return None
    failure = "it gives no vector for each of 4 positions"
    for batched in (False, True):  # positions [token], or [row, token]

        def look_up(positions: Tensor, *, batched: bool = batched) -> Tensor:
            found = function(positions[None] if batched else positions)
            vectors: Tensor = found[0] if batched else found
            return vectors

        try:
            found = look_up(torch.arange(4))
            if found.dim() == 2 and found.shape[0] == 4 and not torch.equal(found[0], found[1]):
                layout = "[row, token, width]" if batched else "[token, width]"
                return PositionTable(name, version, layout, look_up, _length(look_up))
        except Exception as error:  # noqa: BLE001 - the user's function: anything may come
            raise_own_error(error)
            failure = first_line(error)
    raise SubjectError(f"{name}: expected a function from positions [token] to vectors [token, width]; {failure}")


def _length(look_up: Callable[[Tensor], Tensor]) -> int:
    """The number of positions for which the function gives vectors; at most `LENGTH` times 4096."""
    length = 4
    while length < LENGTH * 4096:
        try:
            look_up(torch.tensor([length]))
        except Exception:  # noqa: BLE001 - the end of a table is an error
            break
        length *= 2
    low, high = length // 2, length
    while low + 1 < high:
        middle = (low + high) // 2
        try:
            look_up(torch.tensor([middle]))
            low = middle
        except Exception:  # noqa: BLE001 - the same
            high = middle
    return high
