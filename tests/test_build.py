"""The wheel contains the compiled kernels where there is a C compiler, and builds without one."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.mark.parametrize(
    "compiler",
    [
        pytest.param(None, id="as the machine has it", marks=pytest.mark.slow),
        pytest.param("false", id="a compiler that fails"),
    ],
)
def test_a_wheel_is_built(tmp_path: Path, compiler: str | None) -> None:
    tree = tmp_path / "tree"
    tree.mkdir()
    for name in ("pyproject.toml", "README.md", "LICENSE", "hatch_build.py"):
        (tree / name).symlink_to(ROOT / name)
    shutil.copytree(ROOT / "src", tree / "src", ignore=shutil.ignore_patterns("*.so", "__pycache__"))
    environment = os.environ | ({"CC": compiler} if compiler else {})
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    result = subprocess.run(command, cwd=tree, env=environment, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    (wheel,) = tmp_path.glob("*.whl")
    files = [name for name in zipfile.ZipFile(wheel).namelist() if "kernels/rotary" in name]
    assert any(name.endswith("rotary.c") for name in files)
    has_library = any(name.endswith("rotary.so") for name in files)
    assert has_library == (not wheel.name.endswith("py3-none-any.whl"))
    assert has_library or "the kernels" in result.stdout + result.stderr
    assert not (compiler and has_library)
