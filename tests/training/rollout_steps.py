"""Steps of policy gradients on rollouts of `generate`, with one planted fault each, and correct ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from tests.training.loop_steps import packed
from tests.training.transformers_steps import llama

Batch = dict[str, Tensor]
Step = tuple[nn.Module, Any, Callable[[Any, Any], Tensor]]


def policy(**settings: Any) -> Any:
    """A Llama that generates with these settings."""
    torch.manual_seed(4)
    model = llama()
    for name, value in settings.items():
        setattr(model.generation_config, name, value)
    return model


def batch() -> Batch:
    """Prompts with pads on the left, completions with pads on the right, and labels of completions."""
    draw = torch.Generator().manual_seed(7)
    ids = torch.randint(3, 19, (3, 10), generator=draw)
    mask = torch.ones_like(ids)
    mask[1, :3], mask[2, :1], mask[2, 8:] = 0, 0, 0
    labels = ids.masked_fill((torch.arange(10) < 5) | (mask == 0), -100)
    positions = (mask.cumsum(1) - 1).clamp(min=0)
    return {"input_ids": ids * mask, "attention_mask": mask, "position_ids": positions, "labels": labels}


def log_probabilities(logits: Tensor, labels: Tensor) -> Tensor:
    """Those of the next tokens [row, output]."""
    logits, labels = logits[:, :-1], labels[:, 1:].clamp(min=0)
    return logits.log_softmax(-1).gather(-1, labels[..., None])[..., 0]  # fault


def loss_of(temperature: float = 1.0) -> Callable[[Any, Batch], Tensor]:
    """Policy gradients with an advantage of 1, at the temperature of the rollouts."""

    def loss(model: Any, given: Batch) -> Tensor:
        inputs = {name: given[name] for name in ("input_ids", "attention_mask", "position_ids")}
        own = log_probabilities(model(**inputs).logits / temperature, given["labels"])
        counted = (given["labels"][:, 1:] != -100).float()
        return -((own - own.detach()).exp() * counted).sum() / counted.sum()

    return loss


# ---------------------------------------------------------------- correct


def good_left() -> Step:
    return policy(), batch(), loss_of()


def good_temperature() -> Step:
    return policy(temperature=0.7), batch(), loss_of(0.7)


def good_end() -> Step:
    """Each completion ends with the token 2."""
    given = batch()
    given["input_ids"][:2, 9] = given["input_ids"][2, 7] = given["labels"][:2, 9] = given["labels"][2, 7] = 2
    return policy(eos_token_id=2), given, loss_of()


def good_packed() -> Step:
    def loss(model: Any, given: Batch) -> Tensor:
        return model(input_ids=given["input_ids"], position_ids=given["position_ids"], labels=given["labels"]).loss

    return policy(), packed(), loss


# ---------------------------------------------------------------- faults


def temperature_of_rollouts_only() -> Step:
    """OP709: temperature=0.7"""
    return policy(temperature=0.7), batch(), loss_of()


def temperature_of_the_loss_only() -> Step:
    """OP709: the loss divides the logits by 0.7, and the engine does not"""
    return policy(), batch(), loss_of(0.7)


def some_tokens_only() -> Step:
    """OP709: top_k=5"""
    return policy(top_k=5), batch(), loss_of()


def repetitions_penalised() -> Step:
    """OP709: penalty=1.3"""
    return policy(repetition_penalty=1.3), batch(), loss_of()


def several_settings() -> Step:
    """OP709: RepetitionPenalty (penalty=1.3), Temperature (temperature=0.5), TopK (top_k=50) of generation_config"""
    return policy(repetition_penalty=1.3, temperature=0.5), batch(), loss_of()


def positions_dropped() -> Step:
    """OP709: alone it has that of the engine"""

    def loss(model: Any, given: Batch) -> Tensor:
        logits = model(given["input_ids"]).logits  # fault
        own = log_probabilities(logits, given["labels"])
        counted = (given["labels"][:, 1:] != -100).float()
        return -((own - own.detach()).exp() * counted).sum() / counted.sum()

    return policy(), batch(), loss


def labels_after_the_end() -> Step:
    """OP709: labels after the end of a completion are counted: 2, as that of token 8 in row 0"""
    given = batch()
    given["input_ids"][:2, 7] = 2
    given["labels"] = given["input_ids"].masked_fill(given["labels"] == -100, -100)  # fault
    return policy(eos_token_id=2), given, loss_of()
