"""Which modules, classes and functions are code of a model, and which belong to a library."""

from __future__ import annotations

import functools
import sys
from types import CodeType, FunctionType, ModuleType
from typing import Any

from orderproof.recording.real_attributes import class_attributes, is_a
from orderproof.recording.source import is_model_code

_QUALIFIED_NAME = type.__dict__["__qualname__"].__get__  # whatever a metaclass answers
_WITHOUT_FILES = ("torch", "numpy", "orderproof")  # modules and classes that these make in C or as they run


def is_model_class(kind: type) -> bool:
    """True if a class belongs to the code of a model."""
    name: object = kind.__module__  # of a class in C, it may be a descriptor
    if isinstance(name, str) and is_model_module(sys.modules.get(name), name):
        return True
    # A text that is executed may state any module. Methods that dataclasses generate for torch have no file either.
    return any(
        isinstance(x, FunctionType) and is_model_code(x.__code__.co_filename) and not key.startswith("__")
        for key, x in class_attributes(kind).items()
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
    """True if one of these packages defines a class, and not a model that states its name."""
    module = class_attributes(kind).get("__module__")  # of an extension type, it may be a descriptor
    return type(module) is str and module.partition(".")[0] in libraries and _defines(module, kind)


def _defines(name: str, kind: type) -> bool:
    """True if a module has a class under its name, or the package of the module the code of its methods."""
    found: Any = sys.modules.get(name)
    for part in _QUALIFIED_NAME(kind).split("."):
        held = class_attributes(found) if is_a(found, type) else getattr(found, "__dict__", {})
        found = held.get(part)
    if found is kind:
        return True
    package = sys.modules.get(name.partition(".")[0])
    folder = str(getattr(package, "__file__", None)).removesuffix("__init__.py")
    files = [x.__code__.co_filename for x in class_attributes(kind).values() if isinstance(x, FunctionType)]
    return bool(files) and all(file.startswith(folder) for file in files)


@functools.cache
def global_names(code: CodeType) -> frozenset[str]:
    """The names of global variables that a function and the functions within it may use."""
    inner = [global_names(x) for x in code.co_consts if isinstance(x, CodeType)]
    return frozenset(code.co_names).union(*inner)
