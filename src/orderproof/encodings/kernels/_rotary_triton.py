"""The rotary kernel for a GPU, in Triton: feature pairs rotated by rows of cosines and sines, with gradients.

    (a, b)  ->  (a cos - b sin,  b cos + a sin)        in float32, rounded once to the dtype of the features

The rows are float32, [token, pair] or [row, token, pair], rounded once from float64 angles (`_frequencies.cos_sin`):
position axes, offsets, packing and context lengths are all in them, so the kernel needs no positions. One program
rotates a few tokens of a few heads and reads the rows once for all of them. The gradient is the rotation by the
negative angle: the same kernel with -sin. Offsets are 64-bit, so tensors may hold more than 2^31 elements.

The block sizes are the best of 44 on an NVIDIA H200 (torch 2.11, widths of 128): see `benchmarks/rotary_on_gpu.py`.
Without a GPU the tests run in Triton's interpreter, which truncates to bfloat16 where a GPU rounds.
Source: Tillet et al. 2019, "Triton: An Intermediate Language and Compiler for Tiled Neural Network Computations".
"""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from orderproof.errors import EncodingError

BLOCK_PAIRS = 512
"""Feature pairs of one head that a program rotates at once."""
HEADS = 2
"""Heads that a program rotates one after the other."""
WARPS = 2
"""Groups of 32 threads that run a program."""


@triton.jit
def _rotary_kernel(
    out, x, cos, sin,
    heads, tokens, groups, blocks,
    out_row, out_head, out_token, out_feature,
    x_row, x_head, x_token, x_feature,
    angle_row,
    PAIRS: tl.constexpr, COLUMNS: tl.constexpr,  # rotated pairs, and the next power of two
    REST: tl.constexpr, REST_COLUMNS: tl.constexpr,  # features that are not rotated, and the next power of two
    INTERLEAVED: tl.constexpr, INVERSE: tl.constexpr, TOKENS: tl.constexpr, EACH: tl.constexpr,
):  # fmt: skip
    program = tl.program_id(0)  # the other program axes end at 65535
    row = (program // groups // blocks).to(tl.int64)
    token = (program // groups % blocks).to(tl.int64) * TOKENS + tl.arange(0, TOKENS)[:, None]
    pair = tl.arange(0, COLUMNS)[None, :]
    at = row * angle_row + token * PAIRS + pair
    known = (token < tokens) & (pair < PAIRS)
    c = tl.load(cos + at, mask=known, other=0.0)
    s = tl.load(sin + at, mask=known, other=0.0)
    if INVERSE:
        s = -s
    for n in range(EACH):
        head = (program % groups).to(tl.int64) * EACH + n
        live = tl.where(token < tokens, head, heads) < heads  # the interpreter cannot mask with a scalar
        source = x + row * x_row + head * x_head + token * x_token
        target = out + row * out_row + head * out_head + token * out_token
        if INTERLEAVED:  # loaded together, then split
            feature = tl.arange(0, 2 * COLUMNS)[None, :]
            here = live & (feature < 2 * PAIRS)
            both = tl.load(source + feature * x_feature, mask=here, other=0.0).to(tl.float32)
            a, b = tl.split(both.reshape(TOKENS, COLUMNS, 2))
            rotated = tl.interleave(a * c - b * s, b * c + a * s)
            tl.store(target + feature * out_feature, rotated.to(out.dtype.element_ty), mask=here)
        else:
            here = live & (pair < PAIRS)
            a = tl.load(source + pair * x_feature, mask=here, other=0.0).to(tl.float32)
            b = tl.load(source + (pair + PAIRS) * x_feature, mask=here, other=0.0).to(tl.float32)
            tl.store(target + pair * out_feature, (a * c - b * s).to(out.dtype.element_ty), mask=here)
            tl.store(target + (pair + PAIRS) * out_feature, (b * c + a * s).to(out.dtype.element_ty), mask=here)
        if REST:
            last = tl.arange(0, REST_COLUMNS)[None, :]
            here = live & (last < REST)
            kept = tl.load(source + (last + 2 * PAIRS) * x_feature, mask=here, other=0.0)
            tl.store(target + (last + 2 * PAIRS) * out_feature, kept, mask=here)


def rotate_into(
    out: Tensor, x: Tensor, cos: Tensor, sin: Tensor, *, interleaved: bool, inverse: bool = False
) -> Tensor:
    """Rotate ``x`` [batch, head, token, width] into ``out``, which is ``x`` itself or does not overlap it."""
    rows, heads, tokens, width = x.shape
    pairs = cos.shape[-1]
    rest = width - 2 * pairs
    if cos.shape != sin.shape or cos.shape[:-1] not in ((tokens,), (1, tokens), (rows, tokens)):
        came = f"{list(cos.shape)} and {list(sin.shape)}"
        raise EncodingError(f"cos and sin: expected [{tokens}, pair] or [{rows}, {tokens}, pair], got {came}")
    columns = triton.next_power_of_2(pairs)
    tokens_each = min(triton.next_power_of_2(max(tokens, 1)), max(1, BLOCK_PAIRS // columns))
    groups, blocks = triton.cdiv(heads, HEADS), triton.cdiv(tokens, tokens_each)
    angle_row = tokens * pairs if cos.dim() == 3 and cos.shape[0] > 1 else 0
    if x.numel():
        with torch.cuda.device_of(x):  # type: ignore[no-untyped-call]
            _rotary_kernel[(rows * groups * blocks,)](
                out, x, cos, sin, heads, tokens, groups, blocks, *out.stride(), *x.stride(), angle_row,
                PAIRS=pairs, COLUMNS=columns, REST=rest, REST_COLUMNS=triton.next_power_of_2(max(rest, 1)),
                INTERLEAVED=interleaved, INVERSE=inverse, TOKENS=tokens_each, EACH=min(HEADS, heads),
                num_warps=WARPS, enable_fp_fusion=False,  # round products before adding, like torch
            )  # fmt: skip
    return out


class RotaryFunction(torch.autograd.Function):
    """One operand rotated into a new tensor, with its gradient."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, cos: Tensor, sin: Tensor, interleaved: bool, inverse: bool) -> Tensor:  # noqa: FBT001
        ctx.interleaved, ctx.inverse = interleaved, inverse
        ctx.save_for_backward(cos, sin)
        return rotate_into(torch.empty_like(x), x, cos, sin, interleaved=interleaved, inverse=inverse)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None, None, None, None]:
        cos, sin = ctx.saved_tensors
        rotated = RotaryFunction.apply(gradients[0], cos, sin, ctx.interleaved, not ctx.inverse)  # type: ignore[no-untyped-call]
        return rotated, None, None, None, None
