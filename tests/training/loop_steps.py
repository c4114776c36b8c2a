"""Training steps of a loop that is written by hand, each with one planted fault, and their corrected twins."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

VOCABULARY, WIDTH = 19, 16
Batch = dict[str, Tensor]
Step = tuple[nn.Module, Any, Callable[[Any, Any], Tensor]]


class Small(nn.Module):
    """One causal layer of attention with positions; `ahead` more tokens are seen than a query should see."""

    def __init__(self, *, ahead: int = 0, counts_pads: bool = True) -> None:
        super().__init__()
        self.tokens, self.places = nn.Embedding(VOCABULARY, WIDTH), nn.Embedding(32, WIDTH)
        self.query, self.key, self.value = (nn.Linear(WIDTH, WIDTH) for _ in range(3))
        self.head = nn.Linear(WIDTH, VOCABULARY)
        self.ahead, self.counts_pads = ahead, counts_pads

    def forward(self, tokens: Tensor, mask: Tensor | None = None, positions: Tensor | None = None) -> Tensor:
        length = tokens.shape[1]
        place = torch.arange(length).expand_as(tokens)  # fault
        if positions is not None:
            place = positions
        if mask is not None and not self.counts_pads:
            place = (mask.cumsum(1) - 1).clamp(min=0)
        x = self.tokens(tokens) + self.places(place)
        seen = torch.ones(length, length, dtype=torch.bool).tril(self.ahead)[None]
        if positions is not None:  # documents begin where positions restart
            documents = (positions == 0).cumsum(1)
            seen = seen & (documents[:, :, None] == documents[:, None])
        if mask is not None:
            seen = seen & (mask[:, None] > 0) | torch.eye(length, dtype=torch.bool)
        scores = self.query(x) @ self.key(x).transpose(1, 2) / WIDTH**0.5
        weights = scores.masked_fill(~seen, -1e9).softmax(-1)  # fault
        return self.head(x + weights @ self.value(x))


def tokens(*lengths: int, length: int = 9) -> tuple[Tensor, Tensor]:
    """Rows of tokens with pads of 0 on the right, and their mask."""
    draw = torch.Generator().manual_seed(7)
    mask = (torch.arange(length) < torch.tensor(lengths)[:, None]).long()
    return torch.randint(1, VOCABULARY, mask.shape, generator=draw) * mask, mask


def shifted(logits: Tensor, labels: Tensor, **more: Any) -> Tensor:
    """The mean of the terms of labels that are equal to the tokens."""
    return F.cross_entropy(logits[:, :-1].flatten(0, 1), labels[:, 1:].flatten(), **more)


def padded() -> Batch:
    """Rows of three lengths, padded on the right, with labels of -100 at pads."""
    ids, mask = tokens(9, 4, 6)
    return {"input_ids": ids, "attention_mask": mask, "labels": ids.masked_fill(mask == 0, -100)}


def packed() -> Batch:
    """A row of three documents, with position ids that restart and no label of a first token."""
    ids, _ = tokens(12, length=12)
    positions = torch.tensor([[0, 1, 2, 3, 4, 0, 1, 2, 0, 1, 2, 3]])
    return {"input_ids": ids, "position_ids": positions, "labels": ids.masked_fill(positions == 0, -100)}


def masked_loss(model: nn.Module, batch: Batch) -> Tensor:
    """The loss of `padded`."""
    return shifted(model(batch["input_ids"], batch["attention_mask"]), batch["labels"])


def packed_loss(model: nn.Module, batch: Batch) -> Tensor:
    """The loss of `packed`."""
    return shifted(model(batch["input_ids"], positions=batch["position_ids"]), batch["labels"])


def pair() -> tuple[Tensor, Tensor]:
    """Tokens and labels that are shifted already."""
    ids, _ = tokens(10, 10, length=10)
    return ids[:, :-1], ids[:, 1:]  # fault


# ---------------------------------------------------------------- correct


def good_padded() -> Step:
    return Small(), padded(), masked_loss


def good_packed() -> Step:
    return Small(), packed(), packed_loss


def good_pair() -> Step:
    def loss(model: nn.Module, batch: tuple[Tensor, Tensor]) -> Tensor:
        return F.cross_entropy(model(batch[0]).transpose(1, 2), batch[1])

    return Small(), pair(), loss


def good_sum() -> Step:
    """Micro-batches whose terms are summed and divided by the labels of the whole batch."""

    def loss(model: nn.Module, batch: Batch) -> Tensor:
        count = (batch["labels"][:, 1:] != -100).sum()
        parts = zip(*(batch[name].split(1) for name in ("input_ids", "attention_mask", "labels")), strict=True)
        return sum(shifted(model(ids, mask), labels, reduction="sum") / count for ids, mask, labels in parts)

    return Small(), padded(), loss


def left() -> Batch:
    """Rows with pads on the left, without labels of pads and of the first token after them."""
    ids, mask = (x.flip(1) for x in tokens(9, 4, 6))
    return {
        "input_ids": ids, "attention_mask": mask, "labels": ids.masked_fill((mask == 0) | (mask.cumsum(1) == 1), -100)
    }  # fmt: skip


def good_left() -> Step:
    return Small(counts_pads=False), left(), masked_loss


# ---------------------------------------------------------------- faults


def later_token() -> Step:
    """OP701: the mask shows one token too many."""
    return Small(ahead=1), padded(), masked_loss


def shifted_twice() -> Step:
    """OP702: the batch has shifted labels, and the loss shifts them again."""
    return Small(), pair(), lambda model, batch: shifted(model(batch[0]), batch[1])


def not_shifted() -> Step:
    """OP702: neither the batch nor the loss shifts."""

    def loss(model: nn.Module, batch: Batch) -> Tensor:
        return F.cross_entropy(  # fault
            model(batch["input_ids"], batch["attention_mask"]).flatten(0, 1), batch["labels"].flatten()
        )

    return Small(), padded(), loss


def pads_counted() -> Step:
    """OP703: the labels are the padded tokens, with the token 0 at pads."""
    batch = padded()
    return Small(), {**batch, "labels": batch["input_ids"]}, masked_loss  # fault


def boundaries_counted() -> Step:
    """OP703: the first token of each packed document has a label."""
    batch = packed()
    return Small(), {**batch, "labels": batch["input_ids"]}, packed_loss  # fault


def positions_dropped() -> Step:
    """OP704: the loop passes no position ids."""
    return (
        Small(),
        packed(),
        lambda model, batch: shifted(model(batch["input_ids"]), batch["labels"]),  # fault
    )


def documents_averaged() -> Step:
    """OP704: a mean of the means of documents."""

    def loss(model: nn.Module, batch: Batch) -> Tensor:
        logits = model(batch["input_ids"], positions=batch["position_ids"])
        starts = [*(batch["position_ids"][0] == 0).nonzero().flatten().tolist(), logits.shape[1]]
        parts = [slice(start, end) for start, end in pairwise(starts)]
        means = [shifted(logits[:, part], batch["labels"][:, part]) for part in parts]
        return torch.stack(means).mean()  # fault

    return Small(), packed(), loss


def mask_dropped() -> Step:
    """OP705: the loop passes no attention mask, and the pads are on the left."""
    return (
        Small(),
        left(),
        lambda model, batch: shifted(model(batch["input_ids"]), batch["labels"]),  # fault
    )


def pads_count_as_positions() -> Step:
    """OP705: positions count the pads on the left."""
    return Small(), left(), masked_loss


def micro_batches_averaged() -> Step:
    """OP706: the losses of micro-batches are divided by their number."""

    def loss(model: nn.Module, batch: Batch) -> Tensor:
        parts = zip(*(batch[name].split(1) for name in ("input_ids", "attention_mask", "labels")), strict=True)
        means = [shifted(model(ids, mask), labels) for ids, mask, labels in parts]
        return torch.stack(means).mean()  # fault

    return Small(), padded(), loss


def rows_averaged() -> Step:
    """OP706: a mean over rows of means over labels."""

    def loss(model: nn.Module, batch: Batch) -> Tensor:
        logits = model(batch["input_ids"], batch["attention_mask"])[:, :-1]
        terms = F.cross_entropy(logits.transpose(1, 2), batch["labels"][:, 1:], reduction="none")
        return (terms.sum(1) / (batch["labels"][:, 1:] != -100).sum(1)).mean()  # fault

    return Small(), padded(), loss
