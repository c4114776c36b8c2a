"""Argument checks of `attention`; they do not read tensor values."""

from __future__ import annotations

import math
from typing import Any, Literal, get_args

import torch
from torch import Tensor

from orderproof.encodings._encoding import PositionalEncoding
from orderproof.encodings.checks import describe_value, is_floating, is_sequence_of_length
from orderproof.errors import EncodingError, UsageError

AttentionBackend = Literal["sdpa", "eager", "flex"]


def check_options(
    *, causal: object, window: Any, scale: object, softcap: object, dropout: object, backend: object
) -> None:
    """Reject invalid options with a `UsageError`."""
    if backend not in get_args(AttentionBackend):
        raise UsageError(f"backend: expected 'sdpa', 'eager' or 'flex', got {backend!r}")
    if not isinstance(causal, bool):
        raise UsageError(f"causal: expected True or False, got {causal!r}")
    for name, number in (("scale", scale), ("softcap", softcap)):
        if number is not None and (not isinstance(number, int | float) or not 0 < number < math.inf):
            raise UsageError(f"{name}: expected a number above 0, got {number!r}")
    if isinstance(dropout, bool) or not isinstance(dropout, int | float) or not 0 <= dropout < 1:
        raise UsageError(f"dropout: expected a probability, 0 or more and below 1, got {dropout!r}")
    if window is not None and not (is_sequence_of_length(window, 2) and all(map(_is_window_size, window))):
        raise UsageError(f"window: expected (back, ahead), two integers of 0 or more, got {window!r}")


def _is_window_size(n: object) -> bool:
    return isinstance(n, int | torch.SymInt) and not isinstance(n, bool) and n >= 0


def check_operands(q: Tensor, k: Tensor, v: Tensor) -> None:
    """Reject queries, keys and values whose shapes, dtypes or devices do not match."""
    for name, x in (("q", q), ("k", k), ("v", v)):
        if not is_floating(x, 4):
            raise UsageError(f"{name}: expected floating [batch, head, token, head_width], got {describe_value(x)}")
        if x.dtype != q.dtype:
            raise UsageError(f"{name}: expected the dtype of q, {q.dtype}, got {x.dtype}")
        if x.device != q.device:
            raise UsageError(f"{name}: expected the device of q, {q.device}, got {x.device}")
    if k.shape[:3] != v.shape[:3] or k.shape[0] != q.shape[0] or k.shape[3] != q.shape[3]:
        came = f"q {list(q.shape)}, k {list(k.shape)}, v {list(v.shape)}"
        raise UsageError(f"q, k, v: expected one batch, one head_width, and as many values as keys, got {came}")
    if not k.shape[1] or q.shape[1] % k.shape[1]:
        raise UsageError(f"k: expected a number of heads that divides q's {q.shape[1]}, got {k.shape[1]}")


def check_sinks(sinks: Tensor | None, q: Tensor) -> None:
    """Reject sinks that are not one number per query head."""
    if sinks is None:
        return
    if not is_floating(sinks, 1) or len(sinks) != q.shape[1]:
        raise UsageError(f"sinks: expected floating [{q.shape[1]}], one per query head, got {describe_value(sinks)}")
    if sinks.device != q.device:
        raise UsageError(f"sinks: expected the device of q, {q.device}, got {sinks.device}")


def check_encoding(
    encoding: PositionalEncoding,
    q: Tensor,
    *,
    causal: bool,
    token_state: Tensor | None,
    lengths: Tensor | int | None,
    softcap: float | None = None,
) -> None:
    """Reject an encoding that does not act in attention or does not fit the other arguments."""
    if not isinstance(encoding, PositionalEncoding):
        raise EncodingError(f"encoding: expected an encoding, such as Rotary(64), got {type(encoding).__name__}")
    name, claims = type(encoding).__name__, encoding.claims
    if claims.site == "embed":
        raise EncodingError(
            f"{name} acts on embeddings, not in attention; "
            "call embed(x, positions) before the first layer and pass encoding=NoEncoding() here"
        )
    if claims.causal_only and not causal:
        other = "build it with bidirectional=True" if hasattr(encoding, "bidirectional") else "choose another encoding"
        raise EncodingError(
            f"{name} is defined for causal attention only; pass causal=True in a decoder; "
            f"for an encoder or cross-attention, {other}"
        )
    if softcap is not None and claims.content_dependent:
        raise EncodingError(
            f"{name}: expected no softcap, because its bias is a part of the products that it would cap; leave it out"
        )
    # Rotations check their heads themselves: some have parameters per key head.
    heads = getattr(encoding, "heads", None)
    if claims.site == "bias" and heads is not None and heads != q.shape[1]:
        raise EncodingError(f"{name}: expected an encoding of {q.shape[1]} heads, as in q, got one of {heads}")
    if lengths is not None and claims.decode_state != "length":
        encoding.reject_lengths()
    if token_state is not None and claims.decode_state != "token_state":
        raise EncodingError(
            f"{name}: expected no token_state, its claims.decode_state is '{claims.decode_state}'; leave it out"
        )
