"""The terms of a loss as a graph of tokens: causality is proved where it holds for every length, and nowhere else."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.functional import cross_entropy

from orderproof import training
from orderproof.records.audit import Finding
from tests.training import loop_steps, transformers_steps


def causality(model: nn.Module, batch: Any, loss: Any = None) -> Finding:
    (finding,) = training.audit(model, batch, loss, laws=["OP701"]).findings
    return finding


def _theorem_from(finding: Finding) -> int | None:
    return finding.theorem.least_length if finding.theorem is not None and finding.theorem.proved else None


@pytest.mark.parametrize("name", ["good_padded", "good_packed", "good_pair"])
def test_a_plain_loop_is_proved_for_every_length_and_every_label(name: str) -> None:
    finding = causality(*getattr(loop_steps, name)())
    assert (finding.verdict, _theorem_from(finding)) == ("proved", 2 if name == "good_pair" else 3)
    assert "for every label, in rows without pads and packed documents" in finding.scope.assumptions[0]
    assert finding.measurement is not None


@pytest.mark.slow
def test_a_model_of_transformers_is_proved_without_its_mask() -> None:
    finding = causality(*transformers_steps.good_padded())
    assert (finding.verdict, _theorem_from(finding)) == ("proved", 2)
    assert finding.scope.assumptions[0].endswith("called without attention_mask")


class Holed(loop_steps.Small):
    """A model whose mask has a hole that no row of the batch reaches."""

    def forward(self, tokens: Tensor, *more: Any) -> Tensor:
        x = self.tokens(tokens)
        seen = torch.ones(32, 32).tril().bool()
        seen[20, 25] = True
        length = tokens.shape[1]
        return self.head(x + (x @ x.transpose(1, 2)).masked_fill(~seen[:length, :length], -1e9).softmax(-1) @ x)


def test_a_fault_beyond_the_length_of_the_batch_is_not_proved_for_every_length() -> None:
    finding = causality(Holed(), loop_steps.padded(), loop_steps.masked_loss)
    assert _theorem_from(finding) is None
    assert finding.verdict in ("held", "proved")


def _by_rows(model: nn.Module, batch: loop_steps.Batch) -> Tensor:
    """A loss that takes rows one by one."""
    rows = zip(batch["input_ids"].split(1), batch["attention_mask"].split(1), batch["labels"].split(1), strict=True)
    return sum(loop_steps.shifted(model(ids, mask), labels, reduction="sum") for ids, mask, labels in rows)  # type: ignore[return-value]


def _of_another_name(model: nn.Module, batch: loop_steps.Batch) -> Tensor:
    logits = model(batch["input_ids"], batch["attention_mask"])
    return cross_entropy(logits[:, :-1].flatten(0, 1), batch["labels"][:, 1:].flatten())


def _of_other_logits(model: nn.Module, batch: loop_steps.Batch) -> Tensor:
    """Logits without the first output: the terms are not those of the outputs of the same index."""
    logits = model(batch["input_ids"], batch["attention_mask"]) * 2
    return F.cross_entropy(logits[:, 1:-1].flatten(0, 1), batch["labels"][:, 2:].flatten())


def _over_the_row(model: nn.Module, batch: loop_steps.Batch) -> Tensor:
    """Logits that are centred over all tokens of the row."""
    logits = model(batch["input_ids"], batch["attention_mask"])
    return loop_steps.shifted(logits - logits.mean(1, keepdim=True), batch["labels"])


def _of_two_heads(model: nn.Module, batch: loop_steps.Batch) -> Tensor:
    """A second cross-entropy, which the graph of the first does not have."""
    logits = model(batch["input_ids"], batch["attention_mask"])
    first = loop_steps.shifted(logits, batch["labels"])
    return first + 0.3 * F.cross_entropy(logits[:, :-1].transpose(1, 2), batch["labels"][:, 1:])


@pytest.mark.parametrize("loss", [_by_rows, _of_another_name, _of_other_logits, _of_two_heads, _over_the_row])
def test_what_the_graph_does_not_show_is_measured(loss: Any) -> None:
    finding = causality(loop_steps.Small(), loop_steps.padded(), loss)
    assert finding.verdict != "proved"
    assert finding.theorem is None


def test_the_loss_is_the_one_of_torch_again_after_a_proof() -> None:
    before = F.cross_entropy
    causality(*loop_steps.good_pair())
    assert F.cross_entropy is before
