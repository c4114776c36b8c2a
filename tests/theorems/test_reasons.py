"""The reason why there is no theorem names the operator and says what to change."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from orderproof.auditing.explain.entries import operator_name
from orderproof.laws import find_law
from orderproof.logic.solver import Solver
from orderproof.theorems.agreement import prove_agreement
from tests.recheck.theorems.examples import recorded
from tests.theorems.programs import Case, Program, attend, lower


def _unmasked(m: Program, x: Tensor) -> Tensor:
    return attend(m, x, None)


def _may_hide_a_row(m: Program, x: Tensor) -> Tensor:
    chosen = (x[..., 0] > 0)[:, None, :]
    return attend(m, x, chosen & lower(x), fill=-1e9)


def _split_elsewhere(m: Program, x: Tensor) -> Tensor:
    b, n, width = x.shape
    heads = m.first(x).reshape(b, 2, n, width // 2)
    return x + heads.sum(1).repeat(1, 1, 2)


def _chunk_by_chunk(m: Program, x: Tensor) -> Tensor:
    state, out = torch.zeros_like(x[:, :1]), []
    for part in x.split(3, 1):
        out.append(part + state)
        state = state + part.sum(1, keepdim=True)
    return torch.cat(out, 1)


def _level_of_one_number(m: Program, x: Tensor) -> Tensor:
    return x + m.table(torch.bucketize(1, torch.tensor([0, 4, 9])))


@pytest.mark.parametrize(
    ("function", "operator", "words"),
    [
        (_unmasked, "aten.softmax.int", "the rules know no mask of these scores"),
        (_may_hide_a_row, "aten.softmax.int", "let each token see itself"),
        (_split_elsewhere, "aten.reshape.default", "keep these dimensions apart"),
        (_level_of_one_number, "aten.bucketize.Scalar", "a number of the program is between boundaries"),
        (_chunk_by_chunk, "aten.cat.default", "compute all tokens by one operator"),
    ],
)
def test_a_reason_says_what_to_change(function: object, operator: str, words: str) -> None:
    graphs, roles = recorded(Case("", function, frozenset()))  # type: ignore[arg-type]
    statement = find_law("causal").open_statement(frozenset(roles[1:]))
    assert statement is not None
    (found,) = prove_agreement(graphs, roles, statement, Solver()).values()
    assert not found.proved
    assert words in found.reason
    assert found.node is not None
    assert operator_name(found.node) == operator
