"""In a rank: the call of a loss on its shard of a batch, and the call on the whole batch that the shard is a part of.

Each rank calls the loss with the whole batch, alone and in the group. What the model gets alone are the tokens of the
batch; in the group it gets a shard of them. Shards are rows, or tokens of all rows: in one piece, in two pieces that
balance the work of causal attention, or every n-th.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import torch
from torch import Tensor, distributed
from torch.utils._pytree import tree_leaves

from orderproof.errors import UnsupportedCallError, first_line
from orderproof.laws.training.call_settings import own_gradients, without_autocast
from orderproof.laws.training.training_batch import NAMES, TrainingBatch
from orderproof.laws.training.training_step import TrainingStep
from orderproof.seeded_random import seeded_random


@dataclass(frozen=True)
class ModelCall:
    """One call of the model in a loss: its tokens [row, token], logits, their gradients, those of the parameters."""

    tokens: Tensor
    logits: Tensor
    gradient: Tensor
    parameters: dict[str, Tensor]


class Shard(NamedTuple):
    """The rows and the tokens of the batch that a rank has."""

    rows: Tensor
    columns: Tensor

    def of(self, values: Tensor) -> Tensor:
        """The part of a tensor [row, token, ...]."""
        return values[self.rows][:, self.columns]

    def local(self, row: int, token: int) -> tuple[int, int] | None:
        """The row and the token in the shard of a token of the batch; None if another rank has it."""
        rows, columns = (self.rows == row).nonzero(), (self.columns == token).nonzero()
        return (int(rows[0]), int(columns[0])) if len(rows) and len(columns) else None


def model_call(step: TrainingStep, batch: TrainingBatch) -> ModelCall:
    """The call that the loss of a batch makes, with its gradients. Raises `UnsupportedCallError`."""
    seen: list[tuple[Tensor, Tensor]] = []

    def note(_module: Any, positional: Any, named: Any, output: Any) -> None:
        stated = [named[name] for name in NAMES["tokens"] if name in named]
        tokens = [x for x in tree_leaves((stated, positional, named)) if isinstance(x, Tensor) and _is_tokens(x)]
        logits = [x for x in tree_leaves(output) if isinstance(x, Tensor) and x.dim() == 3 and x.requires_grad]
        if tokens and logits:
            logits[0].retain_grad()
            seen.append((tokens[0].detach().clone(), logits[0]))

    values = {k: x.detach().clone() if isinstance(x, Tensor) else x for k, x in batch.values.items()}
    handle = step.model.register_forward_hook(note, with_kwargs=True)
    parameters = dict(step.model.named_parameters())
    try:
        with seeded_random(step.seed), torch.enable_grad(), without_autocast(), own_gradients(step.model):
            loss = step.loss_of(replace(batch, values=values))
            loss.backward()
            found = {name: torch.zeros_like(x) if x.grad is None else x.grad for name, x in parameters.items()}
    except UnsupportedCallError:
        raise
    except Exception as error:  # the code of the user
        raise UnsupportedCallError(f"the loss raised {first_line(error)}") from error
    finally:
        handle.remove()
    if len(seen) != 1:
        raise UnsupportedCallError(f"its loss calls a model with logits {len(seen)} times; expected once")
    ((tokens, logits),) = seen
    gradient = torch.zeros_like(logits) if logits.grad is None else logits.grad
    return ModelCall(tokens, logits.detach(), gradient, found)


def _is_tokens(x: Tensor) -> bool:
    return x.dim() == 2 and not x.is_floating_point() and x.dtype is not torch.bool


def own_shard(whole: Tensor, part: Tensor) -> Shard | None:
    """The shard of this rank, if all ranks share the tokens in a way that is known. Asks all ranks."""
    candidates = list(_shards(*whole.shape))
    fits = [_fits(shard, whole, part) for shard in candidates]
    agreed = torch.tensor(fits, dtype=torch.int64)
    distributed.all_reduce(agreed, distributed.ReduceOp.MIN)
    return next((shard for shard, fit in zip(candidates, agreed.tolist(), strict=True) if fit), None)


def _fits(shard: Shard, whole: Tensor, part: Tensor) -> bool:
    taken = shard.of(whole)
    return taken.shape == part.shape and torch.equal(taken, part)


def _shards(rows: int, tokens: int) -> Iterator[Shard]:
    """The ways to share a batch that are known, with what this rank gets; all for each rank in one order."""
    rank, count = distributed.get_rank(), distributed.get_world_size()
    every_row, every_token = torch.arange(rows), torch.arange(tokens)
    for columns in _parts(every_token, rank, count):
        yield Shard(every_row, columns)
    yield Shard(every_row[: rows // count * count].reshape(count, -1)[rank], every_token)
    yield Shard(every_row[rank::count], every_token)


def _parts(tokens: Tensor, rank: int, count: int) -> Iterator[Tensor]:
    pieces = tokens.tensor_split(count)
    yield pieces[rank]
    pairs = tokens.tensor_split(2 * count)
    yield torch.cat([pairs[rank], pairs[-1 - rank]])
    yield tokens[rank::count]
