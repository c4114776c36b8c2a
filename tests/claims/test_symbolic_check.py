"""Symbolic checks of identities: proved if both sides are one expression, refuted by numbers otherwise."""

from __future__ import annotations

import pytest
import torch

from orderproof.claims import permuted_scores
from orderproof.claims.audit_cache import AuditCache
from orderproof.claims.position_vectors import shift_matrix, sinusoidal_table
from orderproof.claims.small_models import AttentionBlock, AttentionSteps, random_vectors, seeded
from orderproof.claims.symbolic_check import Formula, check_identity


def whole_attention(result_action: str = "rows") -> Formula:
    return Formula(
        text="f(P X) = P f(X)", operands=(("x", (3, 2), "rows"),), result_action=result_action,
        function=lambda X: permuted_scores.softmax(X * X.T) * X,
    )  # fmt: skip


def test_attention_is_symbolically_equivariant():
    outcome = check_identity(whole_attention, AuditCache())
    assert outcome.verdict == "proved"
    assert outcome.evidence == (
        "f(P X) = P f(X): the same expression in all 36 entries, for all 6 permutations of 3 tokens",
    )


def test_a_wrong_action_on_the_result_is_refuted_with_numbers():
    outcome = check_identity(lambda: whole_attention("still"), AuditCache())
    assert outcome.verdict == "refuted"
    assert "..., entry" in outcome.evidence[0]


@pytest.mark.parametrize(
    ("formula", "verdict"),
    [
        (permuted_scores.softmax_formula, "proved"),
        (permuted_scores.broken_softmax, "refuted"),
        (permuted_scores.scores_formula, "proved"),
        (permuted_scores.broken_scores, "refuted"),
    ],
)
def test_each_step(formula, verdict):
    assert check_identity(formula, AuditCache()).verdict == verdict


def test_the_steps_are_those_of_the_block():
    steps, block = seeded(AttentionSteps), seeded(AttentionBlock)
    block.attention.load_state_dict(steps.attention.state_dict())
    block.attention.heads = 1
    x = random_vectors()
    with torch.no_grad():
        torch.testing.assert_close(steps.attention.to_output(steps(x)["Z"]), block(x), rtol=1e-5, atol=1e-6)


def test_the_shift_matrix_maps_the_whole_table():
    E = sinusoidal_table()
    assert float((E[:1000] @ shift_matrix().T - E[3:]).abs().max()) < 1e-12
    assert float((shift_matrix() @ shift_matrix().T - torch.eye(8)).abs().max()) < 1e-15
