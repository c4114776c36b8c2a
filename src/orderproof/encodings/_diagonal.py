"""Attention whose bias and mask depend on the distance n - m alone, without a matrix.

For positions that rise by one, the score of query i and key j is added vector[j - i + Q - 1]: the matrix is a vector
of Q + K - 1 numbers read along its diagonals. With the rows of queries turned around, r = Q - 1 - i, the index is
j + r, which is that vector read with the strides (1, 1): a view, and torch's attention takes it as it is. Rows of
attention do not know of each other, so turning the output around again undoes it; the result is, to the last bit,
that of the dense matrix.
Where most keys are out of sight (a causal mask, a window), queries are taken a few hundred at a time and keys that
none of them sees are left out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn import functional

from orderproof import positions as place

if TYPE_CHECKING:
    from jaxtyping import Float, Int

_ROWS = 256
# Scores worked out at once on the way back: what fits into the second cache.
_SCORES_BACKWARD = 1 << 18
_FAR = 1 << 62


class Reach(NamedTuple):
    """The distances n - m that are in sight, and where the first query and key stand."""

    back: int
    ahead: int
    offset: int
    """The position of the first key less that of the first query."""

    def keys(self, first: int, last: int, keys: int) -> tuple[int, int]:
        """The keys that any query from ``first`` to ``last`` sees: from the one, up to but without the other."""
        return max(0, first - self.offset - self.back), min(keys, last - self.offset + self.ahead + 1)

    def hides_somebody(self, queries: int, keys: int) -> bool:
        """Whether any key is out of any query's sight."""
        return 1 - queries + self.offset < -self.back or keys - 1 + self.offset > self.ahead


def reach_of(
    q_positions: Int[Tensor, "*batch query"],
    k_positions: Int[Tensor, "*batch key"],
    *,
    causal: bool,
    window: tuple[int, int] | None,
) -> Reach | None:
    """What is in sight, where distances tell it.

    None where positions do not rise by one or may not be looked at, and where some query sees nobody.
    """
    if not (place.readable(q_positions) and place.readable(k_positions)):
        return None
    q_start, k_start = _start(q_positions), _start(k_positions)
    if q_start is None or k_start is None:
        return None
    queries, keys = q_positions.shape[-1], k_positions.shape[-1]
    offset = k_start - q_start
    if causal and (queries > keys or -offset > keys - queries):
        return None  # ties are then told apart by storage, see `sight`
    back, ahead = (_FAR, _FAR) if window is None else window
    reach = Reach(back, min(ahead, 0) if causal else ahead, offset)
    blind = any(first >= end for first, end in (reach.keys(m, m, keys) for m in (0, queries - 1)))
    return None if blind else reach


def attend(
    q: Float[Tensor, "batch head query head_width"],
    k: Float[Tensor, "batch head key head_width"],
    v: Float[Tensor, "batch head key value_width"],
    vector: Float[Tensor, "#head distance"],
    reach: Reach,
    *,
    scale: float,
) -> Float[Tensor, "batch head query value_width"]:
    """Attention with ``vector`` added: one number for each distance from the last query and the first key on."""
    if vector.requires_grad and torch.is_grad_enabled():
        return _Learned.apply(q, k, v, vector, reach, scale)  # type: ignore[no-any-return, no-untyped-call]
    return _forward(q, k, v, vector.detach(), reach, scale)


def distances(reach: Reach, queries: int, keys: int) -> tuple[int, int]:
    """The first and the last distance that occur."""
    return 1 - queries + reach.offset, keys - 1 + reach.offset


def _forward(q: Tensor, k: Tensor, v: Tensor, vector: Tensor, reach: Reach, scale: float) -> Tensor:
    queries, keys = q.shape[2], k.shape[2]
    vector = _hide(vector, reach, queries, keys)
    step = _ROWS if reach.hides_somebody(queries, keys) else queries
    parts = []
    for start in range(0, queries, step):
        stop = min(start + step, queries)
        first, end = reach.keys(start, stop - 1, keys)
        added = _matrix(vector, queries, (start, stop), (first, end))
        rows, some_keys, some_values = q[:, :, start:stop].flip(2), k[:, :, first:end], v[:, :, first:end]
        mixed = functional.scaled_dot_product_attention(rows, some_keys, some_values, attn_mask=added, scale=scale)
        parts.append(mixed.flip(2))
    return parts[0] if len(parts) == 1 else torch.cat(parts, dim=2)


def _matrix(vector: Tensor, queries: int, rows: tuple[int, int], keys: tuple[int, int]) -> Tensor:
    """The additions of some queries, the last one first, and some keys, as a view."""
    size = (1, vector.shape[0], rows[1] - rows[0], keys[1] - keys[0])
    start = vector.storage_offset() + queries - rows[1] + keys[0]
    return vector.as_strided(size, (0, vector.stride(0), 1, 1), start)


