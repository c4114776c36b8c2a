"""Permutation-invariant models score the ceiling, and a score that a proof rules out stops a study."""

from __future__ import annotations

from fractions import Fraction

import pytest

from orderproof.lab import proof_consistency
from orderproof.lab.run_config import RunConfig
from orderproof.lab.trainer import train

pytestmark = pytest.mark.slow  # each trains a model
SMALL = {"width": 16, "heads": 2, "steps": 30, "learning_rate": 0.003, "test_rows": 64}


def small_run(**settings: object) -> RunConfig:
    return RunConfig.model_validate({**SMALL, "question": {"name": "who_did_what", "nouns": 4}, **settings})


@pytest.mark.parametrize(
    ("settings", "laws", "invariant"),
    [
        ({"encoding": "none", "causal": False, "layers": 2}, {"permutation", "prompt_permutation", "reversal"}, True),
        ({"encoding": "none", "causal": True, "layers": 1}, {"prompt_permutation", "causal"}, True),
        ({"encoding": "none", "causal": True, "layers": 2}, {"causal"}, False),
        ({"encoding": "alibi", "causal": False, "layers": 1}, {"reversal"}, False),
        ({"encoding": "rotary", "causal": True, "layers": 1}, {"causal"}, False),
    ],
)
def test_proved_laws_determine_whether_the_scored_answers_are_invariant(settings, laws, invariant):
    run = small_run(**settings)
    assert sorted(proof_consistency.prove_laws(run)) == sorted(laws)
    assert proof_consistency.is_permutation_invariant(run, tuple(laws)) is invariant


def test_an_invariant_model_scores_exactly_the_ceiling_of_a_balanced_question():
    for layers, causal in ((2, False), (1, True)):
        run = small_run(encoding="none", layers=layers, causal=causal)
        result = train(run)
        (at,) = result.lengths
        assert Fraction(at.right, at.scored) == run.question.ceiling(at.length).value == Fraction(1, 2)
        proof_consistency.check_scores_against_proofs(run, result, proof_consistency.prove_laws(run))


def test_a_score_off_the_ceiling_contradicts_a_proof_of_invariance_in_one_line():
    run = small_run(encoding="none", layers=1)
    result = train(run)
    for right in (result.lengths[0].right + 1, result.lengths[0].right - 1):
        wrong = result.model_copy(update={"lengths": [result.lengths[0].model_copy(update={"right": right})]})
        with pytest.raises(
            proof_consistency.ProofContradiction, match=r"must score exactly 1/2 at length 6, but scored .*report it"
        ):
            proof_consistency.check_scores_against_proofs(run, wrong, ("prompt_permutation",))
        proof_consistency.check_scores_against_proofs(run, wrong, ("causal",))  # no invariance is proved


def test_only_a_score_above_the_ceiling_of_all_rows_contradicts_a_proof():
    run = RunConfig.model_validate(
        {**SMALL, "question": "even_pairs", "encoding": "none", "causal": False, "test_lengths": (4,)}
    )
    result = train(run)
    (at,) = result.lengths
    assert run.question.is_exhaustive(4, run.test_rows)
    laws = proof_consistency.prove_laws(run)
    assert proof_consistency.is_permutation_invariant(run, laws)
    proof_consistency.check_scores_against_proofs(run, result, laws)
    ceiling = run.question.ceiling(4).value
    above = at.model_copy(update={"right": int(ceiling * at.scored) + 1})
    with pytest.raises(proof_consistency.ProofContradiction, match="cannot score more than 5/8 at length 4"):
        proof_consistency.check_scores_against_proofs(run, result.model_copy(update={"lengths": [above]}), laws)


@pytest.mark.slow
def test_two_causal_layers_without_positions_learn_the_question_and_one_does_not():
    """Claim 1 (one query) at its boundary, on trained models."""
    settings = {"encoding": "none", "causal": True, "width": 32, "heads": 4, "steps": 600, "learning_rate": 0.001}
    one, two = (train(small_run(**settings, layers=layers)).lengths[0] for layers in (1, 2))
    assert one.score == 0.5
    assert two.score > 0.95
