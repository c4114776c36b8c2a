"""Reports that are kept, and given again while nothing that they depend on has changed.

A report depends on the options, on the files that the audit read, on the installed packages, and on settings of the
environment. A kept report that is not whole, of another format, or older than a change of one of these is none.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from importlib.machinery import all_suffixes
from pathlib import Path
from typing import Any, Protocol

from orderproof.configuration.read_files import own_folders, package_roots
from orderproof.errors import UsageError
from orderproof.records.audit import Report
from orderproof.report.file_output import write_file

FOLDER = ".orderproof_cache"  # next to the configuration
FORMAT = 3
SMALL = 1_000_000  # [bytes] a file of at most this size is compared by its content, a larger one by size and time
_MADE_BY_RUNS = frozenset({FOLDER, "__pycache__"})
CLOCK = 20_000_000  # [ns] a file that changed so shortly before the audit may have changed in it
_SETTINGS = ("ORDERPROOF_", "PYTHON", "TORCH", "PYTORCH", "TRITON", "CUDA", "HF_", "TRANSFORMERS", "OMP_", "MKL_")
_SETTINGS_OF_NO_RESULT = frozenset({"ORDERPROOF_TRACEBACK", "PYTHONUNBUFFERED", "PYTHONDONTWRITEBYTECODE"})


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


@dataclass(frozen=True)
class KeptReport:
    """A report, and when it was made: "2026-11-29 16:40"."""

    report: Report
    made: str


@dataclass(frozen=True)
class KeptReports:
    """The kept report of one subject with one set of options.

    Attributes:
        folder: The folder of the configuration.
        name: The name of the subject there.
        options: What determines the report, besides files, packages and the environment.
        stated: Files and folders that the subject names itself: a checkpoint.

    """

    folder: Path
    name: str
    options: Mapping[str, Any]
    stated: tuple[Path, ...] = ()

    @property
    def file(self) -> Path:
        """The file of the report."""
        return self.folder / FOLDER / f"{self.name}-{_digest(json.dumps(self.options, sort_keys=True))[:16]}.json"

    def find(self) -> KeptReport | None:
        """The kept report, if nothing has changed."""
        try:
            checksum, _, body = self.file.read_text(encoding="utf-8").partition("\n")
            if checksum != _digest(body):
                return None
            kept = json.loads(body)
            if kept["format"] != FORMAT or kept["environment"] != environment():
                return None
            for kind, files in kept["files"].items():
                if any(FINGERPRINTS[kind](Path(path)) != known for path, known in files.items()):
                    return None
            if any(_setting(name) != known for name, known in kept["settings"].items()):
                return None
            return KeptReport(Report.model_validate(kept["report"]), kept["made"])
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return None  # cut, or of another version: it is made again

    def keep(self, report: Report, read: Read, *, began: int, environment_then: str) -> None:
        """Keep a report, unless a file that was read changed since the audit began [ns since the epoch]."""
        every = {*read.paths(), *(each for path in self.stated for each in _with_entries(path))}
        if any(_time(path) > began - CLOCK for path in every):
            return
        looked_at = {"content": every, "questions": read.questions(), "modules": read.module_folders()}
        body = json.dumps(
            {
                "format": FORMAT,
                "made": datetime.now().astimezone().strftime("%Y-%m-%d %H:%M"),
                "environment": environment_then,
                "settings": {name: _setting(name) for name in sorted(read.settings())},
                "files": {
                    kind: {str(path): FINGERPRINTS[kind](path) for path in sorted(paths)}
                    for kind, paths in looked_at.items()
                },
                "report": report.model_dump(by_alias=True),
            }
        )
        try:
            self.file.parent.mkdir(exist_ok=True)
            write_file("*\n", self.file.parent / ".gitignore")
            write_file(f"{_digest(body)}\n{body}", self.file)
        except (OSError, UsageError):
            return  # a folder that cannot be written: the next audit takes its time again


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


def _with_entries(path: Path) -> list[Path]:
    return [path, *path.iterdir()] if path.is_dir() else [path]


def _time(path: Path) -> int:
    try:
        return path.stat().st_mtime_ns
    except OSError:
        return 0


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
