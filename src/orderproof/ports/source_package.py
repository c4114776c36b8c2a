"""Files of a source package that its wheel lacks: of the installed version, through pip, kept in the cache folder."""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterable
from importlib import metadata
from pathlib import Path

from orderproof.ports.engines.engine import EngineError

PIP_SECONDS = 600.0


def source_folder(distribution: str, root: str, parts: Iterable[str]) -> Path:
    """The folder ``root`` of the source package of an installed distribution, with these parts of it.

    ``parts`` are files and folders in it. Raises `EngineError` if there is no source package.
    """
    try:
        version = metadata.version(distribution)
    except metadata.PackageNotFoundError:
        raise EngineError(f"{distribution} is not installed") from None
    return kept_sources(distribution, version, root, parts, cache_folder() / f"{distribution}-{version}")


def kept_sources(distribution: str, version: str, root: str, parts: Iterable[str], kept: Path) -> Path:
    """The folder ``kept``, with these parts of the folder ``root`` of a source package.

    pip is run once for each version, without dependencies; it verifies the file with the hash that the index states.
    Raises `EngineError` if there is no source package.
    """
    if not kept.is_dir():
        try:
            kept.parent.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(dir=kept.parent) as place:
                archive = _download(distribution, version, Path(place))
                _unpack(archive, root, tuple(parts), Path(place) / "parts")
                (Path(place) / "parts").replace(kept)
        except OSError as error:
            if not kept.is_dir():  # another process may have been faster
                raise EngineError(f"the source package of {distribution} cannot be kept: {error}") from error
    return kept


def cache_folder() -> Path:
    """The folder of kept files: `orderproof` in `XDG_CACHE_HOME`, or in `~/.cache`."""
    stated = os.environ.get("XDG_CACHE_HOME")
    return (Path(stated) if stated else Path.home() / ".cache") / "orderproof"


def _download(distribution: str, version: str, place: Path) -> Path:
    """The archive of the sources."""
    command = [
        sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-binary", distribution,
        "--dest", str(place / "archive"), f"{distribution}=={version}",
    ]  # fmt: skip
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=PIP_SECONDS)
    except subprocess.TimeoutExpired:
        raise EngineError(f"pip was not done after {PIP_SECONDS:g} s with the sources of {distribution}") from None
    found = sorted((place / "archive").glob("*.tar.gz")) if done.returncode == 0 else []
    if not found:
        errors = [line for line in done.stderr.splitlines() if line.startswith("ERROR")] or ["ERROR: no archive"]
        raise EngineError(f"pip does not find the source package of {distribution}: {errors[-1][len('ERROR: ') :]}")
    return found[0]


def _unpack(archive: Path, root: str, parts: tuple[str, ...], target: Path) -> None:
    """Write these parts of the folder `root` of an archive."""
    with tarfile.open(archive) as file:
        for member in file.getmembers():
            name = member.name.partition("/")[2]  # without the folder of the package
            inner = name.removeprefix(f"{root}/")
            if name != inner and any(inner == part or inner.startswith(f"{part}/") for part in parts):
                member.name = inner
                file.extract(member, target, filter="data")
    if not target.is_dir():
        raise EngineError(f"{archive.name} has none of {', '.join(parts)} in {root}")
