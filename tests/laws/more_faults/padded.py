"""Faults of padding and of rows in one batch."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from orderproof.blocks.driving import TransformerDriver, decoder, encoder
from orderproof.driver import Answer
from tests.laws.more_faults.added import AddedWaves
from tests.laws.more_faults.planted import Planted


class PadsCounted(TransformerDriver):
    """Where a mask hides pads the position ids are dropped, and the pads are counted."""

    def call(self, tokens: Tensor, *, positions: Tensor | None = None, mask: Tensor | None = None, past: Any = None,
             keep: bool | None = None) -> Answer:  # fmt: skip
        if mask is not None and not bool(mask.all()):
            before = 0 if past is None else past[0].used
            positions = (before + torch.arange(tokens.shape[1])).expand(tokens.shape[:2])
        return super().call(tokens, positions=positions, mask=mask, past=past, keep=keep)


class PositionsOfLastRow(TransformerDriver):
    """Every row gets the position ids of the last one."""

    def call(self, tokens: Tensor, *, positions: Tensor | None = None, **given: Any) -> Answer:
        if positions is not None:
            positions = positions[-1:].expand(positions.shape)
        return super().call(tokens, positions=positions, **given)


class MaskNotPassed(TransformerDriver):
    """The padding mask is taken and not passed on to the encoder."""

    def call(self, tokens: Tensor, *, mask: Tensor | None = None, **given: Any) -> Answer:
        del mask
        return super().call(tokens, **given)


class SlicedBeforeCounting(AddedWaves):
    """Of the mask that covers the cache only the part of the call is counted. It takes no position ids."""

    takes = frozenset({"mask", "cache"})

    def counted(self, tokens: Tensor, mask: Tensor | None, past: Any) -> Tensor:
        return super().counted(tokens, None if mask is None else mask[:, -tokens.shape[1] :], past)


FAULTS = (
    Planted(
        PadsCounted,
        lambda: encoder("sinusoidal", of=PadsCounted),
        ("batch_mates",),
        ("huggingface/transformers#22161", "ndif-team/nnsight#672", "TransformerLensOrg/TransformerLens#1609",
         "huggingface/trl#469"),
    ),
    Planted(
        PositionsOfLastRow,
        lambda: encoder("sinusoidal", of=PositionsOfLastRow),
        ("batch_mates",),
        ("unslothai/unsloth#3699",),
    ),
    Planted(MaskNotPassed, lambda: encoder(of=MaskNotPassed), ("batch_mates", "live"), ("lean-dojo/ReProver#34",)),
    Planted(
        SlicedBeforeCounting,
        lambda: decoder("none", of=SlicedBeforeCounting),
        ("cache_padded",),
        ("mosaicml/examples#257",),
    ),
)  # fmt: skip
