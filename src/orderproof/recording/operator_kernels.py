"""Kernels of operators that write against their schemas, and Python kernels that no recording sees.

A recording calls an operator on meta tensors, below the autograd keys. A kernel that the model's own code registered
for another key runs in an eager call only, or runs in a recording on tensors that it can tell from real ones.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Any

import torch
from torch import Tensor
from torch._ops import OpOverload

from orderproof.recording.operator_names import is_of_torch
from orderproof.recording.source import TORCH_FOLDER

_FLAGS_OF_STATISTICS = ("training", "train", "use_input_stats")
_NOT_OF_A_CALL = (  # beginnings of keys that no call of an audit reaches
    "Meta", "Functionalize", "FuncTorch", "Batched", "Python", "Tracer", "Autocast", "Sparse", "Quantized",
)  # fmt: skip
_OF_BACKENDS = ("CPU", "CUDA", "CompositeExplicitAutograd")  # whose results a custom operator's kernel computes
_KERNEL = re.compile(r"^(\w+)(?:\[alias\])?: registered at (.*?):\d+ ::", re.MULTILINE)
_OF_CPP = (".cpp", ".cc", ".cu", ".cuh", ".h", ".hpp", ".mm", ".inc")


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
    undeclared = (a for a in func._schema.arguments if a.alias_info is None or not a.alias_info.is_write)
    return any(a.name == "running_mean" for a in undeclared)


@cache
def kernel_not_followed(func: OpOverload) -> str:
    """Why an operator cannot be recorded: Python code of the model is one of its kernels; empty if it can.

    Kept until `forget_kernels`.
    """
    of_torch = is_of_torch(func)
    allowed = () if of_torch else _OF_BACKENDS
    dump = torch._C._dispatch_dump(str(func.name()))  # type: ignore[no-untyped-call]
    for key, file in _KERNEL.findall(dump):
        of_python = not file.endswith(_OF_CPP) and not file.startswith((TORCH_FOLDER, "/dev/null"))
        if of_python and key not in allowed and not key.startswith(_NOT_OF_A_CALL):
            return f"it calls a kernel in Python that is not followed ({func}, {key})"
    if not of_torch and func.py_kernels:
        return f"it calls a kernel in Python that is not followed ({func}, {next(iter(func.py_kernels))})"
    return ""


def forget_kernels() -> None:
    """Look at the kernels of operators again: a model may register others."""
    kernel_not_followed.cache_clear()
