"""The attention of ExecuTorch for language models, as its operator for torch computes it."""

from __future__ import annotations

from typing import Any

import torch
from executorch.extension.llm.custom_ops import custom_ops
from torch import Tensor

PACKAGE = "executorch"
REQUIREMENTS = ("executorch==1.5.1", "torch==2.13.0", "numpy==2.4.6")
ARRAYS = "torch"


def _attend(query: Tensor, key: Tensor, value: Tensor, **options: Any) -> Tensor:
    moved = [x.transpose(1, 2).contiguous() for x in (query, key, value)]
    start = key.shape[2] - query.shape[2]  # the position of the first query in its cache
    if start < 0:
        raise TypeError("there are fewer keys than queries")
    causal, mask = options.get("causal", False), options.get("mask")
    if mask is not None and mask.ndim != 2:
        raise TypeError("a mask is [query, key]")
    found: Tensor = torch.ops.llama.custom_sdpa(*moved, start, mask, 0.0, causal, options.get("scale"))
    if bool(found.isnan().all()):
        raise TypeError("a check of the operator failed, which it logs, and its result was left unset")
    return found.transpose(1, 2)


def functions() -> dict[str, Any]:
    """Each function: kind, options, axes, function."""
    torch.use_deterministic_algorithms(True, warn_only=True)  # memory that is not set is NaN
    assert custom_ops is not None  # it registers the operator
    axes = "[row, token, head, width]"
    return {"custom_sdpa": ("attention", "mask causal scale grouped", axes, _attend)}
