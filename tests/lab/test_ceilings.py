"""The record of a question's ceilings."""

from __future__ import annotations

from fractions import Fraction

import pytest

from orderproof.errors import UsageError
from orderproof.lab.asking import make
from orderproof.lab.ceilings import Ceilings, ceilings


def test_it_holds_the_fraction_the_decimal_and_how():
    found = ceilings(make("even_pairs", {}), [4, 10])
    assert [(at.length, at.tokens, at.ceiling, at.fraction) for at in found.lengths] == [
        (4, 5, 0.625, "5/8"),
        (10, 11, 71 / 128, "71/128"),
    ]
    assert all(at.how and at.floor is None for at in found.lengths)
    assert Ceilings.model_validate_json(found.to_json()) == found


def test_the_lengths_are_those_tested_at_unless_given():
    question = make("parity", {})
    found = ceilings(question)
    assert tuple(at.length for at in found.lengths) == question.test_lengths
    assert {at.fraction for at in found.lengths} == {"1"}


def test_a_fraction_is_written_however_long_it_is():
    (found,) = ceilings(make("copy", {"letters": 97}), [2400]).lengths
    assert found.fraction is not None
    assert len(found.fraction) > 4300
    assert found.ceiling == 0


def test_nats_come_with_the_least_that_any_reader_pays():
    for at in ceilings(make("extrapolate", {})).lengths:
        assert at.fraction is None
        assert at.floor < at.ceiling


def test_what_nobody_knows_is_not_made_up():
    (found,) = ceilings(make("python_source", {}), [64]).lengths
    assert (found.ceiling, found.fraction, found.how, found.floor) == (None, None, None, None)


def test_the_reader_of_a_decoder_knows_only_what_stands_before():
    assert "those before" in ceilings(make("copy", {}), [2]).reader
    assert "the bag of the row" in ceilings(make("parity", {}), [2]).reader


def test_a_length_below_one_is_refused():
    with pytest.raises(UsageError, match="expected lengths from 1 on; got 0"):
        ceilings(make("parity", {}), [3, 0])


def test_the_value_is_that_of_the_question():
    question = make("bucket_sort", {"letters": 3})
    (found,) = ceilings(question, [5]).lengths
    assert Fraction(found.fraction or "0") == question.ceiling(5).value
