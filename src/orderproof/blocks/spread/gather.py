"""Gather keys and values: every rank attends from its own queries to the keys of all ranks.

    out[places of r] = attention(q[places of r], k, v)                     k and v gathered from all ranks

To attention this is decoding: there the keys of earlier calls come from a cache, here those of the other ranks come
over the wire. Any encoding, any number of heads, any split. Each rank holds all keys and values of one layer at a time,
and the rows of the scores that belong to its own queries.
"""

from __future__ import annotations

import torch
from torch import Tensor

from orderproof.blocks.spread.attending import How, Order, Spread, together
from orderproof.blocks.spread.gathering import gathered
from orderproof.encodings import attention


class Gather(Spread):
    """See the module's text."""

    def _mixed(
        self, q: Tensor, k: Tensor, v: Tensor, notes: Tensor | None, own: Order, everyone: Order, how: How
    ) -> Tensor:
        sent, widths = together(k, v)
        k, v = torch.split(gathered(sent, 2, self.ranks), widths, dim=-1)
        return attention(
            q,
            k,
            v,
            encoding=how.encoding,
            q_positions=own.positions,
            k_positions=everyone.positions,
            causal=how.causal,
            q_documents=own.documents,
            k_documents=everyone.documents,
            padding_mask=everyone.padding_mask,
            notes=None if notes is None else gathered(notes, 2, self.ranks),
            scale=how.scale,
            backend=how.backend,
        )
