from __future__ import annotations

import torch

from orderproof.blocks import fingerprint_model
from tests.encodings.examples import WIDTH, normal


def test_one_causal_layer_without_positions_ignores_prompt_order_and_two_do_not() -> None:
    x, order = normal(2, 7, WIDTH), torch.tensor([3, 0, 5, 1, 2, 4, 6])
    for layers, blind in ((1, True), (2, False)):
        block = fingerprint_model("none", causal=True, layers=layers).double()
        difference = (block(x[:, order]) - block(x))[:, -1].abs().max()
        assert bool(difference < 1e-13) is blind
        assert blind or difference > 1e-3
