"""The name of a source file in a report: never a path of this machine."""

from __future__ import annotations

from pathlib import Path, PurePath

_LIBRARY_FOLDERS = {"site-packages", "dist-packages"}
_OWN_PACKAGE = Path(__file__).parents[2]


def is_own_file(file: str) -> bool:
    """True for a file that is not part of an installed library."""
    return bool(file) and not file.startswith("<") and not _LIBRARY_FOLDERS & set(PurePath(file).parts)


def source_name(file: str) -> str:
    """The path of a user's file from the working directory, as in `src/model.py`; the name alone of any other file.

    CI servers show alerts at files by their path from the root of the repository, where the command runs.
    """
    name = file.replace("\\", "/").rsplit("/", 1)[-1]
    if not is_own_file(file) or _OWN_PACKAGE in Path(file).parents:
        return name
    try:
        return Path(file).resolve().relative_to(Path.cwd().resolve()).as_posix()
    except (OSError, ValueError):  # it is elsewhere, or the working directory is gone
        return name
