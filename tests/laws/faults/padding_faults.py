"""Faults of padding and of batches with several rows."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from orderproof.adapter import ModelOutput
from orderproof.blocks.transformer_adapter import TransformerAdapter, tiny_decoder, tiny_encoder
from tests.laws.faults.fault import Planted
from tests.laws.faults.sinusoidal_model import AddedWaves


class PadsCounted(TransformerAdapter):
    """With a padding mask the position ids are dropped, and pads are counted."""

    def call(self, tokens: Tensor, *, positions: Tensor | None = None, mask: Tensor | None = None, past: Any = None,
             keep: bool | None = None) -> ModelOutput:  # fmt: skip
        if mask is not None and not bool(mask.all()):
            before = 0 if past is None else past[0].length
            positions = (before + torch.arange(tokens.shape[1])).expand(tokens.shape[:2])
        return super().call(tokens, positions=positions, mask=mask, past=past, keep=keep)


class PositionsOfLastRow(TransformerAdapter):
    """Every row gets the position ids of the last one."""

    def call(self, tokens: Tensor, *, positions: Tensor | None = None, **kwargs: Any) -> ModelOutput:
        if positions is not None:
            positions = positions[-1:].expand(positions.shape)
        return super().call(tokens, positions=positions, **kwargs)


class MaskNotPassed(TransformerAdapter):
    """The padding mask is accepted and not passed to the encoder."""

    def call(self, tokens: Tensor, *, mask: Tensor | None = None, **kwargs: Any) -> ModelOutput:
        del mask
        return super().call(tokens, **kwargs)


class SlicedBeforeCounting(AddedWaves):
    """Positions are counted from the part of the mask that belongs to the call, not to the cache. No position ids."""

    supported_inputs = frozenset({"mask", "cache"})

    def counted(self, tokens: Tensor, mask: Tensor | None, past: Any) -> Tensor:
        return super().counted(tokens, None if mask is None else mask[:, -tokens.shape[1] :], past)


FAULTS = (
    Planted(
        PadsCounted,
        lambda: tiny_encoder("sinusoidal", of=PadsCounted),
        ("batch_composition",),
        ("huggingface/transformers#22161", "ndif-team/nnsight#672", "TransformerLensOrg/TransformerLens#1609",
         "huggingface/trl#469"),
    ),
    Planted(
        PositionsOfLastRow,
        lambda: tiny_encoder("sinusoidal", of=PositionsOfLastRow),
        ("batch_composition",),
        ("unslothai/unsloth#3699",),
    ),
    Planted(
        MaskNotPassed, lambda: tiny_encoder(of=MaskNotPassed), ("batch_composition", "ignored_arguments"),
        ("lean-dojo/ReProver#34",),
    ),
    Planted(
        SlicedBeforeCounting,
        lambda: tiny_decoder("none", of=SlicedBeforeCounting),
        ("left_padded_decoding",),
        ("mosaicml/examples#257",),
    ),
)  # fmt: skip
