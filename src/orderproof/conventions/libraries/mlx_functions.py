"""The fast functions of MLX, on its processor backend."""

from __future__ import annotations

from functools import partial
from importlib.metadata import version
from typing import Any

import numpy as np
import torch
from torch import Tensor

from orderproof.conventions.attention.function import WIDTH, AttentionFunction
from orderproof.conventions.library import AnyFunction, Library
from orderproof.conventions.rotation.function import RotaryFunction
from orderproof.errors import UnsupportedCallError


def _array(x: Tensor) -> Any:
    import mlx.core as mx

    kinds = {torch.bfloat16: mx.bfloat16, torch.float16: mx.float16}
    narrow = kinds.get(x.dtype)
    plain = mx.array(x.detach().float().numpy() if narrow is not None else x.detach().numpy())
    return plain if narrow is None else plain.astype(narrow)


def _tensor(found: Any, dtype: torch.dtype) -> Tensor:
    import mlx.core as mx

    return torch.from_numpy(np.array(found.astype(mx.float32))).to(dtype)


def _attend(query: Tensor, key: Tensor, value: Tensor, **options: Any) -> Tensor:
    import mlx.core as mx

    mask, causal = options.get("mask"), options.get("causal", False)
    if mask is not None and causal:
        raise UnsupportedCallError("a mask is an array or the word causal")
    given = "causal" if causal else None if mask is None else _array(mask)
    arrays = [_array(x) for x in (query, key, value)]
    scale = options.get("scale", WIDTH**-0.5)
    return _tensor(mx.fast.scaled_dot_product_attention(*arrays, scale=scale, mask=given), query.dtype)


def _rotate(x: Tensor, positions: Tensor, *, traditional: bool) -> Tensor:
    import mlx.core as mx

    found = mx.fast.rope(
        _array(x), x.shape[-1], traditional=traditional, base=10_000.0, scale=1.0, offset=int(positions[0])
    )
    return _tensor(found, x.dtype)


def _functions() -> tuple[AnyFunction, ...]:
    named, axes = f"mlx {version('mlx')}", "[row, head, token, width]"
    takes = frozenset({"mask", "causal", "scale", "grouped"})
    return (
        AttentionFunction("fast_attention", named, axes, takes, _attend),
        RotaryFunction("fast_rope", named, axes, partial(_rotate, traditional=False)),
        RotaryFunction("fast_rope_traditional", named, axes, partial(_rotate, traditional=True)),
    )


LIBRARY = Library("mlx", "mlx", _functions)
