"""Which modules, classes and functions are code of a model, and which belong to a library."""

from __future__ import annotations

import functools
import sys
from types import CodeType, FunctionType, ModuleType

from orderproof.prover.recording.source import is_model_code

_NAMESPACE = type.__dict__["__dict__"].__get__  # whatever a metaclass answers
_WITHOUT_FILES = ("torch", "numpy", "orderproof")  # modules and classes that these make in C or as they run


def is_model_class(kind: type) -> bool:
    """True if a class belongs to the code of a model."""
    name: object = kind.__module__  # of a class in C, it may be a descriptor
    if isinstance(name, str) and is_model_module(sys.modules.get(name), name):
        return True
    # A text that is executed may state any module. Methods that dataclasses generate for torch have no file either.
    return any(
        isinstance(x, FunctionType) and is_model_code(x.__code__.co_filename) and not key.startswith("__")
        for key, x in _NAMESPACE(kind).items()
    )


def is_model_module(module: ModuleType | None, name: str) -> bool:
    """True if a module holds code of a model; one without a file, such as that of a notebook, may."""
    file = getattr(module, "__file__", None)
    if isinstance(file, str):
        return is_model_code(file)
    return name.partition(".")[0] not in (*sys.stdlib_module_names, *_WITHOUT_FILES)


def is_of_the_user(kind: type) -> bool:
    """True if a class was not installed as a package."""
    return "site-packages" not in (getattr(sys.modules.get(kind.__module__), "__file__", None) or "")


def belongs_to(kind: type, libraries: tuple[str, ...]) -> bool:
    """True if the module of a class is part of one of these packages."""
    module = _NAMESPACE(kind).get("__module__")  # of an extension type, it may be a descriptor
    return isinstance(module, str) and module.partition(".")[0] in libraries


@functools.cache
def global_names(code: CodeType) -> frozenset[str]:
    """The names of global variables that a function and the functions within it may use."""
    inner = [global_names(x) for x in code.co_consts if isinstance(x, CodeType)]
    return frozenset(code.co_names).union(*inner)
