"""The reference of attention of flash-linear-attention, in plain torch."""

from __future__ import annotations

from typing import Any

from fla.ops.attn.naive import naive_parallel_attn
from torch import Tensor

PACKAGE = "fla"
REQUIREMENTS = ("fla-core==0.6.0", "torch==2.13.0", "triton==3.9.0", "numpy==2.4.6")
ARRAYS = "torch"


def _attend(query: Tensor, key: Tensor, value: Tensor, **options: Any) -> Tensor:
    moved = [x.transpose(1, 2) for x in (query, key, value)]
    more = {"scale": options.get("scale"), "window_size": options.get("window"), "sink_bias": options.get("sinks")}
    found: Tensor = naive_parallel_attn(*moved, causal=options.get("causal", False), **more)[0]
    return found.transpose(1, 2)


def functions() -> dict[str, Any]:
    """Each function: kind, options, axes, function."""
    return {
        "naive_attention": ("attention", "causal scale window grouped sinks", "[row, token, head, width]", _attend),
    }
