"""Training steps with activation checkpointing: one planted fault each, and correct ones."""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint
from transformers import LlamaForCausalLM

from tests.training.loop_steps import VOCABULARY, WIDTH, packed, padded, shifted
from tests.training.transformers_steps import llama

Step = tuple[Any, ...]


class Blocks(nn.Module):
    """Two blocks, both of them checkpointed."""

    def __init__(
        self, *, keeps_state: bool = True, keeps_random_numbers: bool = True, is_reentrant: bool = False
    ) -> None:
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY, WIDTH)
        self.first, self.second, self.head = (nn.Linear(WIDTH, size) for size in (WIDTH, WIDTH, VOCABULARY))
        self.dropout, self.scale = nn.Dropout(0.3), 1.0
        self.keeps_state, self.keeps_random_numbers, self.is_reentrant = keeps_state, keeps_random_numbers, is_reentrant

    def block(self, x: Tensor) -> Tensor:
        x = self.first(x) * self.scale  # fault state_changes
        return self.dropout(x.tanh())  # fault random_numbers_are_lost

    def forward(self, tokens: Tensor) -> Tensor:
        self.scale = 2.0
        options = {"use_reentrant": self.is_reentrant, "preserve_rng_state": self.keeps_random_numbers}
        x = checkpoint(self.block, self.embedding(tokens), **options)  # fault inputs_need_no_gradient
        if not self.is_reentrant:
            x = checkpoint(self.second, x, use_reentrant=True)
        self.scale = 2.0 if self.keeps_state else 1.0
        return self.head(x)


def step(model: nn.Module) -> Step:
    batch = padded()
    return model, batch, lambda model, batch: shifted(model(batch["input_ids"]), batch["labels"])


def good_blocks() -> Step:
    return step(Blocks())


def good_padded() -> Step:
    return checkpointed(), padded()


def good_packed() -> Step:
    return checkpointed(), packed()


def checkpointed() -> LlamaForCausalLM:
    model = llama()
    model.gradient_checkpointing_enable()
    return model


def state_changes() -> Step:
    """The model changes a number after its last block, and before the backward pass."""
    return step(Blocks(keeps_state=False))


def random_numbers_are_lost() -> Step:
    """The dropout is another one when the block runs again."""
    return step(Blocks(keeps_random_numbers=False))


def inputs_need_no_gradient() -> Step:
    """first.weight gets no gradient"""
    model = Blocks(is_reentrant=True)
    model.embedding.requires_grad_(False)
    return step(model)
