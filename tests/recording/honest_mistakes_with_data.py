"""Mistakes that engineers make by accident: branches on the numbers of inputs and weights, and writes in place."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tests.recording.honest_mistakes import WIDTH, CausalAttention, mistake, with_mean

# ---------------------------------------------------------------- branches on the input


@mistake("undecided", "control flow depends on data")
class ClampOfInfinity(CausalAttention):
    """Clamps all tokens if one is infinite, as T5 and Whisper do in half precision."""

    def forward(self, x: Tensor) -> Tensor:
        y = super().forward(x)
        return y.clamp(-1e4, 1e4) if torch.isinf(y).any() else y


@mistake("undecided", "control flow depends on data")
class LengthFromTheData(CausalAttention):
    """Takes the length from the last token that is not zero."""

    def forward(self, x: Tensor) -> Tensor:
        n = int((x.abs().sum(-1) > 0).sum(1).max())
        return F.pad(super().forward(x[:, :n]), (0, 0, 0, x.shape[1] - n))


@mistake("refuted", "`numpy` of a tensor")
class DetourThroughNumpy(CausalAttention):
    """Sums backwards in numpy, where nothing is recorded."""

    def forward(self, x: Tensor) -> Tensor:
        return x + torch.from_numpy(np.cumsum(x.detach().numpy()[:, ::-1], 1).copy()).float()


@mistake("harmless", "`__format__` of a tensor")
class LoggedStatistic(CausalAttention):
    """Writes the mean to a log: causal, and refused because nothing tells a log from a result."""

    def forward(self, x: Tensor) -> Tensor:
        y = super().forward(x)
        self.log = f"{y.mean():.3f}"
        return y


@mistake("undecided", "control flow depends on data")
class SwallowedRefusal(CausalAttention):
    """Catches every error around a branch on the data, the recorder's refusal too."""

    def forward(self, x: Tensor) -> Tensor:
        y = super().forward(x)
        try:
            if float(x.max()) > 20:
                return with_mean(y)
        except Exception:
            pass
        return y


@mistake("refuted", "catches an error that recording it raised")
class FallbackAfterAnError(CausalAttention):
    """Takes the mean if a decomposition fails."""

    def forward(self, x: Tensor) -> Tensor:
        y = super().forward(x)
        try:
            torch.linalg.cholesky(x[:, :WIDTH, :WIDTH] @ x[:, :WIDTH, :WIDTH].mT + 1e-3 * torch.eye(WIDTH))
        except Exception:
            return with_mean(y)
        return y


class ReversesLargeInputs(torch.autograd.Function):
    @staticmethod
    def forward(_ctx: Any, x: Tensor) -> Tensor:
        return x if float(x.max()) < 20 else x.flip(1)

    @staticmethod
    def backward(_ctx: Any, gradient: Tensor) -> Tensor:
        return gradient


@mistake("undecided", "control flow depends on data")
class BranchInACustomFunction(CausalAttention):
    """The branch hides in an operator with a gradient of its own."""

    def forward(self, x: Tensor) -> Tensor:
        return ReversesLargeInputs.apply(super().forward(x))  # type: ignore[no-any-return]


# ---------------------------------------------------------------- gates that start at zero


@mistake("refuted", "control flow depends on data")
class GateReadAsANumber(CausalAttention):
    """Skips a branch whose gate is zero today."""

    def prepare(self) -> None:
        self.gate = nn.Parameter(torch.zeros(1))

    def forward(self, x: Tensor) -> Tensor:
        y = super().forward(x)
        return y if self.gate.item() == 0 else y + self.gate * x.mean(1, keepdim=True)


@mistake("undecided", "no rule shows that token 0 does not read token 6")
class GateInAList(CausalAttention):
    """A plain list hides the gate from `parameters()`."""

    def prepare(self) -> None:
        self.gates = [nn.Parameter(torch.zeros(1))]

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x) + self.gates[0] * x.mean(1, keepdim=True)


@mistake("undecided", "no rule shows that token 0 does not read token 6")
class GateInABuffer(CausalAttention):
    """A buffer shares the gate's memory, and changes with it."""

    def prepare(self) -> None:
        self.gate = nn.Parameter(torch.zeros(1))
        self.register_buffer("shared", self.gate.data)

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x) + self.shared * x.mean(1, keepdim=True)


@mistake("undecided", "reads the memory of a parameter")
class GateInAnArray(CausalAttention):
    """An array of numpy shares the gate's memory."""

    def prepare(self) -> None:
        self.gate = nn.Parameter(torch.zeros(1))
        self.shared = self.gate.detach().numpy()

    def forward(self, x: Tensor) -> Tensor:
        y = super().forward(x)
        return with_mean(y) if self.shared[0] > 0.5 else y


# ---------------------------------------------------------------- writes in place


@mistake("undecided", "no rule shows that token 0 does not read token 6")
class WriteThroughAView(CausalAttention):
    """The first token is written where the last one is large."""

    def forward(self, x: Tensor) -> Tensor:
        y = super().forward(x)
        later = y[:, 1:]
        later += 0
        y[:, :1] += y[:, -1:] * 0 + (x[:, -1:] > 20)
        return y


@mistake("undecided", "no rule shows that token 0 does not read token 5")
class MemoryThatWasNeverWritten(CausalAttention):
    """A shifted copy leaves its first token as the memory was, and a large number reverses the tokens."""

    def forward(self, x: Tensor) -> Tensor:
        out = torch.empty_like(x)
        out[:, 1:] = x[:, :-1]
        return super().forward(x) + out * 0 + out.mean(1, keepdim=True) * 0 + (x.max() > 20) * x.flip(1)


@mistake("harmless", "")
class WriteIntoAnExpandedTensor(CausalAttention):
    """A bias gets the last token and is summed from the left: only the last token sees it, so the proof is right."""

    def prepare(self) -> None:
        self.bias = torch.zeros(1, 1, WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        bias = self.bias.expand_as(x).clone()
        bias[:, -1] += x[:, -1]
        return super().forward(x) + bias.cumsum(1)
