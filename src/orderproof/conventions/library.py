"""Libraries whose functions are asked by name, each a file of `library_side`, read here without its library."""

from __future__ import annotations

import ast
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from orderproof.conventions import library_side
from orderproof.conventions.attention.function import AttentionFunction
from orderproof.conventions.positions.function import PositionTable
from orderproof.conventions.rotation.function import RotaryFunction
from orderproof.errors import UsageError
from orderproof.ports.environments.environment import Environment
from orderproof.ports.environments.install import Requirements, install
from orderproof.ports.environments.process import EngineServer

AnyFunction = AttentionFunction | RotaryFunction | PositionTable
SIDES = Path(library_side.__path__[0])
SUFFIX = "_side"
_STATED = ("PACKAGE", "REQUIREMENTS", "VARIANTS", "GIGABYTES", "ENVIRONMENT")


@dataclass(frozen=True)
class Library:
    """A library.

    Attributes:
        name: The part of the names of its functions before the dot.
        side: The file that calls it.
        package: The package that must be installed.
        requirements: Of an environment of its own, the library first.
        variables: Of its process; a library with some never runs in this process.
        gigabytes: That an environment needs.
        wanted: The version of NAME@VERSION.
        environment_name: The name of its environment, where an engine has the name of the library.

    """

    name: str
    side: Path
    package: str
    requirements: tuple[str, ...]
    variables: Mapping[str, str] = field(default_factory=dict, hash=False)
    gigabytes: float = 1.0
    wanted: str = ""
    environment_name: str = ""

    @property
    def distribution(self) -> str:
        """The name under which pip installs it."""
        return self.requirements[0].partition("==")[0]

    @property
    def version_here(self) -> str:
        """The version that this interpreter has; empty without."""
        if find_spec(self.package) is None:
            return ""
        try:
            return metadata.version(self.distribution).partition("+")[0]
        except metadata.PackageNotFoundError:
            return ""

    @property
    def how_to_install(self) -> str:
        """The command that makes its environment."""
        return f"orderproof engines install {self.environment.name}"

    @property
    def where(self) -> str:
        """The place of a library that this process does not call, in words."""
        try:
            return f"version {self.version_here}, in a process of its own" if self.interpreter else ""
        except MissingLibraryError:
            return self.how_to_install

    @property
    def environment(self) -> Environment:
        """Its environment, installed or not."""
        return Environment(self.environment_name or self.name, self.wanted or self.requirements[0].partition("==")[2])

    @property
    def interpreter(self) -> Path | None:
        """The interpreter that has it; None if this process may call it. Raises `MissingLibraryError`."""
        here = self.version_here
        if here and self.wanted in ("", here):
            return Path(sys.executable) if self.variables else None
        if not self.environment.is_installed:
            raise MissingLibraryError(self)
        return self.environment.python

    def server(self, python: Path) -> EngineServer:
        """A process that has imported it. Raises `EngineError`."""
        return EngineServer(python, self.side, self.variables, self.name, SIDES / "answering.py")

    def install(self) -> bool:
        """Make its environment, and import it there; False if it is there. Raises `EngineError`."""
        needed = Requirements(
            self.distribution, self.environment.version, self.requirements[1:], gigabytes=self.gigabytes
        )
        return install(self.environment, needed, lambda python: self.server(python).stop())


class MissingLibraryError(UsageError):
    """A library that is not installed."""

    def __init__(self, library: Library) -> None:
        version = f"@{library.wanted}" if library.wanted else ""
        here = "" if version or library.variables else f"pip install {library.distribution}, or "
        super().__init__(f"{library.name}{version} is not installed: {here}{library.how_to_install}{version}")


@cache
def libraries() -> dict[str, Library]:
    """The libraries by their names; also those that are not installed."""
    every = (each for file in sorted(SIDES.glob(f"*{SUFFIX}.py")) for each in _of(file))
    return {each.name: each for each in every}


def _of(file: Path) -> list[Library]:
    """The libraries that a side is, read from its literal statements."""
    stated: dict[str, Any] = {}
    for node in ast.parse(file.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and node.targets[0].id in _STATED:
            stated[node.targets[0].id] = ast.literal_eval(node.value)
    name, size = file.stem.removesuffix(SUFFIX), stated.get("GIGABYTES", 1.0)
    own = stated.get("ENVIRONMENT", "")
    variants = stated.get("VARIANTS", {name: ({}, ())})
    return [
        Library(each, file, stated["PACKAGE"], (*stated["REQUIREMENTS"], *more), variables, size, "", own)
        for each, (variables, more) in variants.items()
    ]
