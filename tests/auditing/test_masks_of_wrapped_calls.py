"""A mask that the example inputs do not name is given, however the example inputs are given."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from orderproof import audit
from orderproof.models import from_module
from orderproof.models.forward_arguments import arguments_of_forward
from orderproof.models.subject import Subject

IDS = torch.randint(0, 50, (2, 7), generator=torch.Generator().manual_seed(0))


@dataclass
class Output:
    """The logits."""

    logits: Tensor


class LeaksWithMask(nn.Module):
    """It hides later tokens, but not in calls with a mask."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.embed, self.project = nn.Embedding(50, 16), nn.Linear(16, 48)

    def forward(self, input_ids: Tensor, attention_mask: Tensor | None = None, scale: float = 1.0) -> Tensor:
        """The outputs [batch, token, 16] of ids [batch, token]."""
        x = self.embed(input_ids)
        query, key, value = self.project(x).chunk(3, -1)
        tokens = input_ids.shape[1]
        hidden = torch.ones(1, tokens, tokens, dtype=torch.bool).triu(1)
        if attention_mask is not None:
            hidden = attention_mask[:, None, :] == 0
        scores = (query @ key.mT).masked_fill(hidden, torch.finfo(torch.float32).min)
        mixed: Tensor = x + scale * scores.softmax(-1) @ value
        return mixed


class WithUncommonName(LeaksWithMask):
    """The same with a mask whose name is not a common one."""

    def forward(self, input_ids: Tensor, token_mask: Tensor | None = None) -> Tensor:  # type: ignore[override]
        return super().forward(input_ids, token_mask)


class ReturnsADataclass(LeaksWithMask):
    """The same with its output in a dataclass."""

    def forward(self, input_ids: Tensor, attention_mask: Tensor | None = None) -> Output:  # type: ignore[override]
        return Output(super().forward(input_ids, attention_mask))


class TakesATriangle(LeaksWithMask):
    """The same with a triangular mask as its second input."""

    def forward(self, input_ids: Tensor, triangle: Tensor, attention_mask: Tensor | None = None) -> Tensor:  # type: ignore[override]
        return super().forward(input_ids, attention_mask) + 0 * triangle.sum()


@pytest.mark.parametrize(
    ("module", "inputs"),
    [
        (LeaksWithMask(), {"input_ids": IDS}),
        (LeaksWithMask(), {"input_ids": IDS, "scale": 2.0}),
        (LeaksWithMask(), {"input_ids": IDS, "attention_mask": None}),
        (WithUncommonName(), {"input_ids": IDS}),
        (ReturnsADataclass(), (IDS,)),
        (ReturnsADataclass(), {"input_ids": IDS}),
        (TakesATriangle(), (IDS, torch.ones(7, 7).tril())),
        (TakesATriangle(), {"input_ids": IDS, "triangle": torch.ones(7, 7).tril()}),
    ],
)
def test_a_mask_that_the_inputs_do_not_name_is_given(module: nn.Module, inputs: Mapping[str, Any]) -> None:
    report = audit(from_module(module, inputs), laws=["causal", "padding"])
    outcomes = {(f.law, f.call_mode): f.outcome for f in report.findings}
    assert outcomes == {("causal", ""): "pass", ("causal", "padded"): "fail", ("padding", "padded"): "pass"}


def _subject(inputs: Mapping[str, Any]) -> Subject:
    return from_module(LeaksWithMask(), inputs)


def test_a_mask_among_the_inputs_is_given_once() -> None:
    mask = torch.ones(2, 7, dtype=torch.long)
    for inputs in (
        {"input_ids": IDS, "attention_mask": mask},
        {"input_ids": IDS, "attention_mask": mask, "scale": 2.0},
    ):
        subject = _subject(inputs)
        assert subject.token_axes == (1,)
        report = audit(subject, laws=["padding"])
        assert [(f.call_mode, f.outcome) for f in report.findings] == [("padded", "pass")]


def test_the_free_arguments_of_a_call_are_those_that_the_inputs_do_not_give() -> None:
    assert [*arguments_of_forward(_subject({"input_ids": IDS}).module)] == [
        "attention_mask", "scale",
    ]  # fmt: skip
