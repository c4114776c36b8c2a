"""Training steps of a model of transformers with its own loss, with one planted fault each, and correct ones."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from transformers import LlamaConfig, LlamaForCausalLM

from tests.training.loop_steps import left, packed, padded, pair, tokens

Step = tuple[Any, ...]


def llama(*, use_cache: bool = False) -> nn.Module:
    """A Llama of one layer, with weights that have spread."""
    config = LlamaConfig(
        vocab_size=19, hidden_size=16, intermediate_size=32, num_hidden_layers=1, num_attention_heads=2,
        num_key_value_heads=2, initializer_range=0.4, pad_token_id=0, max_position_embeddings=32,
        use_cache=use_cache,
    )  # fmt: skip
    return LlamaForCausalLM(config)


def blocks(diagonal: int) -> dict[str, Tensor]:
    """A batch with an attention mask [row, head, query, key] that is made by hand."""
    ids, _ = tokens(8, 8, length=8)
    mask = torch.ones(8, 8, dtype=torch.bool).tril(diagonal).expand(2, 1, 8, 8)  # fault
    return {"input_ids": ids, "attention_mask": mask, "labels": ids}


def split(batch: dict[str, Tensor]) -> list[dict[str, Tensor]]:
    """Micro-batches of one row."""
    return [{name: value[row : row + 1] for name, value in batch.items()} for row in range(len(batch["labels"]))]


# ---------------------------------------------------------------- correct


def good_blocks() -> Step:
    return llama(), blocks(0)


def good_labels() -> Step:
    return llama(), {"input_ids": pair()[0], "labels": pair()[0]}


def good_padded() -> Step:
    return llama(), padded()


def good_packed() -> Step:
    return llama(), packed()


def good_left() -> Step:
    return llama(), left()


def good_sum() -> Step:
    """Micro-batches with the number of labels of the whole batch."""

    def loss(model: nn.Module, batch: dict[str, Tensor]) -> Tensor:
        count = (batch["labels"][:, 1:] != -100).sum()
        return sum(model(**part, num_items_in_batch=count).loss for part in split(batch))

    return llama(), padded(), loss


# ---------------------------------------------------------------- faults


def later_token() -> Step:
    """OP701: the mask is off by one."""
    return llama(), blocks(1)


def shifted_twice() -> Step:
    """OP702: the collator shifts the labels, and the model shifts them again."""
    return llama(), {"input_ids": pair()[0], "labels": pair()[1]}


def not_shifted() -> Step:
    """OP702: a loss of the loop's own does not shift."""

    def loss(model: nn.Module, batch: dict[str, Tensor]) -> Tensor:
        logits = model(input_ids=batch["input_ids"], attention_mask=batch["attention_mask"]).logits
        return torch.nn.functional.cross_entropy(logits.transpose(1, 2), batch["labels"])  # fault

    return llama(), padded(), loss


def pads_counted() -> Step:
    """OP703: labels are the padded tokens."""
    batch = padded()
    return llama(), {**batch, "labels": batch["input_ids"]}  # fault


def boundaries_counted() -> Step:
    """OP703: the first token of each packed document has a label."""
    batch = packed()
    return llama(), {**batch, "labels": batch["input_ids"]}  # fault


def first_token_after_pads_counted() -> Step:
    """OP703: the first token after pads on the left is predicted from a pad."""
    batch = left()
    return llama(), {
        **batch,
        "labels": batch["input_ids"].masked_fill(batch["attention_mask"] == 0, -100),  # fault
    }


def positions_dropped() -> Step:
    """OP704: the trainer passes no position ids."""
    return (
        llama(),
        packed(),
        lambda model, batch: model(input_ids=batch["input_ids"], labels=batch["labels"]).loss,  # fault
    )


def cache_kept() -> Step:
    """OP704: with a cache, which is the default, transformers does not look for packed documents."""
    return llama(use_cache=True), packed()


def mask_dropped() -> Step:
    """OP705: the trainer passes no attention mask."""
    return (
        llama(),
        left(),
        lambda model, batch: model(input_ids=batch["input_ids"], labels=batch["labels"]).loss,  # fault
    )


def micro_batches_averaged() -> Step:
    """OP706: the losses of micro-batches are averaged."""

    def loss(model: nn.Module, batch: dict[str, Tensor]) -> Tensor:
        return torch.stack([model(**part).loss for part in split(batch)]).mean()  # fault

    return llama(), padded(), loss
