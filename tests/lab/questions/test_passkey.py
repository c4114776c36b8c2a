"""The key in the filler."""

from __future__ import annotations

import torch

from orderproof.lab.questions.passkey import Passkey


def test_the_key_is_at_its_position_and_the_filler_continues_after_it():
    question = Passkey(digits=3, size=2, phrase=2)  # KEY 3, ASK 4, filler 5 6
    batch = question.build(torch.tensor([[2, 0, 3], [1, 1, 0]]), 4)
    assert batch.tokens.tolist() == [[5, 6, 5, 3, 2, 0, 6, 4, 2], [3, 1, 1, 5, 6, 5, 6, 4, 1]]
    assert batch.targets[:, -2:].tolist() == [[2, 0], [1, 1]]


def test_the_bag_of_the_filler_does_not_depend_on_the_position_of_the_key():
    batch = Passkey().sample(50, 30, torch.Generator().manual_seed(0)).tokens
    filler = torch.where(batch >= 12, batch, 0).sort(dim=1).values
    assert bool((filler == filler[0]).all())
    positions = (batch == 10).nonzero()[:, 1]
    assert len(positions.unique()) > 10
