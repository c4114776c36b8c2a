"""Rotary angles that no layer of a configuration reads.

Some families rotate in layers of one type only: a model of which all layers have the other type computes angles from
its position ids and drops them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_map


def uses_rotary_angles(model: nn.Module, output: Callable[[], Tensor]) -> bool:
    """False if other angles than those of its rotary modules change nothing in ``output()``; True without any."""
    rotary = [part for part in model.modules() if "Rotary" in type(part).__name__]
    if not rotary:
        return True
    with torch.no_grad():
        before = output()
        handles = [part.register_forward_hook(_with_other_angles) for part in rotary]
        try:
            return not torch.equal(before, output())
        finally:
            for handle in handles:
                handle.remove()


def _with_other_angles(_module: nn.Module, _inputs: Any, outputs: Any) -> Any:
    """The cosines and sines [row, token, ...] that a rotary module returns, in reverse order and negated."""
    return tree_map(lambda x: -x.flip(1) if isinstance(x, Tensor) and x.dim() > 1 else x, outputs)
