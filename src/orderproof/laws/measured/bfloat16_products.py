"""Products of bfloat16 matrices on processors without instructions for them, at the speed of float32.

Such an instruction multiplies bfloat16 numbers, adds in float32 and rounds the sum. PyTorch imitates it five times
slower than it multiplies float32 matrices. So the matrices are converted, multiplied in float32 and rounded.
"""

from __future__ import annotations

import platform
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor

from orderproof.operator_mode import OperatorMode

LEAST_ROWS = 4  # PyTorch is fast for fewer rows of the left matrix
_LEFT_MATRIX = {  # the argument of each operator
    torch.ops.aten.mm.default: 0,
    torch.ops.aten.bmm.default: 0,
    torch.ops.aten.addmm.default: 1,
    torch.ops.aten.baddbmm.default: 1,
}


@contextmanager
def float32_products() -> Iterator[None]:
    """Compute products of bfloat16 matrices in float32 and round them, if the processor has no bfloat16 products."""
    if has_bfloat16_products():
        yield
        return
    with _Float32Products():
        yield


def has_bfloat16_products() -> bool:
    """True if the processor multiplies bfloat16 matrices; of others than x86 it is assumed."""
    if platform.machine().lower() not in ("x86_64", "amd64"):
        return True
    return torch.cpu._is_avx512_bf16_supported() or torch.cpu._is_amx_tile_supported()


class _Float32Products(OperatorMode):
    def __torch_dispatch__(
        self, func: Any, types: Sequence[Any], args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        left = _LEFT_MATRIX.get(func)
        if left is None or args[left].shape[-2] < LEAST_ROWS or not all(map(_is_bfloat16, args)):
            return func(*args, **(kwargs or {}))
        product: Tensor = func(*[x.float() for x in args], **(kwargs or {}))
        return product.bfloat16()


def _is_bfloat16(x: Any) -> bool:
    return isinstance(x, Tensor) and x.dtype == torch.bfloat16 and x.device.type == "cpu"
