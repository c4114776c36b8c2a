"""Programs that break a law at lengths that a wrong rule of the prover would cover, and the runs that test theorems.

Each keeps its law at 7 tokens, where the proof at one length is made.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
import torch
from torch import Tensor
from torch.nn.functional import group_norm, layer_norm, pad, scaled_dot_product_attention

from orderproof import prove
from orderproof.auditing.decide import verdict
from orderproof.logic.terms import Term, as_term
from orderproof.theorems.facts.open_fact import OpenFact
from orderproof.theorems.facts.reindexing import reindexed
from orderproof.theorems.operators.movement import parts
from orderproof.theorems.walks.open_operation import OpenOperation
from tests.function_module import Function


def attends(x: Tensor, also: Callable[[Tensor], Tensor]) -> Tensor:
    """Causal attention that sees more keys where there are more than 8 tokens."""
    n = x.shape[1]
    i = torch.arange(n)
    seen = i <= i[:, None]
    if n > 8:
        seen = seen | also(i)
    return torch.zeros(n, n).masked_fill(~seen, -1e9).softmax(-1) @ x


def long(x: Tensor, special: Callable[[Tensor, int], Tensor], other: Callable[[Tensor], Tensor]) -> Tensor:
    return special(x, x.shape[1]) if x.shape[1] > 8 else other(x)


def with_mean(x: Tensor) -> Tensor:
    return x + x.mean(1, keepdim=True)


def twice(n: int) -> int:
    """The same number, as another expression."""
    return (n - 1) // 2 + n // 2 + 1


BROKEN: dict[str, tuple[str, Callable[[Tensor], Tensor]]] = {
    "an index from the end": ("causal", lambda x: x + x[:, -(x.shape[1] % 8)].unsqueeze(1)),
    "select from the end": ("causal", lambda x: x.cumsum(1) + x.select(1, -(x.shape[1] // 8)).unsqueeze(1)),
    "padding that cuts": (
        "permutation", lambda x: x + pad(x, (0, 0, 0, -(x.shape[1] // 8))).sum(1, keepdim=True)
    ),
    "padding with copies": (
        "permutation",
        lambda x: long(x, lambda y, _: y + pad(y.mT, (1, 1), mode="replicate").mT.sum(1, keepdim=True), with_mean),
    ),
    "an equal size": (
        "permutation",
        lambda x: long(
            x, lambda y, n: y.mean(1, keepdim=True) + torch.arange(twice(n)).float()[None, :, None], with_mean
        ),
    ),
    "an equal size of another axis": (
        "causal",
        lambda x: long(x, lambda y, n: torch.zeros(twice(n), 1) + y.mean(-1)[:, None, :], lambda y: (y @ y.mT).tril()),
    ),
    "int8 and a larger number": ("causal", lambda x: attends(x, lambda i: (i % 100).to(torch.int8) >= 200)),
    "int32 and a larger number": ("causal", lambda x: attends(x, lambda i: (i % 256).to(torch.int32) > 2**31)),
    "uint8 and a negative number": ("causal", lambda x: attends(x, lambda i: (i % 256).to(torch.uint8) < -1 + 2**8)),
    "int8 and a larger tensor": (
        "causal", lambda x: attends(x, lambda i: (i % 100).to(torch.int8) >= torch.tensor(128))
    ),
    "remainder of int8": ("causal", lambda x: attends(x, lambda i: (i % 100).to(torch.int8) % 200 != i % 100)),
    "maximum of int8": (
        "causal", lambda x: attends(x, lambda i: torch.minimum((i % 100).to(torch.int8), torch.tensor(300)) != i % 100)
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", BROKEN)
def test_a_law_that_longer_calls_break_has_no_theorem(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    law, function = BROKEN[name]
    finding = prove(Function(function).eval(), law, inputs=torch.randn(2, 7, 6))
    assert finding.theorem is None or not finding.theorem.proved
    monkeypatch.setattr(verdict, "compare_other_calls", lambda _context, _law, found, _prove, **_: found)
    finding = prove(Function(function).eval(), law, inputs=torch.randn(2, 7, 6))
    assert finding.theorem is None or not finding.theorem.proved or finding.theorem.greatest_length is not None


def scores(x: Tensor) -> Tensor:
    return x @ x.mT * 0.1 + torch.full((x.shape[1], x.shape[1]), -1e9).triu(1)


def large(n: int) -> Tensor:
    """As large as the mask, where the mask hides."""
    return torch.full((n, n), 1e9).triu(1)


def attended(weights: Tensor, x: Tensor) -> Tensor:
    return weights.softmax(-1) @ x


def behind_others(x: Tensor, n: int) -> Tensor:
    parts = torch.tensor_split(torch.cat([torch.zeros(len(x), 5, 6), x], 1), [3, 2], 1)
    return parts[2][:, 2 : 2 + n]


WIDE = {"weight": torch.full((1,), 1e9), "bias": torch.full((1,), 1e9)}
UNSOUND: dict[str, tuple[str, Callable[[Tensor, int], Tensor]]] = {
    "parts that overlap": ("permutation", behind_others),
    "topk without an order": (
        "permutation", lambda x, _: x + x.norm(dim=-1).topk(3, 1, sorted=False).values[:, None, :1]
    ),
    "layer norm with large weights": (
        "causal",
        lambda x, n: attended(scores(x) + layer_norm(torch.ones(n, n, 1), (1,), **WIDE).squeeze(-1).triu(1), x),
    ),
    "group norm with large weights": (
        "causal",
        lambda x, n: attended(scores(x) + group_norm(torch.ones(n, 1, n), 1, **WIDE).squeeze(1).triu(1), x),
    ),
    "attention with a large scale": (
        "causal", lambda x, n: scaled_dot_product_attention(x, x, x, attn_mask=-large(n), scale=1e9)
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", UNSOUND)
def test_no_rule_covers_what_breaks_a_law(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    law, function = UNSOUND[name]
    monkeypatch.setattr(verdict, "compare_other_calls", lambda _context, _law, found, _prove, **_: found)
    program = Function(lambda x: function(x, x.shape[1]) if x.shape[1] > 8 else 2 * x)
    finding = prove(program.eval(), law, inputs=torch.randn(2, 7, 6))
    assert finding.theorem is None or not finding.theorem.proved or finding.theorem.greatest_length == 8


def wrong_rule(_call: OpenOperation, fact: OpenFact, dim: int, place: Term) -> OpenFact:
    """The rule of an index without the case that it counts from the end."""
    found = reindexed(fact, dim, as_term(1), place)
    return replace(found, dims=(*found.dims[:dim], *found.dims[dim + 1 :]))


def test_runs_at_its_own_lengths_refute_a_theorem_of_a_wrong_rule(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parts, "selected", wrong_rule)
    finding = prove(Function(BROKEN["an index from the end"][1]).eval(), "causal", inputs=torch.randn(2, 7, 6))
    assert finding.verdict == "refuted"


def test_runs_that_agree_with_a_theorem_leave_no_trace_in_the_scope() -> None:
    finding = prove(Function(lambda x: x.cumsum(1)).eval(), "causal", inputs=torch.randn(2, 7, 6))
    assert finding.theorem is not None
    assert finding.theorem.proved
    assert finding.scope.compared_lengths == ()


def test_indices_and_paddings_that_stay_inside_have_theorems() -> None:
    for law, function in (
        ("causal", lambda x: x.cumsum(1) + x[:, x.shape[1] // 8 - x.shape[1]].unsqueeze(1) * (x.shape[1] < 16)),
        ("causal", lambda x: pad(x, (0, 0, x.shape[1] // 8, 0))[:, : x.shape[1]].cumsum(1)),
        ("permutation", lambda x: x + pad(x, (0, 0, 0, x.shape[1] // 8)).sum(1, keepdim=True)),
        ("causal", lambda x: attends(x, lambda i: (i % 100).to(torch.int8) >= 101)),
    ):
        finding = prove(Function(function).eval(), law, inputs=torch.randn(2, 7, 6))
        assert finding.verdict == "proved", law
        assert finding.theorem is not None
