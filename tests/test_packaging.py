"""What a newcomer's two commands rest on: pins, ranges, the Makefile, and what a wheel carries."""

from __future__ import annotations

import importlib.metadata
import os
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import orderproof
import orderproof_recheck

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
NEEDED_TO_INSTALL = {"hatchling", "editables"}
PORTS = ("mlx", "onnx", "ctranslate2", "llamacpp", "serve")
# Built from source by a C++ compiler where no wheel is published, so `dev` leaves it out: pinned, not walked.
BUILT_FROM_SOURCE = {"llama-cpp-python"}
NEEDED_BY_THOSE = {"diskcache", "jaxlib", "opt-einsum"}
IN_ANOTHER_PROCESS = {"jax"}  # its environment may be another one, so `dev` leaves it out too
OURS = {"orderproof", "orderproof-recheck"}
EXTRAS = ("hf", "demo", "plots", "bench", "lab", "ray", "slurm", "app", "jax", "docs", "dev", *PORTS)


def pins() -> dict[str, str]:
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    found = [line.partition("==") for line in lines if line and not line.startswith("#")]
    return {canonicalize_name(name): version for name, _, version in found}


def declared() -> list[Requirement]:
    project = PROJECT["project"]
    lines = [*project["dependencies"], *(r for extra in project["optional-dependencies"].values() for r in extra)]
    return [Requirement(line) for line in lines]


def closure() -> set[str]:
    """Every distribution that installing all extras brings, as installed here."""
    found: set[str] = set()

    def walk(requirements: Iterator[Requirement], extras: set[str]) -> None:
        for requirement in requirements:
            if requirement.marker and not any(requirement.marker.evaluate({"extra": e}) for e in extras | {""}):
                continue
            name = canonicalize_name(requirement.name)
            if name in found | BUILT_FROM_SOURCE | IN_ANOTHER_PROCESS | OURS:
                continue
            found.add(name)
            walk(map(Requirement, importlib.metadata.requires(name) or ()), requirement.extras)

    walk(iter([*declared(), *map(Requirement, NEEDED_TO_INSTALL)]), set())
    return found


def test_every_dependency_of_every_extra_is_pinned_and_nothing_else():
    assert set(pins()) == closure() | BUILT_FROM_SOURCE | IN_ANOTHER_PROCESS | NEEDED_BY_THOSE


def test_what_is_installed_satisfies_the_ranges_and_is_what_is_pinned():
    for requirement in declared():
        if requirement.name not in OURS:
            assert requirement.specifier.contains(pins()[canonicalize_name(requirement.name)]), str(requirement)


def test_pins_are_plain_versions():
    assert pins()["torch"] == "2.13.0"
    assert all(re.fullmatch(r"[0-9][0-9a-z.]*", version) for version in pins().values())


def test_the_project_gives_ranges_and_the_extras_it_promises():
    assert "torch>=2.11" in PROJECT["project"]["dependencies"]
    assert set(PROJECT["project"]["optional-dependencies"]) == set(EXTRAS)


def test_the_rechecker_has_the_version_of_orderproof_which_depends_on_it():
    assert orderproof_recheck.__version__ == orderproof.__version__
    assert f"orderproof-recheck=={orderproof.__version__}" in PROJECT["project"]["dependencies"]
    alone = tomllib.loads((ROOT / "recheck" / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert alone["dependencies"] == []
    assert {key: alone[key] for key in ("license", "requires-python")} == {
        key: PROJECT["project"][key] for key in ("license", "requires-python")
    }
    assert (ROOT / "recheck" / "LICENSE").read_bytes() == (ROOT / "LICENSE").read_bytes()


def test_no_machine_path_or_host_is_in_the_set_up():
    for name in ("pyproject.toml", "recheck/pyproject.toml", "constraints.txt", "Makefile", ".ci/run", ".gitignore"):
        text = (ROOT / name).read_text(encoding="utf-8")
        assert not re.search(r"https?://|/(home|Users|work|opt)/", text), name


def test_ci_runs_what_a_newcomer_runs():
    script = ROOT / ".ci" / "run"
    assert os.access(script, os.X_OK)
    assert "make test" in script.read_text(encoding="utf-8")


@pytest.fixture
def bare(tmp_path: Path) -> Path:
    """A copy of the set-up files, nothing installed."""
    for name in ("Makefile", "pyproject.toml", "constraints.txt"):
        shutil.copy(ROOT / name, tmp_path / name)
    return tmp_path


def make(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["make", *arguments], cwd=folder, capture_output=True, text=True, timeout=300, check=False)


def interpreter(folder: Path, body: str) -> str:
    script = folder / "python"
    script.write_text(f"#!/bin/sh\n{body}\n")
    script.chmod(0o755)
    return f"PYTHON={script}"


needs_make = pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")


@needs_make
def test_an_old_python_is_one_clear_line(bare: Path):
    old = 'case "$1" in --version) echo Python 3.9.2;; *) exit 1;; esac'
    done = make(bare, "test", interpreter(bare, old))
    assert done.returncode == 2
    assert re.search(r"^orderproof needs Python 3\.11 or later; .* is Python 3\.9\.2\. Try: make test", done.stderr)


@needs_make
def test_a_python_without_venv_is_one_clear_line(bare: Path):
    without = 'case "$2" in *venv*) exit 1;; *) exit 0;; esac'
    done = make(bare, "audit", interpreter(bare, without))
    assert done.returncode == 2
    assert "lacks the venv module; install it" in done.stderr


@needs_make
def test_help_names_every_command(bare: Path):
    done = make(bare)
    assert done.returncode == 0
    for target in ("help", "audit", "test", "lint", "clean"):
        assert f"make {target}" in done.stdout


@needs_make
def test_torch_is_installed_first_and_every_install_is_constrained(bare: Path):
    lines = make(bare, "--dry-run", "test").stdout.splitlines()
    installs = [line for line in lines if "pip install" in line]
    assert "torch==2.13.0" in installs[0]
    assert all("-c constraints.txt" in line for line in installs)
    assert "--no-build-isolation -e ./recheck" in installs[-2]
    assert "--no-build-isolation -e '.[dev]'" in installs[-1]


@needs_make
def test_a_finished_install_is_not_repeated_until_a_pin_changes(bare: Path):
    stamp = next(
        line.split()[-1]
        for line in make(bare, "--dry-run", "lint").stdout.splitlines()
        if line.startswith("touch .venv/.installed-dev")
    )
    (bare / stamp).parent.mkdir()
    (bare / stamp).touch()
    assert "pip install" not in make(bare, "--dry-run", "test").stdout
    assert "pip install" not in make(bare, "--dry-run", "audit").stdout  # all of dev is enough for the demo
    with (bare / "constraints.txt").open("a") as stream:
        stream.write("# changed\n")
    assert "pip install" in make(bare, "--dry-run", "test").stdout


PACKAGES = [(".", "orderproof", 300), ("recheck", "orderproof_recheck", 30)]


@pytest.mark.parametrize(("project", "package", "least"), PACKAGES)
def test_a_wheel_carries_every_file_of_the_package(project: str, package: str, least: int, tmp_path: Path):
    folder = ROOT / project
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    names = set(zipfile.ZipFile(next(tmp_path.glob("*.whl"))).namelist())
    files = {str(f.relative_to(folder / "src")) for f in (folder / "src" / package).rglob("*") if f.is_file()}
    carried = {f for f in files if "__pycache__" not in f and not f.endswith(".so")}
    assert len(carried) > least
    assert carried <= names
