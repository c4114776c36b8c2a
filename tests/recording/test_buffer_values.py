"""A module on the meta device is recorded with the values of its buffers, and of the constants that it computes."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from orderproof.recording.captured_graph import CapturedGraph
from orderproof.recording.recording import record


class DoublesLongInputs(nn.Module):
    """A map of each token with a buffer; inputs of more than three tokens are doubled, by the value of a constant."""

    def __init__(self) -> None:
        super().__init__()
        self.map = nn.Linear(4, 4, device="meta")
        self.register_buffer("scale", torch.empty((), device="meta"))

    def forward(self, x: Tensor) -> Tensor:
        """The outputs."""
        y: Tensor = self.map(x) + self.scale
        return y * 2 if torch.arange(x.shape[1], device=x.device).max() > 2 else y


def recorded(module: nn.Module, tokens: int) -> CapturedGraph:
    """The recording of a call on the meta device."""
    return record(module, (torch.empty(2, tokens, 4, device="meta"),), values={"scale": torch.tensor(3.0)})


def test_the_graph_has_the_values_of_buffers_and_the_module_is_as_before() -> None:
    module = DoublesLongInputs().eval()
    assert recorded(module, 3).values == {"scale": torch.tensor(3.0)}
    assert module.scale.is_meta


@pytest.mark.parametrize(("tokens", "doubles"), [(3, False), (4, True)])
def test_a_branch_follows_the_value_of_a_constant(tokens: int, doubles: bool) -> None:
    graph = recorded(DoublesLongInputs().eval(), tokens).graph
    assert any(node.target is torch.ops.aten.mul.Tensor for node in graph.nodes) == doubles
