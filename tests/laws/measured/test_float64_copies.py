"""The float64 copy of a model is what copying it and casting the copy gives."""

from __future__ import annotations

import copy
from typing import Any

import torch
from torch import Tensor, nn

from orderproof.adapter import ModelAdapter, ModelOutput


class Tied(nn.Module):
    """Two layers with one weight, a buffer, and weights that are not contiguous, or frozen, or in float64."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(3, 3), nn.Linear(3, 3)
        self.second.weight = self.first.weight
        self.turned = nn.Parameter(torch.randn(4, 3).t())
        self.frozen = nn.Parameter(torch.randn(3), requires_grad=False)
        self.wide = nn.Parameter(torch.randn(3, dtype=torch.float64))
        self.register_buffer("scale", torch.rand(3))
        self.register_buffer("counts", torch.arange(3))


class TiedAdapter(ModelAdapter):
    """An adapter of this model, which is not called."""

    def __init__(self) -> None:
        self.module = Tied()

    def sample_tokens(self, rows: int, tokens: int, seed: int) -> Tensor:
        return torch.randn(rows, tokens, 3)

    def call(self, tokens: Tensor, **_arguments: Any) -> ModelOutput:
        return ModelOutput(tokens)


def test_a_float64_copy_is_the_cast_of_a_copy() -> None:
    adapter = TiedAdapter()
    module = adapter.module
    found, expected = adapter.in_float64().module, copy.deepcopy(module).double()
    tensors = [dict((*m.named_parameters(), *m.named_buffers())) for m in (found, expected)]
    assert tensors[0].keys() == tensors[1].keys()
    for name, value in tensors[1].items():
        same = tensors[0][name]
        assert torch.equal(same, value)
        assert (same.dtype, same.stride(), same.requires_grad) == (value.dtype, value.stride(), value.requires_grad)
    assert found.first.weight is found.second.weight
    own = {x.data_ptr() for x in (*module.parameters(), *module.buffers())}
    assert own.isdisjoint(x.data_ptr() for x in (*found.parameters(), *found.buffers()))
