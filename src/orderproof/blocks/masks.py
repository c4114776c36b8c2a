"""Masks: who may see whom, as booleans [.., query, key] that are True where a query may look.

    causal[m, n]     the key n does not come after the query m
    padding[m, n]    the key n is a real token
    documents[m, n]  m and n belong to one packed document
    window[m, n]     -back <= position[n] - position[m] <= ahead

Masks are combined with ``&``. A mask narrows what is seen and adds nothing of its own, but the pattern itself can
tell order: a causal mask shows a token how many others stand before it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from torch import Tensor

from orderproof import positions as place
from orderproof.encodings.sight import not_after
from orderproof.errors import UsageError

if TYPE_CHECKING:
    from jaxtyping import Bool, Int


def causal(
    q_positions: Int[Tensor, "*batch query"], k_positions: Int[Tensor, "*batch key"] | None = None
) -> Bool[Tensor, "batch query key"]:
    """Keys that do not come after the query, by position; of equal positions, by storage."""
    k_positions = q_positions if k_positions is None else k_positions
    return not_after(place.check(q_positions, name="q_positions"), place.check(k_positions, name="k_positions"))


def padding(real: Bool[Tensor, "batch key"]) -> Bool[Tensor, "batch 1 key"]:
    """Keys that are real tokens."""
    return real.unsqueeze(-2)


def documents(cu_seqlens: Int[Tensor, " boundary"]) -> Bool[Tensor, "token token"]:
    """Tokens of the same document, where documents are packed with the boundaries 0, n1, n1 + n2, ..."""
    number = place.documents(cu_seqlens)
    return number.unsqueeze(-1) == number.unsqueeze(-2)


def window(
    q_positions: Int[Tensor, "*batch query"],
    k_positions: Int[Tensor, "*batch key"] | None = None,
    *,
    back: int,
    ahead: int,
) -> Bool[Tensor, "*batch query key"]:
    """Keys at most ``back`` positions before the query and at most ``ahead`` after it."""
    if back < 0 or ahead < 0:
        raise UsageError(f"window: expected back and ahead of 0 or more, got {back} and {ahead}")
    q = place.check(q_positions, name="q_positions")
    k = q if k_positions is None else place.check(k_positions, name="k_positions")
    distance = k.unsqueeze(-2) - q.unsqueeze(-1)
    return (distance >= -back) & (distance <= ahead)
