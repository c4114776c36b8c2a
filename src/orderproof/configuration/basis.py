"""The basis of a report, and if it is still the same.

A report depends on the options, on the files that the audit read, on the installed packages, and on settings of the
environment.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from importlib.machinery import all_suffixes
from pathlib import Path
from typing import Any, Protocol

from orderproof.configuration.read_files import own_folders, package_roots
from orderproof.records.audit import Basis

FOLDER = ".orderproof_cache"  # of kept reports, next to the configuration
SMALL = 1_000_000  # [bytes] a file of at most this size is compared by its content, a larger one by size and time
_MADE_BY_RUNS = frozenset({FOLDER, "__pycache__"})
CLOCK = 20_000_000  # [ns] a file that changed so shortly before the audit may have changed in it
_SETTINGS = ("ORDERPROOF_", "PYTHON", "TORCH", "PYTORCH", "TRITON", "CUDA", "HF_", "TRANSFORMERS", "OMP_", "MKL_")
_SETTINGS_OF_NO_RESULT = frozenset({"ORDERPROOF_TRACEBACK", "PYTHONUNBUFFERED", "PYTHONDONTWRITEBYTECODE"})


_NAMES = {"as_kind": "--as", "subject": "the subject"}  # of options whose parameter has another name


class Read(Protocol):
    """The files and variables of the environment that an audit asked for."""

    def paths(self) -> set[Path]:
        """The files that it read, and the folders that it listed."""

    def questions(self) -> set[Path]:
        """The paths of which it asked if they are there."""

    def module_folders(self) -> set[Path]:
        """The folders in which it looked for modules."""

    def settings(self) -> set[str]:
        """The variables of the environment that it asked for."""


def options_text(options: Mapping[str, Any]) -> dict[str, str]:
    """Values of options as JSON."""
    return {key: json.dumps(value, sort_keys=True, default=str) for key, value in options.items()}


def basis_of(read: Read, stated: Iterable[Path], *, began: int, environment_then: str) -> Basis | None:
    """The basis of an audit without its options; None if a file changed since it began [ns since the epoch].

    `stated` are files and folders that the subject names itself: a checkpoint.
    """
    every = {*read.paths(), *(each for path in stated for each in _with_entries(path))}
    if any(_time(path) > began - CLOCK for path in every):
        return None
    looked_at = {"content": every, "questions": read.questions(), "modules": read.module_folders()}
    return Basis(
        environment=environment_then,
        settings={name: _setting(name) for name in sorted(read.settings())},
        files={
            kind: {str(path): FINGERPRINTS[kind](path) for path in sorted(paths)} for kind, paths in looked_at.items()
        },
    )


def changes(basis: Basis, options: Mapping[str, str]) -> Iterator[str]:
    """The changes since then, the cheapest to compare first: "--seed was 0 and is 1"."""
    for key, value in options.items():
        if basis.options.get(key) != value:
            name = _NAMES.get(key, f"--{key.replace('_', '-')}")
            yield f"{name} was {_stated(basis.options.get(key))} and is {_stated(value)}"
    if basis.environment != environment():
        yield "Python, an installed package or a variable of a library has changed"
    for name, known in basis.settings.items():
        if _setting(name) != known:
            yield f"the variable {name} has changed"
    for kind, files in basis.files.items():
        for path, known in files.items():
            if FINGERPRINTS[kind](Path(path)) != known:
                yield f"{path} has changed"


def fingerprint(path: Path) -> str:
    """A text that changes with a file, or with the names in a folder: by content; by size and time if it is large."""
    try:
        if path.is_dir():
            return _names(each.name for each in path.iterdir() if each.name not in _MADE_BY_RUNS)
        found = path.stat()
        if found.st_size > SMALL:
            return f"{found.st_size} bytes, {found.st_mtime_ns}"
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError as error:
        return f"none: {error.errno}"


def _is_there(path: Path) -> str:
    return "there" if path.exists() else "not there"


def _modules(folder: Path) -> str:
    """A text that changes with the names of the modules and packages in a folder."""
    try:
        return _names(
            each.name
            for each in folder.iterdir()
            if each.name.endswith(tuple(all_suffixes())) or (each / "__init__.py").is_file()
        )
    except OSError as error:
        return f"none: {error.errno}"


FINGERPRINTS: Mapping[str, Callable[[Path], str]] = {
    "content": fingerprint, "questions": _is_there, "modules": _modules,
}  # fmt: skip


def _names(names: Iterable[str]) -> str:
    return f"folder {_digest(json.dumps(sorted(names)))}"


def _setting(name: str) -> str:
    """A digest of the value of a variable, which may be a secret; empty if it is not set."""
    return _digest(os.environ[name]) if name in os.environ else ""


def environment() -> str:
    """A digest of the interpreter, the installed packages, this package's own files and settings of the environment."""
    settings = {k: v for k, v in os.environ.items() if k.startswith(_SETTINGS) and k not in _SETTINGS_OF_NO_RESULT}
    packages = [
        (each.name, each.stat().st_mtime_ns)
        for root in package_roots()
        if root.is_dir()
        for each in os.scandir(root)
        if each.name.endswith((".dist-info", ".egg-info", ".pth", ".egg-link"))
    ]
    own = [_state(Path(folder, name)) for top in own_folders() for folder, _, names in os.walk(top) for name in names]
    machine = [sys.version, sys.prefix, platform.machine(), os.path.exists("/dev/nvidiactl")]  # noqa: PTH110
    return _digest(json.dumps([machine, sorted(settings.items()), sorted(packages), sorted(filter(None, own))]))


def _state(file: Path) -> tuple[str, int, int] | None:
    if file.suffix == ".pyc":
        return None
    found = file.stat()
    return str(file), found.st_size, found.st_mtime_ns


def _stated(value: str | None) -> str:
    return "not given" if value in (None, "null") else str(value)


def _with_entries(path: Path) -> list[Path]:
    return [path, *path.iterdir()] if path.is_dir() else [path]


def _time(path: Path) -> int:
    try:
        return path.stat().st_mtime_ns
    except OSError:
        return 0


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
