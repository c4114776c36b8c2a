"""Packed documents: which token belongs to which, and positions that start again with nothing said about it.

A token sees the tokens of its own document. Positions do not say which those are: where they start again in each
document, causal order alone lets a token at position 3 see the tokens at 0, 1 and 2 of every document, later ones too.
So among the keys of one document that are not hidden, positions must rise along the row (two may be alike side by
side), or all differ, which is how tokens stand that were moved together with their positions. Anything else is refused.
What follows and what does not: numbers told for the documents make rows right; left out, a row is refused wherever a
document of two tokens or more starts again. Documents of one token cannot be told from patches that share a place.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from orderproof import positions as place
from orderproof.encodings._operands import demand, is_integers, kind_of
from orderproof.errors import PositionError

if TYPE_CHECKING:
    from jaxtyping import Bool, Int

Documents = tuple[Tensor, Tensor]
"""The numbers of the queries' documents and of the keys'."""
_HIDDEN = torch.iinfo(torch.int64).min
# Scores looked at at once where each query must be looked at by itself.
_BLOCK = 1 << 20
_AGAIN = (
    "k_positions: expected positions that rise along the row, or all differ, got some that start again; "
    "name packed documents by q_documents, as from positions.documents, and pad tokens by padding_mask"
)


def check_documents(
    q_documents: Tensor | None,
    k_documents: Tensor | None,
    *,
    batch: int,
    queries: int,
    keys: int,
    device: torch.device,
) -> Documents | None:
    """Refuse numbers of documents that do not fit; return them as int64; keys take the queries' by default."""
    if q_documents is None:
        if k_documents is not None:
            raise PositionError("q_documents: expected those of the queries beside k_documents, got none")
        return None
    q = _numbers("q_documents", q_documents, batch, queries, device)
    if k_documents is not None:
        return q, _numbers("k_documents", k_documents, batch, keys, device)
    if queries != keys:
        raise PositionError(f"k_documents: expected those of {keys} keys, got none; there are {queries} queries")
    return q, q


def _numbers(name: str, x: Tensor, batch: int, tokens: int, device: torch.device) -> Int[Tensor, "row token"]:
    fits = is_integers(x) and x.dim() in (1, 2)
    if not fits or x.shape[-1] != tokens or (x.dim() == 2 and x.shape[0] not in (1, batch)):
        raise PositionError(f"{name}: expected integers [{tokens}] or [{batch}, {tokens}], got {kind_of(x)}")
    if x.device != device:
        raise PositionError(f"{name}: expected device {device}, got {x.device}; move with .to('{device}')")
    rows = x.long()
    return rows.unsqueeze(0) if rows.dim() == 1 else rows


def same_document(documents: Documents) -> Bool[Tensor, "row query key"]:
    """True where a query and a key are of one document."""
    return documents[0].unsqueeze(-1) == documents[1].unsqueeze(-2)


def check_order(
    k_positions: Int[Tensor, "*axes_and_batch key"],
    *,
    axes: int,
    documents: Documents | None,
    padding_mask: Bool[Tensor, "batch key"] | None,
    visible: Bool[Tensor, "batch head query key"] | None,
) -> None:
    """Refuse positions of keys that start again within a document, where causal order would be wrong.

    ``visible`` is who sees whom where a mask narrows it further: then each query is looked at with the keys it sees.
    Where values may not be looked at, torch asserts it when they are known; under a mask it is then taken on trust.
    """
    places = k_positions if axes > 1 else k_positions.unsqueeze(0)
    places = places.unsqueeze(1) if places.dim() == 2 else places
    readable = place.readable(places)
    if readable and not bool((places[0].diff(dim=-1) < 0).any()):
        return
    if visible is not None:
        if readable and _come_again_in_sight(places, visible):
            raise PositionError(_AGAIN)
        return
    groups = places.new_zeros(places.shape[1:]) if documents is None else documents[1]
    if padding_mask is not None:
        groups = torch.where(padding_mask, groups, _HIDDEN)
    demand(~_come_again(places, groups), PositionError, _AGAIN)


def _come_again(places: Int[Tensor, "axis row key"], groups: Int[Tensor, "row key"]) -> Bool[Tensor, "row key"]:
    """True where a key comes again: at the place of one before it in its group, with others of the group in between.

    The answers of a row stand in an order of no use.
    """
    rows = (max(places.shape[1], groups.shape[0]), groups.shape[1])
    keys, groups = places.expand(-1, *rows), groups.expand(rows)
    together = groups.argsort(dim=-1, stable=True)
    stored = torch.arange(groups.shape[-1], device=groups.device).expand_as(groups)
    rank = torch.empty_like(groups).scatter(-1, together, stored)
    order = stored
    for key in (*keys.flip(0), groups):
        order = order.gather(-1, key.gather(-1, order).argsort(dim=-1, stable=True))
    # The one before each, by rolling: pairs cut out by slices would ask the graph for two tokens or more.
    rank, *columns = (x.gather(-1, order) for x in (rank, *keys, groups))
    found: Tensor = (stored > 0) & (rank > rank.roll(1, -1) + 1) & (columns[-1] != _HIDDEN)
    for column in columns:
        found = found & (column == column.roll(1, -1))
    return found


def _come_again_in_sight(places: Int[Tensor, "axis row key"], visible: Bool[Tensor, "batch head query key"]) -> bool:
    """The same for the keys that each query sees; only those queries are looked at for which positions fall."""
    batch, heads, queries, keys = visible.shape
    rows = max(batch, places.shape[1])
    each = places[:, :, None, None].expand(-1, rows, heads, queries, keys).flatten(1, 3)
    seen = visible.expand(rows, heads, queries, keys).flatten(0, 2)
    step = max(1, _BLOCK // max(1, keys))
    for start in range(0, len(seen), step):
        some, near = each[:, start : start + step], seen[start : start + step]
        highest = torch.where(near, some[0], -1).cummax(dim=-1).values
        falls = (near & (some[0] < highest)).any(dim=-1)
        if bool(falls.any()) and bool(_come_again(some[:, falls], torch.where(near[falls], 0, _HIDDEN)).any()):
            return True
    return False
