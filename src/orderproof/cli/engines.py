"""`orderproof engines`: install, list and remove the environments of engines that need other versions of libraries."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Literal

import typer
from rich.table import Table

from orderproof.cli.console import new_console
from orderproof.errors import UsageError

if TYPE_CHECKING:
    from orderproof.conventions.library import Library
    from orderproof.ports.engines.environment_engine import EnvironmentEngine
    from orderproof.ports.environments.environment import Environment

GB = 10**9
ENGINES, LIBRARIES = "engine of --against", "library of conventions"


def engines(
    action: Annotated[Literal["install", "list", "remove"], typer.Argument(help="What to do.")],
    names: Annotated[
        list[str] | None, typer.Argument(metavar="NAME", help="Engines or libraries, each as NAME or NAME@VERSION.")
    ] = None,
) -> None:
    """Install, list or remove environments of engines, and of the libraries that `orderproof conventions` asks.

    Each has pinned versions, in the cache folder of the user, or in the folder that ORDERPROOF_ENGINES names. pip reads
    its own settings. An engine is ready when it could be imported; an installation that fails leaves nothing.

    \b
    Examples:
      orderproof engines list
      orderproof engines install onnxruntime-genai
      orderproof engines install mlx@0.31.0 jax    another version of an engine, and a library
      orderproof engines remove onnxruntime-genai
      orderproof audit arch:llama --against onnxruntime-genai
    """
    if (action == "list") == bool(names):
        raise UsageError(
            f"expected {'no NAME' if names else 'a NAME'} with engines {action}; see orderproof engines list"
        )
    chosen = [_engine(name) for name in names or ()]
    {"install": _install, "list": lambda _: _list(), "remove": _remove}[action](chosen)


def _engine(name: str) -> EnvironmentEngine | Library:
    """The engine, or the library of `orderproof conventions`, that a name means. Raises `UsageError`."""
    from orderproof.conventions.library import libraries
    from orderproof.ports.engines.environment_engine import EnvironmentEngine
    from orderproof.ports.engines.registry import engines as known
    from orderproof.ports.engines.registry import find_engine

    plain, _, version = name.partition("@")
    of_libraries = {each.environment.name: each for each in libraries().values()}
    if plain in of_libraries:
        return replace(of_libraries[plain], wanted=version)
    engine = find_engine(name)
    if not isinstance(engine, EnvironmentEngine) or ":" in name:
        own = ", ".join(each.name for each in known().values() if each.has_environment)
        how = f": {engine.how_to_install}" if engine.how_to_install and not engine.has_environment else ""
        raise UsageError(
            f"expected an engine with an environment of its own, one of {own}, or a library of orderproof conventions "
            f"--list; got {name}{how}"
        )
    return engine


def _install(chosen: Sequence[EnvironmentEngine | Library]) -> None:
    console = new_console()
    for engine in chosen:
        label = engine.environment.label
        console.print(f"installing {label} in {engine.environment.folder}", soft_wrap=True)
        made = engine.install()
        console.print(f"{label}: {'installed' if made else 'was installed before'}, {_size(engine.environment)}")


def _remove(chosen: Sequence[EnvironmentEngine | Library]) -> None:
    for engine in chosen:
        environment = engine.environment
        if not environment.folder.exists():
            raise UsageError(f"expected an installed environment; there is no {environment.folder}")
        size = _size(environment)
        with environment.locked():
            environment.remove()
        new_console().print(f"{environment.label}: removed, {size}")


def _list() -> None:
    from orderproof.conventions.library import libraries
    from orderproof.ports.engines.registry import engines as known
    from orderproof.ports.environments.environment import environments

    wanted = {
        ENGINES: {each.name: each.how_to_install for each in known().values() if each.has_environment},
        LIBRARIES: {each.environment.name: each.how_to_install for each in libraries().values()},
    }
    here = {each.environment.name for each in libraries().values() if each.version_here}
    installed = environments()
    there = {each.name for each in installed}
    console = new_console()
    for heading, commands in wanted.items():
        table = Table(box=None, pad_edge=False, header_style="bold")
        for column in (heading, "size", "age", "folder or command"):
            table.add_column(column, overflow="fold")
        for each in installed:
            if (each.name in wanted[LIBRARIES]) == (heading == LIBRARIES):
                table.add_row(each.label, _size(each), f"{each.age_days} days", str(each.folder))
        for name, command in commands.items():
            if name not in there | here:
                table.add_row(name, "not installed", "", command)
        console.print(*[""] * (heading == LIBRARIES), table, sep="\n")


def _size(environment: Environment) -> str:
    return f"{environment.size / GB:.2f} GB"
