"""Seeding the random generators for a block."""

from __future__ import annotations

import pytest
import torch

from orderproof import seeded_random as module
from orderproof.seeded_random import seeded_random


@pytest.mark.parametrize("accelerated", [False, True])
def test_a_block_draws_the_numbers_of_its_seed_and_leaves_the_generator_as_it_was(
    accelerated: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_accelerator_is_used", lambda: accelerated)
    torch.manual_seed(5)
    expected = torch.rand(3)
    before = torch.get_rng_state()
    with seeded_random(5):
        assert torch.equal(torch.rand(3), expected)
    assert torch.equal(torch.get_rng_state(), before)
