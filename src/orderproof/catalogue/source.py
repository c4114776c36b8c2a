"""The source of a module of this package, read without importing it: docstring, literals, calls and decorators.

Only literals are read, and names that this package binds to a literal. Anything else raises `ValueError`.
"""

from __future__ import annotations

import ast
import pkgutil
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

PACKAGE = "orderproof"


@dataclass(frozen=True)
class SourceModule:
    """The syntax tree of one file."""

    file: Path
    tree: ast.Module

    @property
    def docstring(self) -> str:
        """The docstring; empty if there is none."""
        return ast.get_docstring(self.tree) or ""

    def value(self, node: ast.expr) -> Any:
        """The value of an expression: a literal, or a name that is bound to one. Raises `ValueError`."""
        if isinstance(node, ast.Name):
            module, definition = self._definition(node.id) or (self, None)
            bound = definition.value if isinstance(definition, ast.Assign | ast.AnnAssign) else None
            if bound is not None:
                return module.value(bound)
        try:
            return ast.literal_eval(node)
        except ValueError:
            where = f"{self.file.name}:{node.lineno}"
            raise ValueError(f"{where}: expected a literal, because it is read without an import") from None

    def constant(self, name: str) -> Any:
        """The value of a variable of this module. Raises `ValueError`."""
        return self.value(ast.Name(name, lineno=1))

    def keywords(self, variable: str) -> Mapping[str, ast.expr] | None:
        """The keyword arguments of the call whose result is bound to a variable; None without such a call."""
        for node in self.tree.body:
            if _bound_name(node) == variable and isinstance(call := getattr(node, "value", None), ast.Call):
                return {keyword.arg: keyword.value for keyword in call.keywords if keyword.arg}
        return None

    def decorated(self, decorator: str) -> Iterator[tuple[ast.ClassDef | ast.FunctionDef, list[Any]]]:
        """Each class and function with a decorator of this name, and the decorator's positional arguments."""
        for node in self.tree.body:
            for call in node.decorator_list if isinstance(node, ast.ClassDef | ast.FunctionDef) else ():
                if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == decorator:
                    yield node, [self.value(argument) for argument in call.args]  # type: ignore[misc]

    def class_attributes(self, name: str) -> dict[str, Any]:
        """The literal attributes of a class, those of its base classes in this package included."""
        module, found = self._definition(name) or (self, None)
        if isinstance(found, ast.Assign) and isinstance(found.value, ast.Name):  # QUESTION = Copy
            return module.class_attributes(found.value.id)
        attributes: dict[str, Any] = {}
        if isinstance(found, ast.ClassDef):
            for base in reversed(found.bases):
                attributes |= module.class_attributes(base.id) if isinstance(base, ast.Name) else {}
            for node in found.body:
                value = getattr(node, "value", None)
                if (attribute := _bound_name(node)) and value is not None and _is_literal(value):
                    attributes[attribute] = ast.literal_eval(value)
        return attributes

    def _definition(self, name: str) -> tuple[SourceModule, ast.stmt] | None:
        """The statement that defines a name, in this file or in the one that it is imported from."""
        for node in self.tree.body:
            if _bound_name(node) == name or (isinstance(node, ast.ClassDef) and node.name == name):
                return self, node
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(f"{PACKAGE}."):
                for alias in node.names:
                    if (alias.asname or alias.name) == name:
                        return read_module(str(node.module))._definition(alias.name)
        return None


def read_modules(package: str) -> Iterator[SourceModule]:
    """The public modules of a package, in alphabetical order, without its subpackages."""
    for info in pkgutil.iter_modules(_folders(package)):
        if not info.ispkg and not info.name.startswith("_"):
            yield read_module(f"{package}.{info.name}")


def read_module(name: str) -> SourceModule:
    """A module by its full name. Raises `FileNotFoundError`."""
    package, _, last = name.rpartition(".")
    files = [Path(folder, f"{last}.py") for folder in _folders(package)]
    return _parse(next((file for file in files if file.is_file()), files[0]))


@cache
def _parse(file: Path) -> SourceModule:
    return SourceModule(file, ast.parse(file.read_text(encoding="utf-8"), filename=str(file)))


def _folders(package: str) -> list[str]:
    """The folders of a package. It is not imported, because its `__init__` may import torch."""
    if package in sys.modules:
        return list(sys.modules[package].__path__)
    parent, _, name = package.rpartition(".")
    return [str(Path(folder, name)) for folder in _folders(parent)]


def _bound_name(node: ast.stmt) -> str | None:
    """The name that an assignment binds."""
    if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
        return node.target.id
    if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
        return node.targets[0].id
    return None


def _is_literal(node: ast.expr) -> bool:
    try:
        ast.literal_eval(node)
    except ValueError:
        return False
    return True
