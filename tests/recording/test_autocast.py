"""A call under autocast is recorded with the casts that torch makes: it computes what the model does."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from orderproof import prove
from orderproof.recording.capture import capture
from orderproof.recording.execution import execute


class Cast(nn.Module):
    """A function of layers and of one tensor [batch, token, width], called under autocast."""

    def __init__(self, function: Callable[[Cast, Tensor], Tensor]) -> None:
        super().__init__()
        self.linear, self.norm = nn.Linear(4, 4), nn.LayerNorm(4)
        self.convolution, self.recurrence = nn.Conv1d(4, 4, 3, padding=1), nn.GRU(4, 4, batch_first=True)
        self.function = function

    def forward(self, x: Tensor) -> Tensor:
        with torch.autocast("cpu", dtype=torch.bfloat16):
            return self.function(self, x)


def partly_off(m: Cast, x: Tensor) -> Tensor:
    y = m.linear(x)
    with torch.autocast("cpu", enabled=False):
        y = m.linear(y.float())
    return m.linear(y) + m.linear(x)  # type: ignore[no-any-return]


PROGRAMS: dict[str, Callable[[Cast, Tensor], Tensor]] = {
    "one weight twice": lambda m, x: m.linear(m.linear(x)),
    "an operator that torch writes out": lambda m, x: torch.einsum("btd,bsd->bts", x, x),
    "the result of such an operator": lambda m, x: m.linear(torch.einsum("btd,bsd->btd", x, x)) + x,
    "products": lambda m, x: x @ x.transpose(1, 2) @ x,
    "one tensor as two operands": lambda m, x: torch.baddbmm(x, x @ x.transpose(1, 2), x),
    "cast to the wider dtype": lambda m, x: torch.cat([m.linear(x), x]),
    "cast to float32": lambda m, x: torch.cdist(m.linear(x), x) + F.mse_loss(m.linear(x), x),
    "softmax": lambda m, x: m.linear(x).softmax(-1),
    "a norm": lambda m, x: m.norm(m.linear(x)),
    "attention": lambda m, x: F.scaled_dot_product_attention(m.linear(x), m.linear(x), m.linear(x)),
    "a convolution": lambda m, x: m.convolution(x.transpose(1, 2)),
    "a recurrence": lambda m, x: m.recurrence(x)[0],
    "a write": lambda m, x: m.linear(x).add_(1).mul_(2),
    "partly off": partly_off,
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_recording_computes_what_the_model_does(name: str) -> None:
    torch.manual_seed(0)
    module, x = Cast(PROGRAMS[name]).eval(), torch.randn(2, 5, 4)
    captured = capture(module, (x,))
    with torch.no_grad():
        assert torch.equal(execute(captured, (x,))["output"], module(x))
    values = [n.meta["val"] for n in captured.graph.nodes if n.op == "call_function"]
    assert any(isinstance(x, Tensor) and x.dtype is torch.bfloat16 for x in values)


def test_a_law_is_proved_for_every_length_under_autocast() -> None:
    module = Cast(lambda m, x: F.scaled_dot_product_attention(m.linear(x), x, x, is_causal=True)).eval()
    found = prove(module, "causal", inputs=torch.randn(2, 7, 4))
    assert found.verdict == "proved"
    assert found.theorem is not None
    assert found.theorem.proved
