"""Private parts of torch with which code can act outside the modes of a recording.

A recording sees a call through torch's modes. Code that switches them off, calls a kernel by its dispatch key, or sets
a bit of a tensor that no operator sets, does what no recording follows. Such parts are objects: a model that uses one
has it as the result of an instruction, whatever the name by which it got there.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import partial
from types import FunctionType, MethodType
from typing import Any

import torch

from orderproof.recording.object_contents import cell_contents
from orderproof.recording.source import is_model_code

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
    """The name of the private part of torch that a value is, holds, or of whose class it is; empty if there is none.

    A value holds what a partial function calls or gets, and what the closure of a function outside of the model has.
    """
    kind = type(value)
    if id(value) in _KINDS or id(kind) in _KINDS:
        return _NAMES.get(id(value)) or _NAMES[id(kind)]
    return _held_name(value, 3) if kind in _HOLDERS else ""


def _held_name(value: Any, depth: int) -> str:
    if depth == 0 or type(value) not in _HOLDERS:
        return _NAMES.get(id(value)) or _NAMES.get(id(type(value)), "")
    return next((name for x in _parts(value) if (name := _held_name(x, depth - 1))), "")


def _parts(value: Any) -> Iterable[Any]:
    if type(value) is partial:
        return (value.func, *value.args, *value.keywords.values())
    if type(value) is MethodType:
        return (value.__func__, value.__self__)
    if type(value) is FunctionType and value.__closure__ and not is_model_code(value.__code__.co_filename):
        return map(cell_contents, value.__closure__)
    return ()


_HOLDERS = frozenset({partial, FunctionType, MethodType})
