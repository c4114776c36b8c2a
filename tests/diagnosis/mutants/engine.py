"""Locate a piece of the prover's source by its structure, change it, and run the changed code.

A mutant has two patterns, `before` and `after`, written in Python with two kinds of placeholder:

    $name    one identifier: a variable, a function, an attribute or a keyword
    $_name   one expression

`before` must match exactly one place in the functions of one module. Placeholders hold the code that they matched, so
`after` is free of the module's own names: a mutant survives every renaming, reformatting and moving of the source.
The name of a placeholder is for the reader. Different placeholders stand for different identifiers; a variable, an
attribute and a keyword of one name are three placeholders. Names of numpy, torch and Python are written as they are.
"""

from __future__ import annotations

import ast
import copy
import importlib
import inspect
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any

# A key of the mutants and the module that they change; any other key is a path below orderproof, with a dot, or a file
# of diagnosis/rules.
MODULES = {
    "analysis": "orderproof.diagnosis.analysis",
    "axis_labels": "orderproof.diagnosis.domain.axis_labels",
    "batch": "orderproof.laws.proved.batch",
    "constants": "orderproof.diagnosis.domain.constants",
    "fact": "orderproof.diagnosis.domain.fact",
    "memoization": "orderproof.diagnosis.memoization",
    "nondeterminism": "orderproof.recording.nondeterminism",
    "number_limits": "orderproof.number_limits",
    "operands": "orderproof.diagnosis.operands",
    "replacement": "orderproof.laws.proved.replacement_law",
    "rule": "orderproof.diagnosis.rule",
    "value_transfer": "orderproof.diagnosis.value_transfer",
    "values": "orderproof.diagnosis.domain.values",
}
NAMES = {  # identifiers of the prover that a replacement may use although its pattern does not bind them
    ("attribute", "dependence"): "dependence",  # of a fact
    ("attribute", "exact"): "exact",  # elements of value ranges
    ("attribute", "fact"): "fact",  # of an operand
    ("attribute", "high"): "high",  # ends of value ranges
    ("attribute", "low"): "low",
    ("attribute", "moves"): "moves",  # of a fact
    ("attribute", "ordinary"): "ordinary",  # value ranges
}
MARK = "PLACEHOLDER_"  # $name is parsed as PLACEHOLDER_name
FUNCTIONS = ast.FunctionDef | ast.AsyncFunctionDef
ROLES = {  # the fields that hold an identifier, by the kind of thing it names
    (ast.Name, "id"): "variable",
    (ast.arg, "arg"): "variable",
    (ast.Attribute, "attr"): "attribute",
    (ast.keyword, "arg"): "keyword",
}

Bindings = dict[tuple[str, str], Any]


class StaleMutantError(Exception):
    """A mutant whose pattern does not match exactly one place, or which changes nothing."""


@dataclass(frozen=True)
class Mutant:
    """A change of the prover, and the operators or the program whose test must notice it."""

    name: str
    before: str
    after: str
    operators: tuple[str, ...] = ()
    program: str = ""  # a key of PROGRAMS, or a case of another test file
    quick: bool = False  # run by the tests that are not slow
    module: str = field(default="", kw_only=True)  # its key


def M(name: str, before: str, after: str, *operators: str, program: str = "", quick: bool = False) -> Mutant:
    """A mutant of the module that its group names."""
    return Mutant(name, before, after, operators, program, quick)


def mutants_of(module: str, *mutants: Mutant) -> list[Mutant]:
    """The mutants of the module with this key."""
    return [replace(mutant, module=module) for mutant in mutants]


@cache
def module_of(key: str) -> ModuleType:
    """The module behind a key; one with a dot is its path below `orderproof`."""
    own = f"orderproof.{key}" if "." in key else f"orderproof.diagnosis.rules.{key}"
    return importlib.import_module(MODULES.get(key, own))


@cache
def tree_of(key: str) -> ast.Module:
    """The syntax tree of a module; callers copy it before they change it."""
    return ast.parse(inspect.getsource(module_of(key)))


def parse(pattern: str) -> ast.expr | list[ast.stmt]:
    """A pattern as an expression, or as consecutive statements."""
    body = ast.parse(re.sub(r"\$(?=\w)", MARK, inspect.cleandoc(pattern))).body
    return body[0].value if len(body) == 1 and isinstance(body[0], ast.Expr) else body


def _placeholder(text: object) -> str | None:
    return text[len(MARK) :] if isinstance(text, str) and text.startswith(MARK) else None


def _bind(bindings: Bindings, role: str, name: str, found: Any) -> bool:
    if role == "expression":
        known = bindings.setdefault((role, name), found)
        return name == "_" or ast.dump(known) == ast.dump(found)
    others = {k: v for k, v in bindings.items() if k[0] == role and k != (role, name)}
    return found not in others.values() and bindings.setdefault((role, name), found) == found


def _matches(pattern: Any, node: Any, bindings: Bindings) -> bool:
    if isinstance(pattern, list):
        return (
            isinstance(node, list)
            and len(pattern) == len(node)
            and all(_matches(p, n, bindings) for p, n in zip(pattern, node, strict=True))
        )
    if not isinstance(pattern, ast.AST):
        return type(pattern) is type(node) and pattern == node
    if isinstance(pattern, ast.Name) and (name := _placeholder(pattern.id)) and name.startswith("_"):
        return isinstance(node, ast.expr) and _bind(bindings, "expression", name, node)
    if type(pattern) is not type(node):
        return False
    for key, part in ast.iter_fields(pattern):
        role, name = ROLES.get((type(pattern), key)), _placeholder(part)
        if role and name:
            if not _bind(bindings, role, name, getattr(node, key)):
                return False
        elif not _matches(part, getattr(node, key), bindings):
            return False
    return True


