"""Ulysses: trade a part of the tokens in all heads for all tokens in a part of the heads.

    before    rank r holds q, k, v of its own tokens, in every head
    exchange  rank r holds q, k, v of all tokens, in the heads r H/R .. (r + 1) H/R - 1
    attend    as one process would, in those heads
    exchange  rank r holds what was mixed for its own tokens, in every head

A head never looks at another, so nothing else changes; an encoding that has a slope, a table or a vector for each head
is seen by some of its heads (`some_heads`). With n numbers in the queries of its own tokens, a rank sends
4 n (R - 1) / R (of q, k, v and what was mixed), where gathering sends 2 n (R - 1) (of k and v); but the ranks can be
no more than the heads.
Source: Jacobs et al. 2023, "DeepSpeed Ulysses", arXiv:2309.14509, section 3.
"""

from __future__ import annotations

import torch
from torch import Tensor

from orderproof.blocks.spread.attending import How, Order, Spread, together
from orderproof.blocks.spread.exchanging import exchanged
from orderproof.blocks.spread.some_heads import some_heads
from orderproof.encodings import attention
from orderproof.errors import UsageError

HEADS, TOKENS = 1, 2  # the axes of queries, keys and values


class Ulysses(Spread):
    """See the module's text."""

    def _mixed(
        self, q: Tensor, k: Tensor, v: Tensor, notes: Tensor | None, own: Order, everyone: Order, how: How
    ) -> Tensor:
        del own
        ranks = self.ranks
        if q.shape[HEADS] % ranks.count:
            raise UsageError(
                f"heads: expected a multiple of the {ranks.count} ranks for Ulysses, got {q.shape[HEADS]}; use Gather"
            )
        share = q.shape[HEADS] // ranks.count
        encoding = some_heads(how.encoding, first=ranks.number * share, heads=share)
        sent, widths = together(q, k, v)
        q, k, v = torch.split(exchanged(sent, ranks, split=HEADS, join=TOKENS), widths, dim=-1)
        mixed = attention(
            q,
            k,
            v,
            encoding=encoding,
            q_positions=everyone.positions,
            causal=how.causal,
            q_documents=everyone.documents,
            padding_mask=everyone.padding_mask,
            notes=None if notes is None else exchanged(notes, ranks, split=HEADS, join=TOKENS),
            scale=how.scale,
            backend=how.backend,
        )
        return exchanged(mixed, ranks, split=TOKENS, join=HEADS)
