"""Modules that call a model of transformers with a mask that they compute from ids."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn
from transformers import BertConfig, BertModel

from orderproof import prove
from orderproof.models import from_module
from orderproof.models.build_plain import _KEPT
from orderproof.models.hf.export_patches import masks_left_out

IDS = torch.arange(1, 15).view(2, 7)
CONFIG = BertConfig(
    vocab_size=40, hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=20,
    max_position_embeddings=32,
)  # fmt: skip


class Classifier(nn.Module):
    """The first state of BERT, which sees no pads."""

    def __init__(self, *, masks: bool = True) -> None:
        super().__init__()
        self.bert, self.masks = BertModel(CONFIG), masks

    def forward(self, ids: Tensor) -> Tensor:
        mask = (ids != 0).long() if self.masks else None
        return self.bert(ids, attention_mask=mask).last_hidden_state[:, 0]


@pytest.mark.slow
def test_a_mask_that_hides_nothing_is_kept_where_its_values_are_not_known() -> None:
    subject = from_module(Classifier().eval(), IDS)
    assert _KEPT in subject.notes
    found = prove(subject, "batch")
    assert found.verdict == "proved"
    assert found.theorem is not None
    assert found.theorem.proved


def test_nothing_is_said_without_a_mask() -> None:
    assert _KEPT not in from_module(Classifier(masks=False).eval(), IDS).notes


def test_only_masks_that_hide_nothing_are_left_out() -> None:
    model, padded = Classifier().eval(), IDS.masked_fill(IDS == 3, 0)
    with torch.no_grad():
        with masks_left_out() as found:
            model(padded)
        assert not found
        with masks_left_out() as found:
            model(IDS)
        assert len(found) == 1


class OtherWithoutMask(Classifier):
    """Gives another output where transformers leaves the mask out."""

    def forward(self, ids: Tensor) -> Tensor:
        from transformers import masking_utils

        left_out = masking_utils._ignore_bidirectional_mask_sdpa(ids != 0, ids.shape[1], None)
        return super().forward(ids) + (1.0 if left_out else 0.0)


def test_a_mask_whose_absence_changes_the_output_is_not_kept() -> None:
    assert _KEPT not in from_module(OtherWithoutMask().eval(), IDS).notes
