"""Float64 copies of parameters: one for all modules and graphs of a model, with the values and ties of the original."""

import copy

import torch
from torch import Tensor, nn

from orderproof.recording.float64_parameters import Float64Parameters


class Tied(nn.Module):
    """Two layers with one weight, a scale, and a buffer that counts calls."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(4, 4), nn.Linear(4, 4)
        self.second.weight = self.first.weight
        self.scale = nn.Parameter(torch.ones(4), requires_grad=False)
        self.register_buffer("calls", torch.zeros(1))

    def forward(self, x: Tensor) -> Tensor:
        self.calls += 1
        return self.scale * self.second(self.first(x))


def test_a_module_with_shared_copies_computes_what_a_float64_copy_computes() -> None:
    model, x = Tied(), torch.randn(2, 3, 4, dtype=torch.float64)
    expected = copy.deepcopy(model).double()(x)
    converted = Float64Parameters().convert_module(model)
    assert torch.equal(converted(x), expected)
    assert {p.dtype for p in converted.parameters()} == {torch.float64}
    assert [p.requires_grad for p in converted.parameters()] == [p.requires_grad for p in model.parameters()]
    assert {p.dtype for p in model.parameters()} == {torch.float32}


def test_modules_and_graphs_share_their_parameters_but_not_their_buffers() -> None:
    model, shared = Tied(), Float64Parameters()
    first, second = shared.convert_module(model), shared.convert_module(nn.Sequential(model))[0]
    assert first.first.weight is first.second.weight
    assert first.first.weight.data_ptr() == second.first.weight.data_ptr()
    assert shared.convert(model.first.weight.detach()).data_ptr() == first.first.weight.data_ptr()
    assert first.first.weight is not second.first.weight
    first(torch.zeros(1, 1, 4, dtype=torch.float64))
    assert (float(first.calls), float(second.calls), float(model.calls)) == (1, 0, 0)


def test_views_of_one_parameter_are_told_apart() -> None:
    shared, weight = Float64Parameters(), torch.randn(4, 4)
    assert torch.equal(shared.convert(weight), weight.double())
    assert torch.equal(shared.convert(weight.T), weight.T.double())
    assert torch.equal(shared.convert(weight[:2]), weight[:2].double())


def test_a_float64_module_gets_parameters_of_its_own() -> None:
    model = Tied().double()
    converted = Float64Parameters().convert_module(model)
    assert converted.first.weight.data_ptr() != model.first.weight.data_ptr()
    assert torch.equal(converted.first.weight, model.first.weight)


def test_integers_and_cleared_copies() -> None:
    shared, ids, weight = Float64Parameters(), torch.arange(3), torch.randn(3)
    assert shared.convert(ids) is ids
    before = shared.convert(weight)
    weight += 1
    assert shared.convert(weight) is before
    shared.clear()
    assert torch.equal(shared.convert(weight), weight.double())
