"""Ulysses: exchange a part of the tokens in all heads for all tokens in a part of the heads.

    before    rank r holds q, k, v of its own tokens, in every head
    exchange  rank r holds q, k, v of all tokens, in the heads r H/R .. (r + 1) H/R - 1
    attend    as on one process, in those heads
    exchange  rank r holds the attention output of its own tokens, in every head

Heads are independent, so nothing else changes; encodings with parameters per head are sliced (`head_slice`). With n
numbers in the queries of its own tokens, a rank sends 4 n (R - 1) / R (q, k, v and the output); an all-gather of keys
and values sends 2 n (R - 1). The number of ranks cannot exceed the number of heads.
Source: Jacobs et al. 2023, "DeepSpeed Ulysses", arXiv:2309.14509, section 3.
"""

from __future__ import annotations

import torch
from torch import Tensor

from orderproof.blocks.sequence_parallel.all_to_all import all_to_all
from orderproof.blocks.sequence_parallel.head_slice import slice_heads
from orderproof.blocks.sequence_parallel.strategy import (
    AttentionOptions,
    SequenceParallel,
    TokenPositions,
    concat_features,
)
from orderproof.encodings import attention
from orderproof.errors import UsageError

HEADS, TOKENS = 1, 2  # the axes of queries, keys and values


class Ulysses(SequenceParallel):
    """Exchanges tokens for heads; see the module docstring."""

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
        del local
        ranks = self.ranks
        if q.shape[HEADS] % ranks.world_size:
            raise UsageError(
                f"heads: expected a multiple of the {ranks.world_size} ranks for Ulysses, got {q.shape[HEADS]}; "
                "use AllGatherKV"
            )
        share = q.shape[HEADS] // ranks.world_size
        encoding = slice_heads(options.encoding, first=ranks.rank * share, heads=share)
        packed, widths = concat_features(q, k, v)
        q, k, v = torch.split(all_to_all(packed, ranks, split=HEADS, join=TOKENS), widths, dim=-1)
        mixed = attention(
            q,
            k,
            v,
            encoding=encoding,
            q_positions=all_tokens.positions,
            causal=options.causal,
            q_document_ids=all_tokens.document_ids,
            padding_mask=all_tokens.padding_mask,
            token_state=None if token_state is None else all_to_all(token_state, ranks, split=HEADS, join=TOKENS),
            scale=options.scale,
            backend=options.backend,
        )
        return all_to_all(mixed, ranks, split=TOKENS, join=HEADS)
