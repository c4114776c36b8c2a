"""Who may see whom: causal order, documents, padding, and anything narrower, as one boolean mask.

A key is *not after* a query when its position is smaller, or the same and it is not stored after the query
(the last key being stored with the last query). For positions that rise along the row this is the lower
triangle. Because positions decide first, tokens permuted together with their positions see the same tokens;
because storage breaks ties, equal positions never let a token see what follows it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from orderproof.encodings._documents import Documents, same_document
from orderproof.encodings._operands import distances, kind_of
from orderproof.errors import UsageError

if TYPE_CHECKING:
    from jaxtyping import Bool, Int


def sight(
    q_positions: Int[Tensor, "*batch query"],
    k_positions: Int[Tensor, "*batch key"],
    *,
    causal: bool,
    window: tuple[int, int] | None = None,
    documents: Documents | None = None,
    padding_mask: Bool[Tensor, "batch key"] | None = None,
    mask: Bool[Tensor, "*batch_and_head query key"] | None = None,
) -> Bool[Tensor, "batch head query key"] | None:
    """True where a query may see a key; None where every query sees every key.

    ``window`` (back, ahead) [positions] is how far before and after itself a query sees. ``documents`` numbers the
    documents of the queries, and those of the keys.
    """
    visible = not_after(q_positions, k_positions).unsqueeze(1) if causal else None
    if window is not None:
        near = within(q_positions, k_positions, window).unsqueeze(1)
        visible = near if visible is None else visible & near
    if documents is not None:
        same = same_document(documents).unsqueeze(1)
        visible = same if visible is None else visible & same
    if padding_mask is not None:
        real = padding_mask[:, None, None, :]
        visible = real if visible is None else visible & real
    if mask is not None:
        given = mask.unsqueeze(-3) if mask.dim() == 3 else mask
        visible = given if visible is None else visible & given
    return visible


def not_after(
    q_positions: Int[Tensor, "*batch query"], k_positions: Int[Tensor, "*batch key"]
) -> Bool[Tensor, "batch query key"]:
    """True where a key does not come after a query; the batch is 1 where no positions have one."""
    q, k = (p.unsqueeze(0) if p.dim() == 1 else p for p in (q_positions, k_positions))
    q, k = q.unsqueeze(-1), k.unsqueeze(-2)
    queries, keys = q.shape[-2], k.shape[-1]
    if queries > keys:
        raise UsageError(f"causal attention: expected at least as many keys as queries, got {keys} and {queries}")
    stored = torch.arange(keys, device=k.device)
    return (k < q) | ((k == q) & (stored <= stored[keys - queries :].unsqueeze(-1)))


def within(
    q_positions: Int[Tensor, "*batch query"], k_positions: Int[Tensor, "*batch key"], window: tuple[int, int]
) -> Bool[Tensor, "batch query key"]:
    """True where a key stands at most ``window[0]`` positions before a query and at most ``window[1]`` after it."""
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
    """Refuse masks that are not boolean or do not fit the queries and keys."""
    for name, x in (("padding_mask", padding_mask), ("mask", mask)):
        if x is not None and (where := _device_of(x)) != device:
            raise UsageError(f"{name}: expected a tensor on {device}, got {where or kind_of(x)}")
    if padding_mask is not None and (padding_mask.dtype != torch.bool or padding_mask.shape != (batch, keys)):
        came = kind_of(padding_mask)
        raise UsageError(f"padding_mask: expected booleans [{batch}, {keys}], True at real tokens, got {came}")
    if mask is None:
        return
    full = (batch, queries, keys) if mask.dim() == 3 else (batch, heads, queries, keys)[-mask.dim() :]
    fits = 2 <= mask.dim() <= 4 and all(m in (1, f) for m, f in zip(mask.shape, full, strict=True))
    if mask.dtype != torch.bool or not fits:
        wanted = f"[{queries}, {keys}], [{batch}, {queries}, {keys}] or [{batch}, {heads}, {queries}, {keys}]"
        raise UsageError(f"mask: expected booleans {wanted}, True where a query may look, got {kind_of(mask)}")


def _device_of(x: object) -> torch.device | None:
    return x.device if isinstance(x, Tensor) else None
