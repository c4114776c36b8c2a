"""The remedy of a violation names what happens at its operator."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import orderproof


class Convolution(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Conv1d(8, 8, 3, padding=1)

    def forward(self, x: Tensor) -> Tensor:
        return self.inner(x.transpose(1, 2)).transpose(1, 2)


class Recurrence(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.LSTM(8, 8, batch_first=True, bidirectional=True)

    def forward(self, x: Tensor) -> Tensor:
        return self.inner(x)[0]


class Centred(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x - x.mean(1, keepdim=True)


class Pooling(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return F.avg_pool1d(x.transpose(1, 2), 3, 1, 1).transpose(1, 2)


class Attention(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return (x @ x.transpose(1, 2)).softmax(-1) @ x


class Gate(nn.Module):
    """A mask that shows the next token, applied after the softmax."""

    def forward(self, x: Tensor) -> Tensor:
        weights = (x @ x.transpose(1, 2)).sigmoid()
        return (weights * torch.ones_like(weights).tril(1)) @ x


@pytest.mark.parametrize(
    ("model", "start", "code"),
    [
        (Convolution, "Pad the convolution", "conv1d"),
        (Recurrence, "Compute the output of a token from this token and earlier ones", ""),
        (Centred, "Compute the output of a token from this token and earlier ones", ""),
        (Pooling, "Compute the output of a token from this token and earlier ones", ""),
        (Attention, "Mask later tokens before the softmax", "scaled_dot_product_attention"),
        (Gate, "Mask later tokens before the softmax", ".tril(0)"),
    ],
)
def test_the_remedy_of_a_leak_is_that_of_its_operator(model: type[nn.Module], start: str, code: str) -> None:
    (finding,) = orderproof.audit(model(), inputs=torch.randn(2, 7, 8), laws=["causal"]).findings
    assert finding.verdict == "refuted"
    assert finding.remedy.startswith(start)
    assert code in finding.remedy_diff
    assert bool(finding.remedy_diff) is bool(code)
