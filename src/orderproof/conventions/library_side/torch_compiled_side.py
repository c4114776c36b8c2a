"""Attention of torch under `torch.compile`, which needs a compiler of C++.

It is a library of its own: a program takes seconds to compile, and there is one for each dtype and form of a mask.
"""

from __future__ import annotations

from functools import partial
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import torch
from torch.nn.attention.flex_attention import flex_attention

PACKAGE = "torch"
REQUIREMENTS = ("torch==2.13.0", "numpy==2.4.6")
VARIANTS = {"torch_compiled": ({"TORCHINDUCTOR_COMPILE_THREADS": "1"}, ())}
ARRAYS = "torch"

_spec: Any = spec_from_file_location("torch_side", Path(__file__).with_name("torch_side.py"))
_eager = module_from_spec(_spec)
_spec.loader.exec_module(_eager)


def _alone(attend: Any) -> Any:
    """A call that is compiled for its own shapes: what earlier calls compiled, with open sizes, is forgotten."""

    def call(*given: Any, **more: Any) -> Any:
        torch.compiler.reset()
        compiled: Any = torch.compile(attend, fullgraph=True)
        return compiled(*given, **more)

    return call


def functions() -> dict[str, Any]:
    """Each function: kind, options, axes, function."""
    flags, axes = "mask scale grouped", "[row, head, token, width]"
    return {
        "flex": ("attention", flags, axes, partial(_eager.flex, attend=_alone(flex_attention))),
        "sdpa": ("attention", f"{flags} causal", axes, _alone(_eager.sdpa)),
    }
