"""The rechecker imports the standard library and itself, and nothing else."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

import pytest

import orderproof_recheck as module


@pytest.mark.parametrize("file", sorted(Path(str(module.__file__)).parent.rglob("*.py")), ids=lambda file: file.stem)
def test_it_imports_the_standard_library_and_itself(file: Path) -> None:
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
    packages = {name.split(".")[0] for name in imported}
    assert packages <= {"orderproof_recheck", *sys.stdlib_module_names}
    assert "importlib" not in text
