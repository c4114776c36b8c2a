"""Multi-head self-attention: every token asks, every token answers, and the answers are mixed.

    Q = X Wq + bq      K = X Wk + bk      V = X Wv + bv           three views of one X [batch, token, width]
    head h gets features h * d .. (h + 1) * d - 1 of each,        d = width / heads
    out[m] = sum_n softmax_n(Q[m] . K[n] / sqrt(d)) V[n]          in each head, over the tokens n that m may see
    Y = concatenate(heads) Wo + bo

Permute the rows of X by P: then Q, K and V are permuted, the scores become P S P^T, and so Y becomes P Y. Nothing
above knows the order of the tokens. Order enters only through the encoding and the masks.
Source: Vaswani et al. 2017, "Attention Is All You Need", arXiv:1706.03762, section 3.2.2.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from torch import Tensor, nn

from orderproof.blocks.cache import KeyValueCache
from orderproof.blocks.spread import Spread
from orderproof.encodings import Backend, PositionalEncoding, attention
from orderproof.errors import UsageError

if TYPE_CHECKING:
    from jaxtyping import Bool, Float, Int


class SelfAttention(nn.Module):
    """Attention of a sequence to itself."""

    def __init__(self, width: int, heads: int, *, causal: bool, backend: Backend = "sdpa") -> None:
        super().__init__()
        if heads < 1 or width < 1 or width % heads:
            raise UsageError(f"heads: expected a number that divides width={width}, got {heads}")
        self.heads = heads
        self.causal = causal
        self.backend: Backend = backend
        self.to_query = nn.Linear(width, width)
        self.to_key = nn.Linear(width, width)
        self.to_value = nn.Linear(width, width)
        self.to_output = nn.Linear(width, width)

    def forward(
        self,
        x: Float[Tensor, "batch token width"],
        positions: Int[Tensor, "*batch token"],
        *,
        encoding: PositionalEncoding,
        documents: Int[Tensor, "*batch token"] | None = None,
        padding_mask: Bool[Tensor, "batch token"] | None = None,
        mask: Bool[Tensor, "*batch_and_head token key"] | None = None,
        cache: KeyValueCache | None = None,
        spread: Spread | None = None,
        lengths: Int[Tensor, " batch"] | int | None = None,
    ) -> Float[Tensor, "batch token width"]:
        """Let each token attend to those it may see: here, and in the cache where one is given.

        With a cache, ``x`` holds the new tokens only, be it a prompt, a chunk or a single token. The cache holds
        keys before they are turned by position, with their positions, so that no encoding needs to know of it.
        ``documents`` numbers the documents that are packed in one row: a token sees those of its own. ``lengths`` is
        the length each row is read at, for encodings that depend on it. With ``spread``, the tokens are some of a row
        that is spread over ranks, and attend to those of all ranks.
        """
        q = self._split_heads(self.to_query(x))
        k = self._split_heads(self.to_key(x))
        v = self._split_heads(self.to_value(x))
        k_positions, k_documents, notes = positions, documents, encoding.notes(x)
        if spread is not None:
            if cache is not None or mask is not None:
                raise UsageError("spread: expected neither cache nor mask beside it; name documents and pad tokens")
            mixed = spread.attend(
                q,
                k,
                v,
                encoding=encoding,
                positions=positions,
                causal=self.causal,
                documents=documents,
                padding_mask=padding_mask,
                notes=notes,
                lengths=lengths,
                backend=self.backend,
            )
            return self.to_output(self._join_heads(mixed))  # type: ignore[no-any-return]
        if cache is not None:
            if not self.causal:
                raise UsageError("cache: expected causal attention; in any other, later tokens change earlier ones")
            k, v, k_positions, k_documents, padding_mask, notes = cache.append(
                k, v, positions, padding_mask, notes, documents=documents
            )
        mixed = attention(
            q,
            k,
            v,
            encoding=encoding,
            q_positions=positions,
            k_positions=k_positions,
            causal=self.causal,
            q_documents=documents,
            k_documents=k_documents,
            padding_mask=padding_mask,
            mask=mask,
            notes=notes,
            lengths=lengths,
            backend=self.backend,
        )
        return self.to_output(self._join_heads(mixed))  # type: ignore[no-any-return]

    def _split_heads(self, x: Float[Tensor, "batch token width"]) -> Float[Tensor, "batch head token head_width"]:
        batch, token, width = x.shape
        return x.view(batch, token, self.heads, width // self.heads).transpose(1, 2)

    def _join_heads(self, x: Float[Tensor, "batch head token head_width"]) -> Float[Tensor, "batch token width"]:
        return x.transpose(1, 2).flatten(2)
