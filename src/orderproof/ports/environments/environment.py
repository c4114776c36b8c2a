"""The environment of an engine: a folder with an interpreter and pinned versions, in the cache folder of the user.

    $ORDERPROOF_ENGINES/NAME@VERSION      else  $XDG_CACHE_HOME/orderproof/engines, or ~/.cache/orderproof/engines

An environment is whole if it has its record, which is written last. A folder without one is what an interrupted install
left, and is removed by the next command.
"""

from __future__ import annotations

import datetime as dt
import json
import os
import shutil
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from orderproof.ports.engines.engine import EngineError
from orderproof.ports.source_package import cache_folder

RECORD = "orderproof-engine.json"
VARIABLE = "ORDERPROOF_ENGINES"


def engines_folder() -> Path:
    """The folder of all environments."""
    stated = os.environ.get(VARIABLE)
    return Path(stated).expanduser() if stated else cache_folder() / "engines"


@dataclass(frozen=True)
class Environment:
    """A folder that is, or may become, the environment of an engine."""

    name: str  # of the engine
    version: str

    @property
    def label(self) -> str:
        """Name and version: "vllm@0.32.0"."""
        return f"{self.name}@{self.version}"

    @property
    def folder(self) -> Path:
        """Its folder."""
        return engines_folder() / self.label

    @property
    def python(self) -> Path:
        """Its interpreter."""
        return self.folder / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")

    @cached_property
    def record(self) -> Mapping[str, Any]:
        """The record of the installation; empty if nothing whole is there."""
        try:
            return dict(json.loads((self.folder / RECORD).read_text(encoding="utf-8")))
        except (OSError, ValueError):
            return {}

    @property
    def is_installed(self) -> bool:
        """True if it is whole."""
        return bool(self.record) and self.python.exists()

    @property
    def age_days(self) -> int:
        """Days since it was installed."""
        return (dt.datetime.now(dt.UTC).date() - dt.date.fromisoformat(self.record["installed_on"])).days

    @property
    def size(self) -> int:
        """The size of its files [bytes]."""
        files = (Path(place) / name for place, _, names in os.walk(self.folder) for name in names)
        return sum(file.lstat().st_size for file in files)

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the lock of this environment; another process that installs or removes it is waited for."""
        engines_folder().mkdir(parents=True, exist_ok=True)
        with (engines_folder() / f"{self.label}.lock").open("w", encoding="utf-8") as file:
            if sys.platform != "win32":
                import fcntl

                fcntl.flock(file, fcntl.LOCK_EX)  # released when the process ends, however it ends
            yield

    def remove(self) -> None:
        """Remove it. Raises `EngineError` for a file that cannot be removed."""
        try:
            if self.folder.exists():
                shutil.rmtree(self.folder)
        except OSError as error:
            raise EngineError(f"{error.filename!r} of {self.label} cannot be removed: {error.strerror}") from None


def environments() -> list[Environment]:
    """All that are installed, by name."""
    folder = engines_folder()
    found = sorted(file.parent.name.rpartition("@") for file in folder.glob(f"*@*/{RECORD}"))
    return [Environment(name, version) for name, _, version in found]
