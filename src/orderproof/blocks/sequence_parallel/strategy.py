"""Attention over the tokens of all ranks: the part that all strategies share.

Each rank holds some tokens of every row, with their global positions. Everything outside attention treats tokens
separately and does not depend on ranks. Neither do rotations: each rank rotates its own queries and keys by global
positions. The strategies differ in how they bring queries and keys together (`all_gather_kv`, `ulysses`). Visibility
depends on positions, document ids and padding, never on the rank of a token.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from orderproof.blocks.sequence_parallel.all_gather import all_gather
from orderproof.blocks.sequence_parallel.rank_group import RankGroup
from orderproof.blocks.sequence_parallel.unique_positions import check_unique_positions
from orderproof.encodings import AttentionBackend, NoEncoding, PositionalEncoding
from orderproof.encodings.attention_arguments import check_encoding
from orderproof.encodings.packed_documents import check_document_ids
from orderproof.encodings.visibility_mask import check_masks
from orderproof.positions import validate as validate_positions

if TYPE_CHECKING:
    from jaxtyping import Bool, Float, Int


@dataclass(frozen=True, kw_only=True)
class TokenPositions:
    """Positions, document ids and padding mask of some tokens."""

    positions: Int[Tensor, "*axes_and_batch token"]
    document_ids: Int[Tensor, "*batch token"] | None
    padding_mask: Bool[Tensor, "batch token"] | None

    def all_gather(self, ranks: RankGroup) -> TokenPositions:
        """The same data for the tokens of all ranks, in rank order."""
        document_ids, padding_mask = (
            None if x is None else all_gather(x, -1, ranks) for x in (self.document_ids, self.padding_mask)
        )
        return TokenPositions(
            positions=all_gather(self.positions, -1, ranks), document_ids=document_ids, padding_mask=padding_mask
        )


@dataclass(frozen=True, kw_only=True)
class AttentionOptions:
    """The options of attention that all strategies share."""

    encoding: PositionalEncoding
    """A bias or no encoding; rotations are applied before."""
    causal: bool
    scale: float
    backend: AttentionBackend


class SequenceParallel(ABC):
    """A strategy for attending to the tokens of all ranks. ``ranks`` defaults to the current process group."""

    def __init__(self, ranks: RankGroup | None = None) -> None:
        self.ranks = RankGroup.current() if ranks is None else ranks

    def attend(
        self,
        q: Float[Tensor, "batch head token head_width"],
        k: Float[Tensor, "batch head token head_width"],
        v: Float[Tensor, "batch head token head_width"],
        *,
        encoding: PositionalEncoding,
        positions: Int[Tensor, "*axes_and_batch token"],
        causal: bool,
        document_ids: Int[Tensor, "*batch token"] | None = None,
        padding_mask: Bool[Tensor, "batch token"] | None = None,
        token_state: Float[Tensor, "batch head token state"] | None = None,
        lengths: Int[Tensor, " batch"] | int | None = None,
        backend: AttentionBackend = "sdpa",
    ) -> Float[Tensor, "batch head token head_width"]:
        """Attend from this rank's tokens to the tokens of all ranks.

        All arguments describe this rank's tokens; positions are global. Every rank must pass the same set of optional
        arguments. Raises `PositionError` if real tokens of one causal row share a position.
        """
        check_encoding(encoding, q, causal=causal, token_state=token_state, lengths=lengths)
        local = _check_tokens(q, encoding, positions, document_ids, padding_mask)
        scale = encoding.default_scale(q.shape[-1])
        if encoding.claims.site == "rotate":
            p = local.positions
            q, k = encoding.rotate(q, k, p) if lengths is None else encoding.rotate(q, k, p, lengths=lengths)
            if encoding.claims.ndim > 1:
                local = TokenPositions(
                    positions=local.positions[0], document_ids=local.document_ids, padding_mask=local.padding_mask
                )
            encoding = NoEncoding()
        all_tokens = local.all_gather(self.ranks)
        if causal:
            first_axis = all_tokens.positions if encoding.claims.ndim == 1 else all_tokens.positions[0]
            check_unique_positions(first_axis, all_tokens.document_ids, all_tokens.padding_mask)
        options = AttentionOptions(encoding=encoding, causal=causal, scale=scale, backend=backend)
        return self._attend(q, k, v, token_state, local, all_tokens, options)

    @abstractmethod
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
        """The attention output for this rank's queries over the tokens of all ranks."""


def _check_tokens(
    q: Tensor,
    encoding: PositionalEncoding,
    positions: Tensor,
    document_ids: Tensor | None,
    padding_mask: Tensor | None,
) -> TokenPositions:
    batch, heads, tokens, _ = q.shape
    axes = None if encoding.claims.ndim == 1 else encoding.claims.ndim
    positions = validate_positions(positions, axes=axes, batch=batch, tokens=tokens, device=q.device)
    ids = check_document_ids(document_ids, None, batch=batch, queries=tokens, keys=tokens, device=q.device)
    check_masks(padding_mask, None, batch=batch, heads=heads, queries=tokens, keys=tokens, device=q.device)
    return TokenPositions(positions=positions, document_ids=None if ids is None else ids[0], padding_mask=padding_mask)


def concat_features(*parts: Float[Tensor, "batch head token _"]) -> tuple[Tensor, list[int]]:
    """Tensors concatenated along features, and their widths for splitting them again."""
    return torch.cat(parts, dim=-1), [part.shape[-1] for part in parts]
