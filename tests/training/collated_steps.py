"""Training steps whose batch a collator makes of samples: one planted fault each, and correct ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from tests.training.loop_steps import Small, masked_loss, packed_loss, shifted

Step = tuple[Any, ...]
SAMPLES = [[3, 9, 4, 1, 12, 7, 15, 2, 6], [8, 5, 11, 16], [10, 2, 13, 4, 17, 6]]


class Padding:
    """Pads rows of tokens on one side; `fault` names a line that is wrong."""

    def __init__(self, fault: str = "", side: str = "right") -> None:
        self.fault, self.side = fault, side

    def __call__(self, samples: Sequence[list[int]]) -> dict[str, Tensor]:
        length = max(map(len, samples))
        rows = [self.row(tokens, length) for tokens in samples]
        batch = {"input_ids": torch.tensor(rows), "attention_mask": (torch.tensor(rows) > 0).long()}
        batch["labels"] = batch["input_ids"].masked_fill(batch["attention_mask"] == 0, -100)
        if self.fault == "pads":
            batch["labels"] = batch["input_ids"].clone()  # fault
        if self.fault == "roll":
            batch["labels"] = batch["labels"].roll(-1, 1).index_fill(1, torch.tensor([length - 1]), -100)  # fault
        first = batch["attention_mask"].cumsum(1) == 1
        batch["labels"] = batch["labels"] if self.fault else batch["labels"].masked_fill(first, -100)
        if self.fault == "first":
            batch["labels"] = batch["labels"].masked_fill(batch["attention_mask"] == 0, -100)  # fault
        return batch

    def row(self, tokens: list[int], length: int) -> list[int]:
        pads = [0] * (length - len(tokens))
        return pads + tokens if self.side == "left" else tokens + pads


def flatten(samples: Sequence[list[int]], *, keeps_first: bool = False) -> dict[str, Tensor]:
    """One row of all samples, with position ids that restart."""
    tokens = torch.tensor([[token for sample in samples for token in sample]])
    positions = torch.tensor([[place for sample in samples for place in range(len(sample))]])
    batch = {"input_ids": tokens, "position_ids": positions, "labels": tokens.clone()}  # fault
    return batch if keeps_first else {**batch, "labels": tokens.masked_fill(positions == 0, -100)}


# ---------------------------------------------------------------- correct


def good_padded() -> Step:
    return Small(), Padding()(SAMPLES), masked_loss


def good_left() -> Step:
    return Small(counts_pads=False), Padding(side="left")(SAMPLES), masked_loss


def good_packed() -> Step:
    return Small(), flatten(SAMPLES), packed_loss


# ---------------------------------------------------------------- faults


def later_token() -> Step:
    """OP701: the mask shows one token too many."""
    return Small(ahead=1), Padding()(SAMPLES), masked_loss


def shifted_twice() -> Step:
    """OP702: the collator rolls the labels, and the loss shifts them."""
    return Small(), Padding("roll")(SAMPLES), masked_loss


def not_shifted() -> Step:
    """OP702: neither the collator nor the loss shifts."""

    def loss(model: Any, batch: dict[str, Tensor]) -> Tensor:
        logits = model(batch["input_ids"], batch["attention_mask"])
        return F.cross_entropy(logits.transpose(1, 2), batch["labels"])  # fault

    return Small(), Padding()(SAMPLES), loss


def pads_counted() -> Step:
    """OP703: the collator copies the padded tokens."""
    return Small(), Padding("pads")(SAMPLES), masked_loss


def first_token_after_pads_counted() -> Step:
    """OP703: the first token after pads has a label."""
    return Small(counts_pads=False), Padding("first", side="left")(SAMPLES), masked_loss


def boundaries_counted() -> Step:
    """OP703: the collator labels the first token of each sample."""
    return Small(), flatten(SAMPLES, keeps_first=True), packed_loss


def positions_dropped() -> Step:
    """OP704: the loss does not pass the position ids of the collator on."""

    def loss(model: Any, batch: dict[str, Tensor]) -> Tensor:
        return shifted(model(batch["input_ids"]), batch["labels"])  # fault

    return Small(), flatten(SAMPLES), loss


def mask_dropped() -> Step:
    """OP705: the loss does not pass the mask of the collator on."""

    def loss(model: Any, batch: dict[str, Tensor]) -> Tensor:
        return shifted(model(batch["input_ids"]), batch["labels"])  # fault

    return Small(counts_pads=False), Padding(side="left")(SAMPLES), loss


def micro_batches_averaged() -> Step:
    """OP706: the losses of the micro-batches are averaged."""

    def loss(model: Any, batch: dict[str, Tensor]) -> Tensor:
        rows = range(len(SAMPLES))
        losses = [masked_loss(model, {name: value[k : k + 1] for name, value in batch.items()}) for k in rows]
        return torch.stack(losses).mean()  # fault

    return Small(), Padding()(SAMPLES), loss
