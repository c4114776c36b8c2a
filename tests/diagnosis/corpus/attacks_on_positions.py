"""Programs that misuse position ids, in packed documents and under joint permutations."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from tests.diagnosis.corpus.attack import Attack
from tests.diagnosis.corpus.attacks_on_batch import prepend
from tests.diagnosis.corpus.parts import added, attend
from tests.diagnosis.walking import TOKENS, WIDTH


def apart(p: Tensor) -> Tensor:
    """Tokens of different documents: a document starts where the positions do."""
    document = (p == 0).cumsum(-1)
    return document[..., :, None] != document[..., None, :]


def rows_of(x: Tensor, p: Tensor) -> Tensor:
    """The tokens at these places."""
    return x.gather(1, p[..., None].expand(x.shape))


POSITIONS = [
    Attack(
        "mean_of_both",
        "packing",
        lambda x, p: attend(x, apart(p)) + x.mean(1, keepdim=True),
        lambda x, p: attend(x, apart(p)),
    ),
    Attack(
        "positions_as_places",
        "packing",
        lambda x, p: attend(x, apart(p)) + rows_of(x, p),
        lambda x, p: attend(x, apart(p)) + x[:, torch.arange(TOKENS)],
    ),
    Attack(
        "positions_compared_across_documents",
        "packing",
        lambda x, p: attend(x, p[..., :, None] < p[..., None, :]),
        lambda x, p: attend(x, apart(p) | (p[..., :, None] < p[..., None, :])),
    ),
    Attack(
        "running_sum",
        "packing",
        lambda x, p: attend(x, apart(p)) + x.cumsum(1),
        lambda x, p: attend(x, apart(p)) + x.cumsum(2),
    ),
    Attack(
        "positions_as_places",
        "position_ids",
        lambda x, p: attend(rows_of(x, p)),
        lambda x, p: attend(x + F.embedding(p, torch.eye(9)[:, :WIDTH])),
    ),
    Attack(
        "sorted_by_position",
        "position_ids",
        lambda x, p: attend(rows_of(x, p.argsort(1))),
        lambda x, p: attend(x, p[..., :, None] < p[..., None, :]),
    ),
    Attack(
        "distance_from_the_place",
        "position_ids",
        lambda x, p: added(x, -(p[..., None] - torch.arange(TOKENS)).abs().to(x.dtype)),
        lambda x, p: added(x, -(p[..., None] - p[..., None, :]).abs().to(x.dtype)),
    ),
    Attack(
        "running_sum_of_positions",
        "position_ids",
        lambda x, p: attend(x + p.cumsum(1)[..., None]),
        lambda x, p: attend(x + p.sum(1)[:, None, None]),
    ),
    Attack(
        "first_token_before_the_others",
        "position_ids",
        lambda x, p: prepend(attend(x), x[:, :1]),
        lambda x, p: prepend(attend(x), x.amax(1, keepdim=True)),
    ),
]
