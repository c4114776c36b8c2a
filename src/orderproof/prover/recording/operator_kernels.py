"""Kernels of operators that write against their schemas, and Python kernels that no recording sees.

A recording calls an operator on meta tensors, below the autograd keys. A kernel that the model's own code registered
for another key runs in an eager call only, or runs in a recording on tensors that it can tell from real ones.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import torch
from torch import Tensor
from torch._library.custom_ops import OPDEFS
from torch._ops import OpOverload

from orderproof.prover.recording.recorded_graph import is_of_torch

_FLAGS_OF_STATISTICS = ("training", "train", "use_input_stats")
_BACKENDS = ("CPU", "CUDA", "CompositeExplicitAutograd")
_OF_AUTOGRAD = ("Autograd", "AutogradCPU", "AutogradCUDA", "", "CompositeImplicitAutograd")  # "": the last one


def hidden_write(func: OpOverload, args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
    """How an operator writes to an operand against its schema, as to running statistics; empty if it does not."""
    if not _has_statistics(func):
        return ""
    given = {a.name: x for a, x in zip(func._schema.arguments, args, strict=False)} | kwargs
    statistics = any(isinstance(given.get(name), Tensor) for name in ("running_mean", "running_var"))
    updates = [given[name] for name in _FLAGS_OF_STATISTICS if name in given]
    return f"it writes to running statistics ({func})" if statistics and all(updates) else ""


@cache
def _has_statistics(func: OpOverload) -> bool:
    return not func._schema.is_mutable and any(a.name == "running_mean" for a in func._schema.arguments)


def kernel_not_followed(func: OpOverload) -> str:
    """Why an operator cannot be recorded: Python code of the model is one of its kernels; empty if it can."""
    name = _name(func)
    keys: tuple[str, ...] = _OF_AUTOGRAD
    if func.namespace == "aten":
        keys = (*_BACKENDS, *_OF_AUTOGRAD)
    elif is_of_torch(func) or name.replace("/", "::") in OPDEFS:  # whose kernels torch made
        return ""
    own = next((key for key in keys if f"{name}/{key}" in torch.library._impls), None)
    return (
        "" if own is None else f"it calls a kernel in Python that is not followed ({func}, {own or _OF_AUTOGRAD[-1]})"
    )


@cache
def _name(func: OpOverload) -> str:
    return str(func.name()).replace("::", "/")  # type: ignore[no-untyped-call]
