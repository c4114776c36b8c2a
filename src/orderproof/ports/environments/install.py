"""Make the environment of an engine: pinned versions through pip, with pip's own settings."""

from __future__ import annotations

import datetime as dt
import json
import platform
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from orderproof.ports.engines.engine import EngineError
from orderproof.ports.environments.environment import RECORD, VARIABLE, Environment, engines_folder
from orderproof.ports.source_package import kept_sources

GB = 10**9
SOURCES = "source"  # the folder of parts of a source package
_NO_SPACE = "No space left on device"
_CONFLICT = "ResolutionImpossible"
_NOT_FOUND = "No matching distribution found for "

Check = Callable[[Path], object]  # raises `EngineError` if the engine does not work with this interpreter


@dataclass(frozen=True)
class Requirements:
    """The packages of an environment."""

    distribution: str  # of the engine
    version: str  # the one that is installed if no other is asked for
    others: tuple[str, ...] = ()  # with their versions
    left_out: tuple[str, ...] = ()  # that pip chooses and that do not fit
    source: tuple[str, tuple[str, ...]] = ("", ())  # a folder of its source package, and the parts of it that it needs
    gigabytes: float = 1.0  # that an installation needs

    def pinned(self, version: str) -> list[str]:
        """All, as pip reads them."""
        return [f"{self.distribution}=={version}", *self.others]


def install(environment: Environment, requirements: Requirements, check: Check) -> bool:
    """Make an environment; False if it is there. Nothing of one that fails is left. Raises `EngineError`."""
    try:
        with environment.locked():
            whole = Environment(environment.name, environment.version)  # once more: another process may have made it
            if whole.is_installed:
                return False
            whole.remove()  # what an interrupted one left
            _check_space(requirements)
            try:
                _make(whole, requirements, check)
            except BaseException:
                shutil.rmtree(whole.folder, ignore_errors=True)
                raise
    except OSError as error:
        raise EngineError(f"{environment.label} cannot be installed in {engines_folder()}: {error.strerror}") from None
    return True


def _check_space(requirements: Requirements) -> None:
    free = shutil.disk_usage(engines_folder()).free
    if free < requirements.gigabytes * GB:
        raise EngineError(
            f"expected {requirements.gigabytes:g} GB free for {requirements.distribution} in {engines_folder()}; "
            f"there are {free / GB:.1f}: free some, or set {VARIABLE} to another folder"
        )


def _make(environment: Environment, requirements: Requirements, check: Check) -> None:
    label, python = environment.label, str(environment.python)
    _run([sys.executable, "-m", "venv", str(environment.folder)], label)
    pip = [python, "-m", "pip", "--disable-pip-version-check", "--no-input"]
    pinned = requirements.pinned(environment.version)
    try:
        _run([*pip, "install", "--quiet", *pinned], label)
    except EngineError as error:
        if environment.version == requirements.version or _CONFLICT not in str(error):
            raise
        pinned[1:] = [each.partition("==")[0] for each in pinned[1:]]  # another version may need others than the pins
        _run([*pip, "install", "--quiet", *pinned], label)
    if requirements.left_out:
        _run([*pip, "uninstall", "--quiet", "--yes", *requirements.left_out], label)
    root, parts = requirements.source
    if root:
        kept_sources(requirements.distribution, environment.version, root, parts, environment.folder / SOURCES)
    check(environment.python)
    today = dt.datetime.now(dt.UTC).date().isoformat()
    record = {"engine": environment.name, "version": environment.version, "requirements": pinned, "installed_on": today}
    (environment.folder / RECORD).write_text(json.dumps(record), encoding="utf-8")


def _run(command: Sequence[str], label: str) -> None:
    """Run a step. Raises `EngineError` with the line of its output that says why it failed."""
    done = subprocess.run(command, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
    if done.returncode == 0:
        return
    lines = [line.strip() for line in (done.stderr + done.stdout).splitlines() if line.strip()]
    errors = (
        [line.removeprefix("ERROR: ") for line in lines if line.startswith("ERROR: ")] or lines[-1:] or ["no output"]
    )
    if any(_NO_SPACE in line for line in lines):
        raise EngineError(f"{label} cannot be installed: no space is left on the disk of {engines_folder()}")
    if errors[-1].startswith(_NOT_FOUND):
        here = f"Python {platform.python_version()} on {platform.machine()} {platform.system()}"
        raise EngineError(f"{label} cannot be installed: pip finds no {errors[-1][len(_NOT_FOUND) :]} for {here}")
    raise EngineError(f"{label} cannot be installed: {errors[-1]}")
