"""Faults of saving and loading."""

from __future__ import annotations

import torch
from torch import Tensor

from orderproof.blocks.transformer_adapter import TransformerAdapter, tiny_decoder
from orderproof.encodings import Rotary
from tests.laws.faults.fault import Planted
from tests.laws.faults.position_faults import halves_turned


class LostFrequencies(Rotary):
    """The frequencies are a buffer that is not saved, and computed when building, not when loading."""

    frequencies: Tensor

    def __init__(self, head_width: int) -> None:
        super().__init__(head_width)
        self._plan = None
        self.register_buffer("frequencies", torch.tensor(self.spectrum.frequencies), persistent=False)

    def encode(self, x: Tensor, positions: Tensor, *, side: str, lengths: Tensor | None = None) -> Tensor:
        del side, lengths
        return halves_turned(x, positions.unsqueeze(-1) * self.frequencies)


FAULTS = (
    Planted(
        LostFrequencies,
        lambda: tiny_decoder(LostFrequencies(8), of=TransformerAdapter),
        ("save_load",),
        ("unslothai/unsloth#4112", "pytorch/torchtitan#4783", "macwiatrak/Bacformer#33", "Synthyra/FastPLMs#47"),
    ),
)
