"""Attention masks: booleans [..., query, key], True where a query may attend to a key.

    causal_mask[m, n]     key n is not after query m
    padding_mask[m, n]    key n is a real token
    document_mask[m, n]   m and n belong to the same packed document
    window_mask[m, n]     -back <= position[n] - position[m] <= ahead

Combine masks with ``&``. A mask only removes visible keys, but its pattern can carry order: under a causal mask, the
number of visible keys tells a token its position.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from torch import Tensor

from orderproof.encodings.visibility_mask import causal_mask as causal_visibility
from orderproof.encodings.visibility_mask import window_mask as window_visibility
from orderproof.errors import UsageError
from orderproof.positions import document_ids as boundaries_to_document_ids
from orderproof.positions import validate as validate_positions

if TYPE_CHECKING:
    from jaxtyping import Bool, Int


def causal_mask(
    q_positions: Int[Tensor, "*batch query"], k_positions: Int[Tensor, "*batch key"] | None = None
) -> Bool[Tensor, "batch query key"]:
    """Keys not after the query, by position; keys at equal positions by their index."""
    k_positions = q_positions if k_positions is None else k_positions
    return causal_visibility(
        validate_positions(q_positions, name="q_positions"), validate_positions(k_positions, name="k_positions")
    )


def padding_mask(is_real: Bool[Tensor, "batch key"]) -> Bool[Tensor, "batch 1 key"]:
    """Keys that are real tokens, for every query."""
    return is_real.unsqueeze(-2)


def document_mask(cu_seqlens: Int[Tensor, " boundary"]) -> Bool[Tensor, "token token"]:
    """Tokens of the same document, for documents packed with the boundaries 0, n1, n1 + n2, ..."""
    ids = boundaries_to_document_ids(cu_seqlens)
    return ids.unsqueeze(-1) == ids.unsqueeze(-2)


def window_mask(
    q_positions: Int[Tensor, "*batch query"],
    k_positions: Int[Tensor, "*batch key"] | None = None,
    *,
    back: int,
    ahead: int,
) -> Bool[Tensor, "*batch query key"]:
    """Keys at most ``back`` positions before the query and at most ``ahead`` after it."""
    if back < 0 or ahead < 0:
        raise UsageError(f"window: expected back and ahead of 0 or more, got {back} and {ahead}")
    q = validate_positions(q_positions, name="q_positions")
    k = q if k_positions is None else validate_positions(k_positions, name="k_positions")
    visible = window_visibility(q, k, (back, ahead))
    return visible.squeeze(0) if q.dim() == k.dim() == 1 else visible
