"""The source of a `for` statement: whether each of its iterations runs the same statements, and the lists it fills."""

from __future__ import annotations

import ast
import inspect
import textwrap
from dataclasses import dataclass
from functools import cache
from types import CodeType

_LEAVES_OR_DECLARES = (
    ast.Break, ast.Return, ast.Yield, ast.YieldFrom, ast.Await, ast.Delete, ast.Global, ast.Nonlocal, ast.Import,
    ast.ImportFrom, ast.FunctionDef, ast.ClassDef, ast.AsyncFunctionDef, ast.Lambda, ast.NamedExpr, ast.For, ast.While,
    ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp, ast.Try, ast.With,
)  # fmt: skip

_READS_VARIABLES = {"eval", "exec", "locals", "vars", "globals"}  # by names that the source may not show


@dataclass(frozen=True)
class LoopSource:
    """A loop whose iterations run the same statements.

    Attributes:
        filled: Names of lists to which each iteration appends one tensor, and which are read by `stack` only.

    """

    filled: frozenset[str]


@cache
def loop_source(code: CodeType, line: int, *, method: str = "") -> LoopSource | None:
    """The loop `for name in range(...):` at a line of a function; None if there is none of this form.

    With the name of a method the loop `for name in x.method(...):`.
    """
    if not _READS_VARIABLES.isdisjoint(code.co_names):
        return None
    try:
        lines, first = inspect.getsourcelines(code)
        tree = ast.parse(textwrap.dedent("".join(lines)))
    except (OSError, SyntaxError, TypeError):
        return None
    at = line - first + 1
    loops = [n for n in ast.walk(tree) if isinstance(n, ast.For) and n.iter.lineno <= at <= (n.iter.end_lineno or at)]
    if len(loops) != 1 or not isinstance(loops[0].target, ast.Name) or loops[0].orelse:
        return None
    loop = loops[0]
    called = loop.iter.func if isinstance(loop.iter, ast.Call) else None
    name = called.attr if isinstance(called, ast.Attribute) else ""
    calls_range = name == method if method else isinstance(called, ast.Name)
    inside = [n for statement in loop.body for n in ast.walk(statement)]
    if not calls_range or any(isinstance(n, _LEAVES_OR_DECLARES) for n in inside):
        return None
    appends = [n for n in loop.body if _appended(n) is not None]
    filled = frozenset(str(_appended(n)) for n in appends)
    if len(filled) != len(appends) or not all(_is_only_filled(tree, loop, name) for name in filled):
        return None
    return LoopSource(filled)


def _appended(statement: ast.stmt) -> str | None:
    """The name of the list of a statement `name.append(value)` or `name += [value]`."""
    match statement:
        case ast.Expr(
            value=ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr="append"), args=[_], keywords=[])
        ):
            return name
        case ast.AugAssign(target=ast.Name(id=name), op=ast.Add(), value=ast.List(elts=[value])) if not isinstance(
            value, ast.Starred
        ):
            return name
    return None


def _is_only_filled(tree: ast.Module, loop: ast.For, name: str) -> bool:
    """True if a list is made, filled by one statement of the loop, and then only stacked or joined."""
    allowed: set[ast.Name] = set()
    for node in ast.walk(tree):
        match node:
            case ast.Assign(targets=[ast.Name() as target], value=ast.List()):
                allowed.add(target)
            case ast.Assign(targets=[ast.Tuple(elts=targets)], value=ast.Tuple(elts=values)):
                pairs = zip(targets, values, strict=False)
                allowed |= {t for t, v in pairs if isinstance(t, ast.Name) and isinstance(v, ast.List)}
            case ast.Call(
                func=ast.Attribute(value=ast.Name(id="torch"), attr="stack" | "cat"), args=[ast.Name() as read, *_]
            ):
                allowed.add(read)
    for statement in loop.body:
        if _appended(statement) == name:
            written: ast.AST = statement.target if isinstance(statement, ast.AugAssign) else statement.value.func  # type: ignore[attr-defined]
            allowed |= {n for n in ast.walk(written) if isinstance(n, ast.Name)}
    return all(n in allowed for n in ast.walk(tree) if isinstance(n, ast.Name) and n.id == name)
