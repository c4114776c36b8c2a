"""Losses of ranks that share a batch, each with one planted fault, and correct ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, distributed, nn
from torch.nn import functional as F

VOCABULARY, WIDTH, LENGTH = 19, 16, 12
Batch = dict[str, Tensor]
Step = tuple[nn.Module, Any, Callable[[Any, Any], Tensor]]
Cut = Callable[[Tensor], Tensor]


def ranks() -> tuple[int, int]:
    """The number of this rank, and of all."""
    return (distributed.get_rank(), distributed.get_world_size()) if distributed.is_initialized() else (0, 1)


def in_one_piece(values: Tensor) -> Tensor:
    rank, count = ranks()
    return values.tensor_split(count, 1)[rank]


def balanced(values: Tensor) -> Tensor:
    """Two pieces, the first and the last that are left: causal attention is as much work on each rank."""
    rank, count = ranks()
    pieces = values.tensor_split(2 * count, 1)
    return torch.cat([pieces[rank], pieces[-1 - rank]], 1)


def by_rows(values: Tensor) -> Tensor:
    rank, count = ranks()
    return values[rank::count]


class Gathered(torch.autograd.Function):
    """The values of all ranks. That of torch.distributed.nn.functional takes gradients of other strides for others."""

    @staticmethod
    def forward(ctx: Any, values: Tensor) -> Tensor:
        ctx.length = values.shape[1]
        parts = [torch.empty_like(values) for _ in range(ranks()[1])]
        distributed.all_gather(parts, values.contiguous())
        return torch.cat(parts, 1)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:  # type: ignore[override]
        summed = gradient.contiguous()
        distributed.all_reduce(summed)
        return summed.split(ctx.length, 1)[ranks()[0]]


def gathered(values: Tensor) -> Tensor:
    """The values of all ranks, with a gradient."""
    return values if ranks()[1] == 1 else Gathered.apply(values)


def gathered_without_gradient(values: Tensor) -> Tensor:
    if ranks()[1] == 1:
        return values
    parts = [torch.empty_like(values) for _ in range(ranks()[1])]
    distributed.all_gather(parts, values.contiguous())  # fault
    parts[ranks()[0]] = values
    return torch.cat(parts, 1)


class Context(nn.Module):
    """One causal layer of attention to the keys of all ranks."""

    def __init__(self, gather: Cut = gathered) -> None:
        super().__init__()
        torch.manual_seed(3)
        self.tokens, self.places = nn.Embedding(VOCABULARY, WIDTH), nn.Embedding(32, WIDTH)
        self.query, self.key, self.value = (nn.Linear(WIDTH, WIDTH) for _ in range(3))
        self.head, self.gather = nn.Linear(WIDTH, VOCABULARY), gather

    def forward(self, tokens: Tensor, positions: Tensor) -> Tensor:
        x = self.tokens(tokens) + self.places(positions)
        keys, values = self.gather(self.key(x)), self.gather(self.value(x))
        places = positions if keys.shape[1] == positions.shape[1] else gathered(positions)
        seen = places[:, None] <= positions[:, :, None]
        scores = self.query(x) @ keys.transpose(1, 2) / WIDTH**0.5
        weights = scores.masked_fill(~seen, -1e9).softmax(-1)  # fault
        return self.head(x + weights @ values)


def batch() -> Batch:
    """Rows whose first tokens have no labels."""
    ids = torch.randint(1, VOCABULARY, (4, LENGTH), generator=torch.Generator().manual_seed(7))
    return {"input_ids": ids, "labels": ids.masked_fill(torch.arange(LENGTH) < 2, -100)}


def total(values: Tensor) -> Tensor:
    """The sum over all ranks, without a gradient."""
    if ranks()[1] > 1:
        distributed.all_reduce(values)
    return values


def loss_of(cut: Cut) -> Callable[[Any, Batch], Tensor]:
    """The loss of a shard, whose labels are shifted before they are cut."""

    def loss(model: nn.Module, given: Batch) -> Tensor:
        labels = cut(F.pad(given["labels"], (0, 1), value=-100)[:, 1:])
        positions = torch.arange(LENGTH).expand_as(given["input_ids"])
        logits = model(cut(given["input_ids"]), cut(positions))
        terms = F.cross_entropy(logits.flatten(0, 1), labels.flatten(), reduction="sum")
        return terms / total((labels != -100).sum())

    return loss


# ---------------------------------------------------------------- correct


def good_in_one_piece() -> Step:
    return Context(), batch(), loss_of(in_one_piece)


def good_balanced() -> Step:
    return Context(), batch(), loss_of(balanced)


def good_rows() -> Step:
    return Context(lambda values: values), batch(), loss_of(by_rows)


# ---------------------------------------------------------------- faults


def border_labels_lost() -> Step:
    """OP708: each shard shifts its own labels."""

    def loss(model: nn.Module, given: Batch) -> Tensor:
        labels = in_one_piece(given["labels"])
        positions = in_one_piece(torch.arange(LENGTH).expand_as(given["input_ids"]))
        logits = model(in_one_piece(given["input_ids"]), positions)[:, :-1]
        terms = F.cross_entropy(logits.flatten(0, 1), labels[:, 1:].flatten(), reduction="sum")  # fault
        return terms / total((labels != -100).sum())

    return Context(), batch(), loss


def positions_restart() -> Step:
    """OP708: each shard counts its positions from 0."""

    def loss(model: nn.Module, given: Batch) -> Tensor:
        tokens = in_one_piece(given["input_ids"])
        labels = in_one_piece(F.pad(given["labels"], (0, 1), value=-100)[:, 1:])
        logits = model(tokens, torch.arange(tokens.shape[1]).expand_as(tokens))  # fault
        terms = F.cross_entropy(logits.flatten(0, 1), labels.flatten(), reduction="sum")
        return terms / total((labels != -100).sum())

    return Context(), batch(), loss


def own_keys_only() -> Step:
    """OP708: a shard sees its own keys only."""
    return Context(lambda values: values), batch(), loss_of(in_one_piece)


def mean_of_ranks() -> Step:
    """OP708: each rank divides by the number of its own labels."""

    def loss(model: nn.Module, given: Batch) -> Tensor:
        labels = in_one_piece(F.pad(given["labels"], (0, 1), value=-100)[:, 1:])
        positions = in_one_piece(torch.arange(LENGTH).expand_as(given["input_ids"]))
        logits = model(in_one_piece(given["input_ids"]), positions)
        return F.cross_entropy(logits.flatten(0, 1), labels.flatten())  # fault

    return Context(), batch(), loss


def mean_of_rows() -> Step:
    """OP708: each rank divides by the number of labels of its rows."""

    def loss(model: nn.Module, given: Batch) -> Tensor:
        labels = by_rows(given["labels"])[:, 1:]
        positions = by_rows(torch.arange(LENGTH).expand_as(given["input_ids"]))
        logits = model(by_rows(given["input_ids"]), positions)[:, :-1]
        return F.cross_entropy(logits.flatten(0, 1), labels.flatten())  # fault

    return Context(lambda values: values), batch(), loss


def keys_without_gradient() -> Step:
    """OP708: the gathered keys and values have no gradient."""
    return Context(gathered_without_gradient), batch(), loss_of(in_one_piece)
