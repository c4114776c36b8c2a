"""Recurrent layers that torch lacks, one step for each token.

They have peepholes, other activations, a reset before the product, or weights that are integers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from orderproof.models.onnx_file.operation import Operation
from orderproof.models.onnx_file.operators.quantization import product_of_real

# (x, first state, first cell, true at tokens of a row) -> output [token, row, hidden] and last states [1, row, hidden]
Layer = Callable[[Tensor, Tensor, Any, Tensor | None], tuple[Tensor, ...]]
Product = Callable[[Tensor], Tensor]
Step = Callable[[Tensor, Tensor, Any], tuple[Tensor, Any]]  # (x through the weights, state, cell) -> state, cell
FUNCTIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "sigmoid": torch.sigmoid, "tanh": torch.tanh, "relu": torch.relu, "softsign": F.softsign, "softplus": F.softplus,
}  # fmt: skip


def stepped(call: Operation, direction: int, names: Sequence[str]) -> Layer:
    """One direction of a layer. Raises `SubjectError` for a function that is not known."""
    if unknown := [name for name in names if name not in FUNCTIONS]:
        raise call.refuse(f"activation {unknown[0]}")
    bias, functions = call.optional_tensor(3), [FUNCTIONS[name] for name in names]
    biases = (None, None) if bias is None else tuple(bias[direction].chunk(2))
    of_x, of_state = (_product(call, direction, place, biases[place - 1]) for place in (1, 2))
    if call.name == "GRU":
        step = _gru(call, functions, call.tensor(2)[direction], biases[1])
    else:
        step = _lstm(call, direction, functions, of_state) if call.name == "LSTM" else _rnn(functions, of_state)

    def layer(x: Tensor, first: Tensor, cell: Any, shown: Tensor | None) -> tuple[Tensor, ...]:
        gates, state, found = of_x(x), first[0], []
        cell = None if cell is None else cell[0]
        for token in range(int(x.shape[0])):
            new, new_cell = step(gates[token], state, cell)
            if shown is not None:
                new = torch.where(shown[token], new, state)
                new_cell = None if cell is None else torch.where(shown[token], new_cell, cell)
            state, cell = new, new_cell
            found.append(state)
        return (torch.stack(found), state[None]) if cell is None else (torch.stack(found), state[None], cell[None])

    return layer


def _product(call: Operation, direction: int, place: int, bias: Tensor | None) -> Product:
    """The product with the weights for the input (1) or the state (2), whose scales are inputs 8 and 10."""
    weight, scale, zero = call.tensor(place)[direction], *map(call.optional_tensor, (6 + 2 * place, 7 + 2 * place))
    if scale is None:
        return lambda x: F.linear(x, weight, bias)
    own_zero = None if zero is None else zero[direction]
    return lambda x: product_of_real(x, weight.mT, scale[direction], own_zero, bias)


def _lstm(call: Operation, direction: int, functions: Sequence[Any], of_state: Product) -> Step:
    peepholes = call.optional_tensor(7)
    seen = [0.0] * 3 if peepholes is None else list(peepholes[direction].chunk(3))  # of the input, output, forget gate

    def step(x: Tensor, state: Tensor, cell: Tensor) -> tuple[Tensor, Tensor]:
        enter, leave, forget, new = (x + of_state(state)).chunk(4, -1)
        enter, forget = functions[0](enter + seen[0] * cell), functions[0](forget + seen[2] * cell)
        cell = forget * cell + enter * functions[1](new)
        return functions[0](leave + seen[1] * cell) * functions[2](cell), cell

    return step


def _gru(call: Operation, functions: Sequence[Any], weight: Tensor, bias: Tensor | None) -> Step:
    after = bool(call.attribute("linear_before_reset", 0))
    parts, shifts = weight.chunk(3), [None] * 3 if bias is None else list(bias.chunk(3))

    def step(x: Tensor, state: Tensor, cell: None) -> tuple[Tensor, None]:
        keep, reset, new = x.chunk(3, -1)
        keep = functions[0](keep + F.linear(state, parts[0], shifts[0]))
        reset = functions[0](reset + F.linear(state, parts[1], shifts[1]))
        if after:
            new = new + reset * F.linear(state, parts[2], shifts[2])
        else:
            new = new + F.linear(reset * state, parts[2], shifts[2])
        return (1 - keep) * functions[1](new) + keep * state, cell

    return step


def _rnn(functions: Sequence[Any], of_state: Product) -> Step:
    return lambda x, state, cell: (functions[0](x + of_state(state)), cell)
