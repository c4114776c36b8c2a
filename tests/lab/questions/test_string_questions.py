"""The questions about strings, on examples solved by hand."""

from __future__ import annotations

import pytest
import torch

from orderproof.lab.choice_question import ChoiceQuestion
from orderproof.lab.question import UNSCORED
from orderproof.lab.registry import make_question


@pytest.mark.parametrize(
    ("name", "chosen", "tokens", "answer"),
    [
        ("even_pairs", [0, 1, 1, 0], [0, 1, 1, 0, 2], [0]),
        ("even_pairs", [0, 1, 0, 1], [0, 1, 0, 1, 2], [1]),
        ("parity", [1, 1, 0, 1], [1, 1, 0, 1, 2], [1]),
        ("cycle_navigation", [0, 0, 1, 2], [0, 0, 1, 2, 3], [4]),
        ("missing_duplicate", [1, 0, 1, 4], [1, 0, 1, 1, 2, 1, 3], [0]),
        ("missing_duplicate", [1, 0, 1, 0], [2, 0, 1, 1, 0, 1, 3], [1]),
        ("reverse_string", [0, 1, 1], [0, 1, 1, 2, 2, 2], [1, 1, 0]),
        ("duplicate_string", [0, 1], [0, 1, 2, 2, 2, 2], [0, 1, 0, 1]),
        ("odds_first", [0, 0, 1, 0, 1], [0, 0, 1, 0, 1, 2, 2, 2, 2, 2], [0, 1, 1, 0, 0]),
        ("bucket_sort", [4, 0, 2, 0], [4, 0, 2, 0, 5, 5, 5, 5], [0, 0, 2, 4]),
    ],
)
def test_the_answer_is_at_the_empty_tokens(name, chosen, tokens, answer):
    question = make_question(name, {})
    assert isinstance(question, ChoiceQuestion)
    length = 3 if name == "missing_duplicate" else len(chosen)
    batch = question.build(torch.tensor([chosen]), length)
    assert batch.tokens.tolist() == [tokens]
    assert batch.targets.tolist() == [[UNSCORED] * (len(tokens) - len(answer)) + answer]


@pytest.mark.parametrize("length", [1, 2, 9])
def test_an_odd_number_of_changes_is_a_last_letter_that_is_not_the_first(length):
    batch = make_question("even_pairs", {}).sample(length, 100, torch.Generator().manual_seed(0))
    assert torch.equal(batch.targets[:, -1], (batch.tokens[:, 0] != batch.tokens[:, length - 1]).long())
