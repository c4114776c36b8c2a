"""All-gather of keys and values: each rank attends from its local queries to the keys of all ranks.

    out[tokens of r] = attention(q[tokens of r], k, v)                     k and v gathered from all ranks

Works with any encoding, number of heads and token split. Each rank holds all keys and values of one layer at a time,
and the scores of its local queries.
"""

from __future__ import annotations

import torch
from torch import Tensor

from orderproof.blocks.sequence_parallel.all_gather import all_gather
from orderproof.blocks.sequence_parallel.strategy import (
    AttentionOptions,
    SequenceParallel,
    TokenPositions,
    concat_features,
)
from orderproof.encodings import attention


class AllGatherKV(SequenceParallel):
    """Gathers keys and values on every rank; see the module docstring."""

    def _attend(
        self,
        q: Tensor,
        k: Tensor,
        v: Tensor,
        token_state: Tensor | None,
        local: TokenPositions,
        all_tokens: TokenPositions,
        options: AttentionOptions,
    ) -> Tensor:
        packed, widths = concat_features(k, v)
        k, v = torch.split(all_gather(packed, 2, self.ranks), widths, dim=-1)
        return attention(
            q,
            k,
            v,
            encoding=options.encoding,
            q_positions=local.positions,
            k_positions=all_tokens.positions,
            causal=options.causal,
            q_document_ids=local.document_ids,
            k_document_ids=all_tokens.document_ids,
            padding_mask=all_tokens.padding_mask,
            token_state=None if token_state is None else all_gather(token_state, 2, self.ranks),
            scale=options.scale,
            backend=options.backend,
        )
