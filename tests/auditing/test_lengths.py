"""Proofs at one length that are proofs at every length: what says so, and what must not."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from orderproof.auditing.verdict import _combine_relations
from orderproof.laws import find_proved_law
from orderproof.models import load
from orderproof.records.audit import Finding, Scope
from tests.auditing.internals import AuditContext, prove_law
from tests.prover.walking import Program, examine


def verdicts(exam: AuditContext, law: str) -> set[tuple[str, str]]:
    return {(f.verdict, f.scope.lengths) for f in prove_law(exam, find_proved_law(law))}


@pytest.mark.parametrize("name", ["llama", "gpt2"])
def test_a_causal_flag_is_causal_at_every_length(name: str) -> None:
    subject = load(f"arch:{name}", tiny=True, attention="sdpa")
    (found,) = prove_law(AuditContext(subject, subject.default_length), find_proved_law("causal"))
    assert (found.verdict, found.scope.lengths) == ("proved", "every")
    assert any("at every length" in text for text in found.scope.assumptions)


def test_a_mask_that_is_looked_at_is_known_at_its_own_length_only() -> None:
    subject = load("arch:llama", tiny=True, attention="eager")
    assert verdicts(AuditContext(subject, subject.default_length), "causal") == {("proved", "this")}


def attention(x: Tensor) -> Tensor:
    return F.scaled_dot_product_attention(x, x, x)


def far_sighted(x: Tensor) -> Tensor:
    ones = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool)
    scores = (x @ x.transpose(1, 2)).masked_fill(ones.triu(1) & ~ones.triu(20), float("-inf"))
    return scores.softmax(-1) @ x


EVERY: dict[str, tuple[str, Callable[[Tensor], Tensor]]] = {
    "attention": ("permutation", attention),
    "a mean over the tokens": ("permutation", lambda x: x + x.mean(1, keepdim=True)),
    "rows and tokens in one": ("permutation", lambda x: F.linear(x.flatten(0, 1), torch.eye(4)).unflatten(0, (2, -1))),
    "a running sum": ("causal", lambda x: x.cumsum(1)),
}
ONE: dict[str, tuple[str, Callable[[Tensor], Tensor]]] = {
    "a table whose first rows are the same": (
        "permutation",
        lambda x: x + torch.tensor([1.0] * 5 + [2.0] * 9)[: x.shape[1], None],
    ),
    "a mask whose far rows see ahead": ("causal", far_sighted),
    "the first five tokens": ("permutation", lambda x: x + x[:, :5].mean(1, keepdim=True)),
    "blocks of five": ("permutation", lambda x: x + F.pad(x, (0, 0, 0, -x.shape[1] % 5))[:, :5].mean(1, keepdim=True)),
}


@pytest.mark.parametrize("name", EVERY)
def test_a_proof_without_a_length_in_it_holds_at_every_length(name: str) -> None:
    law, function = EVERY[name]
    assert verdicts(examine(Program(function)), law) == {("proved", "every")}


@pytest.mark.parametrize("name", ONE)
def test_a_proof_that_holds_at_this_length_by_chance_says_no_more(name: str) -> None:
    """Each is proved at five tokens, and false at some other number."""
    law, function = ONE[name]
    assert verdicts(examine(Program(function)), law) == {("proved", "this")}


def test_nothing_is_said_of_a_module_that_cannot_be_recorded_at_an_open_length() -> None:
    class Fixed(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return x.reshape(2, 5, 4) + x.mean(1, keepdim=True)

    assert verdicts(examine(Fixed()), "permutation") == {("proved", "this")}


def test_a_law_of_two_relations_rests_on_what_either_rests_on() -> None:
    one = Scope(length=7, lengths="every", tensors_read=("a",), assumptions=("at every length", "x is small"))
    two = Scope(length=7, weights="these", tensors_read=("b",), assumptions=("at this length", "y is small"))
    findings = [Finding(code="OP203", law="packing", verdict="proved", scope=s) for s in (one, two)]
    joint = _combine_relations(findings).scope
    assert (joint.lengths, joint.weights, joint.tensors_read) == ("this", "these", ("a", "b"))
    assert joint.assumptions[0] == "at this length"
    assert set(joint.assumptions[1:]) == {"x is small", "y is small"}