def _hide(vector: Tensor, reach: Reach, queries: int, keys: int) -> Tensor:
    """The vector with minus infinity at the distances out of sight."""
    if not reach.hides_somebody(queries, keys):
        return vector.contiguous()
    first, last = distances(reach, queries, keys)
    distance = torch.arange(first, last + 1, device=vector.device)
    return vector.masked_fill((distance < -reach.back) | (distance > reach.ahead), float("-inf"))


def _start(positions: Tensor) -> int | None:
    """The first of positions that rise by one, the same in every row; None for others, and where there are none."""
    if not positions.numel():
        return None
    if positions.dim() == 2:
        if positions.shape[0] > 1 and not torch.equal(positions, positions[:1].expand_as(positions)):
            return None
        positions = positions[0]
    first = int(positions[0])
    run = torch.arange(first, first + len(positions), device=positions.device)
    return first if torch.equal(positions, run) else None


class _Learned(torch.autograd.Function):
    """The same for a vector that learns.

    Torch's attention would fall back to a matrix of all scores as soon as what it adds asks for a gradient. Here the
    scores are worked out again on the way back, a few rows at a time, and their gradient is summed along diagonals.
    """

    @staticmethod
    def forward(ctx: Any, q: Tensor, k: Tensor, v: Tensor, vector: Tensor, reach: Reach, scale: float) -> Tensor:
        out = _forward(q, k, v, vector.detach(), reach, scale)
        ctx.save_for_backward(q, k, v, vector, out)
        ctx.reach, ctx.scale = reach, scale
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        q, k, v, vector, out = ctx.saved_tensors
        reach, scale = ctx.reach, ctx.scale
        wide = torch.float64 if q.dtype == torch.float64 else torch.float32
        queries, keys = q.shape[2], k.shape[2]
        hidden = _hide(vector.to(wide), reach, queries, keys)
        inner = (gradient.to(wide) * out.to(wide)).sum(-1, keepdim=True)
        flat = [x.to(wide).flatten(0, 1) for x in (q, k, v, gradient, inner)]
        found = [torch.zeros_like(x) for x in flat[:3]]
        vector_gradient = torch.zeros_like(hidden)
        rows, heads = min(queries, _ROWS), len(hidden)
        fitting = max(1, _SCORES_BACKWARD // (rows * keys))
        if fitting < heads:  # some heads of one row at a time
            many = max(n for n in range(1, heads + 1) if heads % n == 0 and n <= fitting)
        else:  # all heads of some rows
            many = fitting // heads * heads
        for matrix in range(0, len(flat[0]), many):
            some = slice(matrix, min(matrix + many, len(flat[0])))
            own = slice(matrix % heads, matrix % heads + min(many, heads))
            of_batch = max(1, (some.stop - matrix) // heads)
            for start in range(0, queries, rows):
                stop = min(start + rows, queries)
                near = slice(*reach.keys(start, stop - 1, keys))
                added = _matrix(hidden, queries, (start, stop), (near.start, near.stop))[0, own]
                added = added.repeat(of_batch, 1, 1)
                slope = _backward(flat, found, added, some, slice(start, stop), near, scale)
                along = _sum_along_diagonals(slope)
                along = along.view(of_batch, -1, along.shape[-1]).sum(0)
                where = queries - stop + near.start
                vector_gradient[own, where : where + along.shape[-1]] += along
        q_gradient, k_gradient, v_gradient = (
            x.view(y.shape).to(y.dtype) for x, y in zip(found, (q, k, v), strict=True)
        )
        return q_gradient, k_gradient, v_gradient, vector_gradient.to(vector.dtype), None, None


def _backward(
    flat: list[Tensor],
    found: list[Tensor],
    added: Tensor,
    some: slice,
    these: slice,
    near: slice,
    scale: float,
) -> Float[Tensor, "matrix row key"]:
    """The gradient of some scores, their rows turned around; those of q, k and v are added to what was found."""
    rows, above, inner = (x[some, these].flip(1) for x in (flat[0], flat[3], flat[4]))
    keys, values = flat[1][some, near], flat[2][some, near]
    weights = torch.baddbmm(added, rows, keys.mT, alpha=scale).softmax(dim=-1)
    found[2][some, near].baddbmm_(weights.mT, above)
    slope = torch.baddbmm(inner, above, values.mT, beta=-1).mul_(weights)
    found[0][some, these] = torch.bmm(slope, keys).mul_(scale).flip(1)
    found[1][some, near].baddbmm_(slope.mT, rows, alpha=scale)
    return slope


def _sum_along_diagonals(x: Float[Tensor, "matrix row key"]) -> Float[Tensor, "matrix diagonal"]:
    """Sum over r of x[m, r, t - r], for every t.

    Each row is written with as many zeros behind it as there are rows, and read with one less: so it is pushed one
    place further than the row before it.
    """
    many, rows, keys = x.shape
    padded = functional.pad(x, (0, rows)).flatten(1)[:, : rows * (keys + rows - 1)]
    return padded.view(many, rows, keys + rows - 1).sum(1)
