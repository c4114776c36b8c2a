"""Tell the code of transformers and torch from code that was put in its place."""

from __future__ import annotations

import sys
from functools import cache
from pathlib import Path
from types import BuiltinFunctionType, CodeType, FunctionType, ModuleType
from typing import Any

from torch import nn

from orderproof.recording.source import TORCH_FOLDER

_CALLED = ("transformers", "torch", "typing")  # the packages of objects that may be called
_LIBRARIES = (*_CALLED, "builtins", "logging", "collections", "functools", "types")


def is_of_a_library(function: Any) -> bool:
    """True if a function is one of transformers or torch, and so is all that it wraps, closes over or reads.

    Its code has to be in the file that it names, and its global variables are those of the module of this file.
    """
    queue, seen = [function], set[int]()
    while queue:
        one = queue.pop()
        if not isinstance(one, FunctionType) or not _is_from_its_file(one):
            return False
        seen.add(id(one))
        parts = [*_contents(one), *_globals_of(one)]
        if not all(_is_known(part) for part in parts):
            return False
        queue += [part for part in parts if isinstance(part, FunctionType) and id(part) not in seen]
    return True


def _is_from_its_file(function: FunctionType) -> bool:
    """True if the code of a function is in a file of transformers or torch; of transformers, as the file has it."""
    import transformers

    code, variables = function.__code__, function.__globals__
    module = sys.modules.get(variables.get("__name__", ""))
    if module is None or variables is not vars(module) or variables.get("__file__") != code.co_filename:
        return False
    own = code.co_filename.startswith(f"{transformers.__path__[0]}/")
    return code in _codes_of(code.co_filename) if own else code.co_filename.startswith(TORCH_FOLDER)


@cache
def _codes_of(file: str) -> frozenset[CodeType]:
    """The code of all functions of a file."""
    queue = [compile(Path(file).read_text(encoding="utf-8"), file, "exec", dont_inherit=True)]
    found = set()
    while queue:
        code = queue.pop()
        found.add(code)
        queue += [inner for inner in code.co_consts if isinstance(inner, CodeType)]
    return frozenset(found)


def _contents(function: FunctionType) -> list[Any]:
    """The values that a function wraps and closes over."""
    found = [function.__wrapped__] if hasattr(function, "__wrapped__") else []
    for cell in function.__closure__ or ():
        try:
            found.append(cell.cell_contents)
        except ValueError:  # an empty cell
            continue
    return found


def _globals_of(function: FunctionType) -> list[Any]:
    """The values of the global variables that a function of transformers reads."""
    if function.__code__.co_filename.startswith(TORCH_FOLDER):
        return []
    names = {name for code in _with_inner(function.__code__) for name in code.co_names}
    return [function.__globals__[name] for name in sorted(names) if name in function.__globals__]


def _with_inner(code: CodeType) -> list[CodeType]:
    inner = [part for part in code.co_consts if isinstance(part, CodeType)]
    return [code, *(more for part in inner for more in _with_inner(part))]


def _is_known(value: Any) -> bool:
    """True of a function, which is looked at on its own, and of values and classes of libraries.

    What else can be called may call anything: a bound method, `functools.partial`, an object.
    """
    if isinstance(value, (FunctionType, BuiltinFunctionType, ModuleType)):
        return True
    if isinstance(value, nn.Module):
        return all(_library_of(part) in _CALLED and "forward" not in vars(part) for part in value.modules())
    return _library_of(value) in (_CALLED if callable(value) and not isinstance(value, type) else _LIBRARIES)


def _library_of(value: Any) -> str:
    """The package of a class, or of that of an object."""
    kind = value if isinstance(value, type) else type(value)
    return kind.__module__.partition(".")[0]


def has_method_of_a_library(part: nn.Module, name: str) -> bool:
    """False if other code was put in the place of a method of transformers or torch."""
    return name not in vars(part) and is_of_a_library(getattr(type(part), name, None))
