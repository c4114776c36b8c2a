"""A model of transformers saved into a temporary folder, once for all laws that load it."""

from __future__ import annotations

import shutil
import tempfile
import weakref
from pathlib import Path
from typing import Any

from orderproof.adapter import copy_sharing_parameters
from orderproof.weight_bits import weight_bits


class SavedCheckpoint:
    """The last model that was saved. Its folder is removed with this object."""

    def __init__(self) -> None:
        self._state: tuple[dict[str, int], str] | None = None
        self._folder = Path()

    def folder_of(self, model: Any) -> Path:
        """The folder with a model; saves it, unless the last one had the same weights, buffers and configuration."""
        state = weight_bits(model), f"{type(model)} {model.config}"
        if state != self._state:
            folder = tempfile.mkdtemp(prefix="orderproof-")
            weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
            saved = copy_sharing_parameters(model)
            saved.save_pretrained(folder)  # which writes into its configuration
            self._state, self._folder = state, Path(folder)
        return self._folder
