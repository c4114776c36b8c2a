"""The first configuration of a package: its modules and the functions that build them, found in its source.

Nothing is imported. A class is a module if one of its bases is named like one of torch, or is such a class itself.
"""

from __future__ import annotations

import ast
import importlib.util
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from orderproof.errors import UsageError

MODULE_BASES = frozenset({"Module", "LightningModule", "PreTrainedModel", "Sequential", "GenerationMixin"})
MOST_FILES = 2000
_SKIPPED = frozenset({"tests", "test", "docs", "build", "dist", "node_modules", "site-packages", "__pycache__"})
HEAD = """\
# What orderproof audits here. `orderproof audit` audits every subject, `orderproof audit NAME` one.
# Keys are the long options of `orderproof audit` without the dashes; above the subjects they are of all of them.

# timeout = 120.0              # [s] for each law
# strict = true                # exit code 3 if an expected law was not tested
# jobs = 2                     # subjects at a time
"""
OPTIONS = """\
# as = "decoder"               # or "encoder": expect what such a model should do
# law = ["causal", "padding"]  # these laws only
# expect = {permutation = "fails"}
# role = {attention_mask = "mask:real"}
"""


@dataclass(frozen=True)
class Found:
    """A class or a function that gives a module; `place` is its file or its module, as a subject names it."""

    place: str
    name: str
    is_function: bool
    needs: tuple[str, ...] = ()  # arguments without a default
    makes: frozenset[str] = frozenset()  # the classes that it calls


def first_file(package: str | None, folder: Path) -> str:
    """The text of a configuration, which will be in this folder, for the modules of a package. Raises `UsageError`.

    `package`: a folder, a file or an importable package; by default the working folder.
    """
    found = _found(_places(package, folder))
    inner = {name for each in found if not each.is_function for name in each.makes if name != each.name}
    made = {name for each in found if each.is_function and not each.needs for name in each.makes}
    tops = [each for each in found if each.is_function or each.name not in inner | made]
    if not tops:
        where = package or "this folder"
        raise UsageError(f"expected modules of torch in {where}; none was found; name a folder, a file or a package")
    ready = sorted((each for each in tops if not each.needs), key=lambda each: not each.is_function)
    names = set[str]()
    blocks = [_block(each, _unused_name(each, names)) + OPTIONS * (k == 0) for k, each in enumerate(ready)]
    blocks += [_block_as_comment(each, _unused_name(each, names)) for each in tops if each.needs]
    return "\n".join([HEAD, *blocks])


def _places(package: str | None, folder: Path) -> dict[Path, str]:
    """The files of a package, and how a subject in a configuration in this folder names each."""
    path = Path(package or ".").expanduser()
    if path.exists():
        return {file: Path(os.path.relpath(file, folder)).as_posix() for file in _files(path)}
    spec = None
    with suppress(ImportError, ValueError):
        spec = importlib.util.find_spec(str(package).partition(".")[0])
    if spec is None or spec.origin is None:
        raise UsageError(f"expected a folder, a file or an installed package; got {package!r}")
    if not spec.submodule_search_locations:
        return {Path(spec.origin): spec.name}
    root = Path(spec.origin).parent
    modules = {file: (spec.name, *file.relative_to(root).with_suffix("").parts) for file in _files(root)}
    return {file: ".".join(parts).removesuffix(".__init__") for file, parts in modules.items()}


def _files(root: Path) -> list[Path]:
    if root.is_file():
        return [root]
    found: list[Path] = []
    for file in sorted(root.rglob("*.py")):
        folders = file.relative_to(root).parts[:-1]
        if any(part in _SKIPPED or part.startswith(".") for part in folders) or _is_test(file.name):
            continue
        if any((root.joinpath(*folders[:depth]) / "pyvenv.cfg").exists() for depth in range(1, len(folders) + 1)):
            continue
        found.append(file)
        if len(found) == MOST_FILES:
            break
    return found


def _is_test(name: str) -> bool:
    return name.startswith(("test_", "conftest", "setup.")) or name.endswith("_test.py")


def _found(places: Mapping[Path, str]) -> list[Found]:
    """The public modules and builders, in the order of the files."""
    trees = {place: tree for file, place in places.items() if (tree := _tree(file)) is not None}
    classes = {node.name: node for tree in trees.values() for node in tree.body if isinstance(node, ast.ClassDef)}
    modules = set(MODULE_BASES)
    while more := {name for name, node in classes.items() if name not in modules and modules & set(_bases(node))}:
        modules |= more
    modules &= classes.keys()
    found = []
    for place, tree in trees.items():
        for node in tree.body:
            if isinstance(node, ast.ClassDef) and node.name in modules and not node.name.startswith("_"):
                start = next((x for x in node.body if isinstance(x, ast.FunctionDef) and x.name == "__init__"), None)
                needs = _needed(start.args, skip=1) if start else ()
                found.append(Found(place, node.name, False, needs, frozenset(_called(node) & modules)))
            elif isinstance(node, ast.FunctionDef) and not node.name.startswith("_"):
                makes, needs = frozenset(_called(node) & modules), _needed(node.args, skip=0)
                returns = any(isinstance(each, ast.Return) and each.value is not None for each in ast.walk(node))
                if returns and (makes or (not needs and _makes_module_of_torch(node))):
                    found.append(Found(place, node.name, True, needs, makes))
    return found


def _tree(file: Path) -> ast.Module | None:
    with suppress(OSError, SyntaxError, ValueError):
        return ast.parse(file.read_text(encoding="utf-8"))
    return None


def _bases(node: ast.ClassDef) -> Iterator[str]:
    for base in node.bases:
        named = base.value if isinstance(base, ast.Subscript) else base
        yield named.attr if isinstance(named, ast.Attribute) else named.id if isinstance(named, ast.Name) else ""


def _called(node: ast.AST) -> set[str]:
    calls = (each.func for each in ast.walk(node) if isinstance(each, ast.Call))
    return {call.attr if isinstance(call, ast.Attribute) else getattr(call, "id", "") for call in calls}


def _makes_module_of_torch(node: ast.AST) -> bool:
    """True if a function calls `nn.SomeClass(...)`."""
    calls = (each.func for each in ast.walk(node) if isinstance(each, ast.Call))
    return any(isinstance(each, ast.Attribute) and each.attr[:1].isupper() and _is_nn(each.value) for each in calls)


def _is_nn(node: ast.expr) -> bool:
    return (node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")) == "nn"


def _needed(arguments: ast.arguments, skip: int) -> tuple[str, ...]:
    """The arguments without a default, after the first ``skip``."""
    places = [*arguments.posonlyargs, *arguments.args]
    given = places[: len(places) - len(arguments.defaults)][skip:]
    named = zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
    return tuple(each.arg for each in (*given, *(each for each, default in named if default is None)))


def _unused_name(found: Found, names: set[str]) -> str:
    stem = re.split(r"[/.]", found.place.removesuffix(".py"))[-1]
    longer = f"{stem}_{found.name}"
    tried = (found.name, longer, *(f"{longer}_{number}" for number in range(2, MOST_FILES)))
    name = next(each for each in tried if each not in names)
    names.add(name)
    return name


def _block(found: Found, name: str) -> str:
    return f'[subjects.{name}]\nsubject = "{found.place}:{found.name}"\n'


def _block_as_comment(found: Found, name: str) -> str:
    why = f"# {found.name} needs {', '.join(found.needs)}: name a function without arguments that returns it.\n"
    return why + "".join(f"# {line}\n" for line in _block(found, name).splitlines())
