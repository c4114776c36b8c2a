"""The source of classes: a file is parsed once for all of its classes, and not once for each, as `inspect` does."""

from __future__ import annotations

import ast
import inspect
import linecache
from collections.abc import Iterator
from functools import cache

Lines = tuple[int, int]  # the first and the last line of a class with its decorators


@cache
def class_source(kind: type) -> str:
    """The source of a class. Raises `OSError` or `TypeError` if it has none."""
    file = inspect.getsourcefile(kind)
    lines = None if file is None else _classes_in(file).get(kind.__qualname__)
    if file is None or lines is None:
        return inspect.getsource(kind)
    first, last = lines
    return "".join(linecache.getlines(file)[first - 1 : last])


@cache
def _classes_in(file: str) -> dict[str, Lines]:
    """The lines of each class by its qualified name; of several with one name, of the first."""
    places: dict[str, Lines] = {}
    for name, node in _named_classes(ast.parse("".join(linecache.getlines(file))), ""):
        first = min((node.lineno, *(x.lineno for x in node.decorator_list)))
        places.setdefault(name, (first, node.end_lineno or node.lineno))
    return places


def _named_classes(node: ast.AST, prefix: str) -> Iterator[tuple[str, ast.ClassDef]]:
    for inner in ast.iter_child_nodes(node):
        if isinstance(inner, ast.ClassDef):
            yield f"{prefix}{inner.name}", inner
            yield from _named_classes(inner, f"{prefix}{inner.name}.")
        elif isinstance(inner, ast.FunctionDef | ast.AsyncFunctionDef):
            yield from _named_classes(inner, f"{prefix}{inner.name}.<locals>.")
        elif isinstance(inner, ast.stmt | ast.ExceptHandler):
            yield from _named_classes(inner, prefix)
