"""Private parts of torch with which code can act beside the modes of a recording.

A recording sees a call through torch's modes. Code that switches them off, calls a kernel by its dispatch key, or sets
a bit of a tensor that no operator sets, does what no recording follows. Such parts are objects: a model that uses one
has it as the result of an instruction, whatever the name by which it got there.
"""

from __future__ import annotations

import re
from typing import Any

import torch

_CLASSES = re.compile("Dispatch(?!Mode)|TorchFunction(?!Mode)|FuncTorch|DisableAutocast")
_FUNCTIONS = re.compile(
    "^_dispatch_|^_set_(conj|neg|tensor_metadata|torch_function_state|skip_next|only_lift|dispatch_mode|meta_in_tls)"
    "|^_(push_on|pop|unset)_(torch_)?(dispatch|function)|^_add_(conj|neg)"
)


def _switches() -> dict[int, str]:
    """The names of the private parts by their identities."""
    found = {}
    for name, value in vars(torch._C).items():
        if (_CLASSES if isinstance(value, type) else _FUNCTIONS).search(name):
            found[id(value)] = name
    return found


_NAMES = _switches()
_KINDS = frozenset(_NAMES)


def switch_name(value: Any) -> str:
    """The name of the private part of torch that a value is, or of whose class it is; empty if it is another one."""
    if id(value) in _KINDS or id(type(value)) in _KINDS:
        return _NAMES.get(id(value)) or _NAMES[id(type(value))]
    return ""
