"""A module is after `prove` as it was before: its weights, and every tensor that its code assigns to."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from orderproof import audit, prove

INPUTS = torch.randn(2, 7, 6, generator=torch.Generator().manual_seed(0))
GLOBAL = torch.ones(1)


class Changing(nn.Module):
    """A causal sum after a change of its state."""

    def __init__(self, change: Callable[[Changing], Tensor]) -> None:
        super().__init__()
        self.map, self.change = nn.Linear(6, 6), change
        self.kept, self.listed = torch.ones(1), [torch.ones(1)]

    def forward(self, x: Tensor) -> Tensor:
        scale = self.change(self)
        y: Tensor = self.map(x).cumsum(1) * scale
        return y


def _assigned(x: Tensor) -> Tensor:
    x.data = x.data * 0.5 + 0.25
    return x


def _normalised(m: Changing) -> Tensor:
    with torch.no_grad():
        m.map.weight.copy_(nn.functional.normalize(m.map.weight, dim=1))
    return m.kept


def _replaced(m: Changing) -> Tensor:
    m.map.weight = nn.Parameter(m.map.weight * 0.9)
    return m.kept


CHANGES: dict[str, Callable[[Changing], Tensor]] = {
    "a tensor of the file": lambda _: _assigned(GLOBAL),
    "a tensor in a list": lambda m: _assigned(m.listed[0]),
    "a tensor in an attribute": lambda m: _assigned(m.kept),
    "a parameter": lambda m: _assigned(m.map.weight).sum(),
    "a parameter in place": _normalised,
    "a parameter that is replaced": _replaced,
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_module_is_as_before(name: str) -> None:
    module = Changing(CHANGES[name])
    tensors = [*module.parameters(), module.kept, module.listed[0], GLOBAL]
    before = [x.detach().clone() for x in tensors]
    prove(module, "causal", inputs=INPUTS)
    after = [*module.parameters(), module.kept, module.listed[0], GLOBAL]
    for tensor, now, value in zip(tensors, after, before, strict=True):
        assert now is tensor
        assert torch.equal(tensor.detach(), value)
    assert module(INPUTS).device.type == "cpu"


def test_an_audit_leaves_a_table_with_a_greatest_norm_as_it_was() -> None:
    module = nn.Sequential(nn.Embedding(50, 6, max_norm=1.0), nn.Linear(6, 6))
    before = module[0].weight.detach().clone()
    audit(module, laws=["causal", "batch"], inputs=torch.randint(0, 50, (2, 7)))
    assert torch.equal(module[0].weight.detach(), before)


def test_a_lazy_module_is_proved() -> None:
    class Lazy(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.map = nn.LazyLinear(6)

        def forward(self, x: Tensor) -> Tensor:
            y: Tensor = self.map(x).cumsum(1)
            return y

    assert prove(Lazy(), "causal", inputs=INPUTS).verdict == "proved"
