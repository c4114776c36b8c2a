"""Example inputs from a file of numpy: an array for each input, by the names of the inputs."""

from __future__ import annotations

import zipfile
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from orderproof.errors import UsageError, first_line


def read_example(path: Path) -> dict[str, Tensor]:
    """The arrays of a file of `numpy.savez` as tensors, by name. Raises `UsageError`."""
    what = f"expected --example with a file that numpy.savez wrote; {str(path)!r}"
    try:
        file = np.load(path, allow_pickle=False)
        if not isinstance(file, np.lib.npyio.NpzFile):  # an array, of a file of numpy.save, has no `with`
            raise UsageError(f"{what} has one array without a name")
        with file:
            arrays = {name: file[name] for name in file.files}
    except OSError as error:
        raise UsageError(f"{what} cannot be read: {error.strerror or first_line(error)}") from error
    except (ValueError, EOFError, zipfile.BadZipFile) as error:
        raise UsageError(f"{what} cannot be read: {first_line(error)}") from error
    if not arrays:
        raise UsageError(f"{what} has no arrays")
    try:
        return {name: torch.from_numpy(np.ascontiguousarray(array)) for name, array in arrays.items()}
    except TypeError as error:
        raise UsageError(f"{what} has an array of a type that torch lacks: {first_line(error)}") from error
