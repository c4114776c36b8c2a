"""A proof speaks of its own length only."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from orderproof.auditing.decide.verdict import combine_relations
from orderproof.laws import find_proved_law
from orderproof.records.audit import Finding, Scope
from tests.auditing.internals import prove_law
from tests.diagnosis.walking import Program, examine


def far_sighted(x: Tensor) -> Tensor:
    ones = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool)
    scores = (x @ x.transpose(1, 2)).masked_fill(ones.triu(1) & ~ones.triu(20), float("-inf"))
    return scores.softmax(-1) @ x


def dilated(x: Tensor) -> Tensor:
    """Causal at 7 tokens, because the padding of 8 is longer than the row."""
    convolved = F.conv1d(x.transpose(1, 2), torch.ones(4, 4, 3) / 12, padding=8, dilation=8).transpose(1, 2)
    return x.cumsum(1) + convolved[:, : x.shape[1]]


ONE: dict[str, tuple[str, Callable[[Tensor], Tensor]]] = {
    "a table whose first rows are the same": (
        "permutation",
        lambda x: x + torch.tensor([1.0] * 5 + [2.0] * 9)[: x.shape[1], None],
    ),
    "a mask whose far rows see ahead": ("causal", far_sighted),
    "the first five tokens": ("permutation", lambda x: x + x[:, :5].mean(1, keepdim=True)),
    "blocks of five": ("permutation", lambda x: x + F.pad(x, (0, 0, 0, -x.shape[1] % 5))[:, :5].mean(1, keepdim=True)),
    "a dilation longer than the row": ("causal", dilated),
    "a roll by the length": ("causal", lambda x: x.cumsum(1) + x.roll(5, 1)),
}


@pytest.mark.parametrize("name", ONE)
def test_a_proof_says_nothing_about_other_lengths(name: str) -> None:
    """Each is proved at five tokens, and false at some other number."""
    law, function = ONE[name]
    (found,) = prove_law(examine(Program(function)), find_proved_law(law))
    assert (found.verdict, found.scope.length, found.scope.lengths) == ("proved", 5, "this")


def test_a_law_of_two_relations_has_the_assumptions_of_both() -> None:
    one = Scope(length=7, tensors_read=("a",), assumptions=("at this length", "x is small"))
    two = Scope(length=7, weights="these", tensors_read=("b",), assumptions=("at this length", "y is small"))
    findings = [Finding(code="OP203", law="packing", verdict="proved", scope=s) for s in (one, two)]
    joint = combine_relations(findings).scope
    assert (joint.lengths, joint.weights, joint.tensors_read) == ("this", "these", ("a", "b"))
    assert joint.assumptions == ("at this length", "x is small", "y is small")
