"""From proof to training: what is proved blind scores the ceiling, and a score that a proof rules out stops a study."""

from __future__ import annotations

from fractions import Fraction

import pytest

from orderproof.lab import blindness
from orderproof.lab.configuration import RunConfig
from orderproof.lab.training import train

SMALL = {"width": 16, "heads": 2, "steps": 30, "learning_rate": 0.003, "test_rows": 64}


def asked(**settings: object) -> RunConfig:
    return RunConfig.model_validate({**SMALL, "question": {"name": "who_did_what", "nouns": 4}, **settings})


@pytest.mark.parametrize(
    ("settings", "laws", "blind"),
    [
        ({"encoding": "none", "causal": False, "layers": 2}, {"order_blind", "prompt_blind", "mirror_blind"}, True),
        ({"encoding": "none", "causal": True, "layers": 1}, {"prompt_blind", "causal"}, True),
        ({"encoding": "none", "causal": True, "layers": 2}, {"causal"}, False),
        ({"encoding": "alibi", "causal": False, "layers": 1}, {"mirror_blind"}, False),
        ({"encoding": "rotary", "causal": True, "layers": 1}, {"causal"}, False),
    ],
)
def test_what_is_proved_of_a_run_says_whether_it_is_blind_where_it_is_read(settings, laws, blind):
    run = asked(**settings)
    assert set(blindness.proved(run)) == laws
    assert blindness.blind(run, tuple(laws)) is blind


def test_a_blind_model_scores_exactly_the_ceiling_of_a_balanced_question_whatever_it_learned():
    for layers, causal, seed in ((2, False, 0), (2, False, 1), (1, True, 0)):
        run = asked(encoding="none", layers=layers, causal=causal, seed=seed)
        result = train(run)
        (at,) = result.lengths
        assert Fraction(at.right, at.scored) == run.question.ceiling(at.length).value == Fraction(1, 2)
        blindness.check(run, result, blindness.proved(run))


def test_a_score_off_the_ceiling_of_a_model_proved_blind_is_an_error_in_one_line():
    run = asked(encoding="none", layers=1)
    result = train(run)
    for right in (result.lengths[0].right + 1, result.lengths[0].right - 1):
        wrong = result.model_copy(update={"lengths": [result.lengths[0].model_copy(update={"right": right})]})
        with pytest.raises(
            blindness.Contradiction, match=r"must score exactly 1/2 at length 6, and scored .*report it"
        ):
            blindness.check(run, wrong, ("prompt_blind",))
        blindness.check(run, wrong, ("causal",))  # nothing follows for a model that sees order


def test_a_blind_model_above_the_ceiling_of_all_rows_is_an_error_and_below_it_is_none():
    run = RunConfig.model_validate(
        {**SMALL, "question": "even_pairs", "encoding": "none", "causal": False, "test_lengths": (4,)}
    )
    result = train(run)
    (at,) = result.lengths
    assert run.question.exhausts(4, run.test_rows)
    laws = blindness.proved(run)
    assert blindness.blind(run, laws)
    blindness.check(run, result, laws)
    ceiling = run.question.ceiling(4).value
    above = at.model_copy(update={"right": int(ceiling * at.scored) + 1})
    with pytest.raises(blindness.Contradiction, match="cannot score more than 5/8 at length 4"):
        blindness.check(run, result.model_copy(update={"lengths": [above]}), laws)


def test_two_causal_layers_without_positions_find_out_who_did_it_and_one_does_not():
    """The boundary of the argument of one query, trained."""
    settings = {"encoding": "none", "causal": True, "width": 32, "heads": 4, "steps": 600, "learning_rate": 0.001}
    one, two = (train(asked(**settings, layers=layers)).lengths[0] for layers in (1, 2))
    assert one.score == 0.5
    assert two.score > 0.95
