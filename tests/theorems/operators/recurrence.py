"""Programs with recurrent layers."""

from __future__ import annotations

import torch
from torch import Tensor

from tests.diagnosis.mutants.engine import M, mutants_of
from tests.theorems.programs import WIDTH, Case, Program

CAUSAL = frozenset({"causal", "batch"})


def rnn(
    m: Program, x: Tensor, *, first: Tensor | None = None, added: Tensor | None = None, both_ways: bool = False,
    rows_first: bool = True,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """The outputs and the last states of a recurrent layer."""
    weights = [
        m.first.weight if added is None else m.first.weight + added,
        m.second.weight,
        m.first.bias,
        m.second.bias,
    ]
    rows = x.shape[0] if rows_first else x.shape[1]
    first = torch.zeros(1 + both_ways, rows, x.shape[2]) if first is None else first
    return torch.rnn_tanh(x, first, weights * (1 + both_ways), True, 1, 0.0, False, both_ways, rows_first)


def tokens_first(m: Program, x: Tensor) -> Tensor:
    """The layer on tokens along the first dimension."""
    return rnn(m, x.transpose(0, 1), rows_first=False)[0].transpose(0, 1)


def forwards(m: Program, x: Tensor, *, layers: int = 1, until: int = WIDTH) -> Tensor:
    """The first features of layers that run both ways."""
    one = [m.first.weight, m.second.weight, m.first.bias, m.second.bias]
    above = [torch.cat([m.first.weight, m.third.weight], 1), *one[1:]]
    weights = one * 2 + above * 2 * (layers - 1)
    first = torch.zeros(2 * layers, x.shape[0], WIDTH)
    return torch.rnn_tanh(x, first, weights, True, layers, 0.0, False, True, True)[0][..., 1:until]


PROGRAMS = [
    Case("recurrent layer", lambda m, x: rnn(m, x)[0], CAUSAL),
    Case("recurrent layer, tokens first", tokens_first, CAUSAL),
    Case("recurrent layer of the next token", lambda m, x: rnn(m, x.roll(-1, 1))[0], frozenset({"batch"})),
    Case("recurrent layer both ways", lambda m, x: rnn(m, x, both_ways=True)[0], frozenset({"batch"})),
    Case("last state of a recurrent layer", lambda m, x: x + rnn(m, x)[1].transpose(0, 1), frozenset({"batch"})),
    Case("state from the first token", lambda m, x: rnn(m, x, first=x[None, :, 0])[0], CAUSAL),
    Case("state from the last token", lambda m, x: rnn(m, x, first=x[None, :, -1])[0], frozenset({"batch"})),
    Case("recurrent layer of rows", lambda m, x: rnn(m, x, rows_first=False)[0], frozenset({"causal"})),
    Case("first half of both ways", forwards, CAUSAL),
    Case("more than the first half of both ways", lambda m, x: forwards(m, x, until=WIDTH + 1), frozenset({"batch"})),
    Case("first half of two layers", lambda m, x: forwards(m, x, layers=2), frozenset({"batch"})),
    Case("recurrent weights of tokens", lambda m, x: rnn(m, x, added=x.mean((0, 1)))[0], frozenset()),
]  # fmt: skip
MUTANTS = mutants_of(
    "theorems.operators.recurrence.recurrence",
    M("own_token_of_a_recurrence", "less(own, other)", "less(own, other + 1)", program=PROGRAMS[2].name, quick=True),
    M(
        "one_way_of_two",
        "less(feature, size_of(states[0].dims[2]))",
        "TRUE",
        program="recurrent layer both ways",
        quick=True,
    ),
    M("one_way_of_two_layers", "layers == 1 or not backwards", "True", program="first half of two layers", quick=True),
    M(
        "initial_states_not_read",
        "[common.place(f, own).same for f, own in of_states]",
        "[]",
        program="state from the last token",
    ),
    M(
        "weights_of_tokens",
        "any(call.fact(one) != OpenFact(call.fact(one).dims, call.dtype) for one in tensors(weights))",
        "False",
        program="recurrent weights of tokens",
    ),
)
