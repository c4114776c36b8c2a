"""Packed documents: document ids, and the detection of positions that restart without them.

A token sees only tokens of its own document. Positions alone do not identify documents: if they restart in each
document, causal order lets a token at position 3 see the tokens at 0, 1 and 2 of every document, including later ones.
Therefore, among the visible keys of one document, positions must either rise along the row (neighbours may be equal)
or be distinct, as for tokens permuted by_group with their positions. Anything else is rejected.
With document ids, packed rows are handled exactly. Without them, a row is rejected if a document of two or more tokens
restarts; documents of one token cannot be distinguished from patches that share a position.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from orderproof.encodings.checks import assert_all, describe_value, is_integers
from orderproof.errors import PositionError
from orderproof.positions import has_readable_values

if TYPE_CHECKING:
    from jaxtyping import Bool, Int

DocumentIds = tuple[Tensor, Tensor]
"""The document ids of queries and of keys."""
_HIDDEN = torch.iinfo(torch.int64).min
# Scores checked per block when each query is checked separately.
_SCORE_BLOCK_SIZE = 1 << 20
_RESTARTED_POSITIONS = (
    "k_positions: expected rising or distinct positions along the row, got some that restart; "
    "pass packed documents as q_document_ids (see positions.document_ids) and pad tokens as padding_mask"
)


def check_document_ids(
    q_document_ids: Tensor | None,
    k_document_ids: Tensor | None,
    *,
    batch: int,
    queries: int,
    keys: int,
    device: torch.device,
) -> DocumentIds | None:
    """Reject document ids that do not fit; return them as int64 [row, token]. Keys default to the queries' ids."""
    if q_document_ids is None:
        if k_document_ids is not None:
            raise PositionError("q_document_ids: expected ids with k_document_ids, got none; pass both")
        return None
    q = _check_ids("q_document_ids", q_document_ids, batch, queries, device)
    if k_document_ids is not None:
        return q, _check_ids("k_document_ids", k_document_ids, batch, keys, device)
    if queries != keys:
        raise PositionError(f"k_document_ids: expected ids of {keys} keys, got none for {queries} queries")
    return q, q


def _check_ids(name: str, x: Tensor, batch: int, tokens: int, device: torch.device) -> Int[Tensor, "row token"]:
    fits = is_integers(x) and x.dim() in (1, 2)
    if not fits or x.shape[-1] != tokens or (x.dim() == 2 and x.shape[0] not in (1, batch)):
        raise PositionError(f"{name}: expected integers [{tokens}] or [{batch}, {tokens}], got {describe_value(x)}")
    if x.device != device:
        raise PositionError(f"{name}: expected device {device}, got {x.device}; move with .to('{device}')")
    rows = x.long()
    return rows.unsqueeze(0) if rows.dim() == 1 else rows


def document_mask(document_ids: DocumentIds) -> Bool[Tensor, "row query key"]:
    """True where a query and a key belong to the same document."""
    return document_ids[0].unsqueeze(-1) == document_ids[1].unsqueeze(-2)


def check_causal_positions(
    k_positions: Int[Tensor, "*axes_and_batch key"],
    *,
    axes: int,
    document_ids: DocumentIds | None,
    padding_mask: Bool[Tensor, "batch key"] | None,
    visible: Bool[Tensor, "batch head query key"] | None,
) -> None:
    """Reject key positions that restart within a document, for which causal order would be wrong.

    ``visible`` is the visibility mask if a custom mask narrows it: then the visible keys of each query are checked.
    If values cannot be read now, torch asserts it later; with a custom mask it is then not checked.
    """
    positions = k_positions if axes > 1 else k_positions.unsqueeze(0)
    positions = positions.unsqueeze(1) if positions.dim() == 2 else positions
    readable = has_readable_values(positions)
    if readable and not bool((positions[0].diff(dim=-1) < 0).any()):
        return
    if visible is not None:
        if readable and _repeats_among_visible(positions, visible):
            raise PositionError(_RESTARTED_POSITIONS)
        return
    groups = positions.new_zeros(positions.shape[1:]) if document_ids is None else document_ids[1]
    if padding_mask is not None:
        groups = torch.where(padding_mask, groups, _HIDDEN)
    assert_all(~_repeats_in_group(positions, groups), PositionError, _RESTARTED_POSITIONS)


def _repeats_in_group(
    positions: Int[Tensor, "axis row key"], groups: Int[Tensor, "row key"]
) -> Bool[Tensor, "row key"]:
    """True for keys at the position of an earlier key of their group, with other keys of the group between them.

    The results of a row are not in key order.
    """
    rows = (max(positions.shape[1], groups.shape[0]), groups.shape[1])
    keys, groups = positions.expand(-1, *rows), groups.expand(rows)
    by_group = groups.argsort(dim=-1, stable=True)
    index = torch.arange(groups.shape[-1], device=groups.device).expand_as(groups)
    rank = torch.empty_like(groups).scatter(-1, by_group, index)
    order = index
    for key in (*keys.flip(0), groups):
        order = order.gather(-1, key.gather(-1, order).argsort(dim=-1, stable=True))
    # Compare with the previous key by rolling: slices would require two or more tokens in a traced graph.
    rank, *columns = (x.gather(-1, order) for x in (rank, *keys, groups))
    repeats: Tensor = (index > 0) & (rank > rank.roll(1, -1) + 1) & (columns[-1] != _HIDDEN)
    for column in columns:
        repeats = repeats & (column == column.roll(1, -1))
    return repeats


def _repeats_among_visible(
    positions: Int[Tensor, "axis row key"], visible: Bool[Tensor, "batch head query key"]
) -> bool:
    """`_repeats_in_group` for the visible keys of each query; checks only queries for which positions fall."""
    batch, heads, queries, keys = visible.shape
    rows = max(batch, positions.shape[1])
    each = positions[:, :, None, None].expand(-1, rows, heads, queries, keys).flatten(1, 3)
    visible_rows = visible.expand(rows, heads, queries, keys).flatten(0, 2)
    step = max(1, _SCORE_BLOCK_SIZE // max(1, keys))
    for start in range(0, len(visible_rows), step):
        some, near = each[:, start : start + step], visible_rows[start : start + step]
        highest = torch.where(near, some[0], -1).cummax(dim=-1).values
        falls = (near & (some[0] < highest)).any(dim=-1)
        if bool(falls.any()) and bool(_repeats_in_group(some[:, falls], torch.where(near[falls], 0, _HIDDEN)).any()):
            return True
    return False
