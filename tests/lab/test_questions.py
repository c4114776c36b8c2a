"""What every question promises; a new one is tested by being in its folder."""

from __future__ import annotations

import pytest
import torch

from orderproof.lab.asking import questions
from orderproof.lab.question import UNSCORED

EVERY = [pytest.param(question, id=name) for name, question in questions().items()]


@pytest.mark.parametrize("question", EVERY)
def test_rows_are_of_the_stated_size_and_draws_repeat(question):
    asked = question()
    length = asked.test_lengths[0]
    one, other = (asked.draw(length, 5, torch.Generator().manual_seed(3)) for _ in range(2))
    assert one.tokens.shape == one.targets.shape == (5, asked.tokens(length))
    assert torch.equal(one.tokens, other.tokens)
    assert torch.equal(one.targets, other.targets)
    assert int(one.tokens.min()) >= 0
    assert int(one.tokens.max()) < asked.vocabulary
    scored = one.targets[one.targets != UNSCORED]
    assert len(scored)
    assert all(int(answer) in (asked.answers or range(asked.vocabulary)) for answer in scored)
