"""An engine with an environment of its own, or in an interpreter that the user names: NAME, NAME@VERSION, NAME:PYTHON.

One whose library exports folders takes such a folder in place of the checkpoint: NAME:FOLDER.

Its file here states pinned requirements; the file that loads checkpoints is `engine_side/NAME_side.py`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from orderproof.errors import UsageError
from orderproof.ports.engines.engine import EngineError, InferenceEngine, LoadedModel
from orderproof.ports.environments.environment import Environment
from orderproof.ports.environments.install import Requirements, install

if TYPE_CHECKING:
    from orderproof.ports.engine_process import LoadRequest
    from orderproof.ports.environments.process import EngineServer, ServedEngine

_VERSION = re.compile(r"\d+(\.\w+)*")


@dataclass(frozen=True, kw_only=True)
class EnvironmentEngine(InferenceEngine):
    """An engine that runs in another interpreter."""

    requirements: Requirements
    side: str  # the name of its file in `engine_side`, or the path of another one
    variables: Mapping[str, str] = field(default_factory=dict, hash=False)  # of its process
    wanted: str = ""  # the version of NAME@VERSION
    interpreter: str = ""  # of NAME:PYTHON
    exported: str = ""  # the file that every folder has that its library exported
    has_environment: bool = True

    @property
    def environment(self) -> Environment:
        """Its environment, installed or not."""
        return Environment(self.plain_name.partition("@")[0], self.wanted or self.requirements.version)

    @property
    def plain_name(self) -> str:
        """Its name without an exported folder."""
        return self.name.partition(":")[0]

    def for_version(self, version: str) -> InferenceEngine:
        if not _VERSION.fullmatch(version):
            raise UsageError(
                f"expected a version as {self.name}@{self.requirements.version}; got {self.name}@{version}"
            )
        return replace(self, name=f"{self.name}@{version}", wanted=version)

    def for_target(self, target: str) -> InferenceEngine:
        path = Path(target).expanduser()
        if self.exported and (path / self.exported).is_file():
            return replace(self, name=f"{self.name}:{target}", target=str(path.absolute()), reads_config=False)
        if not path.is_file():
            folder = f", or a folder with {self.exported}" if self.exported else ""
            raise UsageError(f"expected the interpreter of an environment with {self.name}{folder}; no file {target}")
        return replace(self, interpreter=str(path.absolute()))

    @property
    def is_installed(self) -> bool:
        return bool(self.interpreter) or self.environment.is_installed

    @property
    def version(self) -> str:
        found = self.versions
        return f"{self.distribution} {found[self.distribution]}" if found else self.distribution

    @property
    def versions(self) -> Mapping[str, str]:
        if self.interpreter:
            with suppress(EngineError):  # a finding says why it cannot be imported
                return {self.distribution: self.server().versions.get(self.distribution, "of another name")}
        known = not self.interpreter and self.is_installed
        return {self.distribution: self.environment.version} if known else {}

    @property
    def import_seconds(self) -> float:
        return float(self.server().head["seconds"])

    @property
    def missing(self) -> str:
        return f"{self.name} is not installed: {self.how_to_install}"

    @property
    def how_to_install(self) -> str:
        return f"orderproof engines install {self.plain_name}"

    def server(self, python: Path | None = None) -> EngineServer:
        """The process that has imported the engine; started on its first use. Raises `EngineError`."""
        from orderproof.ports.environments.process import SIDES, server_of

        chosen = python or (Path(self.interpreter) if self.interpreter else self.environment.python)
        return server_of(chosen, SIDES / self.side, self.variables, self.name)

    def prepare(self) -> None:
        self.server()

    def open_process(self, request: LoadRequest) -> ServedEngine:
        from orderproof.ports.environments.process import ServedEngine

        if self.target:  # a folder of its own says what it is
            request = replace(request, folder=Path(self.target), model_type="")
        return ServedEngine(self.server(), request)

    def load(self, folder: Path) -> LoadedModel:
        raise NotImplementedError  # in its own interpreter

    def install(self) -> bool:
        """Make the environment, and import the engine in it; False if it is there. Raises `EngineError`."""
        return install(self.environment, self.requirements, self._check)

    def _check(self, python: Path) -> Any:
        return self.server(python)
