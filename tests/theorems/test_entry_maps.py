"""Where order enters an open graph, and that it enters nowhere else."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from orderproof.auditing.decide.verdict import prove_law
from orderproof.laws import find_proved_law
from orderproof.logic.solver import Solver
from orderproof.recording.open_recording import OpenInput, record_open
from orderproof.theorems.equivariance import EntryMap, map_entries
from orderproof.theorems.statement import TOKEN_INPUT
from tests.diagnosis.walking import examine

WIDTH = 6


class Model(nn.Module):
    def __init__(self, function: Callable[[Model, Tensor], Tensor]) -> None:
        super().__init__()
        self.function = function
        self.table = nn.Parameter(torch.randn(64, WIDTH))
        self.other = nn.Parameter(torch.randn(64, WIDTH))
        self.register_buffer("zeros", torch.zeros(1, 64, dtype=torch.int64))

    def forward(self, x: Tensor) -> Tensor:
        return self.function(self, x)


def attention(x: Tensor, mask: Tensor | None = None, *, causal: bool = False) -> Tensor:
    return functional.scaled_dot_product_attention(x, x, x, attn_mask=mask, is_causal=causal)


def table(m: Model, x: Tensor) -> Tensor:
    return attention(x + m.table[: x.shape[1]])


def table_and_mask(m: Model, x: Tensor) -> Tensor:
    i = torch.arange(x.shape[1])
    return attention(x + m.table[i], i <= i[:, None])


def causal_flag(m: Model, x: Tensor) -> Tensor:
    return attention(x, causal=True)


def distances(m: Model, x: Tensor) -> Tensor:
    i = torch.arange(x.shape[1])
    scores = x @ x.mT - (i - i[:, None]).abs()
    return scores.softmax(-1) @ x


def nothing(m: Model, x: Tensor) -> Tensor:
    return attention(x)


def types_of_one_kind(m: Model, x: Tensor) -> Tensor:
    index = torch.arange(x.shape[1]).expand(x.shape[0], -1)
    return x + m.table[m.zeros.expand(x.shape[0], -1).gather(1, index)]


def backwards(m: Model, x: Tensor) -> Tensor:
    return x + m.table[: x.shape[1]] + x.flip(1)


def first_token(m: Model, x: Tensor) -> Tensor:
    return x + m.table[: x.shape[1]] + x[:, :1]


def running_sum(m: Model, x: Tensor) -> Tensor:
    return (x + m.table[: x.shape[1]]).cumsum(1)


def in_order(m: Model, x: Tensor) -> Tensor:
    return x + x.sort(1).values


def largest_first(m: Model, x: Tensor) -> Tensor:
    return x + m.table[: x.shape[1]] * x.sum(-1).argmax(1)[:, None, None]


def entries(function: Callable[[Model, Tensor], Tensor]) -> EntryMap:
    torch.manual_seed(0)
    inputs = [OpenInput("x", ("batch", "tokens", WIDTH), torch.float32)]
    graphs = record_open(Model(function).eval(), inputs, {"batch": 3, "tokens": 13})
    (found,) = map_entries(graphs, (TOKEN_INPUT,), Solver()).values()
    return found


@pytest.mark.parametrize(
    ("function", "operators"),
    [
        (table, ["add"]), (table_and_mask, ["add", "scaled_dot_product_attention"]),
        (causal_flag, ["scaled_dot_product_attention"]), (distances, ["sub"]), (nothing, []), (types_of_one_kind, []),
    ],
)  # fmt: skip
def test_order_enters_at_constants_and_nowhere_else(
    function: Callable[[Model, Tensor], Tensor], operators: list[str]
) -> None:
    found = entries(function)
    assert found.proof.proved
    assert [str(node.target).split(".")[1] for node in found.entries] == operators


@pytest.mark.parametrize("function", [backwards, first_token, running_sum, in_order, largest_first])
def test_order_that_enters_elsewhere_leaves_the_map_open(function: Callable[[Model, Tensor], Tensor]) -> None:
    assert not entries(function).proof.proved


def by_length(m: Model, x: Tensor) -> Tensor:
    if x.shape[1] > 9:
        return attention(x + m.other[: x.shape[1]])
    return attention(x + m.table[: x.shape[1]])


@pytest.mark.parametrize(
    ("function", "proved", "reason"), [(table, True, ""), (by_length, False, "at another length order enters at ")]
)
def test_the_map_of_a_finding_is_complete_for_every_length_only_with_the_same_places(
    function: Callable[[Model, Tensor], Tensor], proved: bool, reason: str
) -> None:
    torch.manual_seed(0)
    (finding,) = prove_law(examine(Model(function).eval(), 7, WIDTH), find_proved_law("permutation"))
    assert finding.entries_complete
    assert finding.completion is not None
    theorem = finding.completion.theorem
    assert theorem is not None
    assert theorem.proved == proved, theorem.reason
    assert theorem.reason.startswith(reason)
