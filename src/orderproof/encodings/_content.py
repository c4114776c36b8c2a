"""Biases that depend on what the tokens hold: how they take it, and sums along the order of the keys.

They all calculate in float32 (or float64 where that is asked for), whatever the dtype of the queries and keys.
The order of the keys is that of their positions; keys of equal positions keep the order they are stored in, as in
`sight`.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING

import torch
from torch import Tensor
from torch.nn import functional

from orderproof import positions as place
from orderproof.encodings._encoding import Content, PositionalEncoding
from orderproof.encodings._operands import check_dtype, exactly, is_floating, kind_of
from orderproof.errors import EncodingError

if TYPE_CHECKING:
    from jaxtyping import Float, Int


class ContentBias(PositionalEncoding):
    """A bias that is given the queries and keys."""

    heads: int | None = None
    """The heads it has parameters for; None: any number."""
    head_width: int | None = None
    """The features of a head it has parameters for; None: any number."""
    note_width: int | None = None
    """The numbers in each note, where its claims say that it has any."""

    @abstractmethod
    def worked_out(
        self,
        content: Content,
        q_positions: Int[Tensor, "*axes_and_batch query"],
        k_positions: Int[Tensor, "*axes_and_batch key"],
    ) -> Float[Tensor, "batch head query key"]:
        """The bias, where content is in the dtype to calculate in and all operands have been checked."""

    def bias(
        self,
        q_positions: Int[Tensor, "*batch query"],
        k_positions: Int[Tensor, "*batch key"],
        *,
        content: Content | None = None,
        dtype: torch.dtype = torch.float32,
    ) -> Float[Tensor, "batch head query key"]:
        """The numbers to add to the scores, rounded once to ``dtype``."""
        check_dtype(type(self).__name__, dtype)
        wide = torch.float64 if dtype == torch.float64 else torch.float32
        given = self._checked(content)
        q, k = given.q.to(wide), given.k.to(wide)
        notes = None if given.notes is None else given.notes.to(wide)
        p, s = (
            place.check(x, name=name, batch=len(q), tokens=y.shape[2], device=q.device)
            for name, x, y in (("q_positions", q_positions, q), ("k_positions", k_positions, k))
        )
        with exactly(q):
            found = self.worked_out(Content(q=q, k=k, scale=given.scale, visible=given.visible, notes=notes), p, s)
        return found.to(dtype)

    def _checked(self, content: Content | None) -> Content:
        owner = type(self).__name__
        if content is None:
            raise EncodingError(f"{owner}: content must be the Content of queries and keys, got None")
        for name, x in (("q", content.q), ("k", content.k)):
            fits = is_floating(x, 4)
            fits = fits and (self.heads is None or x.shape[1] == self.heads)
            fits = fits and (self.head_width is None or x.shape[3] == self.head_width)
            if not fits:
                wanted = f"[batch, {self.heads or 'head'}, token, {self.head_width or 'head_width'}]"
                raise EncodingError(f"{owner}: content.{name} must be floating {wanted}, got {kind_of(x)}")
        if self.claims.state == "notes":
            full = (*content.q.shape[:2], content.k.shape[2], self.note_width)
            if content.notes is None or content.notes.shape != full:
                raise EncodingError(
                    f"{owner}: notes must be {list(full)}, one for every key, got {kind_of(content.notes)}; "
                    "its notes(x) makes them, and a cache keeps them beside the keys"
                )
        return content


def order_of(k_positions: Int[Tensor, "*batch key"]) -> Int[Tensor, "batch key"] | None:
    """The places of the keys from first to last; None where they are known to be stored in that order."""
    rows = k_positions.unsqueeze(0) if k_positions.dim() == 1 else k_positions
    if place.readable(rows) and bool((rows.diff(dim=-1) >= 0).all()):
        return None
    return rows.argsort(dim=-1, stable=True)


def arranged(
    x: Float[Tensor, "batch head row key"], order: Int[Tensor, "batch key"] | None, *, back: bool = False
) -> Float[Tensor, "batch head row key"]:
    """The keys of a matrix from first to last; or, where ``back``, from there to where they were stored."""
    if order is None:
        return x
    index = (order.argsort(dim=-1) if back else order)[:, None, None, :]
    x = x.expand(index.shape[0], -1, -1, -1) if index.shape[0] > 1 else x
    return looked_up(x, index)


def looked_up(x: Float[Tensor, "batch head row any"], index: Int[Tensor, "#batch #head #row key"]) -> Tensor:
    """For each row, its numbers at the places that the index names."""
    return x.gather(-1, index.expand(*x.shape[:-1], index.shape[-1]))


def sum_after(
    x: Float[Tensor, "batch head query key"], k_positions: Int[Tensor, "*batch key"], *, own: bool
) -> Float[Tensor, "batch head query key"]:
    """For each key, the sum of x over the keys that come after it, and over itself where ``own``."""
    order = order_of(k_positions)
    sums = arranged(x, order).flip(-1).cumsum(-1)
    if not own:
        sums = functional.pad(sums[..., :-1], (1, 0))
    return arranged(sums.flip(-1), order, back=True)