@dataclass
class Place:
    """A matched expression or run of statements, and how to replace it."""

    function: str  # qualified name
    holder: Any  # the list or node that holds it
    key: Any  # an index, a slice or the name of a field
    bindings: Bindings

    def put(self, new: Any) -> None:
        if isinstance(self.holder, list):
            self.holder[self.key] = new
        else:
            setattr(self.holder, self.key, new)


def _functions(body: list[ast.stmt], prefix: str = "") -> Iterator[tuple[str, ast.FunctionDef | ast.AsyncFunctionDef]]:
    for node in body:
        if isinstance(node, ast.ClassDef):
            yield from _functions(node.body, f"{prefix}{node.name}.")
        elif isinstance(node, FUNCTIONS):
            yield prefix + node.name, node


def _slots(node: ast.AST) -> Iterator[tuple[Any, Any, Any]]:
    """Every list of statements and every single part below a node: holder, key, part."""
    for key, value in ast.iter_fields(node):
        if isinstance(value, list):
            yield node, key, value
            for place, part in enumerate(value):
                yield value, place, part
                if isinstance(part, ast.AST):
                    yield from _slots(part)
        elif isinstance(value, ast.AST):
            yield node, key, value
            yield from _slots(value)


def _places(tree: ast.Module, pattern: ast.expr | list[ast.stmt]) -> Iterator[Place]:
    for name, function in _functions(tree.body):
        for holder, key, part in _slots(function):
            if not isinstance(pattern, list):
                if _matches(pattern, part, bindings := {}):
                    yield Place(name, holder, key, bindings)
            elif isinstance(part, list):
                for start in range(len(part) - len(pattern) + 1):
                    run = slice(start, start + len(pattern))
                    if _matches(pattern, part[run], bindings := {}):
                        yield Place(name, part, run, bindings)


class _Fill(ast.NodeTransformer):
    """Put what the placeholders matched into a pattern."""

    def __init__(self, bindings: Bindings) -> None:
        self.bindings = bindings

    def found(self, role: str, name: str) -> Any:
        found = self.bindings.get((role, name), NAMES.get((role, name)))
        if found is None:
            raise StaleMutantError(f"the {role} ${name} of the replacement is neither in the pattern nor in NAMES")
        return found

    def generic_visit(self, node: ast.AST) -> ast.AST:
        if isinstance(node, ast.Name) and (name := _placeholder(node.id)) and name.startswith("_"):
            return copy.deepcopy(self.found("expression", name))  # type: ignore[no-any-return]
        for key, part in ast.iter_fields(node):
            role, name = ROLES.get((type(node), key)), _placeholder(part)
            if role and name:
                setattr(node, key, self.found(role, name))
        return super().generic_visit(node)


def _lines(tree: ast.Module, places: list[Place]) -> str:
    if not places:
        return "nothing in the module matches"
    return f"{len(places)} places match, in " + ", ".join(sorted({place.function for place in places}))


def mutated_tree(mutant: Mutant) -> tuple[str, ast.Module]:
    """The qualified name of the function that a mutant changes, and its module's tree with the change."""
    tree = copy.deepcopy(tree_of(mutant.module))
    before, after = parse(mutant.before), parse(mutant.after)
    if isinstance(before, list) != isinstance(after, list):  # an expression for a statement, or the reverse
        before, after = (x if isinstance(x, list) else [ast.Expr(x)] for x in (before, after))
    places = list(_places(tree, before))
    if len(places) != 1:
        raise StaleMutantError(f"{mutant.module}: {mutant.name}: {_lines(tree, places)}: {mutant.before}")
    place = places[0]
    fill = _Fill(place.bindings)
    place.put([fill.visit(x) for x in after] if isinstance(after, list) else fill.visit(after))
    if ast.dump(tree) == ast.dump(tree_of(mutant.module)):
        raise StaleMutantError(f"{mutant.module}: {mutant.name}: the change leaves the code as it is")
    return place.function, ast.fix_missing_locations(tree)


def _code_of(code: CodeType, name: str) -> CodeType:
    for part in name.split("."):
        code = next(c for c in code.co_consts if isinstance(c, CodeType) and c.co_name == part)
    return code


def _function_at(module: ModuleType, name: str) -> FunctionType:
    found: Any = module
    for part in name.split("."):
        found = vars(found)[part]
    found = found.fget if isinstance(found, property) else getattr(found, "__func__", found)
    found = found.func if isinstance(found, cached_property) else inspect.unwrap(found)  # its results are kept
    assert isinstance(found, FunctionType), f"{name} is wrapped by its decorator"
    return found


def change(mutant: Mutant) -> tuple[FunctionType, CodeType]:
    """The function that a mutant changes, and its changed code."""
    name, tree = mutated_tree(mutant)
    module = module_of(mutant.module)
    path = str(Path(inspect.getfile(module)))
    return _function_at(module, name), _code_of(compile(tree, path, "exec", dont_inherit=True), name)


@contextmanager
def mutated(changed: tuple[FunctionType, CodeType]) -> Iterator[None]:
    """Run the changed code until the block ends."""
    function, code = changed
    before = function.__code__
    try:
        function.__code__ = code
        yield
    finally:
        function.__code__ = before
