"""The key in the filler."""

from __future__ import annotations

import torch

from orderproof.lab.questions.passkey import Passkey


def test_the_key_stands_where_it_was_put_and_the_filler_goes_on_behind_it():
    asked = Passkey(digits=3, size=2, phrase=2)  # KEY 3, ASK 4, filler 5 6
    made = asked.build(torch.tensor([[2, 0, 3], [1, 1, 0]]), 4)
    assert made.tokens.tolist() == [[5, 6, 5, 3, 2, 0, 6, 4, 2], [3, 1, 1, 5, 6, 5, 6, 4, 1]]
    assert made.targets[:, -2:].tolist() == [[2, 0], [1, 1]]


def test_the_filler_is_the_same_bag_wherever_the_key_stands():
    made = Passkey().draw(50, 30, torch.Generator().manual_seed(0)).tokens
    filler = torch.where(made >= 12, made, 0).sort(dim=1).values
    assert bool((filler == filler[0]).all())
    places = (made == 10).nonzero()[:, 1]
    assert len(places.unique()) > 10
