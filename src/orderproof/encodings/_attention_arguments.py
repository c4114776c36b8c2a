"""What attention asks of its arguments, before it looks at any number in them."""

from __future__ import annotations

import math
from typing import Any, Literal, get_args

import torch
from torch import Tensor

from orderproof.encodings._encoding import PositionalEncoding
from orderproof.encodings._operands import is_floating, is_row, kind_of
from orderproof.errors import EncodingError, UsageError

Backend = Literal["sdpa", "eager", "flex"]


def check_options(*, causal: object, window: Any, scale: object, backend: object) -> None:
    """Refuse options that are not what they are said to be."""
    if backend not in get_args(Backend):
        raise UsageError(f"backend: expected 'sdpa', 'eager' or 'flex', got {backend!r}")
    if not isinstance(causal, bool):
        raise UsageError(f"causal: expected True or False, got {causal!r}")
    if scale is not None and (not isinstance(scale, int | float) or not 0 < scale < math.inf):
        raise UsageError(f"scale: expected a number above 0, got {scale!r}")
    if window is not None and not (is_row(window, 2) and all(map(_is_distance, window))):
        raise UsageError(f"window: expected (back, ahead), two integers of 0 or more, got {window!r}")


def _is_distance(n: object) -> bool:
    return isinstance(n, int | torch.SymInt) and not isinstance(n, bool) and n >= 0


def check_operands(q: Tensor, k: Tensor, v: Tensor) -> None:
    """Refuse queries, keys and values that do not fit each other."""
    for name, x in (("q", q), ("k", k), ("v", v)):
        if not is_floating(x, 4):
            raise UsageError(f"{name}: expected floating [batch, head, token, head_width], got {kind_of(x)}")
        if x.dtype != q.dtype:
            raise UsageError(f"{name}: expected the dtype of q, {q.dtype}, got {x.dtype}")
        if x.device != q.device:
            raise UsageError(f"{name}: expected the device of q, {q.device}, got {x.device}")
    if k.shape[:3] != v.shape[:3] or k.shape[0] != q.shape[0] or k.shape[3] != q.shape[3]:
        came = f"q {list(q.shape)}, k {list(k.shape)}, v {list(v.shape)}"
        raise UsageError(f"q, k, v: expected one batch, one head_width, and as many values as keys, got {came}")
    if not k.shape[1] or q.shape[1] % k.shape[1]:
        raise UsageError(f"k: expected a number of heads that divides q's {q.shape[1]}, got {k.shape[1]}")


def check_encoding(
    encoding: PositionalEncoding,
    q: Tensor,
    *,
    causal: bool,
    notes: Tensor | None,
    lengths: Tensor | int | None,
) -> None:
    """Refuse an encoding that does not act here, or that lacks what it claims to need."""
    if not isinstance(encoding, PositionalEncoding):
        raise EncodingError(f"encoding: expected an encoding, such as Rotary(64), got {encoding!r}")
    name, claims = type(encoding).__name__, encoding.claims
    if claims.site == "embed":
        raise EncodingError(
            f"{name} acts on embeddings, before there are queries and keys; "
            "call its embed(x, positions) there and pass encoding=NoEncoding() here"
        )
    if claims.causal_only and not causal:
        raise EncodingError(f"{name} is defined for causal attention only; pass causal=True, or make it bidirectional")
    # A rotation checks its heads itself: some have one for each key head.
    heads = getattr(encoding, "heads", None)
    if claims.site == "bias" and heads is not None and heads != q.shape[1]:
        raise EncodingError(f"{name}: expected as many heads as q, {q.shape[1]}, but it is made for {heads}")
    if lengths is not None and claims.state != "length":
        encoding.refuse_lengths()
    if notes is not None and claims.state != "notes":
        raise EncodingError(f"{name}: expected no notes, its claims.state is '{claims.state}'; leave them out")
