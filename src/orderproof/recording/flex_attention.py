"""Flex attention as the operators that its uncompiled form calls, the functions for scores and masks included.

These functions are code of the model, called with indices of four dimensions by `vmap`. They may read tensors of the
call, such as the documents of each token. By default flex attention compiles itself where nothing else is compiled.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest import mock

import torch
from torch import Tensor
from torch._ops import HigherOrderOperator

_FLEX, _IMPLEMENTATION = "torch.nn.attention.flex_attention", "torch._higher_order_ops.flex_attention"
_SWITCH, _LAYOUT = "_FLEX_ATTENTION_DISABLE_COMPILE_DEBUG", "_permute_strides"


@contextmanager
def uncompiled_flex_attention() -> Iterator[None]:
    """A block in which flex attention calls the operators of its uncompiled form."""
    flex, implementation = sys.modules.get(_FLEX), sys.modules.get(_IMPLEMENTATION)
    with ExitStack() as stack:
        if hasattr(flex, _SWITCH):
            stack.enter_context(mock.patch.object(flex, _SWITCH, new=True))
        if hasattr(implementation, _LAYOUT):  # which imports the compiler
            stack.enter_context(mock.patch.object(implementation, _LAYOUT, new=_laid_out_like))
        yield


def is_flex_attention(func: Any) -> bool:
    """True of the higher-order operator of flex attention."""
    return isinstance(func, HigherOrderOperator) and func.name() == "flex_attention"  # type: ignore[no-untyped-call]


def call_as_operators(args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """The result of its uncompiled form, whose operators reach the modes that are active."""
    from torch._higher_order_ops.flex_attention import math_attention

    with torch._C._EnableTorchFunction():  # which turns `document[index]` into an operator
        out, *rest = math_attention(*args, **kwargs)
        with torch._C.DisableTorchFunction():
            strides = args[0].stride()
        return (_laid_out_like(out, strides), *rest)


def _laid_out_like(out: Tensor, strides: Sequence[int]) -> Tensor:
    """The output [row, head, token, width] with the heads inside of the tokens, if the query has these strides."""
    inside = strides[1] < strides[2] and out.shape[1] > 1
    return out.transpose(1, 2).contiguous().transpose(1, 2) if inside else out
