"""Run a model in float64, casts to float32 in its code included.

`module.double()` leaves angles of positions in float32, because the models cast them. The distance between float32 and
float64 is the yardstick of a port only if it includes the rounding of angles.
"""

from __future__ import annotations

from typing import Any

import torch
from torch.overrides import TorchFunctionMode


class Float64Casts(TorchFunctionMode):
    """In this context, casts to float32 and tensors made in float32 are float64."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Call an operator with float64 in place of float32."""
        kwargs = kwargs or {}
        if func is torch.Tensor.float:
            return args[0].double()
        widened = [torch.float64 if each is torch.float32 else each for each in args]
        named = {key: torch.float64 if value is torch.float32 else value for key, value in kwargs.items()}
        return func(*widened, **named)
