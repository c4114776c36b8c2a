"""Inputs of calls of any number of tokens, with the inputs of a call mode."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

from orderproof.models import Subject
from orderproof.models.sample import seeded_generator
from orderproof.models.settings import mask_dtype
from orderproof.theorems.statement import DOCUMENTS, MASK, POSITIONS

MORE_EXAMPLES = 8  # further choices of the inputs besides the tokens


def open_examples(
    subject: Subject, shared: Sequence[str], call_mode: str, tokens: int, *, more: int = 0
) -> Iterator[tuple[Tensor, ...]]:
    """The inputs of one call without masked tokens and, where a call mode has inputs of its own, of one with some.

    Args:
        subject: The model.
        shared: The names of the inputs besides the tokens.
        call_mode: The call mode, which decides what the position ids are.
        tokens: The number of tokens.
        more: From 1 to `MORE_EXAMPLES`: instead a call with another mask, for a branch that these do not take. The
            first two have padding on the left and on the right, the others random masks; with "padded right" all have
            it on the right.

    """
    sample = subject.sample(tokens, 1).inputs
    rows = sample[0].shape[0]
    generator = seeded_generator(tokens + 1000 * more)
    kinds = ("random",) if more else ("all", "random")
    for kind in kinds if shared else ("all",):
        extras: list[Tensor] = []
        mask = torch.ones(rows, tokens, dtype=torch.int64)
        if kind == "random":
            mask = torch.randint(0, 2, (rows, tokens), generator=generator)
            right = more == 2 or call_mode == "padded right"
            if right or more == 1:
                mask = mask.sort(dim=1, descending=right).values
            mask[:, 0 if right else -1 if more == 1 else tokens // 2] = 1
        for name in shared:
            if name == MASK:
                extras.append(mask)
            elif name == DOCUMENTS:
                extras.append(mask.cumsum(1) if kind == "random" else torch.zeros_like(mask))
            elif name == POSITIONS:
                positions = torch.arange(tokens).repeat(rows, 1)
                if kind == "random" and call_mode == "packed":
                    positions = restarting_positions(mask.bool())
                elif kind == "random":
                    positions = torch.randperm(tokens, generator=generator).repeat(rows, 1)
                extras.append(subject.first_position + positions)
            else:
                dtype = mask_dtype(subject.module, sample[0])
                seen = (mask[:, None, :, None] == mask[:, None, None, :]) & torch.ones(tokens, tokens).tril().bool()
                extras.append(torch.where(seen, 0.0, torch.finfo(dtype).min).to(dtype))
        yield (*sample, *extras)


def restarting_positions(begins: Tensor) -> Tensor:
    """The position ids [row, token] of documents, by the tokens at which they begin; the first token does."""
    place = torch.arange(begins.shape[1]).expand(begins.shape)
    return place - torch.where(begins, place, 0).cummax(dim=1).values
