"""Attention with a bias and mask of the distance n - m alone, without a dense matrix.

If positions rise by one, query i and key j get the bias vector[j - i + Q - 1]: the matrix is a Toeplitz matrix of a
vector of Q + K - 1 numbers. With query rows reversed, r = Q - 1 - i, the index is j + r: a view of the vector with
strides (1, 1), which torch's attention accepts. Attention rows are independent, so reversing the output undoes it; the
result is bit-identical to that of the dense matrix.
If most keys are masked (causal, sliding window), queries are processed in blocks, without the keys that no query of a
block sees.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

from orderproof.encodings.checks import is_mapped_gradient
from orderproof.positions import has_readable_values

if TYPE_CHECKING:
    from jaxtyping import Float, Int

_QUERY_BLOCK_SIZE = 256
# Scores per block in the backward pass, to fit into the L2 cache.
_BACKWARD_BLOCK_SCORES = 1 << 18
_UNBOUNDED = 1 << 62


class DistanceWindow(NamedTuple):
    """The range of visible distances n - m, and the offset between the first query and key."""

    back: int
    ahead: int
    offset: int
    """Position of the first key minus that of the first query."""

    def visible_keys(self, first: int, last: int, keys: int) -> tuple[int, int]:
        """The half-open range of keys visible to any query from ``first`` to ``last``."""
        return max(0, first - self.offset - self.back), min(keys, last - self.offset + self.ahead + 1)

    def masks_any(self, queries: int, keys: int) -> bool:
        """True if any key is masked for any query."""
        return 1 - queries + self.offset < -self.back or keys - 1 + self.offset > self.ahead


def distance_window(
    q_positions: Int[Tensor, "*batch query"],
    k_positions: Int[Tensor, "*batch key"],
    *,
    causal: bool,
    sliding_window: tuple[int, int] | None,
) -> DistanceWindow | None:
    """The visible distances; None if distances do not determine visibility.

    That is: positions do not rise by one or cannot be read, or some query sees no key.
    """
    if not (has_readable_values(q_positions) and has_readable_values(k_positions)):
        return None
    q_start, k_start = _contiguous_start(q_positions), _contiguous_start(k_positions)
    if q_start is None or k_start is None:
        return None
    queries, keys = q_positions.shape[-1], k_positions.shape[-1]
    offset = k_start - q_start
    if causal and (queries > keys or -offset > keys - queries):
        return None  # then ties are broken by index, see `visibility_mask`
    back, ahead = (_UNBOUNDED, _UNBOUNDED) if sliding_window is None else sliding_window
    window = DistanceWindow(back, min(ahead, 0) if causal else ahead, offset)
    no_keys = any(first >= end for first, end in (window.visible_keys(m, m, keys) for m in (0, queries - 1)))
    return None if no_keys else window


def toeplitz_attention(
    q: Float[Tensor, "batch head query head_width"],
    k: Float[Tensor, "batch head key head_width"],
    v: Float[Tensor, "batch head key value_width"],
    vector: Float[Tensor, "#head distance"],
    window: DistanceWindow,
    *,
    scale: float,
) -> Float[Tensor, "batch head query value_width"]:
    """Attention with ``vector`` as bias: one number per distance, from the first key minus the last query on."""
    if vector.requires_grad and torch.is_grad_enabled():
        return _LearnedBiasAttention.apply(q, k, v, vector, window, scale)  # type: ignore[no-any-return, no-untyped-call]
    return _forward(q, k, v, vector.detach(), window, scale)


def distance_range(window: DistanceWindow, queries: int, keys: int) -> tuple[int, int]:
    """The smallest and the largest distance."""
    return 1 - queries + window.offset, keys - 1 + window.offset


def _forward(q: Tensor, k: Tensor, v: Tensor, vector: Tensor, window: DistanceWindow, scale: float) -> Tensor:
    queries, keys = q.shape[2], k.shape[2]
    vector = _mask_outside_window(vector, window, queries, keys)
    step = _QUERY_BLOCK_SIZE if window.masks_any(queries, keys) else queries
    parts = []
    for start in range(0, queries, step):
        stop = min(start + step, queries)
        first, end = window.visible_keys(start, stop - 1, keys)
        bias = _toeplitz_view(vector, queries, (start, stop), (first, end))
        rows, some_keys, some_values = q[:, :, start:stop].flip(2), k[:, :, first:end], v[:, :, first:end]
        mixed = functional.scaled_dot_product_attention(rows, some_keys, some_values, attn_mask=bias, scale=scale)
        parts.append(mixed.flip(2))
    return parts[0] if len(parts) == 1 else torch.cat(parts, dim=2)


def _toeplitz_view(vector: Tensor, queries: int, rows: tuple[int, int], keys: tuple[int, int]) -> Tensor:
    """The bias of some queries, in reverse order, and some keys, as a view."""
    size = (1, vector.shape[0], rows[1] - rows[0], keys[1] - keys[0])
    start = vector.storage_offset() + queries - rows[1] + keys[0]
    return vector.as_strided(size, (0, vector.stride(0), 1, 1), start)


def _mask_outside_window(vector: Tensor, window: DistanceWindow, queries: int, keys: int) -> Tensor:
    """The vector with minus infinity at masked distances."""
    if not window.masks_any(queries, keys):
        return vector.contiguous()
    first, last = distance_range(window, queries, keys)
    distance = torch.arange(first, last + 1, device=vector.device)
    return vector.masked_fill((distance < -window.back) | (distance > window.ahead), float("-inf"))


def _contiguous_start(positions: Tensor) -> int | None:
    """The first of positions that rise by one and are equal in all rows; None for others and for empty rows."""
    if not positions.numel():
        return None
    if positions.dim() == 2:
        if positions.shape[0] > 1 and not torch.equal(positions, positions[:1].expand_as(positions)):
            return None
        positions = positions[0]
    first = int(positions[0])
    run = torch.arange(first, first + len(positions), device=positions.device)
    return first if torch.equal(positions, run) else None


class _LearnedBiasAttention(torch.autograd.Function):
    """`toeplitz_attention` with a gradient for the vector.

    Torch's attention falls back to a matrix of all scores if the bias requires a gradient. This recomputes the scores
    in the backward pass, in blocks of rows, and sums their gradient along diagonals. A backward pass that will be
    differentiated again, or is mapped over several gradients, computes the matrix.
    """

    @staticmethod
    def forward(
        ctx: Any, q: Tensor, k: Tensor, v: Tensor, vector: Tensor, window: DistanceWindow, scale: float
    ) -> Tensor:
        out = _forward(q, k, v, vector.detach(), window, scale)
        ctx.save_for_backward(q, k, v, vector, out)
        ctx.window, ctx.scale = window, scale
        return out

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        q, k, v, vector, out = ctx.saved_tensors
        if torch.is_grad_enabled() or is_mapped_gradient(gradient):
            return *_differentiable_gradients(q, k, v, vector, gradient, ctx.window, ctx.scale), None, None
        return *_blockwise_gradients(q, k, v, vector, out, gradient, ctx.window, ctx.scale), None, None


def _differentiable_gradients(
    q: Tensor, k: Tensor, v: Tensor, vector: Tensor, gradient: Tensor, window: DistanceWindow, scale: float
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The gradients of q, k, v and vector through a matrix of all scores, for second derivatives and torch.vmap."""
    wide = torch.float64 if q.dtype == torch.float64 else torch.float32
    queries, keys = q.shape[2], k.shape[2]
    bias = _mask_outside_window(vector.to(wide), window, queries, keys)
    index = torch.arange(keys, device=q.device) - torch.arange(queries, device=q.device).unsqueeze(-1) + queries - 1
    rows, some_keys, values, above = (x.to(wide) for x in (q, k, v, gradient))
    weights = (rows @ some_keys.mT * scale + bias[:, index]).softmax(dim=-1)
    slope = above @ values.mT
    slope = weights * (slope - (weights * slope).sum(-1, keepdim=True))
    along = (
        _sum_along_diagonals(slope.flip(2).reshape(-1, queries, keys)).view(-1, q.shape[1], queries + keys - 1).sum(0)
    )
    gradients = slope @ some_keys * scale, slope.mT @ rows * scale, weights.mT @ above, along.sum_to_size(vector.shape)
    q_gradient, k_gradient, v_gradient, vector_gradient = (
        x.to(y.dtype) for x, y in zip(gradients, (q, k, v, vector), strict=True)
    )
    return q_gradient, k_gradient, v_gradient, vector_gradient


