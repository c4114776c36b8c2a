"""The user's rotary function: vectors, and positions or an offset if it takes some."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from orderproof.conventions.layouts import LAYOUTS, Layout
from orderproof.conventions.rotation.function import WIDTH, RotaryFunction
from orderproof.errors import SubjectError, UnsupportedCallError, first_line
from orderproof.models.own_errors import raise_own_error

POSITIONS = ("positions", "position_ids", "position", "pos", "input_pos", "indices")
OFFSETS = ("offset", "start", "start_pos", "past_length")


def own_rotation(function: Callable[..., Any], name: str, version: str) -> RotaryFunction:
    """The function in the common form. Raises `SubjectError` if it rotates in no layout."""
    accepted = list(inspect.signature(function).parameters.values())
    where = next((p.name for p in accepted[1:] if p.name in (*POSITIONS, *OFFSETS)), None)
    failure = "it changes no vector"
    for name_of_layout, layout in LAYOUTS.items():
        for rows in (True, False):  # positions [row, token], or [token]

            def rotate(x: Tensor, positions: Tensor, *, layout: Layout = layout, rows: bool = rows) -> Tensor:
                if where is None and int(positions.flatten()[0]) != 0:
                    raise UnsupportedCallError("it takes no positions")
                named = {}
                if where is not None:
                    each = positions.expand(x.shape[0], -1) if rows and positions.dim() == 1 else positions
                    named[where] = int(positions.flatten()[0]) if where in OFFSETS else each
                found = function(layout.given(x), **named)
                return layout.back(found[0] if isinstance(found, tuple | list) else found)

            try:
                if _rotates(rotate):
                    takes = frozenset({"rows"} if rows and where in POSITIONS else ())
                    return RotaryFunction(name, version, name_of_layout, rotate, takes)
            except Exception as error:  # noqa: BLE001 - the user's function: anything may come
                raise_own_error(error)
                failure = first_line(error)
    raise SubjectError(
        f"{name}: expected a rotary function of vectors in one of the layouts {'; '.join(LAYOUTS)} and of positions, "
        f"an argument {', '.join(POSITIONS[:3])}, {OFFSETS[0]} or none; {failure}"
    )


def _rotates(rotate: Callable[[Tensor, Tensor], Tensor]) -> bool:
    """True if token 0 stays as it is, token 1 changes, and the length of no vector does."""
    x = torch.linspace(1, 2, 2 * 4 * WIDTH).view(1, 2, 4, WIDTH)[:, :1].contiguous()
    found = rotate(x, torch.arange(4))
    if found.shape != x.shape or not torch.allclose(found[..., 0, :], x[..., 0, :], atol=1e-5):
        return False
    return not torch.allclose(found[..., 1, :], x[..., 1, :], atol=1e-3) and torch.allclose(
        found.norm(dim=-1), x.norm(dim=-1), atol=1e-3
    )
