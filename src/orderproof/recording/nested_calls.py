"""Operators that run functions of the model, such as `torch.cond`: these functions are recorded in their place.

    cond               both branches, and `where` on the condition
    scan               one step for each slice
    map                the body for all slices at once (vmap), or for one after the other if vmap refuses it
    while_loop         the body as often as constants say
    associative_scan   the operators with which torch computes it without compilation

Flex attention, whose eager call is the same when it is not compiled, is in `flex_attention.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.utils import _pytree as pytree

MAX_ITERATIONS = 256  # of a loop, each of which is recorded by itself
Function = Callable[..., Any]


def written_out(operator: Any) -> Function | None:
    """The function that computes an operator by others; None if there is none."""
    return _WRITTEN_OUT.get(operator.name())


def _cond(condition: Any, yes: Function, no: Function, operands: Sequence[Any]) -> Any:
    if not isinstance(condition, Tensor):
        return (yes if condition else no)(*operands)
    first, structure = pytree.tree_flatten(yes(*operands))
    second = pytree.tree_leaves(no(*operands))
    test = condition.reshape(())
    return pytree.tree_unflatten([torch.where(test, a, b) for a, b in zip(first, second, strict=True)], structure)


def _scan(step: Function, carried: Sequence[Any], scanned: Sequence[Tensor], rest: Sequence[Any]) -> Any:
    carry, lines = list(carried), []
    for k in range(len(scanned[0])):
        made = step(*carry, *(x.select(0, k) for x in scanned), *rest)
        carry, line = list(made[: len(carry)]), made[len(carry) :]
        lines.append(line)
    return [*carry, *_stacked(lines)]


def _map(body: Function, mapped: Sequence[Tensor], rest: Sequence[Any]) -> Any:
    try:
        return torch.vmap(body, in_dims=(*(0 for _ in mapped), *(None for _ in rest)))(*mapped, *rest)
    except Exception:  # noqa: BLE001 - vmap may refuse with any exception
        return _stacked([body(*(x.select(0, k) for x in mapped), *rest) for k in range(len(mapped[0]))])


def _stacked(lines: Sequence[Any]) -> Any:
    """The results of each slice, joined along a new first dimension."""
    parts = zip(*map(pytree.tree_leaves, lines), strict=True)
    joined = [None if one[0] is None else torch.stack(list(one)) for one in parts]
    return pytree.tree_unflatten(joined, pytree.tree_structure(lines[0]))


def _while_loop(going: Function, body: Function, carried: Sequence[Any], rest: Sequence[Any], *_: Any) -> Any:
    for _k in range(MAX_ITERATIONS):
        if not going(*carried, *rest):
            return carried
        carried = body(*carried, *rest)
    raise RuntimeError(f"expected a loop of at most {MAX_ITERATIONS} iterations, which are recorded one by one")


def _associative_scan(combine: Function, scanned: Sequence[Tensor], rest: Sequence[Any]) -> Any:
    from torch._higher_order_ops.associative_scan import generic_associative_scan

    return generic_associative_scan(combine, scanned, additional_inputs=rest)  # type: ignore[no-untyped-call]


_WRITTEN_OUT: dict[str, Function] = {
    "cond": _cond, "scan": _scan, "map_impl": _map, "while_loop": _while_loop, "associative_scan": _associative_scan,
}  # fmt: skip
