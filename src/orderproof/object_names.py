"""The names in the source of a Python file or module, read before it is imported: a typo is answered at once."""

from __future__ import annotations

import ast
import importlib.util
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from orderproof.errors import SubjectError
from orderproof.registry import did_you_mean

_NAMES_MADE_WHEN_RUN = re.compile(r"\b(exec|globals|vars|setattr|__getattr__|__dict__|sys\.modules)\b|import \*")


def check_name(spec: str, place: str, name: str) -> None:
    """Raise `SubjectError` if the source of a module binds no such name, before the module and torch are imported."""
    try:
        text = _source_file(place).read_text(encoding="utf-8")
        tree = ast.parse(text)
    except (OSError, SyntaxError, ValueError):
        return  # the import says what is wrong
    bound = set[str]()
    for node in ast.walk(tree):
        if isinstance(node, ast.Name | ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            bound.add(node.id if isinstance(node, ast.Name) else node.name)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            bound.update((each.asname or each.name).partition(".")[0] for each in node.names)
    if name not in bound and not _NAMES_MADE_WHEN_RUN.search(text):
        raise SubjectError(f"{spec}: nothing is named {name!r} there{did_you_mean(name, bound, limit=3)}")


def _source_file(place: str) -> Path:
    """The file of a module that is not imported for it. Raises `OSError` if it is not found."""
    if place.endswith(".py"):
        return Path(place).expanduser()
    package, *rest = place.split(".")
    with on_import_path(Path.cwd()):
        spec = None if package in sys.modules else importlib.util.find_spec(package)
    if spec is None or spec.origin is None:
        raise FileNotFoundError(place)
    file = Path(spec.origin)
    for part in rest:
        folder = file.parent if file.name == "__init__.py" else file.with_suffix("")
        file = folder / part / "__init__.py" if (folder / part).is_dir() else folder / f"{part}.py"
    return file


@contextmanager
def on_import_path(folder: Path) -> Iterator[None]:
    """Put a folder first on the import path."""
    sys.path.insert(0, str(folder))
    try:
        yield
    finally:
        if str(folder) in sys.path:
            sys.path.remove(str(folder))


def function_names(path: Path) -> str:
    """The functions of a file that need no arguments, for a message; empty if there are none."""
    try:
        statements = ast.parse(path.read_text(encoding="utf-8")).body
    except (OSError, SyntaxError, ValueError):
        return ""
    names = [
        s.name
        for s in statements
        if isinstance(s, ast.FunctionDef)
        and len(s.args.posonlyargs) + len(s.args.args) == len(s.args.defaults)
        and None not in s.args.kw_defaults
        and not s.name.startswith("_")
    ]
    return f"; its functions without arguments: {', '.join(names[:6])}" if names else ""
