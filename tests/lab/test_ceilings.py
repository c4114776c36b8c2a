"""The record of a question's ceilings."""

from __future__ import annotations

from fractions import Fraction

import pytest

from orderproof.errors import UsageError
from orderproof.lab.ceilings import CeilingReport, compute_ceilings
from orderproof.lab.registry import make_question


def test_it_has_the_fraction_the_decimal_and_the_derivation():
    found = compute_ceilings(make_question("even_pairs", {}), [4, 10])
    assert [(at.length, at.tokens, at.ceiling, at.fraction) for at in found.lengths] == [
        (4, 5, 0.625, "5/8"),
        (10, 11, 71 / 128, "71/128"),
    ]
    assert all(at.derivation and at.floor is None for at in found.lengths)
    assert CeilingReport.model_validate_json(found.to_json()) == found


def test_the_default_lengths_are_the_test_lengths():
    question = make_question("parity", {})
    found = compute_ceilings(question)
    assert tuple(at.length for at in found.lengths) == question.test_lengths
    assert {at.fraction for at in found.lengths} == {"1"}


def test_a_long_fraction_is_written_in_full():
    (found,) = compute_ceilings(make_question("copy", {"letters": 97}), [2400]).lengths
    assert found.fraction is not None
    assert len(found.fraction) > 4300
    assert found.ceiling == 0


def test_nats_have_a_floor_below_the_ceiling():
    for at in compute_ceilings(make_question("extrapolate", {})).lengths:
        assert at.fraction is None
        assert at.floor < at.ceiling


def test_an_unknown_ceiling_is_none():
    (found,) = compute_ceilings(make_question("python_source", {}), [64]).lengths
    assert (found.ceiling, found.fraction, found.derivation, found.floor) == (None, None, None, None)


def test_the_predictor_of_a_decoder_knows_only_the_tokens_before():
    assert "those before" in compute_ceilings(make_question("copy", {}), [2]).observer
    assert "the bag of the row" in compute_ceilings(make_question("parity", {}), [2]).observer


def test_a_length_below_one_is_refused():
    with pytest.raises(UsageError, match="expected lengths of 1 or more; got 0"):
        compute_ceilings(make_question("parity", {}), [3, 0])


def test_the_value_is_that_of_the_question():
    question = make_question("bucket_sort", {"letters": 3})
    (found,) = compute_ceilings(question, [5]).lengths
    assert Fraction(found.fraction or "0") == question.ceiling(5).value
