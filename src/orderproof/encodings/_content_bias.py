"""Content-dependent biases: common checks, and sums along the order of the keys.

They compute in float32, or float64 if that is requested, for any dtype of queries and keys. Keys are ordered by
position; keys at equal positions by index, as in `visibility_mask`.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING

import torch
from torch import Tensor
from torch.nn import functional

from orderproof.encodings._encoding import AttentionContent, PositionalEncoding
from orderproof.encodings.checks import autocast_disabled, check_dtype, describe_value, is_floating
from orderproof.errors import EncodingError
from orderproof.positions import has_readable_values
from orderproof.positions import validate as validate_positions

if TYPE_CHECKING:
    from jaxtyping import Float, Int


class ContentBias(PositionalEncoding):
    """A bias that depends on queries and keys."""

    heads: int | None = None
    """Number of heads of its parameters; None: any number."""
    head_width: int | None = None
    """Features per head of its parameters; None: any number."""
    token_state_dim: int | None = None
    """Features of the token state, if claims.decode_state is "token_state"."""

    @abstractmethod
    def compute_bias(
        self,
        content: AttentionContent,
        q_positions: Int[Tensor, "*axes_and_batch query"],
        k_positions: Int[Tensor, "*axes_and_batch key"],
    ) -> Float[Tensor, "batch head query key"]:
        """The bias, from checked operands in the computation dtype."""

    def bias(
        self,
        q_positions: Int[Tensor, "*batch query"],
        k_positions: Int[Tensor, "*batch key"],
        *,
        content: AttentionContent | None = None,
        dtype: torch.dtype = torch.float32,
    ) -> Float[Tensor, "batch head query key"]:
        """The bias to add to the scores, rounded once to ``dtype``."""
        check_dtype(type(self).__name__, dtype)
        compute_dtype = torch.float64 if dtype == torch.float64 else torch.float32
        checked = self._check_content(content)
        q, k = checked.q.to(compute_dtype), checked.k.to(compute_dtype)
        token_state = None if checked.token_state is None else checked.token_state.to(compute_dtype)
        p, s = (
            validate_positions(x, name=name, batch=len(q), tokens=y.shape[2], device=q.device)
            for name, x, y in (("q_positions", q_positions, q), ("k_positions", k_positions, k))
        )
        with autocast_disabled(q):
            bias = self.compute_bias(
                AttentionContent(q=q, k=k, scale=checked.scale, visible=checked.visible, token_state=token_state), p, s
            )
        return bias.to(dtype)

    def _check_content(self, content: AttentionContent | None) -> AttentionContent:
        owner = type(self).__name__
        if content is None:
            raise EncodingError(f"{owner}: content must be an AttentionContent of queries and keys, got None")
        for name, x in (("q", content.q), ("k", content.k)):
            fits = is_floating(x, 4)
            fits = fits and (self.heads is None or x.shape[1] == self.heads)
            fits = fits and (self.head_width is None or x.shape[3] == self.head_width)
            if not fits:
                wanted = f"[batch, {self.heads or 'head'}, token, {self.head_width or 'head_width'}]"
                raise EncodingError(f"{owner}: content.{name} must be floating {wanted}, got {describe_value(x)}")
        if self.claims.decode_state == "token_state":
            full = (*content.q.shape[:2], content.k.shape[2], self.token_state_dim)
            if content.token_state is None or content.token_state.shape != full:
                raise EncodingError(
                    f"{owner}: token_state must be {list(full)}, one per key, "
                    f"got {describe_value(content.token_state)}; compute it with token_state(x) for all keys"
                )
        return content


def key_order(k_positions: Int[Tensor, "*batch key"]) -> Int[Tensor, "batch key"] | None:
    """The indices that sort the keys by position; None if they are known to be sorted."""
    rows = k_positions.unsqueeze(0) if k_positions.dim() == 1 else k_positions
    if has_readable_values(rows) and bool((rows.diff(dim=-1) >= 0).all()):
        return None
    return rows.argsort(dim=-1, stable=True)


def reorder_keys(
    x: Float[Tensor, "batch head row key"], order: Int[Tensor, "batch key"] | None, *, inverse: bool = False
) -> Float[Tensor, "batch head row key"]:
    """The columns of a matrix in key order; with ``inverse``, back in storage order."""
    if order is None:
        return x
    index = (order.argsort(dim=-1) if inverse else order)[:, None, None, :]
    x = x.expand(index.shape[0], -1, -1, -1) if index.shape[0] > 1 else x
    return gather_last(x, index)


def gather_last(x: Float[Tensor, "batch head row any"], index: Int[Tensor, "#batch #head #row key"]) -> Tensor:
    """`torch.gather` along the last axis, with the index broadcast over the others."""
    return x.gather(-1, index.expand(*x.shape[:-1], index.shape[-1]))


def suffix_sum(
    x: Float[Tensor, "batch head query key"], k_positions: Int[Tensor, "*batch key"], *, inclusive: bool
) -> Float[Tensor, "batch head query key"]:
    """For each key, the sum of x over the keys after it, and over itself if ``inclusive``."""
    order = key_order(k_positions)
    sums = reorder_keys(x, order).flip(-1).cumsum(-1)
    if not inclusive:
        sums = functional.pad(sums, (1, 0))[..., :-1]  # in this order, torch.export accepts rows of one or two keys
    return reorder_keys(sums.flip(-1), order, inverse=True)
