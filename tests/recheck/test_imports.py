"""The rechecker imports nothing of this package except its errors."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import orderproof.recheck as module


@pytest.mark.parametrize("file", sorted(Path(str(module.__file__)).parent.rglob("*.py")), ids=lambda file: file.stem)
def test_it_imports_nothing_of_this_package_but_its_errors(file: Path) -> None:
    text = file.read_text(encoding="utf-8")
    imported = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            imported |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0
            imported.add(str(node.module))
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            assert node.func.id not in ("eval", "exec", "__import__", "compile")
    others = {name for name in imported if name.startswith("orderproof")} - {"orderproof.errors"}
    assert all(name.startswith("orderproof.recheck.") for name in others)
    assert "importlib" not in text
