"""Programs that torch.export saved (`.pt2`), read without pickle.

The archive holds a graph as text and weights as plain bytes. It may also hold pickles, which can run code when they are
opened: such an archive is refused, with the entry that is one.
"""

from __future__ import annotations

import io
import json
import zipfile
from pathlib import Path
from typing import Any

import torch
from torch.export import ExportedProgram

from orderproof.errors import SubjectError, first_line

_KINDS = ("weights", "constants")


def load_program(path: Path) -> ExportedProgram:
    """The program in a file. Raises `SubjectError` for a file that is none, or that holds a pickle."""
    try:
        with zipfile.ZipFile(path) as archive:
            _check_archive(archive, path)
    except (OSError, zipfile.BadZipFile, ValueError, KeyError, TypeError, AttributeError) as error:
        raise SubjectError(f"{path}: it cannot be read as an archive of torch.export: {first_line(error)}") from error
    try:
        return torch.export.load(path)
    except Exception as error:  # an operator that is not registered, or a version that torch cannot read
        raise SubjectError(f"{path}: torch {torch.__version__} cannot load the program: {first_line(error)}") from error


def _check_archive(archive: zipfile.ZipFile, path: Path) -> None:
    """Raises `SubjectError` for an archive with a pickle."""
    names = archive.namelist()
    root = names[0].partition("/")[0]
    if f"{root}/archive_format" not in names or archive.read(f"{root}/archive_format") != b"pt2":
        raise SubjectError(f"{path}: expected an archive of torch.export; save the program with torch.export.save")
    for name in names:
        folder, file = name.removeprefix(f"{root}/").rpartition("/")[::2]
        if folder in (f"data/{kind}" for kind in _KINDS) and file.endswith("_config.json"):
            entries: dict[str, Any] = json.loads(archive.read(name)).get("config", {})
            if pickled := [key for key, entry in entries.items() if entry.get("use_pickle")]:
                raise _pickle_refused(path, pickled[0])
        if folder == "data/sample_inputs":
            try:
                torch.load(io.BytesIO(archive.read(name)), weights_only=True)
            except Exception as error:
                raise _pickle_refused(path, "its sample inputs") from error


def _pickle_refused(path: Path, what: str) -> SubjectError:
    return SubjectError(
        f"{path}: {what} is stored as a pickle, which can run code when it is opened, so it is not; export the module "
        "with plain dense tensors"
    )
