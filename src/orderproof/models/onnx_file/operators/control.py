"""Operators that run a graph of their own: conditions and loops."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from orderproof.models.onnx_file.operation import Operation, operator
from orderproof.models.onnx_file.values import Value, are_numbers, as_tensor, numbers

MOST_TURNS = 1 << 12  # of a loop, which is written out


@operator("If")
def if_(call: Operation) -> list[Value]:
    """One of two branches; if data decide, both are computed, and their outputs must have the same shapes."""
    condition = call.value(0)
    if are_numbers(condition):
        return call.graphs["then_branch" if condition.item() else "else_branch"]()
    yes, no = ([as_tensor(x) for x in call.graphs[name]()] for name in ("then_branch", "else_branch"))
    if any(a.shape != b.shape or a.dtype != b.dtype for a, b in zip(yes, no, strict=True)):
        raise call.refuse("a condition on data between outputs of two shapes")
    chosen = as_tensor(condition).reshape(())
    return [torch.where(chosen, a, b) for a, b in zip(yes, no, strict=True)]


@operator("Loop")
def loop(call: Operation) -> list[Value]:
    """A graph for each turn; its number of turns must be known, and no data may end it."""
    turns, go_on, carried = call.optional(0), call.optional(1), list(call.inputs[2:])
    if turns is None or not are_numbers(turns):
        raise call.refuse("a number of turns that data decide")
    rows: list[list[Value]] = []
    for turn in range(int(turns.item())):
        if turn >= MOST_TURNS:
            raise call.refuse(f"more than {MOST_TURNS} turns")
        if go_on is not None and not are_numbers(go_on):
            raise call.refuse("an end that data decide")
        if go_on is not None and not go_on.item():
            break
        go_on, *found = call.graphs["body"](numbers(turn), numbers(True) if go_on is None else go_on, *carried)
        carried, scanned = list(found[: len(carried)]), found[len(carried) :]
        rows.append(scanned)
    if not rows and call.output_count > len(carried):
        raise call.refuse("no turn and outputs of each turn")
    return [*carried, *_stacked(rows)]  # type: ignore[list-item]


@operator("Scan")
def scan(call: Operation) -> list[Value]:
    """A graph for each entry of the first axis of the last inputs."""
    if any(any(call.attribute(f"scan_{key}", [])) for key in ("input_axes", "input_directions", "output_axes",
           "output_directions")):  # fmt: skip
        raise call.refuse("other axes or directions")
    count = call.attribute("num_scan_inputs")
    carried: list[Any] = list(call.inputs[:-count])
    scanned = [as_tensor(x) for x in call.inputs[-count:] if x is not None]
    rows: list[list[Value]] = []
    for turn in range(int(scanned[0].shape[0])):
        found = call.graphs["body"](*carried, *(x[turn] for x in scanned))
        carried, last = found[: len(carried)], found[len(carried) :]
        rows.append(last)
    if not rows:
        raise call.refuse("no entry")
    return [*carried, *_stacked(rows)]


def _stacked(rows: list[list[Value]]) -> list[Tensor]:
    return [torch.stack([as_tensor(x) for x in column]) for column in zip(*rows, strict=True)]
