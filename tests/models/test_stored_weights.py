"""Tensors of a stored program are submodules' parameters and buffers, under their names."""

from __future__ import annotations

import torch
from torch import nn

from orderproof.models.stored_weights import hold


def test_tensors_are_held_under_their_names_and_a_name_that_is_taken_gets_underscores() -> None:
    module, names = nn.Module(), ("layers.0.kernel", "layers.0", "training.bias", "..forward", "layers.0.kernel")
    places = [hold(module, name, torch.full((2,), float(k)), weight=k != 1) for k, name in enumerate(names)]
    assert [float(getattr(part, name)[0]) for part, name in places] == [0.0, 1.0, 2.0, 3.0, 4.0]
    assert [name for name, _ in module.named_parameters()] == [
        "layers.0.kernel", "layers.0.kernel_", "training_.bias", "_._.forward_",
    ]  # fmt: skip
    assert [name for name, _ in module.named_buffers()] == ["layers.0_"]
