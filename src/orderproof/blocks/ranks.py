"""Keys of every rank, where a sequence is split over ranks.

To attention this is a cache: to a cache come the keys of earlier calls, here come those of the other ranks, with
their global positions. What a query may see follows from positions, so that any split will do.
"""

from __future__ import annotations

import torch
from torch import Tensor, distributed

from orderproof.blocks.cache import Cached
from orderproof.errors import Unsupported


def gathered(part: Tensor, dim: int) -> Tensor:
    """The parts of every rank along one axis, in the order of the ranks; parts are of one size. Forward only."""
    part = part.contiguous()
    parts = [torch.empty_like(part) for _ in range(distributed.get_world_size())]
    distributed.all_gather(parts, part)
    return torch.cat(parts, dim)


class KeysOfAll:
    """In place of a cache. Forward only."""

    seen = 0

    def append(
        self, k: Tensor, v: Tensor, positions: Tensor, padding_mask: Tensor | None, notes: Tensor | None,
        *, documents: Tensor | None,
    ) -> Cached:  # fmt: skip
        """Keys, values, positions, documents and padding of all ranks, in the order of the ranks."""
        if notes is not None:
            raise Unsupported("an encoding that adds up over the tokens as they are stored cannot be spread over ranks")
        numbers, real = (None if x is None else gathered(x, -1) for x in (documents, padding_mask))
        return Cached(gathered(k, 2), gathered(v, 2), gathered(positions, -1), numbers, real, None)
