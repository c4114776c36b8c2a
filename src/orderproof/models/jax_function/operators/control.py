"""Primitives that run a program of their own: scans, loops and conditions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from orderproof.models.jax_function.loops import Loop
from orderproof.models.jax_function.primitive import Primitive, Value, primitive
from orderproof.models.jax_function.program import Body

_LOOP = Loop()


@primitive("scan")
def scan(call: Primitive) -> list[Value]:
    """A program for each entry of the first axis, in order or from the last one on."""
    body, count = call.param("jaxpr"), call.param("length")
    consts, carries = call.param("num_consts"), call.param("num_carry")
    fixed, carried = call.inputs[:consts], call.inputs[consts : consts + carries]
    backward = bool(call.param("reverse"))
    scanned = [call.tensor(k) for k in range(consts + carries, len(call.inputs))]
    scanned = list(map(_flipped, scanned)) if backward else scanned
    counted = _counted(body, consts, carried)

    def step(state: Sequence[Value], entries: Sequence[Tensor], k: Any) -> list[Any]:
        state = [carried[j] + counted[j] * k if j in counted else x for j, x in enumerate(state)]
        found = call.run(body, [*fixed, *state, *(x[k] for x in entries)])
        after = [_as_state(call, consts + j, state[j] if j in counted else x) for j, x in enumerate(found[:carries])]
        return [after, *_as_tensors(call, body, found[carries:], carries)]

    state = [_as_state(call, consts + j, x) for j, x in enumerate(carried)]
    end, rows = _LOOP(step, state, scanned, count, len(call.shapes) - carries)
    end = [carried[j] + counted[j] * count if j in counted else x for j, x in enumerate(end)]
    return [*end, *(_flipped(x) if backward else x for x in rows)]


def _flipped(x: Tensor) -> Tensor:
    return torch.flip(x, [0])


def _as_state(call: Primitive, place: int, value: Value) -> Tensor:
    return value if isinstance(value, Tensor) else call.full(value, (), call.input_dtypes[place])


def _as_tensors(call: Primitive, body: Body, values: Sequence[Value], first: int) -> list[Tensor]:
    return [
        x if isinstance(x, Tensor) else call.full(x, (), body.result_dtypes[first + k]) for k, x in enumerate(values)
    ]


def _counted(body: Body, consts: int, carried: Sequence[Value]) -> dict[int, int]:
    """The steps of carried numbers to which each turn adds a constant: those are known for every turn."""
    found = {}
    for j, value in enumerate(carried):
        step = body.step_of(consts + j, j)
        if step is not None and not isinstance(value, Tensor):
            found[j] = step
    return found


@primitive("while")
def while_(call: Primitive) -> list[Value]:
    """A program until a condition is false. A number of turns that sizes decide is a loop; data may decide it too."""
    test, body = call.param("cond_jaxpr"), call.param("body_jaxpr")
    tests, consts = call.param("cond_nconsts"), call.param("body_nconsts")
    of_test, of_body, state = (
        call.inputs[:tests], call.inputs[tests : tests + consts], list(call.inputs[tests + consts :]),
    )  # fmt: skip
    counted = _counted(body, consts, state)
    bound = test.bound_of([*of_test, *state])
    if bound is not None and bound[0] - tests in counted and counted[bound[0] - tests] == 1:
        return _counting(call, of_body, state, counted, bound[1] - state[bound[0] - tests])
    while bool(call.run(test, [*of_test, *state])[0]):
        state = call.run(body, [*of_body, *state])
    return state


def _counting(
    call: Primitive, fixed: Sequence[Value], initial: Sequence[Value], counted: dict[int, int], count: Any
) -> list[Value]:
    body, first = call.param("body_jaxpr"), len(call.inputs) - len(initial)
    kept = {j: x for j, x in enumerate(initial) if body.keeps(len(fixed) + j, j)}

    def at(j: int, state: Sequence[Value], k: Any) -> Value:
        return initial[j] + counted[j] * k if j in counted else kept.get(j, state[j])

    def step(state: Sequence[Value], entries: Sequence[Tensor], k: Any) -> list[Any]:
        del entries
        own = [at(j, state, k) for j in range(len(state))]
        found = call.run(body, [*fixed, *own])
        return [[state[j] if j in counted or j in kept else _as_state(call, first + j, x) for j, x in enumerate(found)]]

    start = [_as_state(call, first + j, 0 if j in counted or j in kept else x) for j, x in enumerate(initial)]
    end, _ = _LOOP(step, start, (), count, 0)
    return [at(j, end, count) for j in range(len(end))]


@primitive("cond")
def cond(call: Primitive) -> list[Value]:
    """One of several programs; if data decide, all are computed."""
    which, *inputs = call.inputs
    branches = call.param("branches")
    if not isinstance(which, Tensor):
        return call.run(branches[min(max(int(which), 0), len(branches) - 1)], inputs)
    results = [call.run(branch, inputs) for branch in branches]
    found: list[Value] = []
    for place, values in enumerate(zip(*results, strict=True)):
        tensors = [x if isinstance(x, Tensor) else call.full(x, (), call.dtypes[place]) for x in values]
        chosen = tensors[-1]
        for k in reversed(range(len(tensors) - 1)):
            chosen = torch.where(which <= k, tensors[k], chosen)
        found.append(chosen)
    return found
