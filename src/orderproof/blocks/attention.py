"""Multi-head self-attention.

    Q = X Wq + bq      K = X Wk + bk      V = X Wv + bv           from one X [batch, token, width]
    head h gets features h * d .. (h + 1) * d - 1 of each,        d = width / heads
    out[m] = sum_n softmax_n(Q[m] . K[n] / sqrt(d)) V[n]          in each head, over the tokens n visible to m
    Y = concatenate(heads) Wo + bo

Permute the rows of X by P: Q, K and V are permuted, the scores become P S P^T, and Y becomes P Y. These formulas are
permutation-equivariant. Order enters only through the encoding and the masks.
Source: Vaswani et al. 2017, "Attention Is All You Need", arXiv:1706.03762, section 3.2.2.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from torch import Tensor, nn

from orderproof.blocks.attention_inputs import AttentionInputs
from orderproof.encodings import AttentionBackend, attention
from orderproof.errors import UsageError

if TYPE_CHECKING:
    from jaxtyping import Float


class SelfAttention(nn.Module):
    """Multi-head self-attention."""

    def __init__(self, width: int, heads: int, *, causal: bool, backend: AttentionBackend = "sdpa") -> None:
        super().__init__()
        if heads < 1 or width < 1 or width % heads:
            raise UsageError(f"heads: expected a number that divides width={width}, got {heads}")
        self.heads = heads
        self.causal = causal
        self.backend: AttentionBackend = backend
        self.to_query = nn.Linear(width, width)
        self.to_key = nn.Linear(width, width)
        self.to_value = nn.Linear(width, width)
        self.to_output = nn.Linear(width, width)

    def forward(
        self, x: Float[Tensor, "batch token width"], inputs: AttentionInputs
    ) -> Float[Tensor, "batch token width"]:
        """Attend from each token to the tokens visible to it, in ``x`` and in the cache if there is one.

        With a cache, ``x`` holds only the new tokens: a prompt, a chunk or a single token. The cache stores keys before
        any rotation, with their positions, so that no encoding depends on it.
        """
        q = self._split_heads(self.to_query(x))
        k = self._split_heads(self.to_key(x))
        v = self._split_heads(self.to_value(x))
        token_state = inputs.encoding.token_state(x)
        if inputs.sequence_parallel is not None:
            mixed = inputs.sequence_parallel.attend(
                q,
                k,
                v,
                encoding=inputs.encoding,
                positions=inputs.positions,
                causal=self.causal,
                document_ids=inputs.document_ids,
                padding_mask=inputs.padding_mask,
                token_state=token_state,
                lengths=inputs.lengths,
                backend=self.backend,
            )
            return self.to_output(self._join_heads(mixed))  # type: ignore[no-any-return]
        k_positions, k_document_ids, padding_mask = inputs.positions, inputs.document_ids, inputs.padding_mask
        if inputs.cache is not None:
            if not self.causal:
                raise UsageError("cache: expected causal attention; without it, later tokens change earlier ones")
            k, v, k_positions, k_document_ids, padding_mask, token_state = inputs.cache.append(
                k, v, k_positions, padding_mask, token_state, document_ids=k_document_ids
            )
        mixed = attention(
            q,
            k,
            v,
            encoding=inputs.encoding,
            q_positions=inputs.positions,
            k_positions=k_positions,
            causal=self.causal,
            q_document_ids=inputs.document_ids,
            k_document_ids=k_document_ids,
            padding_mask=padding_mask,
            mask=inputs.mask,
            token_state=token_state,
            lengths=inputs.lengths,
            backend=self.backend,
        )
        return self.to_output(self._join_heads(mixed))  # type: ignore[no-any-return]

    def _split_heads(self, x: Float[Tensor, "batch token width"]) -> Float[Tensor, "batch head token head_width"]:
        batch, token, width = x.shape
        return x.view(batch, token, self.heads, width // self.heads).transpose(1, 2)

    def _join_heads(self, x: Float[Tensor, "batch head token head_width"]) -> Float[Tensor, "batch token width"]:
        return x.transpose(1, 2).flatten(2)
