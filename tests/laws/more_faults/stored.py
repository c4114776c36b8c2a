"""Faults of storing and loading."""

from __future__ import annotations

import torch
from torch import Tensor

from orderproof.blocks.driving import TransformerDriver, decoder
from orderproof.encodings import Rotary
from tests.laws.more_faults.placed import halves_turned
from tests.laws.more_faults.planted import Planted


class LostFrequencies(Rotary):
    """Frequencies are a buffer that is not saved, made where the model is made and not where it is loaded."""

    frequencies: Tensor

    def __init__(self, head_width: int) -> None:
        super().__init__(head_width)
        self._plan = None
        self.register_buffer("frequencies", torch.tensor(self.spectrum.frequencies), persistent=False)

    def turned(self, x: Tensor, positions: Tensor, *, side: str, lengths: Tensor | None = None) -> Tensor:
        del side, lengths
        return halves_turned(x, positions.unsqueeze(-1) * self.frequencies)


FAULTS = (
    Planted(
        LostFrequencies,
        lambda: decoder(LostFrequencies(8), of=TransformerDriver),
        ("materialised",),
        ("unslothai/unsloth#4112", "pytorch/torchtitan#4783", "macwiatrak/Bacformer#33", "Synthyra/FastPLMs#47"),
    ),
)
