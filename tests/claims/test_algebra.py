"""Identities with symbols: proved where both sides are one expression, refuted by numbers where they are not."""

from __future__ import annotations

import pytest
import torch

from orderproof.claims import permuted_scores
from orderproof.claims.bench import Bench
from orderproof.claims.by_algebra import Formula, exactly
from orderproof.claims.models import AttentionSteps, Mixing, seeded, vectors
from orderproof.claims.position_vectors import shift_matrix, table


def whole(S_moves: str = "rows") -> Formula:
    return Formula(
        text="f(P X) = P f(X)", operands=(("x", (3, 2), "rows"),), result=S_moves,
        of=lambda X: permuted_scores.softmax(X * X.T) * X,
    )  # fmt: skip


def test_all_of_attention_is_one_expression_with_symbols():
    outcome = exactly(whole, Bench())
    assert outcome.found == "proved"
    assert outcome.evidence == ("f(P X) = P f(X): the same expression in all 36 entries, for all 6 orders of 3 tokens",)


def test_a_wrong_move_of_the_result_is_refuted_with_numbers():
    outcome = exactly(lambda: whole("still"), Bench())
    assert outcome.found == "refuted"
    assert "put in, entry" in outcome.evidence[0]


@pytest.mark.parametrize(
    ("formula", "found"),
    [
        (permuted_scores.softmax_formula, "proved"),
        (permuted_scores.broken_softmax, "refuted"),
        (permuted_scores.scores_formula, "proved"),
        (permuted_scores.broken_scores, "refuted"),
    ],
)
def test_each_step(formula, found):
    assert exactly(formula, Bench()).found == found


def test_the_steps_are_those_of_the_block():
    steps, block = seeded(AttentionSteps), seeded(Mixing)
    block.attention.load_state_dict(steps.attention.state_dict())
    block.attention.heads = 1
    x = vectors()
    with torch.no_grad():
        torch.testing.assert_close(steps.attention.to_output(steps(x)["Z"]), block(x), rtol=1e-5, atol=1e-6)


def test_the_matrix_of_a_shift_turns_the_whole_table():
    E = table()
    assert float((E[:1000] @ shift_matrix().T - E[3:]).abs().max()) < 1e-12
    assert float((shift_matrix() @ shift_matrix().T - torch.eye(8)).abs().max()) < 1e-15
