"""Directions of imports that import-linter does not see: tools, tests, import strings and cycles between modules."""

from __future__ import annotations

import ast
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src"
# To be removed when report/ registers its notebook renderer.
KNOWN_UPWARD: set[str] = set()


def module_name(file: Path) -> str:
    parts = file.relative_to(SOURCE if file.is_relative_to(SOURCE) else ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@cache
def parsed(folder: Path) -> dict[str, ast.Module]:
    """The syntax tree of each Python file in a folder, by module name."""
    return {module_name(file): ast.parse(file.read_text(encoding="utf-8")) for file in sorted(folder.rglob("*.py"))}


def imported(tree: ast.AST) -> Iterator[str]:
    """The absolute module names in import statements; `from a import b` gives a and a.b."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def import_strings(tree: ast.AST) -> Iterator[str]:
    """Module names passed to import_module, __import__, discover and files as string literals."""
    calls = {"import_module", "__import__", "discover", "discover_classes", "files", "modules"}
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and node.args:
            name = getattr(node.func, "attr", getattr(node.func, "id", ""))
            first = node.args[0]
            if name in calls and isinstance(first, ast.Constant) and isinstance(first.value, str):
                yield first.value


@pytest.mark.parametrize(("folder", "other"), [("tools", "tests"), ("tests", "tools"), ("benchmarks", "tests")])
def test_folders_do_not_import_each_other(folder: str, other: str) -> None:
    found = [
        f"{name} imports {target}"
        for name, tree in parsed(ROOT / folder).items()
        for target in (*imported(tree), *import_strings(tree))
        if target.split(".")[0] == other
    ]
    assert found == []


def test_the_package_imports_neither_tests_nor_tools() -> None:
    found = [
        f"{name} imports {target}"
        for name, tree in parsed(SOURCE).items()
        for target in (*imported(tree), *import_strings(tree))
        if target.split(".")[0] in ("tests", "tools", "benchmarks")
    ]
    assert found == []


@cache
def layers() -> dict[str, int]:
    """The layer of each part of the package in pyproject.toml; 0 is the top."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"][
        "contracts"
    ]
    order = next(contract["layers"] for contract in contracts if contract["type"] == "layers")
    return {part.strip(" ()"): depth for depth, line in enumerate(order) for part in line.split("|")}


def part_of(module: str) -> str:
    return (module.split(".") + [""])[1]


def test_import_strings_point_down() -> None:
    found = []
    for name, tree in parsed(SOURCE).items():
        for target in import_strings(tree):
            known = part_of(name) in layers() and part_of(target) in layers()
            if target.startswith("orderproof.") and known and layers()[part_of(target)] < layers()[part_of(name)]:
                found.append(f"{name} imports {target} by a string")
    assert set(found) <= KNOWN_UPWARD


def test_import_strings_name_existing_modules() -> None:
    known = set(parsed(SOURCE))
    for name, tree in parsed(SOURCE).items():
        for target in import_strings(tree):
            assert not target.startswith("orderproof") or target in known, f"{name} imports {target}"


# ---------------------------------------------------------------- cycles


def top_level(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements that run when a module is imported, except those under TYPE_CHECKING."""
    for node in body:
        if isinstance(node, ast.If):
            checking = ast.unparse(node.test) in ("TYPE_CHECKING", "typing.TYPE_CHECKING")
            yield from top_level(node.orelse if checking else [*node.body, *node.orelse])
        elif isinstance(node, ast.Try):
            yield from top_level(
                [*node.body, *node.orelse, *node.finalbody, *(s for h in node.handlers for s in h.body)]
            )
        elif isinstance(node, ast.With):
            yield from top_level(node.body)
        else:
            yield node


def import_graph() -> dict[str, set[str]]:
    """The modules that each module imports when it is imported itself."""
    trees = parsed(SOURCE)
    graph: dict[str, set[str]] = {}
    for name, tree in trees.items():
        targets = graph[name] = set()
        for statement in top_level(tree.body):
            if isinstance(statement, ast.Import):
                targets |= {alias.name for alias in statement.names} & set(trees)
            elif isinstance(statement, ast.ImportFrom) and statement.module:
                members = {f"{statement.module}.{alias.name}" for alias in statement.names}
                targets |= members & set(trees)
                if members - set(trees) and statement.module in trees:
                    targets.add(statement.module)
        targets.discard(name)
    return graph


def cycles(graph: dict[str, set[str]]) -> list[list[str]]:
    """The strongly connected components with more than one module (Tarjan 1972)."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found: list[list[str]] = []

    def visit(node: str) -> None:
        index[node] = low[node] = len(index)
        stack.append(node)
        for target in sorted(graph[node]):
            if target not in index:
                visit(target)
                low[node] = min(low[node], low[target])
            elif target in stack:
                low[node] = min(low[node], index[target])
        if low[node] == index[node]:
            component = []
            while not component or component[-1] != node:
                component.append(stack.pop())
            if len(component) > 1:
                found.append(sorted(component))

    for node in sorted(graph):
        if node not in index:
            visit(node)
    return found


def test_a_cycle_is_found() -> None:
    assert cycles({"a": {"b"}, "b": {"c"}, "c": {"b"}, "d": {"a"}}) == [["b", "c"]]
    assert cycles({"a": {"b"}, "b": set()}) == []


def test_modules_do_not_import_each_other_in_a_circle() -> None:
    assert cycles(import_graph()) == []
