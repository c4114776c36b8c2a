"""A small model that adds waves to its tokens by itself: what it counts wrongly no later layer can refuse."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from orderproof.adapter import ModelOutput
from orderproof.blocks.transformer_adapter import TransformerAdapter
from orderproof.encodings import Sinusoidal

WAVES = Sinusoidal(16)


class AddedWaves(TransformerAdapter):
    """The model as it should be: it counts on from its cache, and over its mask where it has one."""

    def call(
        self, tokens: Tensor, *, positions: Tensor | None = None, mask: Tensor | None = None, past: Any = None,
        keep: bool | None = None,
    ) -> ModelOutput:  # fmt: skip
        if positions is None:
            positions = self.counted(tokens, mask, past)
        return super().call(WAVES.embed(tokens, positions), mask=mask, past=past, keep=keep)

    def counted(self, tokens: Tensor, mask: Tensor | None, past: Any) -> Tensor:
        """The positions [row, token] of the tokens of a call."""
        before = past[0].length if past else 0
        if mask is None:
            return (before + torch.arange(tokens.shape[1])).expand(tokens.shape[:2])
        return (mask.long().cumsum(1) - 1).clamp(min=0)[:, -tokens.shape[1] :]
