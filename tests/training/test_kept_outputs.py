"""Calls of a loss with other labels reuse the output of the layers, where that changes nothing."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from orderproof import training
from orderproof.errors import SubjectError
from orderproof.laws.training import TrainingBatch, TrainingStep


class Layers(nn.Module):
    """Most parameters of a model; it counts its calls, and may see labels that it finds in an attribute."""

    def __init__(self) -> None:
        super().__init__()
        self.tokens, self.mix = nn.Embedding(30, 64), nn.Linear(64, 64)
        self.calls = 0
        self.seen: Tensor | None = None

    def forward(self, tokens: Tensor) -> Tensor:
        self.calls += 1
        x = self.tokens(tokens)
        return self.mix(x if self.seen is None else x + 0.1 * self.tokens(self.seen))  # type: ignore[no-any-return]


class Model(nn.Module):
    """A model that gets labels and returns a loss, as those of transformers; its layers do not get them."""

    def __init__(self, *, leaks: bool = False, noise: bool = False, prompts: bool = False) -> None:
        super().__init__()
        self.prompts = prompts
        self.layers, self.head = Layers(), nn.Linear(64, 30)
        self.leaks, self.noise, self.drawn = leaks, noise, 0

    def forward(self, input_ids: Tensor, labels: Tensor) -> dict[str, Tensor]:
        self.layers.seen = labels if self.leaks else (labels == -100).long() if self.prompts else None
        logits = self.head(self.layers(input_ids))
        loss = F.cross_entropy(logits[:, :-1].flatten(0, 1), labels[:, 1:].flatten())
        self.drawn += 1
        return {"loss": loss * (1 + self.drawn * self.noise), "logits": logits}


def step(**options: Any) -> TrainingStep:
    torch.manual_seed(0)
    tokens = torch.randint(30, (3, 8))
    return TrainingStep(Model(**options).eval(), TrainingBatch.of({"input_ids": tokens, "labels": tokens.clone()}))


def _terms_with_another_label(subject: TrainingStep) -> list[tuple[Tensor, Tensor, float]]:
    found = [subject.terms(subject.batch.with_other_label(0, index)) for index in (3, 5, 6)]
    return [(x.logits, x.gradient, x.loss) for x in found]


def test_the_layers_run_for_one_other_label_only() -> None:
    subject: Any = step()
    _ = subject.base
    found = _terms_with_another_label(subject)
    assert (subject.model.layers.calls, subject._outputs.is_exact) == (2, True)
    whole = [step()._terms(subject.batch.with_other_label(0, index)) for index in (3, 5, 6)]
    for (logits, gradient, loss), expected in zip(found, whole, strict=True):
        assert torch.equal(logits, expected.logits)
        assert torch.equal(gradient, expected.gradient)
        assert loss == expected.loss


def test_layers_that_see_labels_run_each_time() -> None:
    subject: Any = step(leaks=True)
    _ = subject.base
    found = _terms_with_another_label(subject)
    assert (subject.model.layers.calls, subject._outputs.is_exact) == (4, False)
    assert not torch.equal(found[1][0], subject.base.logits)


def test_layers_run_for_labels_that_are_left_out() -> None:
    subject: Any = step(prompts=True)
    _ = subject.base
    _terms_with_another_label(subject)
    labels = subject.batch.labels.clone()
    labels[0, 4:] = -100
    batch = subject.batch.replaced("labels", labels)
    assert subject._outputs.is_exact
    assert not torch.equal(subject.terms(batch).logits, subject.base.logits)


def test_layers_run_for_other_tokens() -> None:
    subject: Any = step()
    _terms_with_another_label(subject)
    before = subject.model.layers.calls
    moved = subject.batch.with_other_tokens(torch.ones_like(subject.batch.real))
    assert not torch.equal(subject.terms(moved).logits, subject.base.logits)
    assert subject.model.layers.calls == before + 2  # the call for the base too


def test_a_model_keeps_its_own_forward() -> None:
    subject: Any = step()
    _ = subject.base
    _terms_with_another_label(subject)
    assert not any("forward" in vars(part) for part in subject.model.modules())


def test_a_loss_that_differs_when_it_is_asked_again_is_seen_above_kept_layers() -> None:
    tokens = torch.randint(30, (3, 8))
    with pytest.raises(SubjectError, match="expected the same loss for the same batch"):
        training.audit(Model(noise=True), {"input_ids": tokens, "labels": tokens.clone()})
