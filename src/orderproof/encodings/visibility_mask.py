"""The visibility mask: causal order, documents, padding and custom masks, as one boolean mask.

A key is *not after* a query if its position is smaller, or equal and its index is not larger (indices are aligned at
the last query and the last key). For rising positions this is the lower triangle. Since positions come first, tokens
permuted together with their positions see the same tokens; since indices break ties, tokens at equal positions never
see later tokens.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from orderproof.encodings.checks import describe_value, distances
from orderproof.encodings.packed_documents import DocumentIds, document_mask
from orderproof.errors import UsageError

if TYPE_CHECKING:
    from jaxtyping import Bool, Int


def visibility_mask(
    q_positions: Int[Tensor, "*batch query"],
    k_positions: Int[Tensor, "*batch key"],
    *,
    causal: bool,
    window: tuple[int, int] | None = None,
    document_ids: DocumentIds | None = None,
    padding_mask: Bool[Tensor, "batch key"] | None = None,
    mask: Bool[Tensor, "*batch_and_head query key"] | None = None,
) -> Bool[Tensor, "batch head query key"] | None:
    """True where a key is visible to a query; None if all keys are visible to all queries.

    ``window`` (back, ahead) [positions] is the visible range before and after the query. ``document_ids`` has the
    document ids of queries and of keys.
    """
    visible = causal_mask(q_positions, k_positions).unsqueeze(1) if causal else None
    if window is not None:
        in_window = window_mask(q_positions, k_positions, window).unsqueeze(1)
        visible = in_window if visible is None else visible & in_window
    if document_ids is not None:
        same_document = document_mask(document_ids).unsqueeze(1)
        visible = same_document if visible is None else visible & same_document
    if padding_mask is not None:
        is_real = padding_mask[:, None, None, :]
        visible = is_real if visible is None else visible & is_real
    if mask is not None:
        custom = mask.unsqueeze(-3) if mask.dim() == 3 else mask
        visible = custom if visible is None else visible & custom
    return visible


def causal_mask(
    q_positions: Int[Tensor, "*batch query"], k_positions: Int[Tensor, "*batch key"]
) -> Bool[Tensor, "batch query key"]:
    """True where a key is not after a query; the batch is 1 if the positions have none."""
    q, k = (p.unsqueeze(0) if p.dim() == 1 else p for p in (q_positions, k_positions))
    q, k = q.unsqueeze(-1), k.unsqueeze(-2)
    queries, keys = q.shape[-2], k.shape[-1]
    if queries > keys:
        raise UsageError(
            f"causal attention: expected at least as many keys as queries, got {keys} keys and {queries} queries"
        )
    index = torch.arange(keys, device=k.device)
    return (k < q) | ((k == q) & (index <= index[keys - queries :].unsqueeze(-1)))


def window_mask(
    q_positions: Int[Tensor, "*batch query"], k_positions: Int[Tensor, "*batch key"], window: tuple[int, int]
) -> Bool[Tensor, "batch query key"]:
    """True where a key is at most ``window[0]`` positions before a query and at most ``window[1]`` after it."""
    distance = distances(q_positions, k_positions)
    return (distance >= -window[0]) & (distance <= window[1])


def check_masks(
    padding_mask: Tensor | None,
    mask: Tensor | None,
    *,
    batch: int,
    heads: int,
    queries: int,
    keys: int,
    device: torch.device,
) -> None:
    """Reject masks that are not boolean or do not fit the shapes."""
    for name, x in (("padding_mask", padding_mask), ("mask", mask)):
        if x is not None and (where := _device_of(x)) != device:
            raise UsageError(f"{name}: expected a tensor on {device}, got {where or describe_value(x)}")
    if padding_mask is not None and (padding_mask.dtype != torch.bool or padding_mask.shape != (batch, keys)):
        came = describe_value(padding_mask)
        raise UsageError(f"padding_mask: expected booleans [{batch}, {keys}], True at real tokens, got {came}")
    if mask is None:
        return
    full = (batch, queries, keys) if mask.dim() == 3 else (batch, heads, queries, keys)[-mask.dim() :]
    fits = 2 <= mask.dim() <= 4 and all(m in (1, f) for m, f in zip(mask.shape, full, strict=True))
    if mask.dtype != torch.bool or not fits:
        wanted = f"[{queries}, {keys}], [{batch}, {queries}, {keys}] or [{batch}, {heads}, {queries}, {keys}]"
        raise UsageError(f"mask: expected booleans {wanted}, True where a query may attend, got {describe_value(mask)}")


def _device_of(x: object) -> torch.device | None:
    return x.device if isinstance(x, Tensor) else None
