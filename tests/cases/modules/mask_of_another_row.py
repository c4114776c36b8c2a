"""Masks by which one row changes another: a row without pads must give what it gives alone.

After NVIDIA-NeMo/Automodel#2316 (lengths are summed over the batch, and used in each row) and
meta-pytorch/attention-gym#98 (the mask of the first row is broadcast).
"""

from __future__ import annotations

import torch
from torch import Tensor, nn


class Recurrence(nn.Module):
    """A decaying sum over earlier tokens of the same sequence; rows are padded on the right."""

    def __init__(self, *, per_row: bool) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.per_row = per_row
        self.words, self.head = nn.Embedding(50, 12), nn.Linear(12, 50)

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        x = self.words(input_ids)
        place = torch.arange(x.shape[1])
        ends = attention_mask.sum(1, keepdim=True)
        if not self.per_row:
            ends = ends.cumsum(0).mT.expand(len(x), -1)
        sequence = (place[:, None] >= ends[:, None]).sum(-1)
        distance = place[:, None] - place
        weights = 0.8 ** distance.clamp(min=0) * (distance >= 0) * (sequence[:, :, None] == sequence[:, None])
        return self.head(x + weights @ x)


class Attention(nn.Module):
    """Causal attention that hides pads; with `shared`, those of the first row."""

    def __init__(self, *, shared: bool) -> None:
        super().__init__()
        torch.manual_seed(1)
        self.shared = shared
        self.words, self.places = nn.Embedding(50, 12), nn.Embedding(64, 12)
        self.mix, self.head = nn.Linear(12, 36), nn.Linear(12, 50)

    def forward(self, ids: Tensor, mask: Tensor) -> Tensor:
        x = self.words(ids) + self.places((mask.cumsum(1) - 1).clamp(min=0))
        q, k, v = self.mix(x).chunk(3, -1)
        seen = torch.ones(ids.shape[1], ids.shape[1], dtype=torch.bool).tril() & mask[:, None]
        if self.shared:
            seen = seen[:1]
        return self.head((q @ k.mT / 3.5).masked_fill(~seen, -1e9).softmax(-1) @ v)


def _inputs() -> dict[str, Tensor]:
    mask = torch.tensor([[1] * 9, [1] * 5 + [0] * 4])
    return {"input_ids": torch.randint(0, 50, (2, 9)), "attention_mask": mask}


def _pair() -> tuple[Tensor, Tensor]:
    return torch.randint(0, 50, (2, 7)), torch.ones(2, 7, dtype=torch.bool)


def bad() -> tuple[nn.Module, dict[str, Tensor]]:
    return Recurrence(per_row=False), _inputs()


def good() -> tuple[nn.Module, dict[str, Tensor]]:
    return Recurrence(per_row=True), _inputs()


def bad_shared() -> tuple[nn.Module, tuple[Tensor, Tensor]]:
    return Attention(shared=True), _pair()


def good_shared() -> tuple[nn.Module, tuple[Tensor, Tensor]]:
    return Attention(shared=False), _pair()
