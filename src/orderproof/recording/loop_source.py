"""The source of a `for` statement: whether each of its iterations runs the same statements, and the lists it fills."""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from types import CodeType
from typing import Literal

_LEAVES_OR_DECLARES = (
    ast.Break, ast.Return, ast.Yield, ast.YieldFrom, ast.Await, ast.Delete, ast.Global, ast.Nonlocal, ast.Import,
    ast.ImportFrom, ast.FunctionDef, ast.ClassDef, ast.AsyncFunctionDef, ast.Lambda, ast.NamedExpr, ast.For, ast.While,
    ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp, ast.Try, ast.With,
)  # fmt: skip

_READS_VARIABLES = {"eval", "exec", "locals", "vars", "globals"}  # by names that the source may not show


Over = Literal["range", "unbind", "split", "tensor"]


@dataclass(frozen=True)
class LoopSource:
    """A loop whose iterations run the same statements.

    Attributes:
        filled: Names of lists to which each iteration appends one tensor, and which are else read by `stack`, or from
            their end.
        read_from_end: The last elements of each that an iteration reads, as 2 of `name[-2]`.
        left_out: The first elements of each that are not stacked, as 1 of `torch.stack(name[1:])`.
        own: Names that each iteration gives a value before it reads them, and that nothing reads outside of the loop.

    """

    filled: frozenset[str]
    own: frozenset[str] = frozenset()
    read_from_end: tuple[tuple[str, int], ...] = ()
    left_out: tuple[tuple[str, int], ...] = ()


@cache
def loop_source(code: CodeType, line: int, *, over: Over = "range") -> LoopSource | None:
    """The loop `for name in range(...):` at a line of a function; None if there is none of this form.

    Over `unbind` the loop `for name in x.unbind(...):`, over `split` that of `x.split(...)`, and over `tensor` the loop
    `for name in x:`, each of them also with `enumerate` or `zip` around x.
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
    if len(loops) != 1 or loops[0].orelse:
        return None
    loop = loops[0]
    inside = [n for statement in loop.body for n in ast.walk(statement)]
    if not _runs_over(loop, over) or any(isinstance(n, _LEAVES_OR_DECLARES) for n in inside):
        return None
    appends = [n for n in loop.body if _appended(n) is not None]
    filled = frozenset(str(_appended(n)) for n in appends)
    if len(filled) != len(appends) or not all(_is_only_filled(tree, loop, name) for name in filled):
        return None
    ends = tuple((name, _most(place for _, place in _from_the_end(tree, name))) for name in filled)
    left_out = tuple((name, _most(place for _, place in _without_the_first(tree, name))) for name in filled)
    return LoopSource(filled, _own_names(tree, loop), ends, left_out)


def _most(places: Iterable[int]) -> int:
    return max(places, default=0)


def _own_names(tree: ast.Module, loop: ast.For) -> frozenset[str]:
    """Names that each iteration gives a value before it reads them, and that nothing reads outside of the loop."""
    inside = {n for statement in loop.body for n in ast.walk(statement)}
    read_outside = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and n not in inside}
    read_outside |= {name for n in ast.walk(tree) if isinstance(n, ast.Global | ast.Nonlocal) for name in n.names}
    seen: set[str] = set()
    own: set[str] = set()
    for statement in loop.body:
        match statement:
            case ast.Assign(targets=[ast.Name(id=name)], value=value) if name not in seen:
                own |= set() if name in _names(value) else {name}
        seen |= _names(statement)
    return frozenset(own - read_outside)


def _names(tree: ast.AST) -> set[str]:
    return {n.id for n in ast.walk(tree) if isinstance(n, ast.Name)}


def _runs_over(loop: ast.For, over: Over) -> bool:
    """True if the loop runs through a range, parts of tensors or tensors, and gives names to what it finds."""
    names = list(ast.walk(loop.target))
    if not all(isinstance(n, ast.Name | ast.Tuple | ast.Store) for n in names):
        return False
    if over == "range":
        return isinstance(loop.target, ast.Name) and isinstance(_function(loop.iter), ast.Name)
    values = [loop.iter]
    while len(values) == 1 and getattr(_function(values[0]), "id", "") in ("enumerate", "zip"):
        values = values[0].args  # type: ignore[attr-defined]
    if any(isinstance(n, ast.Starred) for x in values for n in ast.walk(x)):
        return False
    if over != "tensor":
        return any(getattr(_function(x), "attr", "") == over for x in values)
    return not any(isinstance(_function(x), ast.Name) for x in values)  # a function may run through its argument itself


def _function(e: ast.expr) -> ast.expr | None:
    return e.func if isinstance(e, ast.Call) else None


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


def _without_the_first(tree: ast.Module, name: str) -> list[tuple[ast.Name, int]]:
    """Where a list is stacked or joined without its first elements, `torch.stack(name[1:])`, and their number."""
    found = []
    for node in ast.walk(tree):
        match node:
            case ast.Call(
                func=ast.Attribute(value=ast.Name(id="torch"), attr="stack" | "cat"),
                args=[
                    ast.Subscript(
                        value=ast.Name(id=own) as read,
                        slice=ast.Slice(lower=ast.Constant(value=int() as count), upper=None, step=None),
                    ),
                    *_,
                ],
            ) if own == name:
                found.append((read, count))
    return found


def _from_the_end(tree: ast.Module, name: str) -> list[tuple[ast.Name, int]]:
    """Where an element of a list is read by its place from the end, `name[-2]`, and the place."""
    found = []
    for node in ast.walk(tree):
        match node:
            case ast.Subscript(
                value=ast.Name(id=own) as read,
                slice=ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() as place)),
                ctx=ast.Load(),
            ) if own == name:
                found.append((read, place))
    return found


def _is_only_filled(tree: ast.Module, loop: ast.For, name: str) -> bool:
    """True if a list is made, filled by one statement of the loop, and only read from its end, stacked or joined."""
    inside = {n for statement in loop.body for n in ast.walk(statement)}
    allowed = {read for read, place in _from_the_end(tree, name) if read in inside or place == 1}
    allowed |= {read for read, _ in _without_the_first(tree, name) if read not in inside}
    for node in ast.walk(tree):
        match node:
            case ast.Assign(
                targets=[ast.Name() as target], value=ast.List() | ast.BinOp(left=ast.List(), op=ast.Mult())
            ):
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
