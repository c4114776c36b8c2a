"""Small modules whose audits are known beforehand."""

from __future__ import annotations

import torch
from torch import Tensor, nn

WIDTH = 8


class Attention(nn.Module):
    """Self-attention without positions."""

    width = WIDTH

    def __init__(self) -> None:
        super().__init__()
        self.qkv = nn.Linear(WIDTH, 3 * WIDTH)

    def hidden(self, x: Tensor) -> Tensor | None:
        """Which scores no token sees."""
        return None

    def forward(self, x: Tensor) -> Tensor:
        query, key, value = self.qkv(x).chunk(3, -1)
        scores = query @ key.transpose(1, 2)
        hidden = self.hidden(x)
        if hidden is not None:
            scores = scores.masked_fill(hidden, float("-inf"))
        return torch.matmul(torch.softmax(scores, -1), value)


class Alone(Attention):
    """A mask that has become the identity: every token sees itself only."""

    def hidden(self, x: Tensor) -> Tensor:
        return ~torch.eye(x.shape[1], dtype=torch.bool)


class Causal(Attention):
    """A causal mask."""

    def hidden(self, x: Tensor) -> Tensor:
        return torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).triu(1)


class ZeroTable(Attention):
    """A position table that starts at zero."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Parameter(torch.zeros(16, WIDTH))

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x + self.table[: x.shape[1]])


class OtherBranch(Attention):
    """Order-blind while it is recorded, and not when it runs."""

    def forward(self, x: Tensor) -> Tensor:
        if not (torch.compiler.is_exporting() or torch.compiler.is_compiling()):
            x = x + torch.linspace(0, 1, x.shape[1])[:, None]
        return super().forward(x)


class BestWords(Attention):
    """Logits of the best words only; those of the others are -inf."""

    def forward(self, x: Tensor) -> Tensor:
        logits = self.qkv(x)
        return logits.masked_fill(logits < logits.topk(2).values[..., -1:], float("-inf"))


class NotANumber(Attention):
    """Every row of the mask hides everything."""

    def hidden(self, x: Tensor) -> Tensor:
        return torch.ones(x.shape[1], x.shape[1], dtype=torch.bool)


class DependsOnData(Attention):
    """Control flow that depends on data: its graph cannot be recorded. It is causal for no input."""

    def forward(self, x: Tensor) -> Tensor:
        made = super().forward(x)
        if bool(x[:, -1].sum() > 1e9):
            made = made + 1
        return made


class NeedsMemory(Attention):
    """Each token is counted in a Python loop over a number of steps taken from the data; order-blind."""

    def forward(self, x: Tensor) -> Tensor:
        for _ in range(int(torch.tensor([2]).item()) + (1 if bool(x.abs().max() > 1e9) else 0)):
            x = x + super().forward(x)
        return x


class SeveralOutputs(Attention):
    """Per token, pooled, and read from the first token."""

    def forward(self, x: Tensor) -> dict[str, Tensor]:
        made = super().forward(x)
        return {"tokens": made, "mean": made.mean(1), "first": made[:, 0]}
