"""Programs whose rows of the batch depend on each other, each with one that keeps them apart."""

from __future__ import annotations

import torch
from torch import Tensor

from tests.diagnosis.corpus.attack import Attack
from tests.diagnosis.corpus.parts import attend
from tests.diagnosis.walking import TOKENS, WIDTH


def prepend(x: Tensor, entry: Tensor) -> Tensor:
    """The tokens behind one more entry in each row."""
    return torch.cat([entry.expand(x.shape[0], 1, -1), x], 1)


BATCH = [
    Attack("rows_averaged", "batch", lambda x: x.mean(0, keepdim=True), lambda x: x.mean(1, keepdim=True)),
    Attack("everything_averaged", "batch", lambda x: x.mean((0, 1), keepdim=True)[0], lambda x: x.mean(1)),
    Attack("rows_exchanged", "batch", lambda x: x.mean(1).flip(0), lambda x: x.mean(1).flip(1)),
    Attack("everything_in_one", "batch", lambda x: x.mean((0, 1)).expand(2, -1), lambda x: x.amax(1)),
    Attack("one_number", "batch", lambda x: x.mean(), lambda x: x.mean((1, 2))),
    Attack(
        "rows_averaged_before_the_tokens",
        "batch",
        lambda x: prepend(x, x.mean((0, 1))),
        lambda x: prepend(x, x.mean(1, keepdim=True)),
    ),
    Attack(
        "rows_averaged_behind_the_tokens",
        "batch",
        lambda x: prepend(x, x.mean((0, 1))).flip(1),
        lambda x: prepend(x, x.mean(1, keepdim=True)).flip(1),
    ),
    Attack("middle_row_of_three", "batch", lambda x: x + x[1:2], lambda x: x + x.mean(1, keepdim=True), batch=3),
    Attack(
        "rows_averaged_by_twos",
        "batch",
        lambda x: x.view(2, 2, TOKENS, WIDTH).mean(1),
        lambda x: x.view(-1, 1, TOKENS, WIDTH).mean(3).view(-1, TOKENS),
        batch=4,
    ),
    Attack(
        "rows_and_tokens_together",
        "batch",
        lambda x: attend(x.reshape(1, -1, WIDTH)).view_as(x),
        lambda x: x.reshape(-1, WIDTH).relu().view_as(x),
    ),
]