def _blockwise_gradients(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    vector: Tensor,
    out: Tensor,
    gradient: Tensor,
    window: DistanceWindow,
    scale: float,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The gradients of q, k, v and vector, in blocks of rows, without a matrix of all scores."""
    wide = torch.float64 if q.dtype == torch.float64 else torch.float32
    queries, keys = q.shape[2], k.shape[2]
    hidden = _mask_outside_window(vector.to(wide), window, queries, keys)
    inner = (gradient.to(wide) * out.to(wide)).sum(-1, keepdim=True)
    flat = [x.to(wide).flatten(0, 1) for x in (q, k, v, gradient, inner)]
    gradients = [torch.zeros_like(x) for x in flat[:3]]
    vector_gradient = torch.zeros_like(hidden)
    rows, heads = min(queries, _QUERY_BLOCK_SIZE), len(hidden)
    fitting = max(1, _BACKWARD_BLOCK_SCORES // (rows * keys))
    if fitting < heads:  # some heads of one batch row
        many = max(n for n in range(1, heads + 1) if heads % n == 0 and n <= fitting)
    else:  # all heads of some batch rows
        many = fitting // heads * heads
    for matrix in range(0, len(flat[0]), many):
        some = slice(matrix, min(matrix + many, len(flat[0])))
        own = slice(matrix % heads, matrix % heads + min(many, heads))
        of_batch = max(1, (some.stop - matrix) // heads)
        for start in range(0, queries, rows):
            stop = min(start + rows, queries)
            key_block = slice(*window.visible_keys(start, stop - 1, keys))
            bias = _toeplitz_view(hidden, queries, (start, stop), (key_block.start, key_block.stop))[0, own]
            bias = bias.repeat(of_batch, 1, 1)
            slope = _backward(flat, gradients, bias, some, slice(start, stop), key_block, scale)
            along = _sum_along_diagonals(slope)
            along = along.view(of_batch, -1, along.shape[-1]).sum(0)
            where = queries - stop + key_block.start
            vector_gradient[own, where : where + along.shape[-1]] += along
    q_gradient, k_gradient, v_gradient = (
        x.view(y.shape).to(y.dtype) for x, y in zip(gradients, (q, k, v), strict=True)
    )
    return q_gradient, k_gradient, v_gradient, vector_gradient.to(vector.dtype)


def _backward(
    flat: list[Tensor],
    gradients: list[Tensor],
    bias: Tensor,
    some: slice,
    these: slice,
    key_block: slice,
    scale: float,
) -> Float[Tensor, "matrix row key"]:
    """The gradient of a block of scores, rows reversed; adds the gradients of q, k and v to ``gradients``."""
    rows, above, inner = (x[some, these].flip(1) for x in (flat[0], flat[3], flat[4]))
    keys, values = flat[1][some, key_block], flat[2][some, key_block]
    weights = torch.baddbmm(bias, rows, keys.mT, alpha=scale).softmax(dim=-1)
    gradients[2][some, key_block].baddbmm_(weights.mT, above)
    slope = torch.baddbmm(inner, above, values.mT, beta=-1).mul_(weights)
    gradients[0][some, these] = torch.bmm(slope, keys).mul_(scale).flip(1)
    gradients[1][some, key_block].baddbmm_(slope.mT, rows, alpha=scale)
    return slope


def _sum_along_diagonals(x: Float[Tensor, "matrix row key"]) -> Float[Tensor, "matrix diagonal"]:
    """Sum over r of x[m, r, t - r], for every t.

    Each row is padded with as many zeros as there are rows and read with one zero less, which shifts it by one relative
    to the row before it.
    """
    many, rows, keys = x.shape
    padded = functional.pad(x, (0, rows)).reshape(many, -1)[:, : rows * (keys + rows - 1)]
    return padded.view(many, rows, keys + rows - 1).sum(1)
